//! Which batches of a history are in effect, and which of them took back which.
//!
//! An undo takes back a batch, a redo takes back an undo. Both are batches themselves, so both can be undone: a batch is
//! in effect unless one that is in effect took it back.

use std::collections::HashMap;

use super::entries::{Entry, EntryId};
use super::past_file::PastDir;

/// What a new batch takes back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reversal {
    /// The entry of the batch.
    pub of: EntryId,
    /// Whether that batch is an undo, so that the new one is a redo.
    pub is_redo: bool,
    /// The directories that the batch had made.
    pub(crate) dirs: Vec<PastDir>,
}

impl Reversal {
    /// Takes back the batch of an entry.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        Self { of: entry.id, is_redo: entry.is_undo(), dirs: entry.dirs.clone() }
    }
}

/// For each batch that is taken back, the entry that did it.
pub(crate) struct Effects<'e>(HashMap<&'e str, &'e Entry>);

impl<'e> Effects<'e> {
    /// Of all entries there are, newest first.
    pub(crate) fn of(entries: &'e [Entry]) -> Self {
        let mut taken_back: HashMap<&str, &Entry> = HashMap::new();
        for entry in entries {
            if let Some(undone) = entry.undoes.as_deref()
                && !taken_back.contains_key(entry.id.to_string().as_str())
            {
                taken_back.insert(undone, entry);
            }
        }
        Self(taken_back)
    }

    /// What took the batch of an entry back; `None` while it is in effect.
    pub(crate) fn taken_back_by(&self, entry: &Entry) -> Option<&'e Entry> {
        self.0.get(entry.id.to_string().as_str()).copied()
    }
}
