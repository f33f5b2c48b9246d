//! Decides which files the names of a diff mean, by the files that exist.

use std::borrow::Cow;
use std::collections::HashMap;

use aptix_engine::readings::{self, Entry};
use aptix_engine::target::ValidTarget;
use aptix_model::batch::Batch;
use aptix_model::path::WorkspacePath;

use super::refusal::Refusal;
use crate::workspace::read::listing::Listings;
use crate::workspace::read::resolve;
use crate::workspace::read::resolve_error::ResolveError;
use crate::workspace::roots::workspace::Workspace;

/// A batch with one path for each of its files. Whether a file exists is withheld from no caller.
///
/// # Errors
/// When the files that exist leave several readings of a name, or none.
pub(super) fn settle<'b>(workspace: &Workspace, batch: &'b Batch) -> Result<Cow<'b, Batch>, Refusal> {
    let mut listings = Listings::default();
    let found: HashMap<&str, Entry> =
        readings::asked(batch).into_iter().map(|path| (path, entry(workspace, &mut listings, path))).collect();
    Ok(readings::settle(batch, |path| found.get(path).copied().unwrap_or(Entry::Absent))?)
}

/// What is at a path. A path that is refused is reported once it is the one that is meant, and not before.
fn entry(workspace: &Workspace, listings: &mut Listings, path: &str) -> Entry {
    let Ok(path) = WorkspacePath::new(path) else { return Entry::Absent };
    match resolve::resolve(workspace, listings, &ValidTarget::Path(path)) {
        Ok(place) if place.found.is_some() => Entry::File,
        // A path that is closed under one reading is so under the other one too.
        Ok(_) | Err(ResolveError::UnknownRoot { .. } | ResolveError::NotDirectory(_) | ResolveError::Closed { .. }) => {
            Entry::Absent
        }
        Err(ResolveError::RootAlone) => Entry::Directory,
        Err(ResolveError::NotRegular { kind: "a directory", .. }) => Entry::Directory,
        Err(_) => Entry::File,
    }
}
