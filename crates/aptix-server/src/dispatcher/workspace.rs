//! What readers learn of workspaces: which there are, what each counts, and everything that happens in one.

use std::sync::Arc;

use aptix_model::cursor::Cursor;
use aptix_model::id::{Revision, WorkspaceId};
use aptix_model::record::UnixMillis;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use super::event::WorkspaceEvent;
use super::event_filter::EventFilter;
use super::questions::Serving;
use super::read::ReadError;
use super::stream::{Items, Outlet, Position, Start, Stop, WatchError, broken_off, check_workspace, stop};
use super::wake::{Topic, Waker};
use crate::cpu_pool::Turnkeeper;
use crate::store::{StoreError, WorkspaceCounts};

/// One item of a watched workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkspaceUpdate {
    /// Something happened that passes the filter.
    Event(WorkspaceEvent),
    /// Nothing of the kind for a while: every event up to here was looked at.
    Heartbeat(Revision),
}

/// A workspace as its readers see it.
#[derive(Clone, Debug)]
pub struct WorkspaceOutline {
    /// Its id.
    pub id: WorkspaceId,
    /// The position after its newest event; `None` if there is none.
    pub cursor: Option<Cursor>,
    /// How many of its batches have not ended; `None` if that cannot be read.
    pub open_batches: Option<u64>,
    /// How it is served now.
    pub serving: Option<Serving>,
    /// When it was served last, if that was since the server started and it is not served now.
    pub last_served: Option<UnixMillis>,
    /// The names of its roots, as its newest agent named them.
    pub roots: Vec<String>,
}

impl Dispatcher {
    /// One workspace.
    ///
    /// # Errors
    /// When there is none of this name.
    pub async fn workspace(&self, id: WorkspaceId) -> Result<WorkspaceOutline, ReadError> {
        let counts = self.store.counts(id.clone()).await?;
        let counts = counts.ok_or_else(|| ReadError::NoWorkspace(id.clone()))?;
        Ok(self.outline(id, Some(counts)).await?)
    }

    /// Workspaces by id, after one if it is given.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<WorkspaceOutline>, StoreError> {
        let mut outlines = Vec::new();
        for (id, counts) in self.store.workspaces(after, limit).await? {
            outlines.push(self.outline(id, counts).await?);
        }
        Ok(outlines)
    }

    async fn outline(&self, id: WorkspaceId, counts: Option<WorkspaceCounts>) -> Result<WorkspaceOutline, StoreError> {
        let roots = self.roots(&id).await?;
        Ok(WorkspaceOutline {
            cursor: counts.and_then(|counts| self.cursor(counts.newest, counts.digest)),
            open_batches: counts.map(|counts| counts.open_batches),
            serving: self.serving(&id).await?,
            last_served: self.leases.ended(&id),
            roots,
            id,
        })
    }

    /// Streams the events of a workspace that pass a filter, without its lease.
    ///
    /// # Errors
    /// When there is no such workspace, the history is another one, the revision does not exist, or the server takes no
    /// more streams.
    pub async fn watch_workspace<T: Send + 'static>(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        from: Start,
        filter: EventFilter,
        encode: impl Fn(WorkspaceUpdate) -> T + Send + Sync + 'static,
    ) -> Result<Items<T>, WatchError> {
        let slot = self.stream_slot()?;
        let waker = self.wakes.subscribe(Topic::Workspace(workspace.clone()));
        self.existing(&workspace).await?;
        let after = self.begin(&workspace, from).await?;
        let (outlet, stream) = Outlet::open(CancellationToken::new(), self.closing.clone()).await?;
        let reader = Arc::new(Reader { filter, encode });
        let (this, turns) = (Arc::clone(self), Turnkeeper::here());
        self.tasks.spawn(async move {
            let Err(end) = this.stream_passing((&workspace, waker), after, &outlet, &turns, &reader).await;
            outlet.finish(end);
            drop(slot);
        });
        Ok(stream)
    }

    /// Streams the events after a position until the stream ends.
    async fn stream_passing<T: Send + 'static, F: Fn(WorkspaceUpdate) -> T + Send + Sync + 'static>(
        &self,
        (workspace, mut waker): (&WorkspaceId, Waker),
        after: Position,
        outlet: &Outlet<T>,
        turns: &Turnkeeper,
        reader: &Arc<Reader<F>>,
    ) -> Result<std::convert::Infallible, Stop> {
        let (mut read, mut sent) = (after, Instant::now());
        loop {
            let (events, more) = self.events_after((workspace, &waker), read).await?;
            for event in events {
                let room = self.room(outlet).await?;
                let event = self.event(workspace, event).await?;
                check_workspace(&waker, workspace)?;
                read = event.position();
                let reader = Arc::clone(reader);
                let work = async move { reader.message(event) };
                if let Some(message) = turns.run(work).await.map_err(|error| stop(broken_off(&error)))? {
                    room.send(Ok(message));
                    sent = Instant::now();
                }
            }
            let heartbeat = || (reader.encode)(WorkspaceUpdate::Heartbeat(read.revision));
            // Events that do not pass keep the stream awake, and its reader waits for a word all the same.
            if sent.elapsed() >= self.settings.heartbeat {
                self.hand_over(outlet, heartbeat()).await?;
                sent = Instant::now();
            }
            if !more && let Some(heartbeat) = self.idle(outlet, &mut waker, heartbeat).await? {
                sent = heartbeat;
            }
        }
    }
}

/// What one reader wants, and the form that it gets it in.
struct Reader<F> {
    filter: EventFilter,
    encode: F,
}

impl<F> Reader<F> {
    fn message<T>(&self, event: WorkspaceEvent) -> Option<T>
    where
        F: Fn(WorkspaceUpdate) -> T,
    {
        self.filter.passes(&event).then(|| (self.encode)(WorkspaceUpdate::Event(event)))
    }
}
