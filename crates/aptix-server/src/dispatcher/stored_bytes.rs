//! The limit on what a workspace stores. New batches and blobs of their authors are refused over it; reports, blobs and local batches of
//! agents never are: they say what was applied.

use aptix_model::batch::BlobRef;
use aptix_model::id::WorkspaceId;
use aptix_model::record::BatchRecord;

use super::Dispatcher;
use super::refusal::Refusal;
use crate::quota::{CallQuota, Held, OverLimit, Reserved};
use crate::store::size::stored_bytes;
use crate::store::{BatchSelector, StoreError};

/// A batch that is counted, with the room that it needs, until it is stored.
#[derive(Debug, Default)]
pub(super) struct Reservation {
    pub(super) counted: Vec<Reserved>,
    _room: Option<Held>,
}

/// Room that is held, if there is a limit, or why there is none.
type Found = Result<Option<Held>, Box<OverLimit>>;

impl Dispatcher {
    /// Counts a batch that is about to be stored, and holds room for it. One that is stored already under its request id is not
    /// refused.
    pub(super) async fn reserve(&self, record: &BatchRecord, quota: &CallQuota) -> Result<Reservation, Refusal> {
        let over = match quota.batch(&record.workspace) {
            Err(over) => over,
            Ok(counted) => match self.hold_room(quota, &record.workspace, || stored_bytes(record)).await? {
                Ok(room) => return Ok(Reservation { counted, _room: room }),
                Err(over) => over,
            },
        };
        let which = BatchSelector::Request(record.request_id.clone());
        let stored = self.store.batch(record.workspace.clone(), which).await?;
        if stored.is_some() { Ok(Reservation::default()) } else { Err(over.into()) }
    }

    /// Holds room for a blob. One of which an unfinished upload is kept has it already.
    pub(super) async fn room_for_blob(
        &self,
        quota: &CallQuota,
        workspace: &WorkspaceId,
        blob: BlobRef,
    ) -> Result<Option<Held>, Refusal> {
        match self.hold_room(quota, workspace, || blob.size_bytes).await? {
            Ok(room) => Ok(room),
            Err(over) => match self.store.unfinished_upload(workspace.clone(), blob).await? {
                Some(_) => Ok(None),
                None => Err(over.into()),
            },
        }
    }

    async fn hold_room(
        &self,
        quota: &CallQuota,
        workspace: &WorkspaceId,
        bytes: impl Fn() -> u64,
    ) -> Result<Found, StoreError> {
        let mut is_first = true;
        loop {
            let Some(room) = quota.room(workspace, &bytes) else { return Ok(Ok(None)) };
            let used = self.store.used_bytes(workspace.clone()).await?;
            match room.beside(used) {
                // What another call stored between the two looks is in both.
                Err(_) if is_first => is_first = false,
                found => return Ok(found.map(Some)),
            }
        }
    }
}
