//! The streams: a workspace's events for its agent, one batch's states for whoever waits.
//!
//! Each is a task that reads the store behind its own cursor and hands over one item at a time, so a slow receiver
//! delays only itself.

use std::sync::Arc;

use aptix_model::batch::FileEdit;
use aptix_model::cursor::Cursor;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{AgentId, BatchId, Revision, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::state::BatchState;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use super::lease::{Claim, LeaseSecret, secret_digest};
use super::read::ReadError;
use super::refusal::{Refusal, exhausted, shown, shown_if_given, shutting_down};
use super::wake::{Topic, Waker};
use crate::cpu_pool::Turnkeeper;
use crate::store::{BatchSelector, Listed, StoreError};

/// Events read at once.
const PAGE: usize = 64;

/// What a stream hands over, and why it ended.
pub type Items<T> = ReceiverStream<Result<T, FeedEnd>>;

/// One thing that a watcher of one batch is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// A state of the batch.
    State {
        /// The batch as it is now.
        batch: Box<BatchRecord>,
        /// Where the stream stands afterwards.
        cursor: Option<Cursor>,
        /// Whether its content was not told before.
        first: bool,
    },
    /// Nothing happened for a while.
    Heartbeat {
        /// The workspace.
        workspace: WorkspaceId,
        /// The batch.
        batch: BatchId,
        /// The revision that was told last.
        revision: Revision,
        /// The state it is in.
        state: BatchState,
    },
}

/// One thing an agent is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// The lease it holds: its epoch, and the secret that proves it.
    Lease(u64, LeaseSecret),
    /// Something happened to a batch; where the stream stands afterwards.
    Event(Revision, Option<Cursor>, Box<BatchRecord>),
    /// An event that cannot be read, or whose batch cannot: the batch, if that is known, and why.
    Damaged(Revision, Option<Cursor>, Option<BatchId>, String),
    /// Everything up to here was told.
    Heartbeat(Revision),
}

/// Where a feed begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// After a revision, of whatever history.
    Revision(Revision),
    /// After a cursor, if the history is its own.
    Cursor(Cursor),
}

/// Why a stream was not begun.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WatchError {
    /// The workspace is served, and the caller does not have the secret of its lease.
    #[error("another agent has served the workspace since {}", utc(*.0))]
    LeaseHeld(UnixMillis),
    /// The cursor is of another history.
    #[error(
        "the server's history is another one than that of the cursor at revision {0}: its data was restored or replaced"
    )]
    HistoryChanged(Revision),
    /// The wanted place does not exist yet.
    #[error("there is no revision {after} yet, the newest is {newest}")]
    FutureRevision {
        /// The revision asked for.
        after: Revision,
        /// The newest there is.
        newest: Revision,
    },
    /// Too many streams are open.
    #[error("{0} streams are open")]
    Streams(usize),
    /// The server is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The batch cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WatchError> for Refusal {
    fn from(error: WatchError) -> Self {
        let message = error.to_string();
        Self::denied(match error {
            WatchError::LeaseHeld(_) => Failure::new(Reason::LeaseLost, message)
                .detail(Detail::LeaseHeld)
                .hint("stop that agent, or wait until its stream has ended"),
            WatchError::HistoryChanged(_) => Failure::new(Reason::HistoryChanged, message)
                .hint("begin again without a cursor; what has ended comes again"),
            WatchError::FutureRevision { .. } => {
                let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::FutureRevision);
                return Self::invalid(
                    failure.field("afterRevision").hint("begin with 0 if the server was set up anew"),
                );
            }
            WatchError::Streams(limit) => exhausted("streams", limit),
            WatchError::ShuttingDown => shutting_down(),
            WatchError::Read(error) => return error.into(),
            WatchError::Store(error) => return error.into(),
        })
    }
}

/// Why a stream ended before its receiver went.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FeedEnd {
    /// A newer stream of the same agent took over.
    #[error("a newer stream of the same agent took over")]
    Superseded,
    /// The receiver took nothing for too long.
    #[error("the receiver took nothing for too long")]
    Slow,
    /// The server is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<FeedEnd> for Refusal {
    fn from(end: FeedEnd) -> Self {
        let message = end.to_string();
        Self::denied(match end {
            FeedEnd::Superseded => Failure::new(Reason::LeaseLost, message).detail(Detail::Superseded),
            FeedEnd::Slow => Failure::new(Reason::ResourceExhausted, message)
                .detail(Detail::SlowConsumer)
                .hint("call again with the last revision that was dealt with"),
            FeedEnd::ShuttingDown => shutting_down(),
            FeedEnd::Store(error) => return error.into(),
        })
    }
}

