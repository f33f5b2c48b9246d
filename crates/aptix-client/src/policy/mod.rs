//! What a person lets batches do: their own policy file, made stricter by those of the roots.
//!
//! Nothing here reads a file: `document` parses a text, `files` finds it, and this merges and decides.

pub(crate) mod allow;
pub mod caller;
pub mod choices;
pub(crate) mod disclosure;
pub(crate) mod document;
pub(crate) mod egress;
pub mod files;
pub(crate) mod glob;
pub(crate) mod ignore_rules;
#[cfg(any(feature = "agent", feature = "mcp"))]
pub(crate) mod maintenance;
pub(crate) mod paths;
pub(crate) mod places;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aptix_engine::planning::settings::Suspicion;
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::fold;
use aptix_model::reason::{Detail, Reason};
use aptix_model::session::restricted;

use crate::workspace::keep::history::prune::Retention;

use self::caller::Caller;
use self::choices::{Deletions, Excerpts, HardLinks, Links, ReportLocal, Several, WriteMode};
use self::document::{Author, Stated};
use self::paths::{Listed, Named, Patterns, Rules};

/// How many batches are refused in a minute before the next one waits.
pub const REFUSED_PER_MINUTE: NonZeroU32 = NonZeroU32::new(60).unwrap();

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What holds for a batch.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Who sends edits and asks for files.
    pub caller: Caller,
    /// How large anything may be.
    pub limits: Limits,
    /// Whether links that stay in a root are followed.
    pub links: Links,
    /// Whether old text may differ from the file in white space.
    pub recovers: bool,
    /// What becomes of an edit of one occurrence where there are several.
    pub once_with_several: Several,
    /// What becomes of new text that does not look like the content of a file.
    pub suspect_content: Suspicion,
    /// Whether a person is asked before a file is deleted.
    pub deletions: Deletions,
    /// How much of what batches change is kept for undoing.
    pub retention: Retention,
    /// How long a person who is asked may take.
    pub approval: Duration,
    /// When a server is shown lines and digests of what it may read.
    pub excerpts: Excerpts,
    /// Whether a server is shown files with more than one name.
    pub hard_links: HardLinks,
    /// Whether a server is told of changes that no batch of its own made.
    pub report_local: ReportLocal,
    /// How many batches of a server are refused in a minute before the next one waits.
    pub refused_per_minute: NonZeroU32,
    /// Files that hold no secrets, whatever their names.
    no_secrets: Patterns,
    /// The file with `mode = "restricted"`, if there is one.
    restricted_by: Option<PathBuf>,
    /// What the policy files say about paths.
    rules: Vec<Rules>,
    /// Where in a root policy itself is kept: the root, from 0, and the folded path of a file or directory.
    own: Vec<(usize, String)>,
}

/// What the lists say about a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Nobody is asked.
    Allowed,
    /// The lists say nothing.
    Usual,
    /// A person has to agree.
    Asked(Listed),
}

impl Policy {
    /// The same, but in the mode of another one.
    #[must_use]
    pub fn in_mode_of(&self, other: &Self) -> Self {
        Self { restricted_by: other.restricted_by.clone(), ..self.clone() }
    }

    /// What holds for a caller without any file.
    #[must_use]
    pub fn unstated(caller: Caller) -> Self {
        Self {
            caller,
            limits: Limits::DEFAULT,
            links: Links::Follow,
            recovers: true,
            once_with_several: Several::First,
            suspect_content: Suspicion::Refuse,
            deletions: match caller {
                Caller::Shell => Deletions::Allow,
                Caller::Server | Caller::Model => Deletions::Ask,
            },
            retention: Retention::DEFAULT,
            approval: Duration::from_secs(3600),
            excerpts: Excerpts::Readable,
            hard_links: HardLinks::Withhold,
            report_local: ReportLocal::On,
            refused_per_minute: REFUSED_PER_MINUTE,
            no_secrets: Patterns::default(),
            restricted_by: None,
            rules: Vec::new(),
            own: Vec::new(),
        }
    }

    /// Merges the user's own file; `roots` are the paths of the roots.
    pub(crate) fn stated(mut self, mut stated: Stated, file: PathBuf, roots: &[&Path]) -> Self {
        self.no_secrets = std::mem::take(&mut stated.no_secrets);
        for (root, lists) in std::mem::take(&mut stated.roots) {
            if let Some(root) = roots.iter().position(|path| *path == root) {
                self.rules.push(Rules { root: Some(root), file: file.clone(), lists, reads: None });
            }
        }
        self.merged(stated, None, file)
    }

