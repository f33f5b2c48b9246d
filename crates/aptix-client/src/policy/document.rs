//! A policy file's text, read strictly: a key that is not known, or a value that is none, is an error with its line.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aptix_engine::planning::settings::Suspicion;
use serde::Deserialize;
use toml::Spanned;

use super::choices::{Deletions, Excerpts, HardLinks, Links, Reads, Recovery, Several, WriteMode};
use super::paths::{Lists, Patterns, Room};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What one policy file says.
#[derive(Clone, Debug, Default)]
pub struct Stated {
    /// The lists of paths in every root.
    pub lists: Lists,
    /// The lists of paths in one root, by its absolute path.
    pub roots: Vec<(PathBuf, Lists)>,
    /// The patterns that begin with a slash, by their lines.
    pub anchored: Vec<(usize, String)>,
    /// The line of the key `durability`, which means nothing any more.
    pub durability: Option<usize>,
    /// `reads`
    pub reads: Option<Reads>,
    /// `secrets.allow`
    pub no_secrets: Patterns,
    /// Everything else.
    pub settings: Settings,
}

/// What one policy file says besides lists; absent is what it does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// `mode`
    pub mode: Option<WriteMode>,
    /// `links`
    pub links: Option<Links>,
    /// `recovery`
    pub recovery: Option<Recovery>,
    /// `once_with_several`
    pub once_with_several: Option<Several>,
    /// `suspect_content`
    pub suspect_content: Option<Suspicion>,
    /// `deletions`
    pub deletions: Option<Deletions>,
    /// `history.days`
    pub history_age: Option<Duration>,
    /// `history.bytes`
    pub history_bytes: Option<u64>,
    /// `limits.files`
    pub files: Option<usize>,
    /// `approval_seconds`
    pub approval_seconds: Option<u64>,
    /// `limits.file_bytes`
    pub file_bytes: Option<u64>,
    /// `limits.refused_per_minute`
    pub refused_per_minute: Option<NonZeroU32>,
    /// `excerpts`
    pub excerpts: Option<Excerpts>,
    /// `hard_links`
    pub hard_links: Option<HardLinks>,
}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct DocumentError {
    /// Where, from 1.
    pub line: usize,
    /// What was expected and what was found.
    pub message: String,
}

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Author {
    /// The person's own.
    Person,
    /// Part of a root, whoever wrote it: it may deny and ask, and allow nothing.
    Root,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    deny: Vec<Spanned<String>>,
    #[serde(default)]
    ask: Vec<Spanned<String>>,
    allow: Option<Spanned<Vec<Spanned<String>>>>,
    mode: Option<WriteMode>,
    links: Option<Links>,
    recovery: Option<bool>,
    once_with_several: Option<Several>,
    suspect_content: Option<DocumentSuspicion>,
    deletions: Option<Deletions>,
    durability: Option<Spanned<toml::Value>>,
    history: Option<Spanned<DocumentHistory>>,
    approval_seconds: Option<u64>,
    reads: Option<Spanned<toml::Value>>,
    excerpts: Option<Excerpts>,
    hard_links: Option<HardLinks>,
    secrets: Option<Spanned<DocumentSecrets>>,
    #[serde(default)]
    limits: DocumentLimits,
    #[serde(default)]
    roots: BTreeMap<Spanned<String>, DocumentLists>,
}

