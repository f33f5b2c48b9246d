//! Streams: where they begin, what hands their items over, and why they end.
//!
//! Each stream is a task that reads the store behind its own cursor and hands over one item at a time, so a slow receiver
//! delays only itself.

use std::sync::Arc;

use aptix_model::cursor::Cursor;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::UnixMillis;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use super::read::{Found, ReadError};
use super::refusal::{Refusal, alone, compacted, exhausted, shutting_down};
use super::wake::{Ended, Waker};
use crate::store::StoreError;

/// The items of a stream, and why it ended.
pub type Items<T> = ReceiverStream<Result<T, FeedEnd>>;

/// Where a feed begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// After a revision, of whatever history.
    Revision(Revision),
    /// After a cursor, if the history is its own.
    Cursor(Cursor),
}

/// How far a reader of events has come: the event that it has last, with the digest of its commit if it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position {
    pub(super) revision: Revision,
    pub(super) digest: Option<Sha256Digest>,
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
    /// The events after the wanted place are no longer kept.
    #[error("the events before revision {oldest} are no longer kept")]
    Compacted {
        /// The first one that is kept.
        oldest: Revision,
        /// The position before it, if its digest is known.
        before: Option<Cursor>,
    },
    /// Too many streams are open.
    #[error("{0} streams are open")]
    Streams(usize),
    /// The server is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The server does not count among those on its store that live.
    #[error(
        "this server has lost its place among the servers on its store, and cannot hold leases until it has it again"
    )]
    Alone,
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
            WatchError::Compacted { oldest, before } => return compacted(oldest, before),
            WatchError::Streams(limit) => exhausted("streams", limit),
            WatchError::ShuttingDown => shutting_down(),
            WatchError::Alone => alone(message),
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
    /// The agent sent what it must not.
    #[error("the agent's message was refused: {0:?}")]
    Refused(Box<Refusal>),
    /// The server is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The history of the workspace went back.
    #[error(
        "the newest events of the workspace are gone: its database was restored, or a copy without them took its place"
    )]
    SetBack,
    /// The server does not count among those on its store that live: another one may grant the lease.
    #[error("this server has lost its place among the servers on its store, so the lease is free for other agents")]
    Alone,
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
                .hint("call again with the last revision that was handled"),
            FeedEnd::Refused(refusal) => return *refusal,
            FeedEnd::ShuttingDown => shutting_down(),
            FeedEnd::Alone | FeedEnd::SetBack => alone(message),
            FeedEnd::Store(error) => return error.into(),
        })
    }
}

/// The sending side of a stream.
pub(super) struct Outlet<T> {
    items: mpsc::Sender<Result<T, FeedEnd>>,
    /// A place kept free for the end, so that a receiver that takes nothing gets it too.
    end: mpsc::OwnedPermit<Result<T, FeedEnd>>,
    superseded: CancellationToken,
    /// Cancelled when the server ends streams like this one.
    closing: CancellationToken,
}

impl<T> Outlet<T> {
    /// An outlet and the stream that it feeds.
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

/// Why a task sends nothing more; `None` when its receiver has gone.
pub(super) type Stop = Option<FeedEnd>;

impl Dispatcher {
    /// The position after which a stream begins. Where that is no longer kept, the error has the position where one can begin.
    pub(super) async fn begin(&self, workspace: &WorkspaceId, from: Start) -> Result<Position, WatchError> {
        match self.beginning(workspace, from).await {
            Err(WatchError::Store(StoreError::Compacted { oldest })) => {
                let before = self.cursor_at(workspace, Some(Revision(oldest.0.saturating_sub(1)))).await?;
                Err(WatchError::Compacted { oldest, before })
            }
            begun => begun,
        }
    }

    async fn beginning(&self, workspace: &WorkspaceId, from: Start) -> Result<Position, WatchError> {
        match from {
            Start::Revision(after) => {
                // Before it is known that there is such a revision: the history may go back between the two.
                let mut digest = self.store.digest(workspace.clone(), after).await?;
                let mut newest = self.store.newest(workspace.clone()).await?.unwrap_or_default();
                if digest.is_none() && after > Revision(0) && after <= newest {
                    // It may have come to be between the two.
                    digest = self.store.digest(workspace.clone(), after).await?;
                    newest = self.store.newest(workspace.clone()).await?.unwrap_or_default();
                }
                if after > newest {
                    return Err(WatchError::FutureRevision { after, newest });
                }
                // Whether the events after it are kept.
                self.store.events(workspace.clone(), after, 1).await?;
                Ok(Position { revision: after, digest })
            }
            Start::Cursor(cursor) => match self.find(workspace, cursor).await? {
                Found::Here => Ok(Position { revision: cursor.revision, digest: Some(cursor.digest) }),
                Found::Compacted(oldest) => Err(StoreError::Compacted { oldest }.into()),
                Found::Elsewhere => Err(WatchError::HistoryChanged(cursor.revision)),
            },
        }
    }

    /// The position of a reader at a revision, if its digest is known.
    pub(super) fn cursor(&self, revision: Revision, digest: Option<Sha256Digest>) -> Option<Cursor> {
        digest.map(|digest| Cursor { history: self.store.history(), revision, digest })
    }

    /// A place among the open streams.
    pub(super) fn stream_slot(&self) -> Result<tokio::sync::OwnedSemaphorePermit, WatchError> {
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

    /// Waits for room for one item. An item that is made only then takes no memory while the receiver is slow.
    pub(super) async fn room<'o, T>(
        &self,
        outlet: &'o Outlet<T>,
    ) -> Result<mpsc::Permit<'o, Result<T, FeedEnd>>, Stop> {
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

    /// Waits for something to happen, and hands over a heartbeat each time that nothing did for as long as one takes. Reads nothing:
    /// each step wakes its readers, and so does a store that was opened again ([`Dispatcher::look_again`]). Answers when the last
    /// heartbeat was handed over, if one was.
    pub(super) async fn idle<T>(
        &self,
        outlet: &Outlet<T>,
        waker: &mut Waker,
        heartbeat: impl Fn() -> T + Send,
    ) -> Result<Option<Instant>, Stop> {
        let mut sent = None;
        while self.rest(outlet, waker).await? == Rest::Quiet {
            self.hand_over(outlet, heartbeat()).await?;
            sent = Some(Instant::now());
        }
        Ok(sent)
    }

    /// Waits for something to happen, for one heartbeat at most.
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

/// Why a stream stopped waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Something happened.
    Woken,
    /// Nothing did for one heartbeat.
    Quiet,
}

pub(super) fn broken_off(error: &tokio::task::JoinError) -> StoreError {
    StoreError::Failed { action: "send an event", cause: error.to_string() }
}

pub(super) fn stop(error: StoreError) -> Stop {
    Some(FeedEnd::Store(error))
}

/// Ends a stream whose workspace was deleted since it began, or whose history went back.
pub(super) fn check_workspace(waker: &Waker, workspace: &WorkspaceId) -> Result<(), Stop> {
    match waker.ended() {
        Some(Ended::Deleted) => Err(stop(StoreError::BeingDeleted { workspace: workspace.clone() })),
        Some(Ended::SetBack) => Err(Some(FeedEnd::SetBack)),
        None => Ok(()),
    }
}

pub(super) fn lost(id: BatchId) -> StoreError {
    StoreError::Corrupt { what: format!("batch {id}"), why: "it is missing although an event names it".to_owned() }
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
