//! The newest entries of the history of a workspace, found by the indexes: only those entries are read.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::entries::{Entry, EntryId, HistoryError, concerns, list, read_head, read_in};
use super::index::{Index, may_concern, names};
use super::index_lines::{Broken, Indexed};
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::Disk;
use crate::workspace::roots::root::Root;
use crate::workspace::roots::state::{Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// What was carried out last in any root of the workspace, newest first: at most so many entries, whichever roots keep them.
/// Entries that are damaged are left out, and logged.
///
/// # Errors
/// When the history cannot be read.
pub(crate) fn newest(workspace: &Workspace, most: usize) -> Result<Vec<Entry>, HistoryError> {
    // What has no state has no index, and a look leaves none.
    if workspace.roots().iter().all(|root| root.state().exists())
        && let Ok(mut entries) = by_indexes(workspace, &mut |_| Reach { after: EntryId::START, most })
            .inspect_err(|error| tracing::debug!(%error, "the history is read without its index"))
    {
        entries.truncate(most);
        return Ok(entries);
    }
    let mut entries = list(workspace)?;
    entries.truncate(most);
    Ok(entries)
}

/// One of the histories that have entries about roots of the workspace.
pub(super) struct History<'s> {
    pub(super) state: &'s StateDir,
    /// The entry that was added last, which need not exist any more.
    pub(super) newest: Option<EntryId>,
    /// Whether it is that of an open root.
    pub(super) is_open: bool,
}

/// Which entries of a history are read.
#[derive(Clone, Copy)]
pub(super) struct Reach {
    /// Those later than this one,
    pub(super) after: EntryId,
    /// and at most so many of them, the newest.
    pub(super) most: usize,
}

/// The entry of a name, if it is about a root of the workspace, and kept with one or with a root that it is linked to.
pub(crate) fn named(workspace: &Workspace, id: &str) -> Option<Entry> {
    let id: EntryId = id.parse().ok()?;
    let open: Vec<_> = workspace.roots().iter().map(|root| root.state().clone()).collect();
    let indexes = open.iter().filter_map(|state| Index::find(state).ok().flatten());
    let linked: Vec<_> = indexes.flat_map(|index| index.totals.elsewhere.unwrap_or_default()).collect();
    let linked = linked.iter().filter_map(|name| workspace.primary().state().named(name));
    open.iter().cloned().chain(linked).find_map(|state| {
        let dir = state.find(Part::HISTORY).ok().flatten()?;
        read_head(&state, &dir, id).ok().flatten().filter(|entry| concerns(workspace, entry))
    })
}

/// The indexes of all histories that may have entries about a root of the workspace. The caller holds the lock.
///
/// # Errors
/// When one of them cannot be used.
pub(super) fn indexes(workspace: &Workspace) -> Result<Vec<Index>, StateError> {
    let mut indexes = Vec::new();
    let mut linked = BTreeSet::new();
    for root in workspace.roots() {
        let mut index = Index::current(workspace.disk(), root.state())?;
        linked.extend(links(workspace.disk(), root, &mut index)?);
        indexes.push(index);
    }
    let open = names(workspace.roots().iter().map(Root::state));
    let closed = linked.iter().filter(|name| !open.contains(name));
    for state in closed.filter_map(|name| workspace.primary().state().named(name)) {
        // What has no history has nothing to look for; what has one and no index is read another way.
        if state.find(Part::HISTORY)?.is_some() {
            indexes.push(Index::find(&state)?.ok_or_else(|| state.failed(Part::INDEX, "read")(Errno::NOENT))?);
        }
    }
    Ok(indexes)
}

