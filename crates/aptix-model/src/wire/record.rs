//! A stored batch, between the wire and the model: whole, as an event, or as a line of a list; and cursors of events.

use prost_types::Timestamp;

use super::edit::{target, with_ids};
use super::field::{digest, given, id, millis, missing, optional_id, unknown_enum};
use super::quote::is_quote;
use super::{plan, session, v1};
use crate::actor::Actor;
use crate::batch::{Batch, FileEdit, FilePatch};
use crate::cursor::Cursor;
use crate::failure::Failure;
use crate::id::Revision;
use crate::record::{BatchOutline, BatchRecord, FileIds, Reverting, Sent, Source, UnixMillis};
use crate::report::Report;
use crate::session::SessionMode;
use crate::state::BatchState;
use crate::trace_parent::TraceParent;

/// The feature that a batch requires whose session's mode is stated: a reader without it must not apply the batch.
const SESSION_MODE: &str = "session_mode";

impl From<BatchState> for v1::BatchState {
    fn from(state: BatchState) -> Self {
        match state {
            BatchState::Preparing => Self::Preparing,
            BatchState::Prepared => Self::Prepared,
            BatchState::PendingApproval => Self::PendingApproval,
            BatchState::Approved => Self::Approved,
            BatchState::Applied => Self::Applied,
            BatchState::Failed => Self::Failed,
            BatchState::Rejected => Self::Rejected,
            BatchState::Cancelled => Self::Cancelled,
            BatchState::Expired => Self::Expired,
            BatchState::Partial => Self::Partial,
        }
    }
}

/// Reads a state from the field of this name.
///
/// # Errors
/// INVALID_REQUEST (UNKNOWN_ENUM), naming the field.
pub fn batch_state(field: &str, value: i32) -> Result<BatchState, Failure> {
    let known = BatchState::ALL.into_iter().find(|state| v1::BatchState::from(*state) as i32 == value);
    known.ok_or_else(|| unknown_enum(field, value))
}

impl TryFrom<v1::BatchState> for BatchState {
    type Error = Failure;

    fn try_from(value: v1::BatchState) -> Result<Self, Failure> {
        batch_state("state", value.into())
    }
}

impl From<UnixMillis> for Timestamp {
    fn from(millis: UnixMillis) -> Self {
        let seconds = i64::try_from(millis.0 / 1000).unwrap_or(i64::MAX);
        let nanos = i32::try_from(millis.0 % 1000 * 1_000_000).unwrap_or_default();
        Self { seconds, nanos }
    }
}

impl From<BatchRecord> for v1::Batch {
    /// The whole batch, with its report.
    fn from(record: BatchRecord) -> Self {
        let (source, reverts) = match record.source {
            Source::Submitted => (v1::BatchSource::Submitted, None),
            Source::Prepared(_) => (v1::BatchSource::Prepared, None),
            Source::Local { reverts, .. } => (v1::BatchSource::Local, reverts),
            Source::Revert(Reverting { of, .. }) => (v1::BatchSource::Revert, Some(of)),
        };
        let author = record.author();
        let preparation = record.preparation().map(|preparation| plan::message(preparation, record.batch.kind()));
        let mut edit = with_ids(record.batch, &record.ids);
        if record.removed_content.is_some() {
            edit.files.iter_mut().for_each(|file| file.action = None);
        }
        if record.is_restricted {
            edit.required_features.push(SESSION_MODE.into());
        }
        Self {
            batch_id: record.id.to_string(),
            workspace_id: record.workspace.to_string(),
            revision: record.revision.0,
            state: v1::BatchState::from(record.state).into(),
            edit: Some(edit),
            origin: Some(record.origin.into()),
            request_id: record.request_id.to_string(),
            create_time: Some(record.created.into()),
            update_time: Some(record.updated.into()),
            report: record.report.map(Into::into),
            source: source.into(),
            reverts: reverts.map(|id| id.to_string()).unwrap_or_default(),
            reverted_by: record.reverted_by.map(|id| id.to_string()).unwrap_or_default(),
            author: Some(author.into()),
            preparation,
            session_mode: if record.is_restricted { v1::SessionMode::Restricted.into() } else { 0 },
            content_omitted: record.removed_content.is_some(),
            removed_content_sha256: record.removed_content.map(|digest| digest.to_string()).unwrap_or_default(),
            traceparent: TraceParent::text(record.sent.traceparent),
        }
    }
}