/// Where a stream's task puts its items.
pub(super) struct Outlet<T> {
    items: mpsc::Sender<Result<T, FeedEnd>>,
    /// A place kept free for the end, so that it can be told to a receiver that takes nothing.
    end: mpsc::OwnedPermit<Result<T, FeedEnd>>,
    superseded: CancellationToken,
    /// Cancelled when the server ends streams like this one.
    closing: CancellationToken,
}

impl<T> Outlet<T> {
    /// An outlet and what comes out of it.
    pub(super) async fn open(
        superseded: CancellationToken,
        closing: CancellationToken,
    ) -> Result<(Self, Items<T>), StoreError> {
        let (items, stream) = mpsc::channel(2);
        let end = items.clone().reserve_owned().await.map_err(|_| StoreError::Closed)?;
        Ok((Self { items, end, superseded, closing }, ReceiverStream::new(stream)))
    }

    pub(super) fn finish(self, end: Option<FeedEnd>) {
        if let Some(end) = end {
            self.end.send(Err(end));
        }
    }
}

/// Why a task hands over nothing more; `None` when its receiver has gone.
pub(super) type Stop = Option<FeedEnd>;

impl Dispatcher {
    /// Takes a workspace's lease and tells its events. `held` is the digest of the secret of the lease that the caller
    /// had last: with it the lease is taken over at once.
    ///
    /// # Errors
    /// When another agent serves the workspace, the history is another one, the revision does not exist, or the server
    /// takes no more streams.
    pub async fn feed<T: Send + 'static>(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        agent: &AgentId,
        from: Start,
        held: Option<Sha256Digest>,
        encode: impl Fn(Delivery) -> T + Send + Sync + 'static,
    ) -> Result<Items<T>, WatchError> {
        let slot = self.stream_slot()?;
        let after = self.begin(&workspace, from).await?;
        let (this, wanted) = (Arc::clone(self), workspace.clone());
        let (claim, epoch, secret) = self.to_the_end(async move { this.lease(&wanted, held).await }).await?;
        tracing::info!(workspaceId = %workspace, agentId = %agent, epoch, after = after.0, "lease granted");
        let (outlet, stream) = Outlet::open(claim.superseded.clone(), self.closing.clone()).await?;
        let (this, agent) = (Arc::clone(self), agent.clone());
        let (turns, encode) = (Turnkeeper::here(), Arc::new(encode));
        self.tasks.spawn(async move {
            let lease = Delivery::Lease(epoch, secret);
            let Err(stop) = this.tell(&workspace, after, lease, &outlet, (&turns, &encode)).await;
            tracing::info!(workspaceId = %workspace, agentId = %agent, epoch, end = ?stop, "lease ended");
            outlet.finish(stop);
            // The lease goes before the place among the streams, and both only now.
            drop::<Claim>(claim);
            drop(slot);
        });
        Ok(stream)
    }

    /// Grants an epoch and then takes the lease, as one step.
    async fn lease(
        &self,
        workspace: &WorkspaceId,
        held: Option<Sha256Digest>,
    ) -> Result<(Claim, u64, LeaseSecret), WatchError> {
        let turn = self.leases.turn(workspace).await;
        self.leases.ask(workspace, held).map_err(WatchError::LeaseHeld)?;
        let secret = LeaseSecret::mint()?;
        let digest = secret_digest(secret.bytes()).ok_or(StoreError::Closed)?;
        let epoch = match self.store.grant_lease(workspace.clone(), digest).await {
            // A lease that cannot be kept is good for reading. Its reports are refused once the store takes writes again,
            // and the agent asks for another, which is kept.
            Err(StoreError::ReadOnly { .. }) => self.store.lease(workspace.clone()).await?.epoch + 1,
            granted => granted?,
        };
        let claim = self.leases.hold(workspace, Some(digest));
        drop(turn);
        Ok((claim, epoch, secret))
    }

    /// The revision after which a stream begins.
    async fn begin(&self, workspace: &WorkspaceId, from: Start) -> Result<Revision, WatchError> {
        let newest = self.store.newest(workspace.clone()).await?.unwrap_or_default();
        match from {
            Start::Revision(after) if after > newest => Err(WatchError::FutureRevision { after, newest }),
            Start::Revision(after) => Ok(after),
            Start::Cursor(cursor) if self.is_of_this_history(workspace, cursor).await? => Ok(cursor.revision),
            Start::Cursor(cursor) => Err(WatchError::HistoryChanged(cursor.revision)),
        }
    }

    /// Whether the store has the commit that a cursor names. Equal ids do not suffice: copies of a store have one id.
    pub(super) async fn is_of_this_history(&self, workspace: &WorkspaceId, cursor: Cursor) -> Result<bool, StoreError> {
        let found = self.store.digest(workspace.clone(), cursor.revision).await?;
        Ok(cursor.history == self.store.history() && found == Some(cursor.digest))
    }

    /// Where a reader stands at a revision, if its digest is known.
    pub(super) fn cursor(&self, revision: Revision, digest: Option<Sha256Digest>) -> Option<Cursor> {
        digest.map(|digest| Cursor { history: self.store.history(), revision, digest })
    }

    async fn tell<T: Send + 'static>(
        &self,
        workspace: &WorkspaceId,
        after: Revision,
        lease: Delivery,
        outlet: &Outlet<T>,
        (turns, encode): (&Turnkeeper, &Arc<impl Fn(Delivery) -> T + Send + Sync + 'static>),
    ) -> Result<std::convert::Infallible, Stop> {
        let mut waker = self.wakes.subscribe(Topic::Workspace(workspace.clone()));
        let mut told = after;
        self.hand_over(outlet, encode(lease)).await?;
        loop {
            let events = self.store.events(workspace.clone(), told, PAGE).await.map_err(stop)?;
            let more = events.len() == PAGE;
            for event in events {
                let room = self.room(outlet).await?;
                let delivery = self.delivery(workspace, event).await.map_err(stop)?;
                let revision = match &delivery {
                    Delivery::Event(revision, ..) => *revision,
                    Delivery::Damaged(revision, _, batch, why) => {
                        log_damaged(workspace, *revision, *batch, why);
                        *revision
                    }
                    Delivery::Lease(..) | Delivery::Heartbeat(_) => continue,
                };
                // What waits for its receiver is as small as what is sent.
                let encode = Arc::clone(encode);
                let work = async move {
                    // Before the message is there to be read: who has it finds what was logged of it.
                    if let Delivery::Event(_, _, batch) = &delivery {
                        log_forwarded(batch);
                    }
                    encode(delivery)
                };
                room.send(Ok(turns.run(work).await.map_err(|error| stop(broken_off(&error)))?));
                told = revision;
            }
            if !more && self.rest(outlet, &mut waker).await? == Rest::Quiet {
                self.hand_over(outlet, encode(Delivery::Heartbeat(told))).await?;
            }
        }
    }

    /// What is told of an event. A record that cannot be read is told in its place.
    async fn delivery(&self, workspace: &WorkspaceId, event: Listed) -> Result<Delivery, StoreError> {
        let event = match event {
            Ok(event) => event,
            Err(damaged) => return Ok(Delivery::Damaged(damaged.revision, None, None, damaged.why)),
        };
        let cursor = self.cursor(event.revision, event.digest);
        let damaged = |why| Delivery::Damaged(event.revision, cursor, Some(event.batch), why);
        Ok(match self.store.batch(workspace.clone(), BatchSelector::Id(event.batch)).await {
            Ok(Some(batch)) => Delivery::Event(event.revision, cursor, Box::new(batch)),
            Ok(None) => damaged(lost(event.batch).to_string()),
            // Who is told that a batch is damaged passes it over for ever.
            Err(error) if error.will_pass() => return Err(error),
            Err(error) => damaged(error.to_string()),
        })
    }

    /// Tells the states of one batch until it has ended; those after a cursor alone, if one is given.
    ///
    /// # Errors
    /// When there is no such batch, the history is another one, or the server takes no more streams.
    pub async fn watch<T: Send + 'static>(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        id: BatchId,
        after: Option<Cursor>,
        encode: impl Fn(Told) -> T + Send + Sync + 'static,
    ) -> Result<Items<T>, WatchError> {
        let slot = self.stream_slot()?;
        let waker = self.wakes.subscribe(Topic::Batch(id));
        let first = self.batch(&workspace, BatchSelector::Id(id)).await?;
        let told = match after {
            Some(after) => self.begin(&workspace, Start::Cursor(after)).await?,
            None => Revision(0),
        };
        let (outlet, stream) = Outlet::open(CancellationToken::new(), self.closing.clone()).await?;
        let this = Arc::clone(self);
        let (turns, encode) = (Turnkeeper::here(), Arc::new(encode));
        self.tasks.spawn(async move {
            let end = this.tell_states(first, told, waker, &outlet, (&turns, &encode)).await.err().flatten();
            outlet.finish(end);
            drop(slot);
        });
        Ok(stream)
    }

    async fn tell_states<T: Send + 'static>(
        &self,
        mut batch: BatchRecord,
        mut told: Revision,
        mut waker: Waker,
        outlet: &Outlet<T>,
        (turns, encode): (&Turnkeeper, &Arc<impl Fn(Told) -> T + Send + Sync + 'static>),
    ) -> Result<(), Stop> {
        let mut first = told == Revision(0);
        loop {
            let (workspace, id, state) = (batch.workspace.clone(), batch.id, batch.state);
            if batch.revision > told {
                told = batch.revision;
                let digest = self.store.digest(workspace.clone(), told).await.map_err(stop)?;
                let cursor = self.cursor(told, digest);
                let batch = Box::new(batch);
                let encode = Arc::clone(encode);
                let work = async move { encode(Told::State { batch, cursor, first }) };
                let message = turns.run(work).await.map_err(|error| stop(broken_off(&error)))?;
                self.hand_over(outlet, message).await?;
                first = false;
            }
            if !state.is_open() {
                return Ok(());
            }
            batch = loop {
                if self.rest(outlet, &mut waker).await? == Rest::Quiet {
                    let heartbeat = Told::Heartbeat { workspace: workspace.clone(), batch: id, revision: told, state };
                    self.hand_over(outlet, encode(heartbeat)).await?;
                }
                let now = self.store.batch(workspace.clone(), BatchSelector::Id(id)).await.map_err(stop)?;
                let now = now.ok_or_else(|| stop(lost(id)))?;
                if now.revision > told {
                    break now;
                }
            };
        }
    }

    fn stream_slot(&self) -> Result<tokio::sync::OwnedSemaphorePermit, WatchError> {
        if self.closing.is_cancelled() {
            return Err(WatchError::ShuttingDown);
        }
        let slot = Arc::clone(&self.streams).try_acquire_owned();
        slot.map_err(|_| WatchError::Streams(self.settings.streams))
    }

    /// Hands one item over, and waits for room as long as a slow receiver may take.
    pub(super) async fn hand_over<T>(&self, outlet: &Outlet<T>, item: T) -> Result<(), Stop> {
        self.room(outlet).await?.send(Ok(item));
        Ok(())
    }

    /// Waits for room for one item: whoever makes it only then has nothing lying about while the receiver is slow.
    async fn room<'o, T>(&self, outlet: &'o Outlet<T>) -> Result<mpsc::Permit<'o, Result<T, FeedEnd>>, Stop> {
        tokio::select! {
            biased;
            () = outlet.superseded.cancelled() => Err(Some(FeedEnd::Superseded)),
            () = outlet.closing.cancelled() => Err(Some(FeedEnd::ShuttingDown)),
            room = timeout(self.settings.slow_after, outlet.items.reserve()) => match room {
                Ok(Ok(room)) => Ok(room),
                Ok(Err(_)) => Err(None),
                Err(_) => Err(Some(FeedEnd::Slow)),
            },
        }
    }

    /// Waits for something to happen in the workspace, for one heartbeat at most.
    async fn rest<T>(&self, outlet: &Outlet<T>, waker: &mut Waker) -> Result<Rest, Stop> {
        tokio::select! {
            biased;
            () = outlet.superseded.cancelled() => Err(Some(FeedEnd::Superseded)),
            () = outlet.closing.cancelled() => Err(Some(FeedEnd::ShuttingDown)),
            () = outlet.items.closed() => Err(None),
            woken = timeout(self.settings.heartbeat, waker.woken()) => {
                Ok(if woken.is_ok() { Rest::Woken } else { Rest::Quiet })
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Woken,
    Quiet,
}

fn broken_off(error: &tokio::task::JoinError) -> StoreError {
    StoreError::Failed { action: "tell an event", cause: error.to_string() }
}

fn stop(error: StoreError) -> Stop {
    Some(FeedEnd::Store(error))
}

/// Says that an event was passed over.
fn log_damaged(workspace: &WorkspaceId, revision: Revision, batch: Option<BatchId>, why: &str) {
    tracing::error!(workspaceId = %workspace, revision = revision.0, batchId = batch.map(tracing::field::display), why,
        "a stored record is damaged and passed over; run `aptix-server verify`");
}

/// A time as people read it.
fn utc(time: UnixMillis) -> String {
    let seconds = time.0 / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years, so that a leap day ends its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

fn lost(id: BatchId) -> StoreError {
    StoreError::Corrupt { what: format!("batch {id}"), why: "it is missing although an event names it".to_owned() }
}

/// Logs which files the agent is about to be sent for creation (TUL-004 6.1).
fn log_forwarded(record: &BatchRecord) {
    if !record.state.is_open() {
        return;
    }
    for patch in &record.batch.files {
        let FileEdit::CreateFile(create) = &patch.edit else { continue };
        tracing::info!(
            SessionId = shown_if_given(&record.origin.session_id),
            ConversationId = shown_if_given(&record.origin.conversation_id),
            TurnId = shown_if_given(&record.origin.turn_id),
            batchId = %record.id,
            ToolName = "workspace_create_file",
            Path = shown(patch.target.as_str()),
            Overwrite = create.overwrite,
            "Tool.CreateFile.Forwarded"
        );
    }
}
