//! The search-patch document: one file, and changes that are all found in it as it is (REQ-PATCH-006).

use serde::{Deserialize, Serialize};

use super::dialect::Parsed;
use super::fields::{Fields, given};
use super::json::{self, Bounded, Named, Place};
use super::keys::Keys;
use crate::batch::{Batch, FileEdit, FilePatch, Reindent, SearchChange, SearchOperation, SearchPatch, Target};
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::Detail;

/// How a search patch is recognised.
pub(super) const KEYS: Keys = Keys {
    unique: &[
        "patches.operation",
        "patches.oldText",
        "patches.newText",
        "patches.toClipboard",
        "patches.fromClipboard",
        "patches.reindent",
    ],
    others: &["path", "patches"],
};

const OPERATIONS: [&str; 4] = ["replace", "append_eof", "prepend_bof", "overwrite"];

#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PatchDocument {
    /// The file, from the workspace root: src/main.rs
    #[cfg_attr(feature = "tools", schemars(required))]
    path: Option<String>,
    /// All found in the file as it is now
    #[cfg_attr(feature = "tools", schemars(required))]
    patches: Option<Bounded<ChangeDocument, { Limits::DEFAULT.changes }>>,
}

#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeDocument {
    /// What is done
    #[cfg_attr(feature = "tools", schemars(required, extend("enum" = OPERATIONS)))]
    operation: Option<String>,
    /// replace: text that occurs in the file exactly once
    #[serde(skip_serializing_if = "Option::is_none")]
    old_text: Option<String>,
    /// What comes instead, or is added
    #[serde(skip_serializing_if = "Option::is_none")]
    new_text: Option<String>,
    /// replace: the name under which the old text is kept
    #[serde(skip_serializing_if = "Option::is_none")]
    to_clipboard: Option<String>,
    /// The name of kept text that is used as new text
    #[serde(skip_serializing_if = "Option::is_none")]
    from_clipboard: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reindent: Option<ReindentDocument>,
}

impl Named for ChangeDocument {
    const PLURAL: &'static str = "changes";
}

#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReindentDocument {
    /// The prefix that each non-empty line of the new text has, and loses
    strip: Option<String>,
    /// The prefix that each of them gets
    add: Option<String>,
}

pub(super) fn parse(text: &str) -> Parsed {
    let document: PatchDocument = json::from_str(text)?;
    let mut failures = Vec::new();
    let mut fields = Fields::new(Place::default(), &mut failures);
    let (path, patches) = (fields.require("path", document.path), fields.require("patches", document.patches));
    let changes = patches.into_iter().flat_map(|patches| patches.0).enumerate();
    let changes = changes.filter_map(|(position, change)| {
        let place = Place::new(format!("patches[{position}]"), 0, Some(position));
        read_change(&mut Fields::new(place, &mut failures), change)
    });
    let changes = changes.collect();
    let (Some(path), true) = (path, failures.is_empty()) else { return Err(failures.into()) };
    let edit = FileEdit::SearchPatch(SearchPatch { changes });
    let file = FilePatch { target: Target::Path(document_spelling(&path)), key: None, label: None, edit };
    Ok((Batch { files: vec![file], ..Batch::default() }, Vec::new()))
}

fn read_change(fields: &mut Fields<'_>, change: ChangeDocument) -> Option<SearchChange> {
    let name = fields.require("operation", change.operation)?;
    let (to_clipboard, from_clipboard) = (given(change.to_clipboard), given(change.from_clipboard));
    // Beside a clipboard, an empty new text is what a provider that requires every field sends for none.
    let new_text = if from_clipboard.is_some() { given(change.new_text) } else { change.new_text };
    let operation = match name.as_str() {
        "replace" => SearchOperation::Replace { old_text: fields.require("oldText", change.old_text)? },
        "append_eof" | "prepend_bof" | "overwrite" => {
            for (field, is_given) in
                [("oldText", given(change.old_text).is_some()), ("toClipboard", to_clipboard.is_some())]
            {
                fields.forbid(field, is_given, &format!("operation '{name}'"), ", or use the operation 'replace'");
            }
            match name.as_str() {
                "append_eof" => SearchOperation::AppendEof,
                "prepend_bof" => SearchOperation::PrependBof,
                _ => SearchOperation::Overwrite,
            }
        }
        unknown => {
            fields.unknown("operation", unknown, &OPERATIONS, Detail::UnknownOperation);
            return None;
        }
    };
    let prefixes = |reindent: ReindentDocument| Reindent {
        strip: reindent.strip.unwrap_or_default(),
        add: reindent.add.unwrap_or_default(),
    };
    Some(SearchChange {
        operation,
        new_text,
        to_clipboard,
        from_clipboard,
        reindent: change
            .reindent
            .map(prefixes)
            .filter(|reindent| !reindent.strip.is_empty() || !reindent.add.is_empty()),
    })
}

/// The document that reads as the search patch of one file; `None` for a batch with other edits.
pub(super) fn document(batch: &Batch) -> Option<PatchDocument> {
    let [FilePatch { target, edit: FileEdit::SearchPatch(SearchPatch { changes }), .. }] = batch.files.as_slice()
    else {
        return None;
    };
    let patches = changes.iter().cloned().map(change_document).collect();
    Some(PatchDocument { path: Some(target.as_str().into()), patches: Some(Bounded(patches)) })
}

fn change_document(change: SearchChange) -> ChangeDocument {
    let (operation, old_text) = match change.operation {
        SearchOperation::Replace { old_text } => ("replace", Some(old_text)),
        SearchOperation::AppendEof => ("append_eof", None),
        SearchOperation::PrependBof => ("prepend_bof", None),
        SearchOperation::Overwrite => ("overwrite", None),
    };
    ChangeDocument {
        operation: Some(operation.into()),
        old_text,
        new_text: change.new_text,
        to_clipboard: change.to_clipboard,
        from_clipboard: change.from_clipboard,
        reindent: change
            .reindent
            .map(|Reindent { strip, add }| ReindentDocument { strip: Some(strip), add: Some(add) }),
    }
}
