//! What is to happen, between the wire and the model.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::{digest, given, missing, v1};
use crate::batch::{
    Batch, BlobRef, Change, Content, CreateFile, FileEdit, FilePatch, LinePatch, Operation, Origin, Target,
};
use crate::failure::Failure;
use crate::limits::INLINE_BYTES;
use crate::reason::{Detail, Reason};
use crate::record::FileIds;

impl TryFrom<v1::Edit> for Batch {
    type Error = Vec<Failure>;

    fn try_from(edit: v1::Edit) -> Result<Self, Vec<Failure>> {
        let mut failures = Vec::new();
        let files = edit.files.into_iter().enumerate();
        let files = files.filter_map(|(index, file)| file_patch(index, file, &mut failures)).collect();
        if failures.is_empty() {
            Ok(Self { label: given(edit.label), key: given(edit.key), files })
        } else {
            Err(failures)
        }
    }
}

fn file_patch(index: usize, file: v1::FilePatch, failures: &mut Vec<Failure>) -> Option<FilePatch> {
    let at = |failure: Failure| Failure { file_index: Some(index), ..failure };
    let target = match file.target {
        Some(v1::file_patch::Target::DocPath(path)) => Some(Target::DocPath(path)),
        Some(v1::file_patch::Target::Path(path)) => Some(Target::Path(path)),
        None => {
            failures.push(at(missing(&format!("files[{index}].target"), "docPath or path")));
            None
        }
    };
    let edit = match file.action {
        Some(v1::file_patch::Action::LinePatch(patch)) => {
            let changes = patch.changes.into_iter().enumerate();
            let changes = changes.filter_map(|(position, change)| {
                let read = line_change(index, position, change);
                read.map_err(|failure| failures.push(at(failure))).ok()
            });
            Some(FileEdit::LinePatch(LinePatch { original_sha256: patch.original_sha256, changes: changes.collect() }))
        }
        Some(v1::file_patch::Action::CreateFile(create)) => {
            let read = create_file(index, create);
            read.map_err(|failure| failures.push(at(failure))).ok().map(FileEdit::CreateFile)
        }
        None => {
            failures.push(at(missing(&format!("files[{index}].action"), "linePatch or createFile")));
            None
        }
    };
    Some(FilePatch { target: target?, key: given(file.key), label: given(file.label), edit: edit? })
}

fn line_change(file: usize, position: usize, change: v1::Change) -> Result<Change, Failure> {
    use v1::change::Operation as Wire;
    let operation = match change.operation {
        Some(Wire::Insert(insert)) => Operation::Insert { after_line: insert.after_line, new_lines: insert.new_lines },
        Some(Wire::Replace(replace)) => Operation::Replace {
            start_line: replace.start_line,
            end_line: replace.end_line,
            expected_original_lines: replace.expected_original_lines,
            new_lines: replace.new_lines,
        },
        Some(Wire::Delete(delete)) => Operation::Delete {
            start_line: delete.start_line,
            end_line: delete.end_line,
            expected_original_lines: delete.expected_original_lines,
        },
        None => {
            let field = format!("files[{file}].changes[{position}].operation");
            return Err(missing(&field, "insert, replace or delete").change(position));
        }
    };
    Ok(Change { key: given(change.key), description: given(change.description), operation })
}

fn create_file(index: usize, create: v1::CreateFile) -> Result<CreateFile, Failure> {
    let content = match create.content {
        Some(v1::create_file::Content::Text(text)) if text.len() > INLINE_BYTES => {
            let message = format!("the text has {} bytes, inline content has at most {INLINE_BYTES}", text.len());
            return Err(Failure::new(Reason::TooLarge, message)
                .detail(Detail::File)
                .field(format!("files[{index}].createFile.text"))
                .hint("upload it with UploadBlob and name the blob"));
        }
        Some(v1::create_file::Content::Text(text)) => Content::Text(text),
        Some(v1::create_file::Content::Blob(blob)) => {
            Content::Blob(blob_ref(&format!("files[{index}].createFile.blob"), &blob)?)
        }
        None => return Err(missing(&format!("files[{index}].createFile"), "text or blob")),
    };
    Ok(CreateFile { content, overwrite: create.overwrite })
}

