//! Compares two stores, item by item, as their backups have them.

use std::io::Read;

use aptix_model::id::WorkspaceId;

use super::item::{BackupError, Item, StoreFacts};
use super::reader::{Reader, Report};
use crate::store::backup_summary::Summary;

/// Why a store was not found to be equal to another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store) enum Unequal {
    /// The source cannot be read.
    Source(BackupError),
    /// The target cannot be read, or its items differ.
    Target {
        /// The workspace in which it differs, if it is one.
        workspace: Option<WorkspaceId>,
        /// How it differs; `None` if it cannot be read.
        why: Option<String>,
    },
}

/// Reads two backups and compares every item: of the store as a whole the history, the age and whether calls need a token, of every
/// workspace all that is kept of it. The SHA-256 of each blob is computed on both sides.
///
/// # Errors
/// The first difference.
pub(in crate::store) fn compare(source: impl Read, target: impl Read, report: Report) -> Result<Summary, Unequal> {
    let unreadable = |workspace: &Option<WorkspaceId>| Unequal::Target { workspace: workspace.clone(), why: None };
    let mut workspace = None;
    let mut source = Reader::begin(source).map_err(Unequal::Source)?.reporting(report);
    let mut target = Reader::begin(target).map_err(|_| unreadable(&workspace))?;
    loop {
        let expected = source.next().map_err(Unequal::Source)?;
        let found = target.next().map_err(|_| unreadable(&workspace))?;
        let are_equal = match (&expected, &found) {
            (None, None) => return Ok(source.summary()),
            (Some(Item::Store(ours)), Some(Item::Store(theirs))) => is_same_store(ours, theirs),
            (expected, found) => expected == found,
        };
        workspace = of(expected.as_ref()).or(workspace);
        if !are_equal {
            let what = |item: Option<Item>| item.as_ref().map_or_else(|| "its end".to_owned(), describe);
            let place = workspace.as_ref().map_or_else(|| "the store".to_owned(), |id| format!("workspace {id}"));
            let why = format!("{place}: expected {}, found {}, or its content differs", what(expected), what(found));
            return Err(Unequal::Target { workspace, why: Some(why) });
        }
    }
}

/// The workspace that an item begins.
fn of(item: Option<&Item>) -> Option<WorkspaceId> {
    match item {
        Some(Item::Workspace(facts)) => Some(facts.id.clone()),
        _ => None,
    }
}

/// Whether two stores are the same as a whole. One that was never served has no age, and one with a token needs tokens.
fn is_same_store(ours: &StoreFacts, theirs: &StoreFacts) -> bool {
    let age = |facts: &StoreFacts| facts.age.map_or(0, |age| age.0);
    let is_as_closed = theirs.tokens_needed || !ours.tokens_needed;
    ours.history == theirs.history && age(ours) == age(theirs) && is_as_closed
}

/// An item in a message.
fn describe(item: &Item) -> String {
    match item {
        Item::Store(facts) => format!("the store {} of age {:?}", facts.history, facts.age),
        Item::Token(kept) => format!("token {}", kept.token.name),
        Item::Workspace(facts) => format!("workspace {} at revision {}", facts.id, facts.newest),
        Item::Session(session) => format!("session {}", session.id),
        Item::Batch(first, batch) => format!("batch {} of revision {first}", batch.id),
        Item::Plan(hunk, batch) => format!("plan {hunk} of batch {batch}"),
        Item::Event(event, _) => format!("event {}", event.revision),
        Item::File(file) => format!("file {}", file.path),
        Item::Blob(blob) => format!("blob {}", blob.sha256),
        Item::Chunk(bytes) => format!("{} bytes of a blob", bytes.len()),
    }
}