/// What an event of the feed carries: the whole batch while an agent can still be let apply it, its state alone while it waits for
/// a person at the server, and after its end.
#[must_use]
pub fn event_message(record: BatchRecord) -> v1::Batch {
    let open = record.state.is_open() && record.state != BatchState::PendingApproval;
    let batch = v1::Batch::from(if open { record } else { BatchRecord { batch: Batch::default(), ..record } });
    if open { batch } else { v1::Batch { edit: None, report: None, preparation: None, content_omitted: true, ..batch } }
}

/// How much of a batch an answer holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// State, ids, times, who, and of each file its names and what became of it.
    Basic,
    /// Everything.
    Full,
}

impl View {
    /// Reads the view that a request asks for.
    ///
    /// # Errors
    /// INVALID_REQUEST (UNKNOWN_ENUM).
    pub fn asked(value: i32) -> Result<Self, Failure> {
        match v1::BatchView::try_from(value) {
            Ok(v1::BatchView::Unspecified | v1::BatchView::Basic) => Ok(Self::Basic),
            Ok(v1::BatchView::Full) => Ok(Self::Full),
            Err(_) => Err(unknown_enum("view", value)),
        }
    }

    /// The batch as this view shows it.
    #[must_use]
    pub fn message(self, record: BatchRecord) -> v1::Batch {
        match self {
            Self::Basic => basic_message(record),
            Self::Full => record.into(),
        }
    }
}

/// A batch without content: no actions, no quotes, no diff, no excerpts, no documents, no places of changes.
fn basic_message(record: BatchRecord) -> v1::Batch {
    // No change of it is converted, only to be left out.
    let without_content = |patch| FilePatch { edit: FileEdit::DeleteFile, ..patch };
    let files = record.batch.files.into_iter().map(without_content).collect();
    let batch = Batch { files, quotes: Vec::new(), ..record.batch };
    let mut basic = v1::Batch::from(BatchRecord { batch, ..record });
    basic.edit.iter_mut().flat_map(|edit| &mut edit.files).for_each(|file| file.action = None);
    basic.report.iter_mut().for_each(without_content_of);
    if let Some(plan) = basic.preparation.as_mut().and_then(|preparation| preparation.plan.as_mut()) {
        plan.files.iter_mut().for_each(|file| *file = v1::PlannedFile::default());
        plan.report.iter_mut().for_each(without_content_of);
    }
    v1::Batch { content_omitted: true, ..basic }
}

/// Leaves out of a report what it quotes of files.
fn without_content_of(report: &mut v1::Report) {
    report.diff_omitted |= !report.diff.is_empty();
    report.diff.clear();
    report.files.iter_mut().for_each(|file| file.changes.clear());
    for failure in &mut report.failures {
        failure.nearest.clear();
        failure.next_action = None;
    }
}

impl TryFrom<v1::Batch> for BatchRecord {
    type Error = Vec<Failure>;

    fn try_from(message: v1::Batch) -> Result<Self, Vec<Failure>> {
        let mut edit = message.edit.ok_or_else(|| missing("edit", "the batch's content"))?;
        let is_restricted = match session::mode("sessionMode", message.session_mode)? {
            None => false,
            Some(mode) => {
                edit.required_features.retain(|feature| feature != SESSION_MODE);
                mode == SessionMode::Restricted
            }
        };
        let removed_content = match message.removed_content_sha256.as_str() {
            "" => None,
            removed => Some(digest("removedContentSha256", removed)?),
        };
        if removed_content.is_some() {
            let local = || v1::file_patch::Action::LocalChange(v1::LocalChange {});
            edit.files.iter_mut().for_each(|file| file.action = Some(local()));
        }
        let patches = edit.files.iter().enumerate().filter(|(_, file)| !is_quote(file));
        let ids = patches.map(|(index, file)| file_ids(&format!("files[{index}]."), file));
        let ids = ids.collect::<Result<_, Failure>>()?;
        let created = message.create_time.as_ref().ok_or_else(|| missing("createTime", "a time"))?;
        let updated = message.update_time.as_ref().ok_or_else(|| missing("updateTime", "a time"))?;
        let mut sent = Sent { by: None, traceparent: TraceParent::parse(&message.traceparent) };
        let source = match v1::BatchSource::try_from(message.source) {
            Ok(v1::BatchSource::Local) => Source::Local {
                author: message.author.unwrap_or_default().try_into()?,
                reverts: optional_id("reverts", &message.reverts)?,
            },
            Ok(v1::BatchSource::Prepared) => {
                let preparation = message.preparation.ok_or_else(|| missing("preparation", "how it was prepared"))?;
                Source::Prepared(Box::new(preparation.try_into()?))
            }
            Ok(v1::BatchSource::Revert) => Source::Revert(Reverting {
                of: id("reverts", &message.reverts)?,
                author: message.author.unwrap_or_default().try_into()?,
                reason: None,
            }),
            // A server of an earlier version names none.
            Ok(v1::BatchSource::Submitted | v1::BatchSource::Unspecified) => {
                sent.by = message.author.and_then(|author| given(author.name));
                Source::Submitted
            }
            Err(_) => return Err(vec![unknown_enum("source", message.source)]),
        };
        Ok(Self {
            id: id("batchId", &message.batch_id)?,
            workspace: id("workspaceId", &message.workspace_id)?,
            revision: Revision(message.revision),
            state: batch_state("state", message.state)?,
            ids,
            batch: Batch::try_from(edit)?,
            origin: message.origin.unwrap_or_default().into(),
            request_id: id("requestId", &message.request_id)?,
            created: millis(created),
            updated: millis(updated),
            report: message.report.map(Report::try_from).transpose()?,
            source,
            reverted_by: optional_id("revertedBy", &message.reverted_by)?,
            is_restricted,
            removed_content,
            sent,
        })
    }
}

