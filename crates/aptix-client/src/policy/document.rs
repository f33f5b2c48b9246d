//! A policy file's text, read strictly: an unknown key or an invalid value is an error with its line.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use aptix_engine::planning::settings::Suspicion;
use serde::Deserialize;
use toml::Spanned;

use super::choices::{Deletions, Excerpts, HardLinks, Links, ReportLocal, Several, WriteMode};
use super::paths::{Lists, Patterns, Reads, Room};

/// What one policy file says.
#[derive(Clone, Debug)]
pub(crate) struct Stated {
    /// The lists of paths in every root.
    pub(crate) lists: Lists,
    /// The lists of paths in one root, by its absolute path.
    pub(crate) roots: Vec<(PathBuf, Lists)>,
    /// The patterns that begin with a slash, by their lines.
    anchored: Vec<(usize, String)>,
    /// The line of the key `durability`, which has no effect any more.
    pub(crate) durability: Option<usize>,
    /// `reads`
    pub(crate) reads: Option<Reads>,
    /// `secrets.allow`
    pub(crate) no_secrets: Patterns,
    /// Everything else, as it was written.
    pub(crate) document: Document,
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
    /// The user's own.
    Person,
    /// Part of a root, which anyone may have written: it may deny and ask, and allow nothing.
    Root,
}

/// The keys of a policy file; absent is what it does not say.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    #[serde(default)]
    deny: Vec<Spanned<String>>,
    #[serde(default)]
    ask: Vec<Spanned<String>>,
    allow: Option<Spanned<Vec<Spanned<String>>>>,
    pub(crate) mode: Option<WriteMode>,
    pub(crate) links: Option<Links>,
    pub(crate) recovery: Option<bool>,
    pub(crate) once_with_several: Option<Several>,
    #[serde(default, deserialize_with = "suspicion")]
    pub(crate) suspect_content: Option<Suspicion>,
    pub(crate) deletions: Option<Deletions>,
    durability: Option<Spanned<toml::Value>>,
    pub(crate) history: Option<Spanned<DocumentHistory>>,
    pub(crate) approval_seconds: Option<u64>,
    reads: Option<Spanned<toml::Value>>,
    pub(crate) excerpts: Option<Excerpts>,
    pub(crate) hard_links: Option<HardLinks>,
    pub(crate) report_local: Option<ReportLocal>,
    secrets: Option<Spanned<DocumentSecrets>>,
    #[serde(default)]
    pub(crate) limits: DocumentLimits,
    #[serde(default)]
    roots: BTreeMap<Spanned<String>, DocumentLists>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentLists {
    #[serde(default)]
    deny: Vec<Spanned<String>>,
    #[serde(default)]
    ask: Vec<Spanned<String>>,
    #[serde(default)]
    allow: Vec<Spanned<String>>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentHistory {
    pub(crate) days: Option<u32>,
    pub(crate) bytes: Option<u64>,
}

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentLimits {
    pub(crate) files: Option<usize>,
    pub(crate) file_bytes: Option<u64>,
    pub(crate) refused_per_minute: Option<NonZeroU32>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentSecrets {
    #[serde(default)]
    allow: Vec<Spanned<String>>,
}

fn suspicion<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Suspicion>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Warn,
        Refuse,
    }
    Ok(Some(match Word::deserialize(deserializer)? {
        Word::Warn => Suspicion::Warn,
        Word::Refuse => Suspicion::Refuse,
    }))
}