/// Reads the name of a blob from the field of this name.
///
/// # Errors
/// INVALID_REQUEST (SHA_FORMAT), naming the field.
pub(super) fn blob_ref(field: &str, blob: &v1::BlobRef) -> Result<BlobRef, Failure> {
    Ok(BlobRef { sha256: digest(&format!("{field}.sha256"), &blob.sha256)?, size_bytes: blob.size_bytes })
}

impl TryFrom<v1::BlobRef> for BlobRef {
    type Error = Failure;

    fn try_from(blob: v1::BlobRef) -> Result<Self, Failure> {
        blob_ref("blob", &blob)
    }
}

impl From<BlobRef> for v1::BlobRef {
    fn from(blob: BlobRef) -> Self {
        Self { sha256: blob.sha256.into(), size_bytes: blob.size_bytes }
    }
}

impl From<Batch> for v1::Edit {
    fn from(batch: Batch) -> Self {
        with_ids(batch, &[])
    }
}

/// The edit with the ids it was given; without ids where there are none.
pub(super) fn with_ids(batch: Batch, ids: &[FileIds]) -> v1::Edit {
    let mut ids = ids.iter();
    let files = batch.files.into_iter().map(|patch| file_message(patch, ids.next())).collect();
    v1::Edit { label: batch.label.unwrap_or_default(), key: batch.key.unwrap_or_default(), files }
}

fn file_message(patch: FilePatch, ids: Option<&FileIds>) -> v1::FilePatch {
    let action = match patch.edit {
        FileEdit::LinePatch(patch) => {
            let mut ids = ids.map(|ids| ids.changes.as_slice()).unwrap_or_default().iter();
            let changes = patch
                .changes
                .into_iter()
                .map(|change| change_message(change, ids.next().map(|id| format!("{id}")).unwrap_or_default()));
            let changes = changes.collect();
            Some(v1::file_patch::Action::LinePatch(v1::LinePatch { original_sha256: patch.original_sha256, changes }))
        }
        FileEdit::CreateFile(create) => {
            let content = match create.content {
                Content::Text(text) => v1::create_file::Content::Text(text),
                Content::Blob(blob) => v1::create_file::Content::Blob(blob.into()),
            };
            Some(v1::file_patch::Action::CreateFile(v1::CreateFile {
                content: Some(content),
                overwrite: create.overwrite,
            }))
        }
        _ => None,
    };
    v1::FilePatch {
        file_patch_id: ids.map(|ids| format!("{}", ids.file)).unwrap_or_default(),
        key: patch.key.unwrap_or_default(),
        label: patch.label.unwrap_or_default(),
        target: Some(target_message(patch.target)),
        action,
    }
}

pub(super) fn target_message(target: Target) -> v1::file_patch::Target {
    match target {
        Target::DocPath(path) => v1::file_patch::Target::DocPath(path),
        Target::Path(path) => v1::file_patch::Target::Path(path),
    }
}

fn change_message(change: Change, change_id: String) -> v1::Change {
    use v1::change::Operation as Wire;
    let operation = match change.operation {
        Operation::Insert { after_line, new_lines } => Wire::Insert(v1::InsertLines { after_line, new_lines }),
        Operation::Replace { start_line, end_line, expected_original_lines, new_lines } => {
            Wire::Replace(v1::ReplaceLines { start_line, end_line, expected_original_lines, new_lines })
        }
        Operation::Delete { start_line, end_line, expected_original_lines } => {
            Wire::Delete(v1::DeleteLines { start_line, end_line, expected_original_lines })
        }
    };
    v1::Change {
        change_id,
        key: change.key.unwrap_or_default(),
        description: change.description.unwrap_or_default(),
        operation: Some(operation),
    }
}

impl From<v1::Origin> for Origin {
    fn from(origin: v1::Origin) -> Self {
        Self {
            session_id: given(origin.session_id),
            conversation_id: given(origin.conversation_id),
            turn_id: given(origin.turn_id),
        }
    }
}

impl From<Origin> for v1::Origin {
    fn from(origin: Origin) -> Self {
        Self {
            session_id: origin.session_id.unwrap_or_default(),
            conversation_id: origin.conversation_id.unwrap_or_default(),
            turn_id: origin.turn_id.unwrap_or_default(),
        }
    }
}
