//! The terms of each dialect for what the engine names by its own: the fields of a document, and the way to replace a file.
//!
//! The engine knows no dialect. Whatever reads a document puts the failures of its batch into the document's terms here.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Dialect, PartialDocument};
use crate::batch::{Batch, FileEdit};
use crate::failure::{Failure, REPLACE_HINT};
use crate::reason::Reason;

/// How a dialect names what a failure is about.
struct Terms {
    /// Its list of files; none where a document is about one file, or has no lists.
    files: Option<&'static str>,
    /// Its list of changes; none where it has no lists.
    changes: Option<&'static str>,
    /// Fields that have another name: the engine's, and the dialect's.
    names: &'static [(&'static str, &'static str)],
    /// What replaces all of a file that is there.
    replaces: Option<&'static str>,
}

/// The names of the engine, in a document that has no lists.
const PLAIN: Terms = Terms { files: None, changes: None, names: &[], replaces: None };
const LINE_PATCH: Terms = Terms { files: Some("files"), changes: Some("changes"), ..PLAIN };
const CREATE_FILE: Terms = Terms { replaces: Some("to replace all of it, set overwrite"), ..PLAIN };
const SEARCH_PATCH: Terms = Terms { changes: Some("patches"), names: &[("changes", "patches")], ..PLAIN };
const STRUCTURED_PATCH: Terms = Terms { files: Some("patches"), changes: Some("replacements"), ..PLAIN };
const FILE_BUNDLE: Terms =
    Terms { files: Some("files"), replaces: Some("to replace all of it, give the operation 'replace'"), ..PLAIN };
const CODEX_PATCH: Terms = Terms {
    names: &[
        ("path", "the path of a section"),
        ("content", "an added file"),
        ("renameTo", "*** Move to"),
        ("chunks", "a section"),
        ("anchors", "@@"),
        ("lines", "a line of a chunk"),
    ],
    replaces: Some("update it with '*** Update File:'"),
    ..PLAIN
};
const SEARCH_REPLACE: Terms = Terms {
    names: &[
        ("path", "the name above a block"),
        ("find", "SEARCH"),
        ("replace", "REPLACE"),
        ("startLine", ":start_line:"),
        ("replacements", "a block"),
    ],
    ..PLAIN
};
const STR_REPLACE: Terms = Terms {
    names: &[
        ("content", "file_text"),
        ("oldText", "old_str"),
        ("newText", "the new text"),
        ("insertLine", "insert_line"),
    ],
    replaces: Some("change it with the command str_replace"),
    ..PLAIN
};
const GIT_PATCH: Terms = Terms {
    names: &[
        ("path", "the name of a file"),
        ("renameTo", "rename to"),
        ("copyFrom", "copy from"),
        ("baseId", "index"),
        ("oldStart", "the header of a hunk"),
        ("hunks", "hunks"),
        ("lines", "a line of a hunk"),
    ],
    ..PLAIN
};
/// The tools that prepare an edit name one file, and no list of changes.
const PREPARED: Terms = Terms {
    names: &[
        ("startLine", "range"),
        ("endLine", "range"),
        ("startAnchor", "start_anchor"),
        ("endAnchor", "end_anchor"),
    ],
    ..PLAIN
};

const EDIT_TOOL: Terms = Terms {
    names: &[
        ("path", "file_path"),
        ("content", "new_string"),
        ("oldText", "old_string"),
        ("newText", "new_string"),
        ("find", "old_string"),
        ("replace", "new_string"),
    ],
    replaces: Some("give the text that changes as old_string"),
    ..PLAIN
};
const FILE_TOOL: Terms = Terms { names: &[("renameTo", "to")], ..PLAIN };

/// Whose names for the parts of an edit a refusal has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wording {
    /// Those of a document in this dialect.
    Document(Dialect),
    /// Those of the tool `edit`.
    Edit,
    /// Those of the tools that take one file: whole, planned, deleted or moved.
    File,
}

/// The terms of an edit.
const fn worded(wording: Wording, edit: Option<&FileEdit>) -> &'static Terms {
    match (wording, edit) {
        (Wording::Document(dialect), edit) => terms(dialect, edit),
        (Wording::Edit, _) => &EDIT_TOOL,
        (Wording::File, Some(FileEdit::AnchorEdit(_))) => &PREPARED,
        (Wording::File, _) => &FILE_TOOL,
    }
}

