//! The line-patch document: a batch of files, each with its changes (TUL-002 4 and 5).

use serde::{Deserialize, Serialize};

use super::dialect::{Parsed, parsed};
use super::fields::{Fields, given};
use super::json::{self, Bounded, Named, Place, Whole};
use super::keys::Keys;
use crate::batch::{Batch, Change, FileEdit, FilePatch, LinePatch, Operation, PartialBatch, Target};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::Detail;
use crate::report::Warning;

/// How a line patch is recognised.
pub(super) const KEYS: Keys = Keys {
    unique: &["files.docPath", "files.originalSha256", "files.changes", "batchLabel", "batchKey", "batchId"],
    others: &["files", "files.fileKey", "files.fileLabel", "files.filePatchId"],
};

const OPERATIONS: [&str; 3] = ["insert", "replace", "delete"];

#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BatchDocument {
    /// What the batch is for
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_label: Option<String>,
    /// Your name for the batch; echoed
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_key: Option<String>,
    #[cfg_attr(feature = "tools", schemars(skip))]
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_id: Option<String>,
    /// Each file once
    #[cfg_attr(feature = "tools", schemars(required))]
    files: Option<Bounded<FileDocument, { Limits::DEFAULT.files }>>,
}

#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileDocument {
    /// Your name for the file patch; echoed
    #[serde(skip_serializing_if = "Option::is_none")]
    file_key: Option<String>,
    #[cfg_attr(feature = "tools", schemars(skip))]
    #[serde(skip_serializing_if = "Option::is_none")]
    file_patch_id: Option<String>,
    /// The file's docPath, from read_file
    #[cfg_attr(feature = "tools", schemars(required))]
    doc_path: Option<String>,
    /// SHA-256 of the whole file, from read_file
    #[cfg_attr(feature = "tools", schemars(required))]
    original_sha256: Option<String>,
    /// What the file patch is for
    #[serde(skip_serializing_if = "Option::is_none")]
    file_label: Option<String>,
    /// From top to bottom, without overlap
    #[cfg_attr(feature = "tools", schemars(required))]
    changes: Option<Bounded<ChangeDocument, { Limits::DEFAULT.changes }>>,
}

impl Named for FileDocument {
    const PLURAL: &'static str = "files";
}

#[derive(Deserialize, Serialize, Default)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeDocument {
    /// Your name for the change; echoed
    #[serde(skip_serializing_if = "Option::is_none")]
    change_key: Option<String>,
    #[cfg_attr(feature = "tools", schemars(skip))]
    #[serde(skip_serializing_if = "Option::is_none")]
    change_id: Option<String>,
    /// What is done
    #[cfg_attr(feature = "tools", schemars(required, extend("enum" = OPERATIONS)))]
    operation: Option<String>,
    /// Why, in a few words
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// insert: the line above newLines; 0 is the top
    #[serde(skip_serializing_if = "Option::is_none")]
    after_line: Option<Whole>,
    /// replace, delete: the first line, from 1
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<Whole>,
    /// replace, delete: the last line, included
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<Whole>,
    /// replace, delete: the lines as they are now
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_original_lines: Option<Vec<String>>,
    /// insert, replace: the new lines
    #[serde(skip_serializing_if = "Option::is_none")]
    new_lines: Option<Vec<String>>,
}

impl Named for ChangeDocument {
    const PLURAL: &'static str = "changes";
}

pub(super) fn parse(text: &str) -> Parsed {
    let document: BatchDocument = json::from_str(text)?;
    let mut reading = Reading { warnings: Vec::new() };
    reading.warn_of_id("batchId", document.batch_id.is_some());
    let mut part = PartialBatch::default();
    let files = Fields::new(Place::default(), &mut part.failures).require("files", document.files);
    for (index, file) in files.into_iter().flat_map(|files| files.0).enumerate() {
        part.add_file(index, |failures| reading.file(index, file, failures));
    }
    part.batch = Batch { label: given(document.batch_label), key: given(document.batch_key), ..part.batch };
    parsed(part, reading.warnings)
}

/// What is found on the way from the shape to the batch.
struct Reading {
    warnings: Vec<Warning>,
}

