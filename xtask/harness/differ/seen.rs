//! What both sides did with a case, and what the diff shows of the cause.

use crate::case::Case;
use crate::git::Theirs;
use crate::memory::{Tree, code};
use crate::ours::Ours;
use crate::proof::Proof;
use crate::section::{Reading, all_paths, sections};

/// Who applies a diff of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    Git,
    Aptix,
    /// Both, to different trees.
    Both,
}

/// A case with what both sides did.
pub(crate) struct Seen<'a> {
    pub(crate) case: &'a Case,
    pub(crate) ours: &'a Ours,
    pub(crate) theirs: &'a Theirs,
    /// How far git agrees once the diff is written anew.
    pub(crate) proof: Proof,
}

impl Seen<'_> {
    pub(crate) fn by(&self) -> Option<By> {
        match (self.ours, self.theirs) {
            (Ours::Applied { .. }, Theirs::Applied(_)) => Some(By::Both),
            (Ours::Applied { .. }, Theirs::Refused(_)) => Some(By::Aptix),
            (Ours::Refused(_), Theirs::Applied(_)) => Some(By::Git),
            (Ours::Refused(_), Theirs::Refused(_)) => None,
        }
    }

    /// Whether Aptix refuses with one of these reasons, or of these reasons and details.
    pub(crate) fn refuses(&self, codes: &[&str]) -> bool {
        let Ours::Refused(failure) = self.ours else { return false };
        let code = code(failure);
        codes
            .iter()
            .any(|wanted| code == *wanted || code.strip_prefix(*wanted).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Whether Aptix warns of something.
    pub(crate) fn warns(&self, code: &str) -> bool {
        matches!(self.ours, Ours::Applied { warnings, .. } if warnings.iter().any(|warning| warning == code))
    }

    /// Whether git says one of these things.
    pub(crate) fn git_says(&self, kinds: &[&str]) -> bool {
        matches!(self.theirs, Theirs::Refused(message) if kinds.contains(&kind(message).as_str()))
    }

    pub(crate) fn has_line(&self, is_it: impl Fn(&[u8]) -> bool) -> bool {
        self.case.diff.split(|byte| *byte == b'\n').any(is_it)
    }

    /// Whether a hunk has no line of context, as it counts.
    pub(crate) fn has_hunk_without_context(&self) -> bool {
        let sections = sections(&self.case.diff);
        let mut hunks = sections.iter().flat_map(|section| &section.hunks);
        hunks.any(|hunk| hunk.lines.iter().all(|line| matches!(line.first(), Some(b'+' | b'-' | b'\\'))))
    }

    /// The files that are not alike in the trees of both, ours first.
    pub(crate) fn unlike(&self) -> Option<Vec<(&[u8], &[u8])>> {
        let (ours, theirs) = self.trees()?;
        let is_same = ours.len() == theirs.len()
            && ours
                .iter()
                .zip(theirs)
                .all(|((path, ours), (other, theirs))| path == other && ours.is_executable == theirs.is_executable);
        let pairs = ours.values().zip(theirs.values()).filter(|(ours, theirs)| ours != theirs);
        is_same.then(|| pairs.map(|(ours, theirs)| (ours.bytes.as_slice(), theirs.bytes.as_slice())).collect())
    }

    /// The lines that begin the sections, and those that name files that move.
    pub(crate) fn headers(&self) -> impl Iterator<Item = String> {
        const NAMING: [&[u8]; 5] = [b"diff --git ", b"rename from ", b"rename to ", b"copy from ", b"copy to "];
        let lines = self.case.diff.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| NAMING.iter().any(|start| line.starts_with(start)));
        lines.map(|line| String::from_utf8_lossy(line).replace('\\', "/"))
    }

    /// Whether the names of a section begin with git's own prefix.
    pub(crate) fn has_prefixed_section(&self) -> bool {
        const STARTS: [&[u8]; 3] = [b"diff --git a/", b"diff --git \"a/", b"--- a/"];
        self.has_line(|line| STARTS.iter().any(|start| line.starts_with(start)))
    }

    /// Whether several diffs may follow one another.
    pub(crate) fn is_in_parts(&self) -> bool {
        ["mail", "series"].iter().any(|way| self.case.is_written(way))
    }

    /// Whether one section takes a name away from a file, and another one gives it to a file.
    pub(crate) fn has_freed_name(&self) -> bool {
        let sections = sections(&self.case.diff);
        let paths = all_paths(&sections, &self.case.tree, Reading::ByFile).unwrap_or_default();
        let mut moved = paths.iter().filter(|paths| paths.old != paths.new);
        moved.any(|freed| {
            freed.old.is_some() && paths.iter().any(|paths| paths.new == freed.old && paths.old != freed.old)
        })
    }

    /// Whether a line is blank, without the sign of a context line.
    pub(crate) fn has_blank_line(&self) -> bool {
        self.has_line(|line| line.trim_ascii().is_empty() && !line.starts_with(b" "))
    }

    /// What Aptix made.
    pub(crate) fn our_tree(&self) -> Option<&Tree> {
        match self.ours {
            Ours::Applied { tree, .. } => Some(tree),
            Ours::Refused(_) => None,
        }
    }

    /// The trees of both.
    pub(crate) fn trees(&self) -> Option<(&Tree, &Tree)> {
        match (self.ours, self.theirs) {
            (Ours::Applied { tree, .. }, Theirs::Applied(theirs)) => Some((tree, theirs)),
            _ => None,
        }
    }
}

/// What git says, without names and numbers.
pub(crate) fn kind(message: &str) -> String {
    const KINDS: [&str; 20] = [
        "patch with only garbage",
        "No valid patches",
        "corrupt patch",
        "patch fragment without header",
        "does not apply",
        "No such file",
        "already exists in working directory",
        "does not exist in index",
        "lacks filename information",
        "inconsistent",
        "removal patch leaves file contents",
        "depends on old contents",
        "cannot apply binary patch",
        "unrecognized input",
        "git diff header",
        "invalid mode",
        "wrong type",
        "has type",
        "invalid path",
        "unable to",
    ];
    let known = KINDS.iter().find(|kind| message.contains(**kind));
    let first = || message.lines().find(|line| line.starts_with("error")).unwrap_or(message).to_owned();
    known.map_or_else(first, |kind| (*kind).to_owned())
}
