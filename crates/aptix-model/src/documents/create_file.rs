//! The create-file document: one path, its whole content, and whether it may replace (TUL-004 4.2).

use serde::Deserialize;

use super::dialect::Parsed;
use super::fields::{Fields, given};
use super::json::{self, Place};
use super::keys::Keys;
use crate::batch::{Batch, Content, CreateFile, FileEdit, FilePatch, Target};
use crate::path::document_spelling;

/// How a create-file document is recognised.
pub(super) const KEYS: Keys = Keys { unique: &["content", "overwrite"], others: &["path", "contentFormat"] };

#[derive(Deserialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateFileDocument {
    /// The file, from the workspace root: src/main.rs
    #[cfg_attr(feature = "tools", schemars(required))]
    path: Option<String>,
    /// The full text of the file
    #[cfg_attr(feature = "tools", schemars(required))]
    content: Option<String>,
    /// true if the file exists and is meant to be replaced
    #[cfg_attr(feature = "tools", schemars(extend("default" = false)))]
    overwrite: Option<bool>,
    /// verbatim: the content is meant as it is, even if it looks like a diff, a fenced block or a text with lines left out;
    /// empty: such content is refused
    #[cfg_attr(feature = "tools", schemars(extend("enum" = ["", "verbatim"])))]
    content_format: Option<String>,
}

pub(super) fn parse(text: &str) -> Parsed {
    let document: CreateFileDocument = json::from_str(text)?;
    let mut failures = Vec::new();
    let mut fields = Fields::new(Place::default(), &mut failures);
    let (path, content) = (fields.require("path", document.path), fields.require("content", document.content));
    let (Some(path), Some(content)) = (path, content) else { return Err(failures.into()) };
    let file = FilePatch {
        target: Target::Path(document_spelling(&path)),
        key: None,
        label: None,
        edit: FileEdit::CreateFile(CreateFile {
            content: Content::Text(content),
            overwrite: document.overwrite.unwrap_or_default(),
            content_format: given(document.content_format),
        }),
    };
    Ok((Batch { files: vec![file], ..Batch::default() }, Vec::new()))
}
