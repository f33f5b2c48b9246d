//! Decides the states of batches and who receives them. Knows domain values and a store; no protocol.

pub mod approvals;
pub mod approve;
pub mod ask;
pub mod batch_filter;
pub mod cancel;
mod claims;
pub mod decided;
pub mod deletion;
mod disk;
mod disk_reserve;
pub mod early;
mod ended;
pub mod event;
pub mod event_filter;
pub mod feed;
pub mod file_pattern;
pub mod files;
pub(crate) mod fit;
mod follow;
pub mod hunks;
pub mod lease;
pub mod local;
mod next_events;
pub mod other_servers;
pub mod path_style;
pub mod plan_name;
pub mod prepared;
pub mod questions;
pub mod read;
pub mod refusal;
pub mod report;
pub mod revert;
pub mod session;
mod step;
mod stored_bytes;
pub mod stream;
pub mod submit;
pub mod survey;
mod to_the_end;
pub mod transfer;
pub mod upload;
mod wake;
pub mod watch;
pub mod workspace;

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::limits::Limits;
use aptix_model::record::UnixMillis;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use self::approvals::CurrentApprovals;
use self::claims::Claims;
use self::lease::Leases;
use self::other_servers::{NoOthers, OtherServers};
use self::to_the_end::ToTheEnd;
use self::wake::Wakes;
use crate::caller::Share;
use crate::fleet::Fleet;
use crate::room::Room;
use crate::steady_clock::SteadyClock;
use crate::store::{Store, StoreError};

/// What the dispatcher holds itself to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The longest time that a feed sends nothing.
    pub heartbeat: Duration,
    /// A receiver that takes nothing for this long is cut off.
    pub slow_after: Duration,
    /// Streams of events at one time.
    pub streams: usize,
    /// Uploads and downloads at one time.
    pub transfers: Share,
    /// Calls that wait for an agent's answer at one time.
    pub questions: Share,
    /// A transfer that makes no progress for this long gives way when there are too many.
    pub patience: Duration,
    /// How often batches are looked for whose time is over.
    pub expiry_sweep: Duration,
    /// Bytes of the disk that stay free, at most a twentieth of it: new batches and blobs are refused before.
    pub disk_reserve: u64,
    /// What batches are held to.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(5),
            slow_after: Duration::from_secs(30),
            streams: 20_000,
            transfers: Share::of(32),
            questions: Share::of(4096),
            patience: Duration::from_secs(1),
            expiry_sweep: Duration::from_secs(30),
            disk_reserve: 256 << 20,
            limits: Limits::DEFAULT,
        }
    }
}

/// Serves every workspace over one store.
pub struct Dispatcher {
    store: Arc<dyn Store>,
    settings: Settings,
    approvals: CurrentApprovals,
    fleet: Arc<Fleet>,
    others: Arc<dyn OtherServers>,
    wakes: Arc<Wakes>,
    leases: Arc<Leases>,
    streams: Arc<Semaphore>,
    transfers: Arc<Room>,
    uploads: Arc<Claims>,
    questions: Arc<Room>,
    clock: SteadyClock,
    disk: disk::Disk,
    closing: CancellationToken,
    ending: CancellationToken,
    tasks: TaskTracker,
}

impl Dispatcher {
    /// A dispatcher over this store, which has persons approve these batches.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, settings: Settings, approvals: impl Into<CurrentApprovals>) -> Arc<Self> {
        Self::with_clock(store, settings, (approvals, SteadyClock::default()))
    }

    /// The same, which decides by this clock what has expired.
    #[must_use]
    pub fn with_clock(
        store: Arc<dyn Store>,
        settings: Settings,
        (approvals, clock): (impl Into<CurrentApprovals>, SteadyClock),
    ) -> Arc<Self> {
        Self::in_fleet(store, settings, (approvals, clock), (Fleet::alone(), Arc::new(NoOthers)))
    }

    /// The same, on a store that other servers may be on.
    #[must_use]
    pub fn in_fleet(
        store: Arc<dyn Store>,
        settings: Settings,
        (approvals, clock): (impl Into<CurrentApprovals>, SteadyClock),
        (fleet, others): (Arc<Fleet>, Arc<dyn OtherServers>),
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            settings,
            approvals: approvals.into(),
            fleet,
            others,
            wakes: Arc::default(),
            leases: Arc::default(),
            streams: Arc::new(Semaphore::new(settings.streams)),
            transfers: Room::new(settings.transfers, settings.patience),
            uploads: Arc::default(),
            questions: Room::new(settings.questions, Duration::MAX),
            clock,
            disk: disk::Disk::new(settings.disk_reserve),
            closing: CancellationToken::new(),
            ending: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// What it holds itself to.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The time by which batches and blobs get old, and which records of steps have: no jump of the time of day shows in it.
    #[must_use]
    pub fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    /// [`Self::now`], or the time of day if that is earlier.
    #[must_use]
    pub fn earliest_now(&self) -> UnixMillis {
        self.clock.earliest_now()
    }

    /// Whether it does what one of the servers on the store has to do for all.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.fleet.is_first()
    }

    /// Cancelled once it takes no new work.
    #[must_use]
    pub fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// Takes no new work from now on, and ends every stream of events and every upload. Downloads go on.
    pub fn stop(&self) {
        self.closing.cancel();
        self.tasks.close();
    }

    /// Has every stream and every waiting call read the store again each time that it was opened again: a write that was not
    /// acknowledged may be there.
    pub async fn look_again(&self) -> Infallible {
        let mut reopenings = self.store.reopenings();
        while reopenings.changed().await.is_ok() {
            self.wakes.wake_all();
        }
        pending().await
    }

    /// Does a write and all that follows from it, even if the caller goes away meanwhile: what is stored is also sent to its watchers.
    async fn to_the_end<T, E>(&self, work: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        ToTheEnd::begin(&self.tasks, work.in_current_span()).await?
    }

    /// Ends what is still in flight, then closes the store.
    ///
    /// # Errors
    /// When the store cannot be closed in order.
    pub async fn finish(&self) -> Result<(), StoreError> {
        self.ending.cancel();
        self.tasks.wait().await;
        if let Err(error) = self.fleet.leave().await {
            tracing::warn!(%error, "the other servers were not told that this one ends; they find out by themselves");
        }
        self.store.close().await
    }
}
