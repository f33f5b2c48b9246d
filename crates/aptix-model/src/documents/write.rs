//! Batches written down in a dialect: what [`super::parse`] reads, the other way round.

use serde::Serialize;

use super::dialect::Dialect;
use super::{line_patch, search_patch, str_replace, structured_patch};
use crate::batch::{Batch, Content, FileEdit, FilePatch, Presence, WriteFile};

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

/// Writes a batch down. `None` if its edits are not the dialect's, if the dialect is only read, or if the batch quotes
/// files.
#[must_use]
pub fn write(batch: &Batch, dialect: Dialect) -> Option<String> {
    if !batch.quotes.is_empty() {
        return None;
    }
    let text = match dialect {
        Dialect::LinePatch => pretty(&line_patch::document(batch)?),
        Dialect::FileBundle => {
            pretty(&FileBundleDocument { files: batch.files.iter().map(bundle_file).collect::<Option<_>>()? })
        }
        Dialect::SearchPatch => pretty(&search_patch::document(batch)?),
        Dialect::StrReplace => str_replace::document(batch),
        Dialect::StructuredPatch => pretty(&structured_patch::document(batch)?),
        Dialect::CreateFile | Dialect::CodexPatch | Dialect::SearchReplace | Dialect::GitPatch | Dialect::Chat => None,
    };
    Some(text? + "\n")
}

fn pretty(document: &impl Serialize) -> Option<String> {
    serde_json::to_string_pretty(document).ok()
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