/// Reads a policy file.
///
/// # Errors
/// It is not UTF-8 or not TOML, has an unknown key or an invalid value, or allows what its author may not.
pub(crate) fn parse(bytes: &[u8], author: Author) -> Result<Stated, DocumentError> {
    let text = std::str::from_utf8(bytes).map_err(|error| DocumentError {
        line: line_at(bytes, error.valid_up_to()),
        message: "a byte is no part of UTF-8 text".to_owned(),
    })?;
    let document: Document = toml::from_str(text).map_err(|error| DocumentError {
        line: line_at(bytes, error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let mut reader = Reader { bytes, author, room: Room::default(), anchored: Vec::new() };
    let allow = reader.of_person(document.allow.as_ref(), "allow")?;
    let durability = document.durability.as_ref().map(|stated| reader.durability(stated)).transpose()?;
    reader.of_person(document.history.as_ref(), "history")?;
    let secrets = reader.of_person(document.secrets.as_ref(), "secrets")?;
    let reads = document.reads.as_ref().map(|reads| reader.reads(reads)).transpose()?;
    let no_secrets = reader.patterns(secrets.map_or(&[], |secrets| &secrets.allow))?;
    let mut roots = Vec::new();
    for (root, DocumentLists { deny, ask, allow }) in &document.roots {
        let path = Path::new(reader.of_person(Some(root), "roots")?.map_or("", String::as_str));
        if !path.is_absolute() {
            return Err(reader.error(root, format!("the root {path:?} is not an absolute path")));
        }
        roots.push((path.to_owned(), reader.lists(deny, ask, allow)?));
    }
    let lists = reader.lists(&document.deny, &document.ask, allow.map_or(&[], Vec::as_slice))?;
    Ok(Stated { lists, roots, anchored: reader.anchored, durability, reads, no_secrets, document })
}

/// Reads the values of a policy file that depend on its author, or that take from what its patterns may take together.
struct Reader<'t> {
    bytes: &'t [u8],
    author: Author,
    room: Room,
    anchored: Vec<(usize, String)>,
}

impl Reader<'_> {
    fn error<T>(&self, at: &Spanned<T>, message: String) -> DocumentError {
        DocumentError { line: line_at(self.bytes, at.span().start), message }
    }

    /// The value of a key that only the user's own file may have.
    fn of_person<'v, T>(&self, value: Option<&'v Spanned<T>>, key: &str) -> Result<Option<&'v T>, DocumentError> {
        match value {
            Some(value) if self.author == Author::Root => Err(self.error(
                value,
                format!("a root's policy can only be stricter than the person's own; it has no key {key:?}"),
            )),
            value => Ok(value.map(Spanned::get_ref)),
        }
    }

    /// The line of the key `durability`.
    fn durability(&self, stated: &Spanned<toml::Value>) -> Result<usize, DocumentError> {
        if self.author == Author::Person && stated.get_ref().as_str() != Some("flushed") {
            let message = "`durability` is no longer a choice: the contents of a batch are always on disk before they are \
                           visible; delete this line";
            return Err(self.error(stated, message.to_owned()));
        }
        Ok(line_at(self.bytes, stated.span().start))
    }

    /// Which files a server may read.
    fn reads(&mut self, value: &Spanned<toml::Value>) -> Result<Reads, DocumentError> {
        let list = match value.get_ref() {
            toml::Value::String(word) if word == "all" => return Ok(Reads::All),
            toml::Value::String(word) if word == "none" => return Ok(Reads::None),
            toml::Value::Array(list) => list.iter().map(toml::Value::as_str).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let list =
            list.ok_or_else(|| self.error(value, "`reads` is \"all\", \"none\" or a list of patterns".to_owned()))?;
        let patterns = Patterns::new(&list, &mut self.room);
        patterns.map(Reads::Matching).map_err(|(_, error)| self.error(value, error.to_string()))
    }

    fn lists(
        &mut self,
        deny: &[Spanned<String>],
        ask: &[Spanned<String>],
        allow: &[Spanned<String>],
    ) -> Result<Lists, DocumentError> {
        Ok(Lists { deny: self.patterns(deny)?, ask: self.patterns(ask)?, allow: self.patterns(allow)? })
    }

    fn patterns(&mut self, list: &[Spanned<String>]) -> Result<Patterns, DocumentError> {
        let written: Vec<&String> = list.iter().map(Spanned::get_ref).collect();
        let patterns = Patterns::new(&written, &mut self.room).map_err(|(index, error)| DocumentError {
            line: line_at(self.bytes, list.get(index).map_or(0, |pattern| pattern.span().start)),
            message: error.to_string(),
        })?;
        // Only now, when there are not too many of them.
        for pattern in list.iter().filter(|pattern| pattern.get_ref().starts_with('/')) {
            self.anchored.push((line_at(self.bytes, pattern.span().start), pattern.get_ref().clone()));
        }
        Ok(patterns)
    }
}

impl Stated {
    /// Refuses a pattern that begins with the path of a root: patterns are about paths in the root, so that it would match
    /// nothing.
    ///
    /// # Errors
    /// One of them does, and the root has nothing of that name.
    pub(crate) fn refuse_absolute(&self, root: &Path) -> Result<(), DocumentError> {
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

fn line_at(bytes: &[u8], offset: usize) -> usize {
    1 + bytes.iter().take(offset).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::DAY;
    use crate::workspace::keep::history::prune::Retention;

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
        for text in ["deny = []\nallow = []", "\n[secrets]\nallow = []", "\n[history]\nbytes = 0"] {
            let error = parse(text.as_bytes(), Author::Root).unwrap_err();
            assert_eq!((error.line, error.message.contains("only be stricter")), (2, true), "{error}");
        }
        let of_roots = [(&b"\n[roots.'/x']"[..], Author::Root), (b"\n[roots.x]", Author::Person)];
        for (text, author) in of_roots {
            assert_eq!(parse(text, author).unwrap_err().line, 2);
        }
    }

    /// The example on the page has every key, with its default.
    #[test]
    fn the_page_about_policy_tells_every_key_and_what_holds_without_it() {
        let page = include_str!("../../../../docs/policy.md");
        let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let stated = parse(example.as_bytes(), Author::Person).unwrap();
        let document = Document {
            mode: Some(WriteMode::Unrestricted),
            links: Some(Links::Follow),
            recovery: Some(true),
            once_with_several: Some(Several::First),
            suspect_content: Some(Suspicion::Refuse),
            deletions: Some(Deletions::Ask),
            approval_seconds: Some(3600),
            limits: DocumentLimits {
                files: Some(aptix_model::limits::Limits::DEFAULT.files),
                file_bytes: Some(aptix_model::limits::Limits::DEFAULT.file_bytes),
                refused_per_minute: Some(crate::policy::REFUSED_PER_MINUTE),
            },
            excerpts: Some(Excerpts::Readable),
            hard_links: Some(HardLinks::Withhold),
            report_local: Some(ReportLocal::On),
            ..stated.document.clone()
        };
        assert_eq!(stated.document, document);
        let history = stated.document.history.unwrap().into_inner();
        assert_eq!(history.days.map(|days| DAY * days), Some(Retention::DEFAULT.age));
        assert_eq!(history.bytes, Some(Retention::DEFAULT.bytes));
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
