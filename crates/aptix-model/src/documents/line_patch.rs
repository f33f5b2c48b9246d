//! The line-patch document: a batch of files, each with its changes (TUL-002 4 and 5).

use serde::Deserialize;

use super::fields::{id_ignored, listed, required};
use super::json::{self, Bounded, Given, Named, Place, Whole};
use super::keys::Keys;
use crate::batch::{Batch, Change, FileEdit, FilePatch, LinePatch, Operation, Target};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::{Detail, Reason};
use crate::report::Warning;

/// How a line patch is recognised.
pub(super) const KEYS: Keys = Keys {
    tells: &["files.docPath", "files.originalSha256", "files.changes", "batchLabel", "batchKey", "batchId"],
    knows: &["files", "files.fileKey", "files.fileLabel", "files.filePatchId"],
};

const OPERATIONS: [&str; 3] = ["insert", "replace", "delete"];

#[derive(Deserialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BatchDocument {
    /// What the batch is for
    batch_label: Option<String>,
    /// Your own name for the batch; echoed
    batch_key: Option<String>,
    #[cfg_attr(feature = "tools", schemars(skip))]
    batch_id: Option<String>,
    /// Each file once
    #[cfg_attr(feature = "tools", schemars(required))]
    files: Option<Bounded<FileDocument, { Limits::DEFAULT.files }>>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileDocument {
    /// Your own name for this file's changes; echoed
    file_key: Option<String>,
    #[cfg_attr(feature = "tools", schemars(skip))]
    file_patch_id: Option<String>,
    /// The file: the root's name and its path, lower-case, as read_file gives it
    #[cfg_attr(feature = "tools", schemars(required))]
    doc_path: Option<String>,
    /// SHA-256 of the whole file as it is now, in hex, as read_file gives it
    #[cfg_attr(feature = "tools", schemars(required))]
    original_sha256: Option<String>,
    /// What the changes of this file are for
    file_label: Option<String>,
    /// From top to bottom, without overlap
    #[cfg_attr(feature = "tools", schemars(required))]
    changes: Option<Bounded<ChangeDocument, { Limits::DEFAULT.changes }>>,
}

impl Named for FileDocument {
    const PLURAL: &'static str = "files";
}

#[derive(Deserialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeDocument {
    /// Your own name for this change; echoed
    change_key: Option<String>,
    #[cfg_attr(feature = "tools", schemars(skip))]
    change_id: Option<String>,
    /// What is done
    #[cfg_attr(feature = "tools", schemars(required, extend("enum" = OPERATIONS)))]
    operation: Option<String>,
    /// Why, in a few words; echoed
    description: Option<String>,
    /// insert: the line below which newLines come; 0 is the top of the file
    after_line: Option<Whole>,
    /// replace, delete: the first line, from 1
    start_line: Option<Whole>,
    /// replace, delete: the last line, included
    end_line: Option<Whole>,
    /// replace, delete: the lines as they are now, verbatim, without terminators
    expected_original_lines: Option<Vec<String>>,
    /// insert, replace: the lines that come, without terminators
    #[serde(default)]
    new_lines: Given<Vec<String>>,
}

impl Named for ChangeDocument {
    const PLURAL: &'static str = "changes";
}

pub(super) fn parse(text: &str) -> Result<(Batch, Vec<Warning>), Vec<Failure>> {
    let document: BatchDocument = json::from_str(text).map_err(|failure| vec![failure])?;
    let mut reading = Reading { failures: Vec::new(), warnings: Vec::new() };
    if document.batch_id.is_some() {
        reading.warnings.push(id_ignored("batchId"));
    }
    let Some(files) = document.files else {
        return Err(vec![required("files").field("files")]);
    };
    let files = files.0.into_iter().enumerate().filter_map(|(index, file)| reading.file(index, file)).collect();
    if !reading.failures.is_empty() {
        return Err(listed(reading.failures));
    }
    Ok((Batch { label: document.batch_label, key: document.batch_key, files, ..Batch::default() }, reading.warnings))
}

/// What is found on the way from the shape to the batch.
struct Reading {
    failures: Vec<Failure>,
    warnings: Vec<Warning>,
}

