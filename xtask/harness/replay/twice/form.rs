//! One change of a real file said by itself, in each of the ways in which it may be sent twice.

use anyhow::Result;
use aptix_model::documents::Dialect;
use memchr::memmem;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use crate::express::reach::{Reach, Unsaid};
use crate::express::{self, Part};
use crate::history::FileChange;
use crate::lines::{Change, changes, lines};
use crate::memory::File;

/// In which words an edit is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Form {
    /// With so many lines around it.
    Context(usize),
    /// The same, and the texts without their last terminator.
    Open(usize),
    /// A diff with so many lines around the change, and an abbreviated id of the file that it was made from.
    Index(usize),
    /// Lines inserted below a line number.
    AtLine,
    /// Lines added to the end of the file.
    Append,
    /// Lines added to its top.
    Prepend,
    /// A word in the place of another, at every occurrence.
    Everywhere,
    /// As the dialect says it, which does not go by context.
    Whole,
}

const REACHES: [usize; 4] = [0, 1, 2, 3];

impl Form {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Context(lines) => format!("{lines} lines around"),
            Self::Open(lines) => format!("{lines} lines, open end"),
            Self::Index(lines) => format!("{lines} lines, index id"),
            Self::AtLine => "insert at a line".into(),
            Self::Append => "append".into(),
            Self::Prepend => "prepend".into(),
            Self::Everywhere => "replace all".into(),
            Self::Whole => "no context".into(),
        }
    }

    /// How a dialect says one change.
    pub(crate) fn of(dialect: Dialect) -> Vec<Self> {
        let each = |form: fn(usize) -> Self| REACHES.into_iter().map(form);
        match dialect {
            Dialect::GitPatch => each(Self::Context).chain(each(Self::Index)).collect(),
            Dialect::Chat | Dialect::CodexPatch | Dialect::SearchReplace => each(Self::Context).collect(),
            Dialect::StrReplace => each(Self::Context).chain(each(Self::Open)).chain([Self::AtLine]).collect(),
            Dialect::SearchPatch => {
                each(Self::Context).chain(each(Self::Open)).chain([Self::Append, Self::Prepend]).collect()
            }
            Dialect::StructuredPatch => each(Self::Context).chain(each(Self::Open)).chain([Self::Everywhere]).collect(),
            Dialect::LinePatch | Dialect::FileBundle | Dialect::CreateFile => vec![Self::Whole],
        }
    }
}

/// A change of one place of a file, all others left out.
#[derive(Debug)]
pub(crate) struct Single {
    pub(crate) file: FileChange,
    change: Change,
}

/// The changes of a file, each by itself.
pub(crate) fn singles(file: &FileChange) -> Vec<Single> {
    let (Some(before), Some(after)) = (&file.before, &file.after) else { return Vec::new() };
    if [before, after].iter().any(|file| memchr::memchr(0, &file.bytes).is_some()) {
        return Vec::new();
    }
    let (old, new) = (lines(&before.bytes), lines(&after.bytes));
    let single = |change: Change| {
        let whole = [&old[..change.old.start], &new[change.new.clone()], &old[change.old.end..]].concat();
        let bytes = whole.iter().flat_map(|line| line.whole).copied().collect();
        let after = Some(File { bytes, is_executable: before.is_executable });
        let file = FileChange { path: file.path.clone(), before: Some(before.clone()), after };
        Single { file, change }
    };
    changes(&old, &new).into_iter().map(single).filter(|single| single.file.before != single.file.after).collect()
}

/// A document, and what it is to make of the file.
pub(crate) struct Said {
    pub(crate) document: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

impl Single {
    fn before(&self) -> &[u8] {
        self.file.before.as_ref().map_or(&[], |file| &file.bytes)
    }

    fn after(&self) -> &[u8] {
        self.file.after.as_ref().map_or(&[], |file| &file.bytes)
    }

    /// What the change does, for telling refusals apart.
    pub(crate) fn kind(&self) -> &'static str {
        let (old, new) = (lines(self.before()), lines(self.after()));
        let start = self.change.old.start;
        let (old, removed) = (&old[self.change.old.clone()], self.change.old.len());
        let new = &new[start..start + self.change.new.len()];
        let has_word = |line: &[u8]| line.iter().any(|byte| byte.is_ascii_alphanumeric());
        let is_plain = !new.iter().any(|line| has_word(line.text()));
        match () {
            () if new.is_empty() => "removes lines",
            () if removed == 0 && is_plain => "adds blank or punctuation lines",
            () if removed == 0 => "adds lines",
            () if memmem::find(&new.concat_text(), &old.concat_text()).is_some() => "adds within lines",
            () => "replaces lines",
        }
    }

    /// Says it in a dialect.
    pub(crate) fn say(&self, dialect: Dialect, form: Form) -> Result<Result<Said, Unsaid>> {
        let part = match form {
            Form::Context(context) | Form::Open(context) | Form::Index(context) => {
                express::part(dialect, &self.file, Reach::Lines(context))
            }
            Form::Whole => express::part(dialect, &self.file, Reach::Unique),
            Form::AtLine => self.insert("insert").map(|(text, line)| {
                Part::Json(json!({
                    "command": "insert", "path": self.file.path, "insert_line": line, "insert_text": text,
                }))
            }),
            Form::Append => self.insert("append_eof").map(|(text, _)| self.at_end("append_eof", &text)),
            Form::Prepend => self.insert("prepend_bof").map(|(text, _)| self.at_end("prepend_bof", &text)),
            Form::Everywhere => return Ok(self.everywhere()),
        };
        let part = part.and_then(|part| match (form, part) {
            (Form::Open(_), Part::Json(value)) => opened(value, self.before()).map(Part::Json),
            (Form::Index(_), Part::Text(text)) => Ok(Part::Text(with_index(&text, self.before()))),
            (_, part) => Ok(part),
        });
        let part = match part {
            Ok(part) => part,
            Err(reason) => return Ok(Err(reason)),
        };
        let document = express::documents(dialect, vec![part])?.concat();
        Ok(Ok(Said { document, after: self.after().to_vec() }))
    }