/// What was carried out last in any root of the workspace, newest first: of each history as far as `reach` answers for it.
pub(super) fn by_indexes(
    workspace: &Workspace,
    reach: &mut dyn FnMut(History<'_>) -> Reach,
) -> Result<Vec<Entry>, HistoryError> {
    let _locks = workspace.lock()?;
    let disk = workspace.disk();
    let mut entries = Vec::new();
    let mut linked = BTreeSet::new();
    for root in workspace.roots() {
        let mut index = Index::current(disk, root.state())?;
        let reached = reach(History { state: root.state(), newest: index.newest(), is_open: true });
        let found = match follow(workspace, &index, reached, |_| true) {
            Err(Broken::Disagrees) => {
                index = Index::anew(disk, root.state())?;
                follow(workspace, &index, reached, |_| true)
            }
            found => found,
        };
        entries.extend(found.map_err(|broken| root.state().failed(Part::HISTORY, "read")(broken.errno()))?);
        linked.extend(links(disk, root, &mut index)?);
    }
    let open = names(workspace.roots().iter().map(Root::state));
    for name in linked.iter().filter(|name| !open.contains(name)) {
        let Some(state) = workspace.primary().state().named(name) else { continue };
        match kept_elsewhere(workspace, &state, &open, reach) {
            Ok(found) => entries.extend(found),
            Err(error) => tracing::warn!(%error, "what was done together with another root is not known"),
        }
    }
    entries.sort_by_key(|entry| Reverse(entry.id));
    Ok(entries)
}

/// The newest entries about roots of the workspace, of those that an index has and that `is_meant` does not leave out.
fn follow(
    workspace: &Workspace,
    index: &Index,
    reach: Reach,
    is_meant: impl Fn(&Indexed) -> bool,
) -> Result<Vec<Entry>, Broken> {
    let mut entries = Vec::new();
    for indexed in index.newest_first() {
        if entries.len() >= reach.most {
            break;
        }
        let indexed = indexed?;
        if indexed.id <= reach.after {
            break;
        }
        if !is_meant(&indexed) {
            continue;
        }
        match read_head(&index.state, &index.dir, indexed.id)? {
            Some(entry) => entries.extend(Some(entry).filter(|entry| concerns(workspace, entry))),
            None if beneath::look_up(index.dir.as_fd(), &indexed.id.to_string())?.is_none() => {
                return Err(Broken::Disagrees);
            }
            None => {
                let entry = index.state.part(Part::HISTORY).join(indexed.id.to_string());
                tracing::warn!(entry = %entry.display(), "an entry of the history is damaged; its batch cannot be undone");
            }
        }
    }
    Ok(entries)
}

/// The newest entries about roots of the workspace that the history of a root keeps which is not open. Its index may be
/// changing.
fn kept_elsewhere(
    workspace: &Workspace,
    state: &StateDir,
    open: &[String],
    reach: &mut dyn FnMut(History<'_>) -> Reach,
) -> Result<Vec<Entry>, HistoryError> {
    let mut of = |newest| reach(History { state, newest, is_open: false });
    if let Some(index) = Index::find(state)?
        && let Ok(entries) = follow(workspace, &index, of(index.newest()), |entry| may_concern(entry, open))
    {
        return Ok(entries);
    }
    let mut entries = read_in(state)?.entries;
    let Reach { after, most } = of(entries.first().map(|entry| entry.id));
    entries.retain(|entry| entry.id > after && concerns(workspace, entry));
    entries.truncate(most);
    Ok(entries)
}

/// The names of the other states whose histories may have entries about a root. Where that is not known, or a state was added,
/// removed or restored since, every history there is gets looked at, once.
fn links(disk: &dyn Disk, root: &Root, index: &mut Index) -> Result<Vec<String>, StateError> {
    // Taken before the states are listed: one that is added meanwhile shows the next time.
    let states = root.state().stamp_of_all()?;
    if let Some(known) = &index.totals.elsewhere
        && index.totals.states == Some(states)
    {
        return Ok(known.clone());
    }
    let name = [root.state().name().to_string()];
    let is_about_root = |entry: &Entry| entry.files.iter().any(|file| file.root == root.path());
    let may_be_linked = |state: &StateDir| {
        !is_ruled_out(state, &name) && read_in(state).map_or(true, |known| known.entries.iter().any(is_about_root))
    };
    let mut siblings = root.state().siblings()?;
    siblings.retain(may_be_linked);
    let linked = names(siblings.iter());
    if let Err(error) = index.link(disk, linked.clone(), Some(states)) {
        tracing::debug!(%error, "the index of the history is not written");
    }
    Ok(linked)
}

/// Whether the index of a history shows that no entry is about roots of these names. It reads no entry.
fn is_ruled_out(state: &StateDir, roots: &[String]) -> bool {
    let Ok(Some(index)) = Index::find(state) else { return false };
    index.newest_first().all(|entry| entry.is_ok_and(|entry| !may_concern(&entry, roots)))
}