impl Reading {
    /// Warns once, however often there is reason to.
    fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn file(&mut self, index: usize, file: FileDocument) -> Option<FilePatch> {
        if file.file_patch_id.is_some() {
            self.warn(id_ignored("filePatchId"));
        }
        let at = |field: &str| Place::new(format!("files[{index}].{field}"), index, None);
        if file.doc_path.is_none() {
            self.failures.push(at("docPath").put_on(required("docPath")));
        }
        let Some(changes) = file.changes else {
            self.failures.push(at("changes").put_on(required("changes")));
            return None;
        };
        let changes = changes.0.into_iter().enumerate();
        let changes = changes.filter_map(|(position, change)| self.change((index, position), change)).collect();
        Some(FilePatch {
            target: Target::DocPath(document_spelling(&file.doc_path?)),
            key: file.file_key,
            label: file.file_label,
            edit: FileEdit::LinePatch(LinePatch { original_sha256: file.original_sha256.unwrap_or_default(), changes }),
        })
    }

    fn change(&mut self, (file, position): (usize, usize), change: ChangeDocument) -> Option<Change> {
        if change.change_id.is_some() {
            self.warn(id_ignored("changeId"));
        }
        let mut fields = Fields { file, position, failures: &mut self.failures };
        let operation = match change.operation.as_deref() {
            Some("insert") => {
                fields.forbid("insert", "startLine", change.start_line.is_some());
                fields.forbid("insert", "endLine", change.end_line.is_some());
                fields.forbid("insert", "expectedOriginalLines", change.expected_original_lines.is_some());
                let after_line = fields.require("afterLine", change.after_line);
                let new_lines = fields.require("newLines", change.new_lines.value());
                Operation::Insert { after_line: after_line?.0, new_lines: new_lines? }
            }
            Some("replace") => {
                fields.forbid("replace", "afterLine", change.after_line.is_some());
                let start_line = fields.require("startLine", change.start_line);
                let end_line = fields.require("endLine", change.end_line);
                let expected = fields.require("expectedOriginalLines", change.expected_original_lines);
                let new_lines = fields.require("newLines", change.new_lines.value());
                Operation::Replace {
                    start_line: start_line?.0,
                    end_line: end_line?.0,
                    expected_original_lines: expected?,
                    new_lines: new_lines?,
                }
            }
            Some("delete") => {
                fields.forbid("delete", "afterLine", change.after_line.is_some());
                fields.forbid("delete", "newLines", change.new_lines.is_given());
                let start_line = fields.require("startLine", change.start_line);
                let end_line = fields.require("endLine", change.end_line);
                let expected = fields.require("expectedOriginalLines", change.expected_original_lines);
                Operation::Delete {
                    start_line: start_line?.0,
                    end_line: end_line?.0,
                    expected_original_lines: expected?,
                }
            }
            Some(unknown) => {
                fields.unknown_operation(unknown);
                return None;
            }
            None => {
                fields.require::<()>("operation", None);
                return None;
            }
        };
        Some(Change { key: change.change_key, description: change.description, operation })
    }
}

/// The fields of one change.
struct Fields<'a> {
    file: usize,
    position: usize,
    failures: &'a mut Vec<Failure>,
}

impl Fields<'_> {
    fn refuse(&mut self, field: &str, failure: Failure) {
        let field = format!("files[{}].changes[{}].{field}", self.file, self.position);
        self.failures.push(Place::new(field, self.file, Some(self.position)).put_on(failure));
    }

    fn require<T>(&mut self, field: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.refuse(field, required(field));
        }
        value
    }

    fn forbid(&mut self, operation: &str, field: &str, present: bool) {
        if present {
            let message = format!("'{field}' does not belong to operation '{operation}'");
            let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnexpectedField);
            self.refuse(field, failure.hint(format!("leave '{field}' out, or choose the operation that has it")));
        }
    }

    fn unknown_operation(&mut self, unknown: &str) {
        let shown: String = unknown.chars().take(40).collect();
        let message = format!("unknown operation {shown:?}, expected one of insert, replace, delete");
        let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownOperation);
        self.refuse("operation", failure.hint(json::instead(unknown, &OPERATIONS)));
    }
}