/// What becomes of new text that does not look like the content of a file.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DocumentSuspicion {
    Warn,
    Refuse,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentLists {
    #[serde(default)]
    deny: Vec<Spanned<String>>,
    #[serde(default)]
    ask: Vec<Spanned<String>>,
    #[serde(default)]
    allow: Vec<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct DocumentHistory {
    days: Option<u32>,
    bytes: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct DocumentLimits {
    files: Option<usize>,
    file_bytes: Option<u64>,
    refused_per_minute: Option<NonZeroU32>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct DocumentSecrets {
    #[serde(default)]
    allow: Vec<Spanned<String>>,
}

/// Reads a policy file.
///
/// # Errors
/// It is not UTF-8 or not TOML, has a key that is not known or a value that is none, or allows what its author may not.
pub(crate) fn parse(bytes: &[u8], author: Author) -> Result<Stated, DocumentError> {
    let text = std::str::from_utf8(bytes).map_err(|error| DocumentError {
        line: line_at(bytes, error.valid_up_to()),
        message: "a byte is no part of UTF-8 text".to_owned(),
    })?;
    let at = |offset| line_at(bytes, offset);
    let document: Document = toml::from_str(text).map_err(|error| DocumentError {
        line: at(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let allow = match (document.allow, author) {
        (Some(allow), Author::Root) => return Err(only_stricter(at(allow.span().start), "allow")),
        (allow, _) => allow.map(Spanned::into_inner).unwrap_or_default(),
    };
    let durability = match (document.durability, author) {
        (Some(stated), Author::Person) if stated.get_ref().as_str() != Some("flushed") => {
            let message = "`durability` is no longer a choice: the contents of a batch are always on disk before they are \
                           visible; delete this line";
            return Err(DocumentError { line: at(stated.span().start), message: message.to_owned() });
        }
        (stated, _) => stated.map(|stated| at(stated.span().start)),
    };
    let history = match (document.history, author) {
        (Some(history), Author::Root) => return Err(only_stricter(at(history.span().start), "history")),
        (history, _) => history.map(Spanned::into_inner).unwrap_or_default(),
    };
    let secrets = match (document.secrets, author) {
        (Some(secrets), Author::Root) => return Err(only_stricter(at(secrets.span().start), "secrets")),
        (secrets, _) => secrets.map(Spanned::into_inner).unwrap_or_default(),
    };
    let (mut anchored, mut room) = (Vec::new(), Room::default());
    let reads = document.reads.map(|value| read_reads(&value, at(value.span().start), &mut room)).transpose()?;
    let mut patterns = |list: &[Spanned<String>]| {
        let written: Vec<&String> = list.iter().map(Spanned::get_ref).collect();
        let patterns = Patterns::new(&written, &mut room).map_err(|(index, error)| {
            let start = list.get(index).map_or(0, |pattern| pattern.span().start);
            DocumentError { line: at(start), message: error.to_string() }
        })?;
        // Only now, when there are not too many of them.
        let begins = list.iter().filter(|pattern| pattern.get_ref().starts_with('/'));
        anchored.extend(begins.map(|pattern| (at(pattern.span().start), pattern.get_ref().clone())));
        Ok(patterns)
    };
    let no_secrets = patterns(&secrets.allow)?;
    let mut read = |lists: &DocumentLists| {
        Ok(Lists { deny: patterns(&lists.deny)?, ask: patterns(&lists.ask)?, allow: patterns(&lists.allow)? })
    };
    let mut roots = Vec::new();
    for (root, lists) in &document.roots {
        let line = at(root.span().start);
        if author == Author::Root {
            return Err(only_stricter(line, "roots"));
        }
        if !Path::new(root.get_ref()).is_absolute() {
            let message = format!("the root {:?} is not an absolute path", root.get_ref());
            return Err(DocumentError { line, message });
        }
        roots.push((PathBuf::from(root.get_ref()), read(lists)?));
    }
    let lists = read(&DocumentLists { deny: document.deny, ask: document.ask, allow })?;
    Ok(Stated {
        lists,
        roots,
        anchored,
        durability,
        reads,
        no_secrets,
        settings: Settings {
            mode: document.mode,
            links: document.links,
            recovery: document.recovery.map(|on| if on { Recovery::On } else { Recovery::Off }),
            once_with_several: document.once_with_several,
            suspect_content: document.suspect_content.map(|word| match word {
                DocumentSuspicion::Warn => Suspicion::Warn,
                DocumentSuspicion::Refuse => Suspicion::Refuse,
            }),
            deletions: document.deletions,
            history_age: history.days.map(|days| DAY * days),
            history_bytes: history.bytes,
            approval_seconds: document.approval_seconds,
            files: document.limits.files,
            file_bytes: document.limits.file_bytes,
            refused_per_minute: document.limits.refused_per_minute,
            excerpts: document.excerpts,
            hard_links: document.hard_links,
        },
    })
}

impl Stated {
    /// Holds the patterns against the path of a root: they are about paths in it, and one that has the root's own path in
    /// front would match nothing.
    ///
    /// # Errors
    /// One of them has, and the root has nothing of that name.
    pub fn refuse_absolute(&self, root: &Path) -> Result<(), DocumentError> {
        for (line, pattern) in &self.anchored {
            let Ok(rest) = Path::new(pattern).strip_prefix(root) else { continue };
            let first = Path::new(pattern).components().nth(1);
            if first.is_some_and(|first| root.join(first).symlink_metadata().is_err()) {
                let rest =
                    Some(rest.display().to_string()).filter(|rest| !rest.is_empty()).unwrap_or_else(|| "**".to_owned());
                let message = format!(
                    "{pattern:?} has the path of the root {} in it, but patterns are about paths in a root; write {:?}",
                    root.display(),
                    format!("/{rest}"),
                );
                return Err(DocumentError { line: *line, message });
            }
        }
        Ok(())
    }
}

/// Which files a server may read.
fn read_reads(value: &Spanned<toml::Value>, line: usize, room: &mut Room) -> Result<Reads, DocumentError> {
    let refused = || DocumentError { line, message: "`reads` is \"all\", \"none\" or a list of patterns".to_owned() };
    match value.get_ref() {
        toml::Value::String(word) if word == "all" => Ok(Reads::All),
        toml::Value::String(word) if word == "none" => Ok(Reads::None),
        toml::Value::Array(list) => {
            let written: Option<Vec<&str>> = list.iter().map(toml::Value::as_str).collect();
            let patterns = Patterns::new(&written.ok_or_else(refused)?, room);
            patterns.map(Reads::Matching).map_err(|(_, error)| DocumentError { line, message: error.to_string() })
        }
        _ => Err(refused()),
    }
}

fn only_stricter(line: usize, key: &str) -> DocumentError {
    let message = format!("a root's policy can only be stricter than the person's own; it has no key {key:?}");
    DocumentError { line, message }
}

fn line_at(bytes: &[u8], offset: usize) -> usize {
    1 + bytes.iter().take(offset).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::keep::history::retention::Retention;

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let cases = [
            ("\n\nalow = []", 3, "unknown field `alow`"),
            ("deny = []\nask = ['ok',\n 'a[']", 3, "is no pattern"),
            ("links = 'maybe'", 1, "unknown variant `maybe`"),
            ("\nmode = 'Restricted'", 2, "unknown variant `Restricted`"),
            ("# said\n[limits]\nfiles = 'x'", 3, "invalid type"),
            ("deny = []\ndeny = []", 2, "duplicate key"),
            ("\nrecovery = 1", 2, "invalid type"),
            ("recovery", 1, ""),
            ("suspect_content = 'off'", 1, "unknown variant `off`"),
            ("\nreads = 'some'", 2, "is \"all\", \"none\" or a list of patterns"),
            ("\nreads = [1]", 2, "is \"all\", \"none\" or a list of patterns"),
            ("\nreads = ['src/', 'a[']", 2, "is no pattern"),
            ("[limits]\nrefused_per_minute = 0", 2, ""),
        ];
        for (text, line, message) in cases {
            let error = parse(text.as_bytes(), Author::Person).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(error.message.contains(message), "{text:?}: {error}");
        }
        let error = parse(b"\ndurability = 'journal'", Author::Person).unwrap_err();
        assert_eq!((error.line, error.message.contains("delete this line")), (2, true), "{error}");
        assert_eq!(parse(b"links = 'follow'\n# \xff", Author::Person).unwrap_err().line, 2);
        let error = parse(b"deny = []\nallow = []", Author::Root).unwrap_err();
        assert_eq!((error.line, error.message.contains("only be stricter")), (2, true), "{error}");
        let error = parse(b"\n[secrets]\nallow = []", Author::Root).unwrap_err();
        assert_eq!((error.line, error.message.contains("only be stricter")), (2, true), "{error}");
        let error = parse(b"\n[history]\nbytes = 0", Author::Root).unwrap_err();
        assert_eq!((error.line, error.message.contains("only be stricter")), (2, true), "{error}");
        let of_roots = [(&b"\n[roots.'/x']"[..], Author::Root), (b"\n[roots.x]", Author::Person)];
        for (text, author) in of_roots {
            assert_eq!(parse(text, author).unwrap_err().line, 2);
        }
    }

    /// The example on the page has every key, with what holds where nothing is said.
    #[test]
    fn the_page_about_policy_tells_every_key_and_what_holds_without_it() {
        let page = include_str!("../../../../docs/policy.md");
        let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let stated = parse(example.as_bytes(), Author::Person).unwrap();
        let settings = Settings {
            mode: Some(WriteMode::Unrestricted),
            links: Some(Links::Follow),
            recovery: Some(Recovery::On),
            once_with_several: Some(Several::First),
            suspect_content: Some(Suspicion::Refuse),
            deletions: Some(Deletions::Ask),
            history_age: Some(Retention::DEFAULT.age),
            history_bytes: Some(Retention::DEFAULT.bytes),
            approval_seconds: Some(3600),
            files: Some(aptix_model::limits::Limits::DEFAULT.files),
            file_bytes: Some(aptix_model::limits::Limits::DEFAULT.file_bytes),
            refused_per_minute: Some(crate::policy::REFUSED_PER_MINUTE),
            excerpts: Some(Excerpts::Readable),
            hard_links: Some(HardLinks::Withhold),
        };
        assert_eq!(stated.settings, settings);
        assert!(matches!(stated.reads, Some(Reads::All)));
        assert!(stated.no_secrets.find("fixtures/dev.key").is_some() && stated.no_secrets.find("dev.key").is_none());
        let list =
            |path| [&stated.lists.deny, &stated.lists.ask, &stated.lists.allow].map(|list| list.find(path).is_some());
        assert_eq!(list("vendor/x"), [true, false, false]);
        assert_eq!(list("sub/Cargo.lock"), [false, true, false]);
        assert_eq!(list("docs/AGENTS.md"), [false, false, true]);
        let (root, lists) = &stated.roots[0];
        assert_eq!((root.as_path(), lists.allow.find("agents.md")), (Path::new("/srv/project"), Some("/AGENTS.md")));
    }
}