/// The terms of a dialect for an edit; in an answer of several dialects, the kind of edit decides.
const fn terms(dialect: Dialect, edit: Option<&FileEdit>) -> &'static Terms {
    match (dialect, edit) {
        (_, Some(FileEdit::AnchorEdit(_))) => &PREPARED,
        (Dialect::CreateFile, _) | (Dialect::Chat, Some(FileEdit::CreateFile(_))) => &CREATE_FILE,
        (Dialect::SearchPatch, _) => &SEARCH_PATCH,
        (Dialect::StructuredPatch, _) => &STRUCTURED_PATCH,
        (Dialect::FileBundle, _) => &FILE_BUNDLE,
        (Dialect::StrReplace, _) => &STR_REPLACE,
        (Dialect::SearchReplace, _) => &SEARCH_REPLACE,
        (Dialect::CodexPatch, _) | (Dialect::Chat, Some(FileEdit::ContextPatch(_))) => &CODEX_PATCH,
        (Dialect::GitPatch, _) | (Dialect::Chat, Some(FileEdit::GitPatch(_) | FileEdit::GitSeries(_))) => &GIT_PATCH,
        (Dialect::LinePatch | Dialect::Chat, _) => &LINE_PATCH,
    }
}

/// The failures of a batch in the terms of the dialect that its document is written in.
#[must_use]
pub fn in_terms_of(dialect: Dialect, batch: &Batch, failures: Vec<Failure>) -> Vec<Failure> {
    in_words_of(Wording::Document(dialect), batch, failures)
}

/// The failures of a batch in the words of its author.
#[must_use]
pub fn in_words_of(wording: Wording, batch: &Batch, mut failures: Vec<Failure>) -> Vec<Failure> {
    for failure in &mut failures {
        let edit = failure.file_index.and_then(|file| batch.files.get(file)).map(|file| &file.edit);
        worded(wording, edit).put_on(failure);
    }
    failures
}

/// A failure of what can be read of a document in the terms of its dialect.
#[must_use]
pub fn in_terms_of_part(document: &PartialDocument, mut failure: Failure) -> Failure {
    let PartialDocument { dialect, part } = document;
    let edit_at = |file| Some(&part.batch.files.get(part.positions.binary_search(&file).ok()?)?.edit);
    if let Some(dialect) = dialect {
        terms(*dialect, failure.file_index.and_then(edit_at)).put_on(&mut failure);
    }
    failure
}

impl Terms {
    fn put_on(&self, failure: &mut Failure) {
        if let Some(field) = &mut failure.field {
            *field = self.field(field);
        }
        if failure.reason == Reason::FileExists
            && failure.hint.as_deref() == Some(REPLACE_HINT)
            && let Some(replaces) = self.replaces
        {
            failure.hint = Some(format!("read the file and edit it; {replaces}"));
        }
    }

    /// A field as the dialect names it: `files[0].changes[1].oldText[2]`, the engine's way, has up to three parts.
    fn field(&self, field: &str) -> String {
        let mut parts = Vec::new();
        for part in field.split('.') {
            let (name, index) = part.split_at(part.find('[').unwrap_or(part.len()));
            let list = match name {
                "files" if parts.is_empty() => Some(self.files),
                "changes" if !index.is_empty() => Some(self.changes),
                _ => None,
            };
            match list {
                Some(Some(list)) => parts.push(format!("{list}{index}")),
                Some(None) => {}
                None => match self.names.iter().find(|(known, _)| *known == name) {
                    // What is inside of it has a name of its own in no dialect.
                    Some((_, own)) => {
                        parts.push((*own).to_owned());
                        break;
                    }
                    None => parts.push(part.to_owned()),
                },
            }
        }
        if parts.is_empty() { field.to_owned() } else { parts.join(".") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_of_their_dialect() {
        for (dialect, field, expected) in [
            (Dialect::LinePatch, "files[1].changes[2].newLines[0]", "files[1].changes[2].newLines[0]"),
            (Dialect::SearchPatch, "files[0].changes[2].oldText", "patches[2].oldText"),
            (Dialect::SearchPatch, "files[0].path", "path"),
            (Dialect::SearchPatch, "files[0].changes", "patches"),
            (Dialect::StructuredPatch, "files[1].changes[2].find", "patches[1].replacements[2].find"),
            (Dialect::StrReplace, "files[1].changes[2].oldText", "old_str"),
            (Dialect::StrReplace, "files[0].content", "file_text"),
            (Dialect::SearchReplace, "files[1].changes[0].find", "SEARCH"),
            (Dialect::CreateFile, "files[0].content", "content"),
            (Dialect::FileBundle, "files[3].content", "files[3].content"),
            (Dialect::GitPatch, "files[3].changes[1].oldStart", "the header of a hunk"),
            (Dialect::CodexPatch, "files[3].changes[1].lines[4].text", "a line of a chunk"),
            (Dialect::CodexPatch, "files", "files"),
        ] {
            assert_eq!(terms(dialect, None).field(field), expected, "{dialect}");
        }
    }
}