    /// Merges a policy file: what the user's own says, holds; of the file of a root, what is stricter, and it allows nothing.
    #[must_use]
    pub(crate) fn merged(mut self, stated: Stated, root: Option<usize>, file: PathBuf) -> Self {
        let document = stated.document;
        let author = if root.is_none() { Author::Person } else { Author::Root };
        if document.mode == Some(WriteMode::Restricted) && self.restricted_by.is_none() {
            self.restricted_by = Some(file.clone());
        }
        merge(author, &mut self.links, document.links, Ord::max);
        merge(author, &mut self.recovers, document.recovery, Ord::min);
        merge(author, &mut self.once_with_several, document.once_with_several, Ord::max);
        merge(author, &mut self.suspect_content, document.suspect_content, Ord::max);
        merge(author, &mut self.deletions, document.deletions, Ord::max);
        merge(author, &mut self.approval, document.approval_seconds.map(Duration::from_secs), Ord::min);
        merge(author, &mut self.excerpts, document.excerpts, Ord::max);
        merge(author, &mut self.hard_links, document.hard_links, Ord::max);
        merge(author, &mut self.report_local, document.report_local, Ord::max);
        merge(author, &mut self.refused_per_minute, document.limits.refused_per_minute, Ord::min);
        merge(author, &mut self.limits.files, document.limits.files, Ord::min);
        merge(author, &mut self.limits.file_bytes, document.limits.file_bytes, Ord::min);
        if let Some(bytes) = document.limits.file_bytes {
            self.limits.created_bytes = self.limits.created_bytes.min(bytes);
        }
        // Only the user's own file has it.
        if let Some(history) = document.history {
            let history = history.into_inner();
            self.retention.age = history.days.map_or(self.retention.age, |days| DAY * days);
            self.retention.bytes = history.bytes.unwrap_or(self.retention.bytes);
        }
        self.rules.push(Rules { root, file, lists: stated.lists, reads: stated.reads });
        self
    }

    /// Closes a file or directory of a root in which policy itself is kept; `""` closes the whole root.
    #[must_use]
    pub fn closing(mut self, root: usize, path: &str) -> Self {
        self.own.push((root, fold(path)));
        self
    }

    /// Whether anything may be written for a batch, or planned that a later step writes. To be asked before any file is
    /// read.
    ///
    /// # Errors
    /// A policy file has `mode = "restricted"`: the failure has the required message.
    pub fn may_write(&self) -> Result<(), Failure> {
        let Some(file) = &self.restricted_by else { return Ok(()) };
        let hint = format!(
            "{} says mode = \"restricted\"; once a person has made that \"unrestricted\", the next batch can be applied",
            file.display()
        );
        Err(restricted(&hint))
    }

