//! What is to happen, between the wire and the model.

use super::field::{digest, each, given, id, missing, note, unexpected, unknown_enum, with_id};
use super::{anchor, hunks, quote, search, v1};
use crate::batch::{
    Atomicity, Batch, BlobRef, Change, Content, CreateFile, FileEdit, FilePatch, LinePatch, Operation, Origin,
    PartialBatch, Presence, Revert, Target, WriteFile,
};
use crate::failure::Failure;
use crate::id::ChangeId;
use crate::limits::INLINE_BYTES;
use crate::path_readings::PathReadings;
use crate::reason::{Detail, Reason};
use crate::record::FileIds;

impl From<v1::Edit> for PartialBatch {
    fn from(edit: v1::Edit) -> Self {
        let (mut failures, mut positions, mut patches) = (Vec::new(), Vec::new(), Vec::new());
        let atomicity = atomicity(edit.atomicity, &edit.required_features, &mut failures);
        let mut files = edit.files;
        let quotes = quote::split_off(&mut files, &mut failures);
        for (index, file) in files.into_iter().enumerate() {
            let (file_key, change_keys) = (given(file.key.clone()), change_keys(&file));
            match file_patch(index, file) {
                Ok(patch) => {
                    positions.push(index);
                    patches.push(patch);
                }
                Err(found) => found.into_iter().for_each(|failure| {
                    let change_key = failure.change_index.and_then(|at| change_keys.get(at).cloned().flatten());
                    let file_key = file_key.clone();
                    note(&mut failures, Failure { file_index: Some(index), file_key, change_key, ..failure });
                }),
            }
        }
        let batch = Batch { label: given(edit.label), key: given(edit.key), files: patches, atomicity, quotes };
        Self { batch, positions, failures }
    }
}

/// The author's names for the changes of a file patch.
fn change_keys(file: &v1::FilePatch) -> Vec<Option<String>> {
    match &file.action {
        Some(v1::file_patch::Action::LinePatch(patch)) => {
            patch.changes.iter().map(|change| given(change.key.clone())).collect()
        }
        _ => Vec::new(),
    }
}

impl TryFrom<v1::Edit> for Batch {
    type Error = Vec<Failure>;

    fn try_from(edit: v1::Edit) -> Result<Self, Vec<Failure>> {
        let PartialBatch { batch, failures, .. } = edit.into();
        if failures.is_empty() { Ok(batch) } else { Err(failures) }
    }
}

/// The feature that an edit requires which is applied file by file.
const PER_FILE: &str = "per_file";

/// Reads whether refusing one file refuses all; refuses features that this version does not have. An edit that is applied file
/// by file has to require the feature, so that a reader without it refuses the edit instead of applying all or nothing.
fn atomicity(value: i32, required: &[String], failures: &mut Vec<Failure>) -> Atomicity {
    let refusal =
        |message, detail, field: String| Failure::new(Reason::InvalidRequest, message).detail(detail).field(field);
    let atomicity = match v1::Atomicity::try_from(value) {
        Ok(v1::Atomicity::Unspecified | v1::Atomicity::AllOrNothing) => Atomicity::AllOrNothing,
        Ok(v1::Atomicity::PerFile) => Atomicity::PerFile,
        Err(_) => {
            note(failures, unknown_enum("atomicity", value));
            Atomicity::AllOrNothing
        }
    };
    for (index, feature) in required.iter().enumerate().filter(|(_, feature)| *feature != PER_FILE) {
        let shown: String = feature.chars().take(40).collect();
        let field = format!("requiredFeatures[{index}]");
        let message = format!("{field} is {shown:?}, which this version does not have");
        note(failures, refusal(message, Detail::UnknownFeature, field));
    }
    let is_required = required.iter().any(|feature| feature == PER_FILE);
    if is_required != (atomicity == Atomicity::PerFile) {
        let (message, detail) = match is_required {
            true => (
                "requiredFeatures holds \"per_file\", and atomicity is not ATOMICITY_PER_FILE",
                Detail::UnexpectedField,
            ),
            false => ("atomicity is ATOMICITY_PER_FILE, and requiredFeatures lacks \"per_file\"", Detail::Missing),
        };
        let hint = "give both, or neither";
        note(failures, refusal(message.into(), detail, "requiredFeatures".into()).hint(hint));
    }
    atomicity
}

fn file_patch(index: usize, file: v1::FilePatch) -> Result<FilePatch, Vec<Failure>> {
    use v1::file_patch::Action;
    let mut failures = Vec::new();
    let is_diff = matches!(file.action, Some(Action::GitPatch(_) | Action::GitSeries(_)));
    let target = target(index, file.target, is_diff).map_err(|failure| note(&mut failures, failure)).ok();
    let edit = match file.action {
        Some(action) => file_edit(index, action, &mut failures),
        None => {
            let expected = "what happens to the file, such as linePatch";
            note(&mut failures, missing(&format!("files[{index}].action"), expected));
            None
        }
    };
    match (target, edit) {
        (Some(target), Some(edit)) if failures.is_empty() => {
            Ok(FilePatch { target, key: given(file.key), label: given(file.label), edit })
        }
        _ => Err(failures),
    }
}