impl Reading {
    /// Warns once of an id in a request, however often it is given: the server mints ids.
    fn warn_of_id(&mut self, field: &str, is_given: bool) {
        let message = format!("{field} is given by the server; the one in the document has no effect");
        let warning = Warning { code: "ID_IGNORED".into(), message, line: None };
        if is_given && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn file(&mut self, index: usize, file: FileDocument, failures: &mut Vec<Failure>) -> Option<FilePatch> {
        self.warn_of_id("filePatchId", file.file_patch_id.is_some());
        let mut fields = Fields::new(Place::new(format!("files[{index}]"), index, None), failures);
        let path = fields.require("docPath", file.doc_path);
        let changes = fields.require("changes", file.changes)?.0.into_iter().enumerate();
        let changes =
            changes.filter_map(|(position, change)| self.change((index, position), change, failures)).collect();
        Some(FilePatch {
            target: Target::DocPath(document_spelling(&path?)),
            key: given(file.file_key),
            label: given(file.file_label),
            edit: FileEdit::LinePatch(LinePatch { original_sha256: file.original_sha256.unwrap_or_default(), changes }),
        })
    }

    fn change(
        &mut self,
        (file, position): (usize, usize),
        change: ChangeDocument,
        failures: &mut Vec<Failure>,
    ) -> Option<Change> {
        self.warn_of_id("changeId", change.change_id.is_some());
        let place = Place::new(format!("files[{file}].changes[{position}]"), file, Some(position));
        let mut fields = Fields::new(place, failures);
        let operation = fields.require("operation", change.operation)?;
        let mut forbid = |field: &str, is_given: bool| {
            let whole = format!("operation '{operation}'");
            fields.forbid(field, is_given, &whole, ", or choose the operation that has it");
        };
        let operation = match operation.as_str() {
            "insert" => {
                forbid("startLine", change.start_line.is_some());
                forbid("endLine", change.end_line.is_some());
                forbid("expectedOriginalLines", change.expected_original_lines.is_some());
                let after_line = fields.require("afterLine", change.after_line);
                let new_lines = fields.require("newLines", change.new_lines);
                Operation::Insert { after_line: after_line?.0, new_lines: new_lines? }
            }
            "replace" => {
                forbid("afterLine", change.after_line.is_some());
                let start_line = fields.require("startLine", change.start_line);
                let end_line = fields.require("endLine", change.end_line);
                let expected = fields.require("expectedOriginalLines", change.expected_original_lines);
                let new_lines = fields.require("newLines", change.new_lines);
                Operation::Replace {
                    start_line: start_line?.0,
                    end_line: end_line?.0,
                    expected_original_lines: expected?,
                    new_lines: new_lines?,
                }
            }
            "delete" => {
                forbid("afterLine", change.after_line.is_some());
                forbid("newLines", change.new_lines.is_some());
                let start_line = fields.require("startLine", change.start_line);
                let end_line = fields.require("endLine", change.end_line);
                let expected = fields.require("expectedOriginalLines", change.expected_original_lines);
                Operation::Delete {
                    start_line: start_line?.0,
                    end_line: end_line?.0,
                    expected_original_lines: expected?,
                }
            }
            unknown => {
                fields.unknown("operation", unknown, &OPERATIONS, Detail::UnknownOperation);
                return None;
            }
        };
        Some(Change { key: given(change.change_key), description: given(change.description), operation })
    }
}

/// The document that reads as a batch of line patches; `None` for a batch with other edits.
pub(super) fn document(batch: &Batch) -> Option<BatchDocument> {
    Some(BatchDocument {
        batch_label: batch.label.clone(),
        batch_key: batch.key.clone(),
        batch_id: None,
        files: Some(Bounded(batch.files.iter().map(file_document).collect::<Option<_>>()?)),
    })
}

fn file_document(file: &FilePatch) -> Option<FileDocument> {
    let FileEdit::LinePatch(LinePatch { original_sha256, changes }) = &file.edit else { return None };
    Some(FileDocument {
        file_key: file.key.clone(),
        file_patch_id: None,
        doc_path: Some(file.target.as_str().into()),
        original_sha256: Some(original_sha256.clone()),
        file_label: file.label.clone(),
        changes: Some(Bounded(changes.iter().cloned().map(change_document).collect())),
    })
}

fn change_document(change: Change) -> ChangeDocument {
    let operation = |name: &str| Some(name.into());
    let words = ChangeDocument { change_key: change.key, description: change.description, ..ChangeDocument::default() };
    match change.operation {
        Operation::Insert { after_line, new_lines } => ChangeDocument {
            operation: operation("insert"),
            after_line: Some(Whole(after_line)),
            new_lines: Some(new_lines),
            ..words
        },
        Operation::Replace { start_line, end_line, expected_original_lines, new_lines } => ChangeDocument {
            operation: operation("replace"),
            start_line: Some(Whole(start_line)),
            end_line: Some(Whole(end_line)),
            expected_original_lines: Some(expected_original_lines),
            new_lines: Some(new_lines),
            ..words
        },
        Operation::Delete { start_line, end_line, expected_original_lines } => ChangeDocument {
            operation: operation("delete"),
            start_line: Some(Whole(start_line)),
            end_line: Some(Whole(end_line)),
            expected_original_lines: Some(expected_original_lines),
            ..words
        },
    }
}
