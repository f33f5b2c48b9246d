//! Cursors, between the wire and the model.

use super::field::{digest, id};
use super::v1;
use crate::cursor::Cursor;
use crate::failure::Failure;
use crate::id::Revision;

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
