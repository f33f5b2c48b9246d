//! What was carried out since an earlier look: the entries of the history of a workspace that are later than its marks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::entries::{Entry, EntryId, HistoryError};
use super::index::Index;
use super::newest::{History, Reach, by_indexes};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::stamp::Stamp;
use crate::workspace::roots::state::Part;
use crate::workspace::roots::workspace::Workspace;

/// Up to which entry each history was looked at, by the name of the state that keeps it. Each has a mark of its own: the names
/// of entries are in order within one history alone, whatever the clock shows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Marks(BTreeMap<String, EntryId>);

impl Marks {
    /// Marks an entry as looked at.
    pub(crate) fn pass(&mut self, entry: &Entry) {
        self.0.insert(entry.keeper(), entry.id);
    }

    /// The mark of a history.
    ///
    /// Without any marks, and for a root that was not open before, it is the newest entry: what came before is not news. What
    /// another root keeps has come since that root was linked. A mark that is later than every entry is that of a history
    /// which was removed or replaced.
    fn of(&mut self, history: &History<'_>, is_first: bool) -> EntryId {
        let newest = history.newest.unwrap_or(EntryId::START);
        let name = history.state.name().to_string();
        let mark = match self.0.get(&name) {
            Some(mark) => newest.min(*mark),
            None if is_first || history.is_open => newest,
            None => EntryId::START,
        };
        self.0.insert(name, mark);
        mark
    }
}

/// What came since an earlier look.
#[derive(Debug)]
pub(crate) struct News {
    /// The entries, oldest first.
    pub(crate) entries: Vec<Entry>,
    /// The marks before them.
    pub(crate) marks: Marks,
}

/// The entries about roots of the workspace that are later than these marks; none where there are no marks yet.
///
/// # Errors
/// When another process holds the workspace for long, or the history cannot be read.
pub(crate) fn since(workspace: &Workspace, marks: Option<Marks>) -> Result<News, HistoryError> {
    let is_first = marks.is_none();
    let mut marks = marks.unwrap_or_default();
    let mut entries =
        by_indexes(workspace, &mut |history| Reach { after: marks.of(&history, is_first), most: usize::MAX })?;
    entries.reverse();
    Ok(News { entries, marks })
}

/// What changes whenever there is a new entry about a root of the workspace, except within one tick of the file system's clock.
/// A history that cannot be looked at is left out.
pub(crate) fn stamps(workspace: &Workspace) -> Vec<Stamp> {
    let open = workspace.roots().iter().map(Root::state);
    let indexes = open.clone().filter_map(|state| Index::find(state).ok().flatten());
    let linked: Vec<_> = indexes.flat_map(|index| index.totals.elsewhere.unwrap_or_default()).collect();
    let linked = linked.iter().filter_map(|name| workspace.primary().state().named(name));
    let dirs = open.cloned().chain(linked).filter_map(|state| state.find(Part::HISTORY).ok().flatten());
    dirs.filter_map(|dir| Stamp::of(&dir).ok()).collect()
}