/// Reads the ids of a file patch and of its changes; `at` is before the name of a field at fault.
///
/// # Errors
/// INVALID_REQUEST (ID_FORMAT), naming the field.
pub fn file_ids(at: &str, file: &v1::FilePatch) -> Result<FileIds, Failure> {
    use v1::file_patch::Action;
    let changes: Vec<&str> = match &file.action {
        Some(Action::LinePatch(patch)) => patch.changes.iter().map(|change| change.change_id.as_str()).collect(),
        Some(Action::EditorCommands(edit)) => edit.commands.iter().map(|command| command.change_id.as_str()).collect(),
        Some(Action::SearchPatch(patch)) => patch.changes.iter().map(|change| change.change_id.as_str()).collect(),
        Some(Action::Replacements(all)) => all.steps.iter().map(|step| step.change_id.as_str()).collect(),
        Some(Action::GitPatch(patch)) => patch.hunks.iter().map(|hunk| hunk.change_id.as_str()).collect(),
        Some(Action::GitSeries(series)) => {
            series.parts.iter().flat_map(|part| &part.hunks).map(|hunk| hunk.change_id.as_str()).collect()
        }
        Some(Action::AnchorEdit(edit)) => Vec::from([edit.change_id.as_str()]),
        Some(Action::ContextPatch(patch)) => patch.chunks.iter().map(|chunk| chunk.change_id.as_str()).collect(),
        Some(
            Action::CreateFile(_)
            | Action::WriteFile(_)
            | Action::DeleteFile(_)
            | Action::LocalChange(_)
            | Action::Revert(_)
            | Action::Quote(_),
        )
        | None => Vec::new(),
    };
    let changes = changes.into_iter().enumerate();
    let changes = changes.map(|(position, change)| id(&format!("{at}changes[{position}].changeId"), change));
    Ok(FileIds {
        file: id(&format!("{at}filePatchId"), &file.file_patch_id)?,
        changes: changes.collect::<Result<_, _>>()?,
    })
}

impl TryFrom<v1::Batch> for BatchOutline {
    type Error = Failure;

    fn try_from(message: v1::Batch) -> Result<Self, Failure> {
        let mut edit = message.edit.unwrap_or_default();
        edit.files.retain(|file| !is_quote(file));
        // A list has no actions.
        let targets = edit.files.into_iter().enumerate().map(|(index, file)| target(index, file.target, true));
        Ok(Self {
            id: id("batchId", &message.batch_id)?,
            revision: Revision(message.revision),
            state: batch_state("state", message.state)?,
            label: given(edit.label),
            key: given(edit.key),
            targets: targets.collect::<Result<_, _>>()?,
            created: message.create_time.as_ref().map(millis),
            author: message.author.map(Actor::try_from).transpose()?,
            reverted_by: optional_id("revertedBy", &message.reverted_by)?,
        })
    }
}

impl From<Cursor> for v1::Cursor {
    fn from(cursor: Cursor) -> Self {
        Self { history_id: cursor.history.to_string(), revision: cursor.revision.0, digest: cursor.digest.to_string() }
    }
}

impl TryFrom<v1::Cursor> for Cursor {
    type Error = Failure;

    fn try_from(cursor: v1::Cursor) -> Result<Self, Failure> {
        Ok(Self {
            history: id("cursor.historyId", &cursor.history_id)?,
            revision: Revision(cursor.revision),
            digest: digest("cursor.digest", &cursor.digest)?,
        })
    }
}
