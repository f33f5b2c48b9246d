//! Batches written down in a dialect: what [`super::parse`] reads, the other way round.

use std::string::String;
use std::vec::Vec;

use serde::Serialize;

use super::Dialect;
use crate::batch::{Batch, Change, Content, FileEdit, FilePatch, LinePatch, Operation, Presence, WriteFile};

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
struct BundleFile<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

/// Writes a batch down. `None` if its edits are not the dialect's, or if the dialect is only read.
#[must_use]
pub fn write(batch: &Batch, dialect: Dialect) -> Option<String> {
    let mut text = match dialect {
        Dialect::LinePatch => {
            let files = batch.files.iter().map(line_file).collect::<Option<_>>()?;
            pretty(&LinePatchDocument { batch_label: batch.label.as_deref(), batch_key: batch.key.as_deref(), files })
        }
        Dialect::FileBundle => {
            pretty(&FileBundleDocument { files: batch.files.iter().map(bundle_file).collect::<Option<_>>()? })
        }
        _ => None,
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
        FileEdit::WriteFile(WriteFile { content: Content::Text(content), presence }) => {
            let operation = match presence {
                Presence::Absent => Some("create"),
                Presence::Present => Some("replace"),
                Presence::Either => None,
            };
            Some(BundleFile { path, operation, content: Some(content) })
        }
        FileEdit::DeleteFile => Some(BundleFile { path, operation: Some("delete"), content: None }),
        _ => None,
    }
}