fn file_edit(index: usize, action: v1::file_patch::Action, failures: &mut Vec<Failure>) -> Option<FileEdit> {
    use v1::file_patch::Action as Wire;
    let read = match action {
        Wire::LinePatch(patch) => {
            let changes = each(index, patch.changes, failures, line_change);
            Ok(FileEdit::LinePatch(LinePatch { original_sha256: patch.original_sha256, changes }))
        }
        Wire::CreateFile(create) => create_file(index, create).map(FileEdit::CreateFile),
        Wire::WriteFile(write) => write_file(index, write).map(FileEdit::WriteFile),
        Wire::DeleteFile(v1::DeleteFile {}) => Ok(FileEdit::DeleteFile),
        Wire::SearchPatch(patch) => Ok(FileEdit::SearchPatch(search::search_patch(index, patch, failures))),
        Wire::EditorCommands(edit) => Ok(FileEdit::EditorCommands(search::editor_commands(index, edit, failures))),
        Wire::Replacements(all) => Ok(FileEdit::Replacements(search::replacements(index, all, failures))),
        Wire::GitPatch(patch) => hunks::git_patch(index, patch, failures).map(FileEdit::GitPatch),
        Wire::GitSeries(series) => Ok(FileEdit::GitSeries(hunks::git_series(index, series, failures))),
        Wire::AnchorEdit(edit) => anchor::anchor_edit(index, edit).map(FileEdit::AnchorEdit),
        Wire::ContextPatch(patch) => Ok(FileEdit::ContextPatch(hunks::context_patch(index, patch, failures))),
        Wire::LocalChange(v1::LocalChange {}) => Ok(FileEdit::LocalChange),
        Wire::Revert(revert) => file_revert(index, revert).map(FileEdit::Revert),
        Wire::Quote(_) => Err(quote::misplaced(index)),
    };
    read.map_err(|failure| note(failures, failure)).ok()
}

fn file_revert(index: usize, revert: v1::Revert) -> Result<Revert, Failure> {
    let batch = id(&format!("files[{index}].revert.batchId"), &revert.batch_id)?;
    Ok(Revert { batch, move_to: given(revert.move_to) })
}

fn line_change(field: &str, change: v1::Change) -> Result<Change, Failure> {
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
        None => return Err(missing(&format!("{field}.operation"), "insert, replace or delete")),
    };
    Ok(Change { key: given(change.key), description: given(change.description), operation })
}

fn create_file(index: usize, create: v1::CreateFile) -> Result<CreateFile, Failure> {
    use v1::create_file::Content as Wire;
    let field = format!("files[{index}].createFile");
    let content = match create.content {
        Some(Wire::Text(text)) => inline(&field, text)?,
        Some(Wire::Blob(blob)) => Content::Blob(blob_ref(&format!("{field}.blob"), &blob)?),
        None => return Err(missing(&field, "text or blob")),
    };
    Ok(CreateFile { content, overwrite: create.overwrite, content_format: create.content_format })
}

fn write_file(index: usize, write: v1::WriteFile) -> Result<WriteFile, Failure> {
    use v1::write_file::Content as Wire;
    let field = format!("files[{index}].writeFile");
    let presence = match write.presence() {
        v1::Presence::Absent => Presence::Absent,
        v1::Presence::Present => Presence::Present,
        v1::Presence::Either => Presence::Either,
        v1::Presence::Unspecified => return Err(unknown_enum(&format!("{field}.presence"), write.presence)),
    };
    let content = match write.content {
        Some(Wire::Text(text)) => inline(&field, text)?,
        Some(Wire::Blob(blob)) => Content::Blob(blob_ref(&format!("{field}.blob"), &blob)?),
        None => return Err(missing(&field, "text or blob")),
    };
    Ok(WriteFile { content, presence, content_format: write.content_format })
}

fn inline(field: &str, text: String) -> Result<Content, Failure> {
    if text.len() <= INLINE_BYTES {
        return Ok(Content::Text(text));
    }
    let message = format!("the text has {} bytes, inline content has at most {INLINE_BYTES}", text.len());
    Err(Failure::new(Reason::TooLarge, message)
        .detail(Detail::File)
        .field(format!("{field}.text"))
        .hint("upload it with UploadBlob and name the blob"))
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
    let files = batch.files.into_iter().map(|patch| file_message(patch, ids.next()));
    let files = files.chain(batch.quotes.into_iter().map(quote::message)).collect();
    let (label, key) = (batch.label.unwrap_or_default(), batch.key.unwrap_or_default());
    let (atomicity, required_features) = match batch.atomicity {
        Atomicity::AllOrNothing => (v1::Atomicity::Unspecified, Vec::new()),
        Atomicity::PerFile => (v1::Atomicity::PerFile, Vec::from([PER_FILE.into()])),
    };
    v1::Edit { label, key, files, atomicity: atomicity.into(), required_features }
}

