//! Waits for the end of a batch on behalf of one call. A call that stops waiting changes nothing about the batch.

use aptix_model::id::WorkspaceId;
use aptix_model::record::BatchRecord;
use tokio::time::{Instant, timeout_at};

use super::Dispatcher;
use super::refusal::{Refusal, shutting_down};
use super::wake::Topic;
use crate::quota::Held;
use crate::room::Place;
use crate::store::BatchSelector;
use crate::ticket::Asker;

impl Dispatcher {
    /// The batch once it has ended; at the deadline, or at once if too many calls wait already, as it is then: it is stored, whoever
    /// waits for it. While it waits the call gives back its places among the calls that are worked on, and takes one among those that
    /// wait for an agent.
    ///
    /// # Errors
    /// When the store fails, or the server shuts down. The batch stays as it is.
    pub async fn ended(&self, asker: &Asker, batch: BatchRecord, deadline: Instant) -> Result<BatchRecord, Refusal> {
        if !batch.state.is_open() {
            return Ok(batch);
        }
        let Some(_place) = self.place_to_wait(asker, &batch.workspace) else { return Ok(batch) };
        asker.release();
        let mut waker = self.wakes.subscribe(Topic::Batch(batch.workspace.clone(), batch.id));
        loop {
            // Read after the waker was set up: no step is missed in between.
            let now = self.batch(&batch.workspace, BatchSelector::Id(batch.id)).await?;
            if !now.state.is_open() {
                return Ok(now);
            }
            tokio::select! {
                () = self.closing.cancelled() => return Err(Refusal::denied(shutting_down())),
                woken = timeout_at(deadline, waker.woken()) => {
                    if woken.is_err() {
                        return Ok(now);
                    }
                }
            }
        }
    }

    /// A place among the calls that wait for what is stored already; `None` if too many do. Such a call is answered as it is: to refuse
    /// it would have its caller take what is stored for refused.
    pub(super) fn place_to_wait(&self, asker: &Asker, workspace: &WorkspaceId) -> Option<([Option<Held>; 2], Place)> {
        let counted = asker.peer.quota.question(workspace).inspect_err(|over| over.note()).ok()?;
        Some((counted, self.questions.take(&asker.peer, 1).ok()?))
    }
}
