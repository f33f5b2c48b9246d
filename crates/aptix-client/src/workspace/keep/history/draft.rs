//! Drafts the entry of a batch that is about to be committed, under a name later than those of all entries.

use std::time::{SystemTime, UNIX_EPOCH};

use aptix_model::record::UnixMillis;
use rustix::io::Errno;
use uuid::Uuid;

use super::effect::Reversal;
use super::entries::{EntryId, ids};
use super::entry::{self, Encoded};
use crate::workspace::commit::change::Change;
use crate::workspace::commit::history_draft::HistoryDraft;
use crate::workspace::fs::disk;
use crate::workspace::keep::age;
use crate::workspace::roots::state::{OwnError, StateDir};
use crate::workspace::roots::workspace::Workspace;

/// What an entry says of its batch besides its changes.
pub(in crate::workspace) struct Words<'a> {
    /// What the batch is called.
    pub(in crate::workspace) batch: Option<String>,
    /// What it takes back.
    pub(in crate::workspace) undoes: Option<&'a Reversal>,
}

/// Puts together what is needed to undo changes, in as many bytes as may be kept; else what there is to be said of them.
/// Touches nothing.
pub(in crate::workspace) fn draft(
    workspace: &Workspace,
    changes: &[Change<'_>],
    words: Words<'_>,
    limit: u64,
) -> Result<HistoryDraft, OwnError> {
    let Words { batch, undoes } = words;
    let now = workspace.disk().now();
    let time = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let time = UnixMillis(u64::try_from(time).unwrap_or_default());
    let id = next_id(workspace, now)?.to_string();
    let is_redo = undoes.is_some_and(|undoes| undoes.is_redo);
    let undoes = undoes.map(|undoes| undoes.of.to_string());
    let age = age::now(workspace.disk(), workspace.primary().state())?;
    let head = entry::Words { id: id.clone(), batch, undoes, is_redo, time, age };
    let encoded = entry::encode(workspace, changes, head, limit);
    // What is said of a batch is texts and numbers: there is nothing in it that JSON could refuse.
    let Encoded { bytes, is_whole } = encoded.map_err(|_| Errno::INVAL)?;
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
fn changed(workspace: &Workspace) -> Result<Vec<Option<(i64, u64)>>, Errno> {
    let look = |state: &StateDir| match rustix::fs::stat(state.path().join("history")) {
        Ok(stat) => Ok(Some((stat.st_ctime, stat.st_ctime_nsec))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    };
    workspace.roots().iter().map(|root| look(root.state())).collect()
}

/// A name later than those of all entries there are, even if the clock is behind. The directories are listed only if
/// somebody else has changed them.
fn next_id(workspace: &Workspace, now: SystemTime) -> Result<EntryId, OwnError> {
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

fn newest_there_is(workspace: &Workspace) -> Result<Option<EntryId>, OwnError> {
    let mut newest = None;
    for root in workspace.roots() {
        let Some(dir) = root.state().find_history()? else { continue };
        newest = newest.max(ids(&dir)?.into_iter().max());
    }
    Ok(newest)
}
