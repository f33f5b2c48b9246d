//! Drafts the entry of a batch that is about to be committed, under a name later than those of all entries.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::entries::{EntryId, Reversal, ids};
use super::entry::{self, Head};
use super::summary::Summary;
use crate::workspace::commit::change::Change;
use crate::workspace::commit::history_draft::HistoryDraft;
use crate::workspace::fs::{disk, errno};
use crate::workspace::keep::age;
use crate::workspace::roots::root::Root;
use crate::workspace::roots::state::{Part, StateError};
use crate::workspace::roots::workspace::Workspace;

/// Drafts the entry of a batch of this name and summary that takes back `undoes`: what is needed to undo its changes in at most `limit`
/// bytes, else what the batch was. Touches nothing.
pub(in crate::workspace) fn draft(
    workspace: &Workspace,
    changes: &[Change<'_>],
    (batch, summary): (Option<String>, Option<Summary>),
    undoes: Option<&Reversal>,
    limit: u64,
) -> Result<HistoryDraft, StateError> {
    let now = workspace.disk().now();
    let time = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let id = next_id(workspace, now)?.to_string();
    let head = Head {
        id: Some(id.clone()),
        batch,
        undoes: undoes.map(|undoes| undoes.of.to_string()),
        is_redo: undoes.is_some_and(|undoes| undoes.is_redo),
        time: Some(u64::try_from(time).unwrap_or_default()),
        age: Some(age::now(workspace.disk(), workspace.primary().state())?),
        summary,
        files: Vec::new(),
        dirs: Vec::new(),
    };
    let (bytes, is_whole) = entry::encode(workspace, changes, head, limit);
    Ok(HistoryDraft { id, bytes, is_whole })
}

/// The newest entry that is known, and what the directories looked like when it was.
#[derive(Clone, PartialEq, Eq)]
struct Newest {
    id: Option<EntryId>,
    /// When the history of each root was changed last.
    changed: Vec<Option<(i64, u64)>>,
}

/// Takes what has come into the directories since the last draft for the workspace's own. The caller holds the lock.
pub(super) fn confirm_newest(workspace: &Workspace) {
    workspace.with_cache(|newest: &mut Option<Newest>| {
        let confirmed = |known| changed(workspace).ok().map(|changed| Newest { changed, ..known });
        *newest = newest.take().and_then(confirmed);
    });
}

/// When the history of each root was changed last.
fn changed(workspace: &Workspace) -> Result<Vec<Option<(i64, u64)>>, StateError> {
    let look = |root: &Root| {
        let stat = errno::optional(rustix::fs::stat(root.state().part(Part::HISTORY)));
        let stat = stat.map_err(root.state().failed(Part::HISTORY, "read"))?;
        Ok(stat.map(|stat| (stat.st_ctime, stat.st_ctime_nsec)))
    };
    workspace.roots().iter().map(look).collect()
}

/// A name later than those of all entries there are, even if the clock is behind. The directories are listed only if
/// another process has changed them.
fn next_id(workspace: &Workspace, now: SystemTime) -> Result<EntryId, StateError> {
    let changed = changed(workspace)?;
    let newest = match workspace.with_cache(Option::<Newest>::take) {
        Some(known) if known.changed == changed => known.id,
        known => newest_there_is(workspace)?.max(known.and_then(|known| known.id)),
    };
    let id = EntryId(disk::entry_name(now));
    let after = |newest: EntryId| EntryId(Uuid::from_u128(newest.0.as_u128().saturating_add(1)));
    let id = newest.map(after).map_or(id, |least| least.max(id));
    workspace.with_cache(|newest| *newest = Some(Newest { id: Some(id), changed }));
    Ok(id)
}

fn newest_there_is(workspace: &Workspace) -> Result<Option<EntryId>, StateError> {
    let mut newest = None;
    for root in workspace.roots() {
        let Some(dir) = root.state().find(Part::HISTORY)? else { continue };
        newest = newest.max(ids(root.state(), &dir)?.first().copied());
    }
    Ok(newest)
}