    /// The lines of a pure insertion, and how many stand above.
    fn insert(&self, operation: &str) -> Result<(String, usize), Unsaid> {
        // The str-replace dialect says nothing that another dialect of files could not.
        express::part(Dialect::LinePatch, &self.file, Reach::Unique)?;
        let start = self.change.old.start;
        let count = lines(self.before()).len();
        let is_it = match operation {
            "append_eof" => start == count && count > 0,
            "prepend_bof" => start == 0 && count > 0,
            _ => true,
        };
        if !self.change.old.is_empty() || !is_it || !self.before().ends_with(b"\n") {
            return Err("no insertion there");
        }
        let new = lines(self.after());
        let text = [new[start..start + self.change.new.len()].concat_text(), b"\n".to_vec()].concat();
        String::from_utf8(text).map(|text| (text, start)).map_err(|_| "not UTF-8 where it changes")
    }

    fn at_end(&self, operation: &str, text: &str) -> Part {
        Part::Json(json!({ "path": self.file.path, "patches": [{ "operation": operation, "newText": text }] }))
    }

    /// The words that differ in a change of one line, replaced everywhere.
    fn everywhere(&self) -> Result<Said, Unsaid> {
        express::part(Dialect::LinePatch, &self.file, Reach::Unique)?;
        let (old, new) = (lines(self.before()), lines(self.after()));
        let start = self.change.old.start;
        if self.change.old.len() != 1 || self.change.new.len() != 1 {
            return Err("not one line for another");
        }
        let (find, replace) = words(old[start].text(), new[start].text()).ok_or("no word for another")?;
        let text = str::from_utf8(self.before()).map_err(|_| "not UTF-8 where it changes")?;
        let step = json!({ "find": find, "replace": replace, "limit": "all" });
        let part = Part::Json(json!({ "path": self.file.path, "replacements": [step] }));
        let documents = express::documents(Dialect::StructuredPatch, vec![part]).map_err(|_| "no document")?;
        Ok(Said { document: documents.concat(), after: text.replace(find, replace).into_bytes() })
    }
}

trait Concat {
    fn concat_text(&self) -> Vec<u8>;
}

impl Concat for [crate::lines::Line<'_>] {
    fn concat_text(&self) -> Vec<u8> {
        let text: Vec<u8> = self.iter().flat_map(|line| line.whole).copied().collect();
        text.strip_suffix(b"\n").map(<[u8]>::to_vec).unwrap_or(text)
    }
}

/// Where two lines differ, widened to whole words on both sides.
fn words<'a>(old: &'a [u8], new: &'a [u8]) -> Option<(&'a str, &'a str)> {
    let (old, new) = (str::from_utf8(old).ok()?, str::from_utf8(new).ok()?);
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let (a, b) = (old.as_bytes(), new.as_bytes());
    let most = a.len().min(b.len());
    let mut head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let mut tail = a.iter().rev().zip(b.iter().rev()).take(most - head).take_while(|(a, b)| a == b).count();
    while head > 0 && is_word(a[head - 1]) {
        head -= 1;
    }
    while tail > 0 && is_word(a[a.len() - tail]) {
        tail -= 1;
    }
    let (find, replace) = (old.get(head..old.len() - tail)?, new.get(head..new.len() - tail)?);
    (!find.trim().is_empty()).then_some((find, replace))
}

/// A document whose texts lose their last terminator, as a model often writes them.
fn opened(mut value: Value, before: &[u8]) -> Result<Value, Unsaid> {
    const TEXTS: [&str; 6] = ["find", "replace", "oldText", "newText", "old_str", "new_str"];
    let open = |object: &mut Value| -> Option<()> {
        let object = object.as_object_mut()?;
        let texts = object.iter_mut().filter(|(name, _)| TEXTS.contains(&name.as_str()));
        let texts: Vec<_> = texts.collect();
        // Both sides have an end to lose, or the edit would be another one.
        if texts.len() != 2 || !texts.iter().all(|(_, text)| text.as_str().is_some_and(|text| text.ends_with('\n'))) {
            return None;
        }
        for (name, text) in texts {
            let open = text.as_str()?.strip_suffix('\n')?;
            let open = open.strip_suffix('\r').unwrap_or(open);
            let is_old = matches!(name.as_str(), "find" | "oldText" | "old_str");
            if is_old && memmem::find_iter(before, open).count() != 1 {
                return None;
            }
            *text = json!(open);
        }
        Some(())
    };
    let done = if value.get("command").is_some() {
        open(&mut value)
    } else {
        let list = if value.get("patches").is_some() { "patches" } else { "replacements" };
        value[list].as_array_mut().and_then(|list| list.iter_mut().try_for_each(open))
    };
    done.map(|()| value).ok_or("texts that cannot both be open")
}

/// A diff with the line that names the blob it was made from.
fn with_index(diff: &[u8], before: &[u8]) -> Vec<u8> {
    let head = format!("blob {}\0", before.len());
    let id = Sha1::new_with_prefix(head).chain_update(before).finalize();
    let id: String = id.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let line = format!("index {}..{} 100644\n", &id[..7], "1234567");
    let at = memchr::memchr(b'\n', diff).map_or(0, |feed| feed + 1);
    [&diff[..at], line.as_bytes(), &diff[at..]].concat()
}
