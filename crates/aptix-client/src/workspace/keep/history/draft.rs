//! Drafts the entry of a batch that is about to be committed, under a name later than those of all entries; once the batch is
//! carried out, makes it an entry and adds it to the index.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::entries::{EntryId, Reversal};
use super::entry::{self, Head};
use super::index::{self, Index};
use super::index_lines::{About, Indexed};
use super::summary::Summary;
use crate::workspace::commit::change::Change;
use crate::workspace::commit::history_draft::{self, HistoryDraft};
use crate::workspace::commit::record::Record;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::keep::age;
use crate::workspace::roots::root::Root;
use crate::workspace::roots::state::{OwnError, Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// The entry that was drafted last, and the index that it will be added to: while the commit lock is held no other process
/// changes that.
struct Drafted {
    entry: Indexed,
    index: Index,
}

/// The index that an entry was added to, for as long as the commit lock is held.
pub(super) struct Added(pub(super) Index);

/// Drafts the entry of a batch of this name and summary that takes back `undoes`: what is needed to undo its changes in at most
/// `limit` bytes, else what the batch was. Roots that it has files in learn where it will be kept. The caller holds the lock.
pub(in crate::workspace) fn draft(
    workspace: &Workspace,
    changes: &[Change<'_>],
    (batch, summary): (Option<String>, Option<Summary>),
    undoes: Option<&Reversal>,
    limit: u64,
) -> Result<HistoryDraft, StateError> {
    let now = workspace.disk().now();
    let time = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let (id, dir) = prepare(workspace, changes, undoes.is_some(), now)?;
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
    Ok(HistoryDraft { id, dir, bytes, is_whole })
}

/// Chooses a name later than those of all entries there are, even if the clock is behind, and holds the index for it; returns
/// the name, and the directory of the entry.
fn prepare(
    workspace: &Workspace,
    changes: &[Change<'_>],
    is_reversal: bool,
    now: SystemTime,
) -> Result<(String, Arc<OwnedFd>), StateError> {
    let places = || changes.iter().flat_map(Change::places);
    let has_files = |(at, root): (usize, &Root)| places().any(|place| place.root == at).then(|| root.state().clone());
    let roots: Vec<StateDir> = workspace.roots().iter().enumerate().filter_map(has_files).collect();
    let keeper = workspace.primary().state();
    let kept = Index::current(workspace.disk(), keeper)?;
    let mut newest = kept.newest();
    for state in workspace.roots().iter().map(Root::state).filter(|state| *state != keeper) {
        let mut index = Index::current(workspace.disk(), state)?;
        newest = newest.max(index.newest());
        if roots.contains(state) {
            link(workspace.disk(), &mut index, keeper)?;
        }
    }
    let id = EntryId(disk::entry_name(now));
    let after = |newest: EntryId| EntryId(Uuid::from_u128(newest.0.as_u128().saturating_add(1)));
    let id = newest.map(after).map_or(id, |least| least.max(id));
    let about = About::new(places().map(|place| place.path.to_string()).collect(), is_reversal);
    let entry = Indexed { id, bytes: 0, roots: Some(index::names(roots.iter())), about };
    let dir = Arc::clone(&kept.dir);
    workspace.with_cache(|last: &mut Option<Drafted>| *last = Some(Drafted { entry, index: kept }));
    Ok((id.to_string(), dir))
}

/// Notes for the history of a root that there are entries about this root with the keeper of another one. Where nobody has
/// looked for such entries yet, they will be found then.
fn link(disk: &dyn Disk, index: &mut Index, keeper: &StateDir) -> Result<(), StateError> {
    let keeper = keeper.name().to_string();
    match index.totals.elsewhere.clone() {
        Some(mut elsewhere) if !elsewhere.contains(&keeper) => {
            elsewhere.push(keeper);
            let linked = index.link(disk, elsewhere, index.totals.states);
            linked.map_err(|error| index.state.failed(Part::INDEX, "write")(error.errno()))
        }
        _ => Ok(()),
    }
}

/// Makes the draft of a batch that is carried out its entry, and adds it to the index. What was drafted by a process that died
/// is not known any more: then the indexes of its roots are made anew.
pub(in crate::workspace::keep) fn keep(
    workspace: &Workspace,
    state: &StateDir,
    record: &Record,
) -> Result<(), OwnError> {
    let (disk, Some(id)) = (workspace.disk(), &record.history) else { return Ok(()) };
    let drafted = workspace.with_cache(Option::<Drafted>::take);
    let is_its_own = |drafted: &Drafted| drafted.entry.id.to_string() == *id && drafted.index.state == *state;
    if let Some(Drafted { entry, mut index }) = drafted.filter(is_its_own) {
        history_draft::keep(disk, &index.dir, id)?;
        if let Ok(Some(entry)) = entry.look(&index.dir)
            && index.add(disk, entry).is_ok()
        {
            workspace.with_cache(|added| *added = Some(Added(index)));
            return Ok(());
        }
    } else {
        history_draft::keep(disk, &state.open(Part::HISTORY)?, id)?;
    }
    let others = record.roots.iter().filter_map(|mark| state.of_other_root(Path::new(&mark.path)));
    others.chain([state.clone()]).try_for_each(|state| index::forget(disk, &state))
}
