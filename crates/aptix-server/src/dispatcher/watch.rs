//! The states of one batch, for a caller that waits for its end.

use std::cmp::Ordering;
use std::sync::Arc;

use aptix_model::cursor::Cursor;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use super::stream::{FeedEnd, Items, Outlet, Start, Stop, WatchError, broken_off, check_workspace, lost, stop};
use super::wake::{Topic, Waker};
use crate::cpu_pool::Turnkeeper;
use crate::store::BatchSelector;

/// One item of a watched batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BatchUpdate {
    /// A state of the batch.
    State {
        /// The batch as it is now.
        batch: Box<BatchRecord>,
        /// The position of the stream afterwards.
        cursor: Option<Cursor>,
        /// Whether its content was not sent before.
        first: bool,
    },
    /// Nothing happened for a while.
    Heartbeat {
        /// The workspace.
        workspace: WorkspaceId,
        /// The batch.
        batch: BatchId,
        /// The revision that was sent last.
        revision: Revision,
        /// The state it is in.
        state: BatchState,
    },
}

impl Dispatcher {
    /// Streams the states of one batch until it has ended; only those after a cursor, if one is given.
    ///
    /// # Errors
    /// When there is no such batch, the history is another one, or the server takes no more streams.
    pub async fn watch<T: Send + 'static>(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        id: BatchId,
        after: Option<Cursor>,
        encode: impl Fn(BatchUpdate) -> T + Send + Sync + 'static,
    ) -> Result<Items<T>, WatchError> {
        let slot = self.stream_slot()?;
        let waker = self.wakes.subscribe(Topic::Batch(workspace.clone(), id));
        let first = self.batch(&workspace, BatchSelector::Id(id)).await?;
        let sent = match after {
            Some(after) => self.begin(&workspace, Start::Cursor(after)).await?.revision,
            None => Revision(0),
        };
        let (outlet, stream) = Outlet::open(CancellationToken::new(), self.closing.clone()).await?;
        let this = Arc::clone(self);
        let (turns, encode) = (Turnkeeper::here(), Arc::new(encode));
        self.tasks.spawn(async move {
            let end = this.stream_states(first, sent, waker, &outlet, (&turns, &encode)).await.err().flatten();
            outlet.finish(end);
            drop(slot);
        });
        Ok(stream)
    }

    async fn stream_states<T: Send + 'static>(
        &self,
        mut batch: BatchRecord,
        mut sent: Revision,
        mut waker: Waker,
        outlet: &Outlet<T>,
        (turns, encode): (&Turnkeeper, &Arc<impl Fn(BatchUpdate) -> T + Send + Sync + 'static>),
    ) -> Result<(), Stop> {
        let mut first = sent == Revision(0);
        loop {
            let (workspace, id, state, known) = (batch.workspace.clone(), batch.id, batch.state, batch.revision);
            if batch.revision > sent {
                sent = batch.revision;
                let digest = self.store.digest(workspace.clone(), sent).await.map_err(stop)?;
                let cursor = self.cursor(sent, digest);
                let batch = Box::new(batch);
                let encode = Arc::clone(encode);
                let work = async move { encode(BatchUpdate::State { batch, cursor, first }) };
                let message = turns.run(work).await.map_err(|error| stop(broken_off(&error)))?;
                self.hand_over(outlet, message).await?;
                first = false;
            }
            if !state.is_open() {
                return Ok(());
            }
            batch = loop {
                let heartbeat = || {
                    encode(BatchUpdate::Heartbeat { workspace: workspace.clone(), batch: id, revision: sent, state })
                };
                self.idle(outlet, &mut waker, heartbeat).await?;
                let now = self.store.batch(workspace.clone(), BatchSelector::Id(id)).await.map_err(stop)?;
                check_workspace(&waker, &workspace)?;
                if now.is_none() {
                    self.not_deleted(&workspace).await.map_err(stop)?;
                }
                let lost = if self.fleet.is_shared() { Some(FeedEnd::SetBack) } else { stop(lost(id)) };
                let now = now.ok_or(lost)?;
                match now.revision.cmp(&known) {
                    Ordering::Greater => break now,
                    Ordering::Equal if now.state == state => {}
                    _ => return Err(Some(FeedEnd::SetBack)),
                }
            };
        }
    }
}
