//! The file-bundle document: whole files, each created, replaced or deleted (FILE-SPEC 1).

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::dialect::{Parsed, parsed};
use super::fields::{Fields, check_root, given};
use super::json::{self, Bounded, Named, Place};
use super::keys::Keys;
use crate::batch::{Content, FileEdit, FilePatch, PartialBatch, Presence, Target, WriteFile};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::{Detail, Reason};

/// How a file bundle is recognised.
pub(super) const KEYS: Keys = Keys {
    unique: &["files.path", "files.content", "files.operation"],
    others: &["root", "files", "files.replacements", "files.contentFormat"],
};

const OPERATIONS: [&str; 3] = ["create", "replace", "delete"];

#[derive(Deserialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BundleDocument {
    #[cfg_attr(feature = "tools", schemars(skip))]
    root: Option<String>,
    /// Each file once
    #[cfg_attr(feature = "tools", schemars(required))]
    files: Option<Bounded<FileDocument, { Limits::DEFAULT.files }>>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileDocument {
    /// The file, from the workspace root: src/main.rs
    #[cfg_attr(feature = "tools", schemars(required))]
    path: Option<String>,
    /// create, replace: the full text of the file
    content: Option<String>,
    /// What is done; empty: create or replace
    #[cfg_attr(feature = "tools", schemars(extend("enum" = ["", "create", "replace", "delete"])))]
    operation: Option<String>,
    /// verbatim: content that looks like an edit is meant as it is; empty: it is refused
    #[cfg_attr(feature = "tools", schemars(extend("enum" = ["", "verbatim"])))]
    content_format: Option<String>,
    /// What an entry of the operation `patch` would have; read so that it is refused for its operation.
    #[cfg_attr(feature = "tools", schemars(skip))]
    replacements: Option<IgnoredAny>,
}

impl Named for FileDocument {
    const PLURAL: &'static str = "files";
}

pub(super) fn parse(text: &str) -> Parsed {
    let document: BundleDocument = json::from_str(text)?;
    let mut part = PartialBatch::from(Vec::from_iter(check_root(document.root.as_deref()).err()));
    let files = Fields::new(Place::default(), &mut part.failures).require("files", document.files);
    for (index, file) in files.into_iter().flat_map(|files| files.0).enumerate() {
        let place = Place::new(format!("files[{index}]"), index, None);
        part.add_file(index, |failures| read_file(&mut Fields::new(place, failures), file));
    }
    parsed(part, Vec::new())
}

fn read_file(fields: &mut Fields<'_>, file: FileDocument) -> Option<FilePatch> {
    let path = fields.require("path", file.path);
    let operation = file.operation.as_deref().filter(|operation| !operation.is_empty());
    let whole = match operation {
        Some(operation) => format!("operation '{operation}'"),
        None => "an entry that creates or replaces a file".into(),
    };
    fields.forbid("replacements", file.replacements.is_some() && operation != Some("patch"), &whole, "");
    let content_format = given(file.content_format);
    let presence = match operation {
        None => Some(Presence::Either),
        Some("create") => Some(Presence::Absent),
        Some("replace") => Some(Presence::Present),
        Some("delete") => None,
        Some(unknown) => {
            refuse_operation(fields, unknown);
            return None;
        }
    };
    let edit = match presence {
        Some(presence) => {
            let content = Content::Text(fields.require("content", file.content)?);
            FileEdit::WriteFile(WriteFile { content, presence, content_format })
        }
        None => {
            fields.forbid("content", given(file.content).is_some(), &whole, "");
            fields.forbid("contentFormat", content_format.is_some(), &whole, "");
            FileEdit::DeleteFile
        }
    };
    Some(FilePatch { target: Target::Path(document_spelling(&path?)), key: None, label: None, edit })
}

fn refuse_operation(fields: &mut Fields<'_>, operation: &str) {
    let hint = match operation {
        "patch" => "send the replacements as a structured patch: an object with 'patches'",
        "gitPatch" => "send the diff as a git patch of its own, not inside JSON",
        _ => return fields.unknown("operation", operation, &OPERATIONS, Detail::UnknownOperation),
    };
    let message = format!("the operation '{operation}' is not carried out inside a file bundle");
    let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownOperation);
    fields.refuse("operation", failure.hint(hint));
}