fn file_message(patch: FilePatch, ids: Option<&FileIds>) -> v1::FilePatch {
    let changes = ids.map(|ids| ids.changes.as_slice()).unwrap_or_default();
    v1::FilePatch {
        file_patch_id: ids.map(|ids| format!("{}", ids.file)).unwrap_or_default(),
        key: patch.key.unwrap_or_default(),
        label: patch.label.unwrap_or_default(),
        target: Some(target_message(patch.target)),
        action: Some(action_message(patch.edit, changes)),
    }
}

fn action_message(edit: FileEdit, ids: &[ChangeId]) -> v1::file_patch::Action {
    use v1::file_patch::Action as Wire;
    match edit {
        FileEdit::LinePatch(patch) => Wire::LinePatch(v1::LinePatch {
            original_sha256: patch.original_sha256,
            changes: with_id(patch.changes, ids, change_message),
        }),
        FileEdit::CreateFile(create) => {
            let content = match create.content {
                Content::Text(text) => v1::create_file::Content::Text(text),
                Content::Blob(blob) => v1::create_file::Content::Blob(blob.into()),
            };
            Wire::CreateFile(v1::CreateFile {
                content: Some(content),
                overwrite: create.overwrite,
                content_format: create.content_format,
            })
        }
        FileEdit::WriteFile(write) => {
            let content = match write.content {
                Content::Text(text) => v1::write_file::Content::Text(text),
                Content::Blob(blob) => v1::write_file::Content::Blob(blob.into()),
            };
            let presence = match write.presence {
                Presence::Absent => v1::Presence::Absent,
                Presence::Present => v1::Presence::Present,
                Presence::Either => v1::Presence::Either,
            };
            Wire::WriteFile(v1::WriteFile {
                content: Some(content),
                presence: presence.into(),
                content_format: write.content_format,
            })
        }
        FileEdit::DeleteFile => Wire::DeleteFile(v1::DeleteFile {}),
        FileEdit::LocalChange => Wire::LocalChange(v1::LocalChange {}),
        FileEdit::Revert(Revert { batch, move_to }) => {
            Wire::Revert(v1::Revert { batch_id: batch.to_string(), move_to: move_to.unwrap_or_default() })
        }
        FileEdit::SearchPatch(patch) => {
            Wire::SearchPatch(v1::SearchPatch { changes: with_id(patch.changes, ids, search::search_change_message) })
        }
        FileEdit::EditorCommands(edit) => Wire::EditorCommands(v1::EditorCommands {
            commands: with_id(edit.commands, ids, search::editor_command_message),
        }),
        FileEdit::Replacements(all) => {
            Wire::Replacements(v1::Replacements { steps: with_id(all.steps, ids, search::replacement_message) })
        }
        FileEdit::AnchorEdit(edit) => {
            let id = ids.first().map(|id| format!("{id}")).unwrap_or_default();
            Wire::AnchorEdit(anchor::anchor_edit_message(edit, id))
        }
        FileEdit::GitPatch(patch) => Wire::GitPatch(hunks::git_patch_message(patch, ids)),
        FileEdit::GitSeries(parts) => Wire::GitSeries(hunks::git_series_message(parts, ids)),
        FileEdit::ContextPatch(patch) => Wire::ContextPatch(v1::ContextPatch {
            move_to: patch.move_to,
            chunks: with_id(patch.chunks, ids, hunks::chunk_message),
        }),
    }
}

fn target_message(target: Target) -> v1::file_patch::Target {
    match target {
        Target::DocPath(path) => v1::file_patch::Target::DocPath(path),
        Target::Path(path) => v1::file_patch::Target::Path(path),
        Target::Readings(PathReadings { stripped, written }) => {
            v1::file_patch::Target::PathReadings(v1::PathReadings { stripped, written })
        }
    }
}

/// Reads which file an entry is for; only a file of a diff may have several readings.
pub(super) fn target(index: usize, target: Option<v1::file_patch::Target>, is_diff: bool) -> Result<Target, Failure> {
    let v1::PathReadings { stripped, written } = match target {
        Some(v1::file_patch::Target::DocPath(path)) => return Ok(Target::DocPath(path)),
        Some(v1::file_patch::Target::Path(path)) => return Ok(Target::Path(path)),
        Some(v1::file_patch::Target::PathReadings(readings)) => readings,
        None => return Err(missing(&format!("files[{index}].target"), "docPath or path")),
    };
    let field = format!("files[{index}].pathReadings");
    if !is_diff {
        return Err(unexpected(&field, "with gitPatch or gitSeries"));
    }
    for (name, paths) in [("stripped", &stripped), ("written", &written)] {
        if !matches!(paths.as_slice(), [_] | [_, _]) {
            let expected = "one path, or the two of a file whose sides have different names";
            return Err(missing(&format!("{field}.{name}"), expected));
        }
    }
    Ok(Target::Readings(PathReadings { stripped, written }))
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
