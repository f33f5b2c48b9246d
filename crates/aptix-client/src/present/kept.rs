//! The batch of the history that an id names, or a part of it.

use aptix_model::failure::Failure;

use super::id_prefix::{IdPrefix, Named};
use super::past::ids_of;
use crate::policy::caller::Caller;
use crate::undo::failure::history_failure;
use crate::workspace::keep::history::entries::{self, Entry};
use crate::workspace::roots::workspace::Workspace;

/// The entry of the batch that an id names, and what of the batch it names.
///
/// # Errors
/// NOT_FOUND with this hint, AMBIGUOUS_ID; or the history cannot be read.
pub(crate) fn find(workspace: &Workspace, id: &IdPrefix, hint: &str) -> Result<(Entry, Named), Failure> {
    let entries = entries::list(workspace).map_err(|error| history_failure(&error, Caller::Shell))?;
    let found = entries
        .into_iter()
        .flat_map(|entry| find_in(&entry, id).into_iter().map(move |(id, named)| (id, (entry.clone(), named))));
    id.only(found.collect(), hint)
}

/// What an id names in the batch of an entry, each with its own id.
pub(crate) fn find_in(entry: &Entry, id: &IdPrefix) -> Vec<(String, Named)> {
    let (batch, ids) = ids_of(entry);
    let own = entry.id.to_string();
    match id.find_in(batch, &ids) {
        // The entry has a later id than its batch: its beginning may be that of another batch.
        none if none.is_empty() && id.is(&own) => vec![(own, Named::Batch)],
        found => found,
    }
}