    fn is_own(&self, root: usize, path: &str) -> bool {
        let is_in = |own: &str| {
            own.is_empty() || fold(path).strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.own.iter().any(|(of, own)| *of == root && is_in(own))
    }

    /// Whether a file may be looked at at all.
    ///
    /// # Errors
    /// It is denied, under any of its names.
    pub(crate) fn open(&self, file: Named<'_>) -> Result<(), Denial> {
        if file.names().any(|path| self.is_own(file.root, path)) {
            return Err(Denial::Own { real: file.real.to_owned() });
        }
        let denied = |rules: &Rules| rules.listed("deny", &rules.lists.deny, file);
        self.rules_for(file.root).find_map(denied).map_or(Ok(()), Err)?;
        if self.links == Links::Refuse && file.path != file.real {
            return Err(Denial::Link { real: file.real.to_owned() });
        }
        Ok(())
    }

    /// Whether a list denies files of a root.
    pub(crate) fn denies_anything(&self, root: usize) -> bool {
        self.rules_for(root).any(|rules| !rules.lists.deny.is_empty())
    }

    /// What the lists say about changing a file: to ask beats to allow.
    pub(crate) fn access(&self, file: Named<'_>) -> Access {
        match self.rules_for(file.root).find_map(|rules| rules.listed("ask", &rules.lists.ask, file)) {
            Some(listed) => Access::Asked(listed),
            // A root's file has no list of what is allowed.
            None if self.rules_for(file.root).any(|rules| rules.allows(file)) => Access::Allowed,
            None => Access::Usual,
        }
    }

    fn rules_for(&self, root: usize) -> impl Iterator<Item = &Rules> {
        self.rules.iter().filter(move |rules| rules.is_about(root))
    }
}

/// Replaces what holds by what a file states; where it is the file of a root, only by what is stricter.
fn merge<T: Copy>(author: Author, held: &mut T, stated: Option<T>, stricter: fn(T, T) -> T) {
    if let Some(stated) = stated {
        *held = match author {
            Author::Person => stated,
            Author::Root => stricter(stated, *held),
        };
    }
}

/// Why policy closes a file to every batch.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Denial {
    /// It is on a list.
    #[error(transparent)]
    Listed(#[from] Listed),
    /// It holds the policy itself.
    #[error("the file belongs to Aptix itself and is never edited ({real:?})")]
    Own { real: String },
    /// A link leads to it.
    #[error("it is reached by a link, and policy says links = \"refuse\"; its real path is {real:?}")]
    Link { real: String },
}

impl Denial {
    /// The failure for the author of the edit.
    pub(crate) fn failure(&self) -> Failure {
        let (detail, hint) = match self {
            Self::Listed(_) => (Detail::Denied, "leave this file out of the batch; no answer opens it"),
            Self::Own { .. } => (Detail::Protected, "leave this file out of the batch; no answer opens it"),
            Self::Link { .. } => (Detail::Symlink, "name the file by its real path"),
        };
        Failure::new(Reason::PolicyDenied, self.to_string()).detail(detail).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::document::parse;
    use super::*;

    fn merged(own: &str, of_roots: &[&str]) -> Policy {
        let own = parse(own.as_bytes(), Author::Person).unwrap();
        let policy =
            Policy::unstated(Caller::Server).stated(own, "own".into(), &[Path::new("/one"), Path::new("/two")]);
        of_roots.iter().enumerate().fold(policy, |policy, (index, text)| {
            policy.merged(parse(text.as_bytes(), Author::Root).unwrap(), Some(index), format!("root {index}").into())
        })
    }

    #[test]
    fn the_stricter_of_both_holds() {
        let shown = |policy: &Policy| {
            let Policy { limits, links, once_with_several: several, deletions, approval, .. } = policy;
            let recovery = if policy.recovers { "On" } else { "Off" };
            let suspicion = policy.suspect_content;
            let Limits { files, file_bytes, .. } = limits;
            let mode = if policy.may_write().is_ok() { "Writes" } else { "Restricted" };
            format!(
                "{mode} {links:?} {recovery} {several:?} {suspicion:?} {deletions:?} {approval:?} {files} {file_bytes}"
            )
        };
        let loose = "mode = 'unrestricted'\nlinks = 'follow'\nrecovery = true\nonce_with_several = 'first'\n\
                     suspect_content = 'warn'\ndeletions = 'allow'\n\
                     approval_seconds = 5000\n                     limits = { files = 20000, file_bytes = 1000 }";
        let strict = "mode = 'restricted'\nlinks = 'refuse'\nrecovery = false\nonce_with_several = 'refuse'\n\
                      suspect_content = 'refuse'\ndeletions = 'ask'\n\
                      approval_seconds = 9\n                      limits = { files = 5, file_bytes = 10 }";
        let [default, of_loose, of_strict] = [
            "Writes Follow On First Refuse Ask 3600s 10000 268435456",
            "Writes Follow On First Warn Allow 5000s 20000 1000",
            "Restricted Refuse Off Refuse Refuse Ask 9s 5 10",
        ];
        let cases: [(&str, &[&str], &str); 9] = [
            ("", &[], default),
            (loose, &[], of_loose),
            (strict, &[], of_strict),
            ("", &[strict], of_strict),
            (loose, &[strict], of_strict),
            (strict, &[loose], of_strict),
            (loose, &["", loose], of_loose),
            (loose, &["", strict], of_strict),
            // A root cannot loosen a default.
            ("", &[loose], "Writes Follow On First Refuse Ask 3600s 10000 1000"),
        ];
        for (own, of_roots, expected) in cases {
            assert_eq!(shown(&merged(own, of_roots)), expected, "{own} and {of_roots:?}");
        }
    }

    /// REQ-PATCH-009.2: the words are the requirement's, and the hint is for the person who can change it.
    #[test]
    fn who_may_not_write_is_told_which_file_says_so() {
        let refused = |own: &str, of_roots: &[&str]| merged(own, of_roots).may_write().unwrap_err();
        let [own, of_root] =
            [refused("mode = 'restricted'", &["mode = 'restricted'"]), refused("", &["", "mode = 'restricted'"])];
        for failure in [&own, &of_root] {
            let words = "Patch tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.";
            assert_eq!(failure.message, words);
            assert_eq!((failure.reason, failure.detail), (Reason::PolicyDenied, Some(Detail::RestrictedMode)));
        }
        assert!(own.hint.unwrap().starts_with("own says mode ="));
        assert!(of_root.hint.unwrap().starts_with("root 1 says mode ="));
    }

    #[test]
    fn every_list_is_asked_and_the_strictest_answer_holds() {
        let policy = merged(
            "deny = ['a']\nask = ['b']\nallow = ['a', 'b', 'c', 'd', 'e']\n[roots.'/two/']\nallow = ['f']\n[roots.'/three']\ndeny = ['f']",
            &["deny = ['c']", "ask = ['d']"],
        );
        let answer = |root, path| {
            let file = Named { root, path, real: path };
            match (policy.open(file), policy.access(file)) {
                (Err(denial), _) => denial.to_string(),
                (Ok(()), access) => format!("{access:?}"),
            }
        };
        assert_eq!(answer(0, "A"), "own has it under deny as \"a\"");
        assert!(answer(0, "x/b/y").starts_with("Asked("));
        assert_eq!(answer(0, "c"), "root 0 has it under deny as \"c\"");
        assert_eq!(answer(1, "c"), "Allowed");
        assert_eq!(answer(0, "d"), "Allowed");
        assert!(answer(1, "d").starts_with("Asked("));
        assert_eq!((answer(0, "f").as_str(), answer(1, "f").as_str()), ("Usual", "Allowed"));
        assert_eq!(answer(1, "z"), "Usual");
        let linked = Named { root: 0, path: "e", real: "elsewhere" };
        assert_eq!(policy.access(linked), Access::Usual, "it is allowed by each of its names or not at all");
        assert_eq!(
            policy.open(Named { root: 0, path: "z", real: "a/z" }).unwrap_err().failure().reason,
            Reason::PolicyDenied
        );
    }
}
