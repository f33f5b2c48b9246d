//! Batches written down in a dialect: what [`super::parse`] reads, the other way round.

use serde::Serialize;

use super::dialect::Dialect;
use crate::batch::{
    Batch, Change, Content, FileEdit, FilePatch, LinePatch, Operation, Presence, Replacements, Scope, SearchChange,
    SearchOperation, SearchPatch, WriteFile,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LinePatchDocument<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_key: Option<&'a str>,
    files: Vec<LineFile<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LineFile<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file_key: Option<&'a str>,
    doc_path: &'a str,
    original_sha256: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_label: Option<&'a str>,
    changes: Vec<LineChange<'a>>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct LineChange<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    change_key: Option<&'a str>,
    operation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_original_lines: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_lines: Option<&'a [String]>,
}

#[derive(Serialize)]
struct FileBundleDocument<'a> {
    files: Vec<BundleFile<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BundleFile<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_format: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

#[derive(Serialize)]
struct SearchPatchDocument<'a> {
    path: &'a str,
    patches: Vec<SearchEntry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchEntry<'a> {
    operation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_clipboard: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_clipboard: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reindent: Option<Indentation<'a>>,
}

#[derive(Serialize)]
struct Indentation<'a> {
    strip: &'a str,
    add: &'a str,
}

#[derive(Serialize)]
struct StructuredPatchDocument<'a> {
    patches: Vec<StructuredFile<'a>>,
}

#[derive(Serialize)]
struct StructuredFile<'a> {
    path: &'a str,
    replacements: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Step<'a> {
    find: &'a str,
    replace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a str>,
}

/// Writes a batch down. `None` if its edits are not the dialect's, if the dialect is only read, or if the batch quotes
/// files.
#[must_use]
pub fn write(batch: &Batch, dialect: Dialect) -> Option<String> {
    if !batch.quotes.is_empty() {
        return None;
    }
    let mut text = match dialect {
        Dialect::LinePatch => {
            let files = batch.files.iter().map(line_file).collect::<Option<_>>()?;
            pretty(&LinePatchDocument { batch_label: batch.label.as_deref(), batch_key: batch.key.as_deref(), files })
        }
        Dialect::FileBundle => {
            pretty(&FileBundleDocument { files: batch.files.iter().map(bundle_file).collect::<Option<_>>()? })
        }
        Dialect::SearchPatch => {
            let [file] = batch.files.as_slice() else { return None };
            pretty(&search_patch(file)?)
        }
        Dialect::StructuredPatch => {
            let patches = batch.files.iter().map(structured_file).collect::<Option<_>>()?;
            pretty(&StructuredPatchDocument { patches })
        }
        Dialect::CreateFile
        | Dialect::CodexPatch
        | Dialect::SearchReplace
        | Dialect::StrReplace
        | Dialect::GitPatch
        | Dialect::Chat => None,
    }?;
    text.push('\n');
    Some(text)
}

fn pretty(document: &impl Serialize) -> Option<String> {
    serde_json::to_string_pretty(document).ok()
}

fn line_file(file: &FilePatch) -> Option<LineFile<'_>> {
    let FileEdit::LinePatch(LinePatch { original_sha256, changes }) = &file.edit else { return None };
    Some(LineFile {
        file_key: file.key.as_deref(),
        doc_path: file.target.as_str(),
        original_sha256,
        file_label: file.label.as_deref(),
        changes: changes.iter().map(line_change).collect(),
    })
}

fn line_change(change: &Change) -> LineChange<'_> {
    let words = LineChange {
        change_key: change.key.as_deref(),
        description: change.description.as_deref(),
        ..LineChange::default()
    };
    match &change.operation {
        Operation::Insert { after_line, new_lines } => {
            LineChange { operation: "insert", after_line: Some(*after_line), new_lines: Some(new_lines), ..words }
        }
        Operation::Replace { start_line, end_line, expected_original_lines, new_lines } => LineChange {
            operation: "replace",
            start_line: Some(*start_line),
            end_line: Some(*end_line),
            expected_original_lines: Some(expected_original_lines),
            new_lines: Some(new_lines),
            ..words
        },
        Operation::Delete { start_line, end_line, expected_original_lines } => LineChange {
            operation: "delete",
            start_line: Some(*start_line),
            end_line: Some(*end_line),
            expected_original_lines: Some(expected_original_lines),
            ..words
        },
    }
}

fn bundle_file(file: &FilePatch) -> Option<BundleFile<'_>> {
    let path = file.target.as_str();
    match &file.edit {
        FileEdit::WriteFile(WriteFile { content: Content::Text(content), presence, content_format }) => {
            let operation = match presence {
                Presence::Absent => Some("create"),
                Presence::Present => Some("replace"),
                Presence::Either => None,
            };
            Some(BundleFile { path, operation, content_format: content_format.as_deref(), content: Some(content) })
        }
        FileEdit::DeleteFile => {
            Some(BundleFile { path, operation: Some("delete"), content_format: None, content: None })
        }
        _ => None,
    }
}

fn search_patch(file: &FilePatch) -> Option<SearchPatchDocument<'_>> {
    let FileEdit::SearchPatch(SearchPatch { changes }) = &file.edit else { return None };
    let patches = changes.iter().map(search_entry).collect::<Option<_>>()?;
    Some(SearchPatchDocument { path: file.target.as_str(), patches })
}

fn search_entry(change: &SearchChange) -> Option<SearchEntry<'_>> {
    let (operation, old_text) = match &change.operation {
        SearchOperation::Replace { old_text } => ("replace", Some(old_text.as_str())),
        SearchOperation::AppendEof => ("append_eof", None),
        SearchOperation::PrependBof => ("prepend_bof", None),
        SearchOperation::Overwrite => ("overwrite", None),
        SearchOperation::InsertAfter { .. } => return None,
    };
    Some(SearchEntry {
        operation,
        old_text,
        new_text: change.new_text.as_deref(),
        to_clipboard: change.to_clipboard.as_deref(),
        from_clipboard: change.from_clipboard.as_deref(),
        reindent: change.reindent.as_ref().map(|reindent| Indentation { strip: &reindent.strip, add: &reindent.add }),
    })
}

fn structured_file(file: &FilePatch) -> Option<StructuredFile<'_>> {
    let FileEdit::Replacements(Replacements { steps }) = &file.edit else { return None };
    let replacements = steps.iter().map(|step| {
        let limit = match step.scope {
            Scope::First => None,
            Scope::All => Some("all"),
            Scope::Block { .. } => return None,
        };
        Some(Step { find: &step.find, replace: &step.replace, limit })
    });
    Some(StructuredFile { path: file.target.as_str(), replacements: replacements.collect::<Option<_>>()? })
}
