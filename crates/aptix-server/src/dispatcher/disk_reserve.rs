//! The reserve of the disk: what writes would take is refused before the disk is full, so that what is under way can be finished.
//!
//! New batches and blobs of callers are refused while less is free than the reserve. Reports, blobs and local batches of agents,
//! decisions and reads go on: they finish what is there, and removing what is kept no longer needs some room, too.

use std::convert::Infallible;
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::id::{RequestId, WorkspaceId};
use aptix_model::reason::Reason;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Dispatcher;
use super::refusal::Refusal;
use crate::store::{BatchSelector, Space};

/// How often the free space is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// Looks at intervals at how much of the disk is free.
    pub async fn watch_disk(&self) -> Infallible {
        loop {
            self.look_at_disk().await;
            sleep(LOOK_EVERY).await;
        }
    }

    /// Looks at how much of the disk is free.
    pub async fn look_at_disk(&self) {
        let space = match self.store.space().await {
            Ok(space) => space,
            Err(error) => {
                tracing::debug!(%error, "the free space of the disk is not known");
                return;
            }
        };
        let low = space.filter(|space| space.free < self.disk.reserve_of(*space));
        self.disk.low.send_if_modified(|known| {
            let is_new = known.is_some() != low.is_some();
            *known = low;
            match low {
                Some(Space { free, .. }) if is_new => {
                    tracing::error!(free, "the disk has less free than its reserve: new batches and blobs are refused");
                }
                None if is_new => tracing::info!("the disk has its reserve again: new batches and blobs are taken"),
                _ => {}
            }
            is_new
        });
    }

    /// Whether less of the disk is free than the reserve, now and when that changes.
    #[must_use]
    pub fn low_disk(&self) -> watch::Receiver<Option<Space>> {
        self.disk.low.subscribe()
    }

    /// Refuses what would take more of the disk while less than the reserve is free.
    pub(super) fn check_disk(&self) -> Result<(), Refusal> {
        let low = *self.disk.low.borrow();
        low.map_or(Ok(()), |space| Err(Refusal::denied(disk_low(space, self.disk.reserve_of(space)))))
    }

    /// As [`Self::check_disk`]; what was stored before under this request id is answered all the same.
    pub(super) async fn check_disk_for(&self, workspace: &WorkspaceId, request: &RequestId) -> Result<(), Refusal> {
        let Err(refusal) = self.check_disk() else { return Ok(()) };
        let stored = self.store.batch(workspace.clone(), BatchSelector::Request(request.clone())).await?;
        if stored.is_some() { Ok(()) } else { Err(refusal) }
    }
}

fn disk_low(space: Space, reserve: u64) -> Failure {
    let message = format!(
        "the server's disk has {} bytes free; expected at least {reserve}, which are reserved to finish what is under way",
        space.free
    );
    Failure::new(Reason::ResourceExhausted, message)
        .hint("call again later; the server's operator has to free space on its disk")
}
