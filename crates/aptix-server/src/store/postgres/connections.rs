//! Connections to the database, and the tasks that serve them.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::{Connect, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::TaskTracker;

use super::address::Address;
use super::hints::Ear;
use crate::store::StoreError;

/// Connections at most, beside those of the committer and that of the lock.
pub(super) const CONNECTIONS: usize = 16;
/// Connections of the committer: others that wait for a lock take none of them.
pub(super) const COMMITTING: usize = 5;
/// Connections for the membership of this server and for the probe of a store that takes no writes: no other work delays them.
pub(super) const RESERVED: usize = 2;

/// How long a call waits for a free connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection to one host may take where the address sets no `connect_timeout`.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Makes connections; each is served by a task until it ends.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
    /// The same for each host alone.
    hosts: Arc<[Config]>,
    /// Index of the host that took the last connection; it is tried first.
    preferred: Arc<AtomicUsize>,
    /// How long a write may take.
    pub(super) write_limit: Duration,
    tls: MakeRustlsConnect,
    tasks: TaskTracker,
    /// Counts commits that PostgreSQL acknowledged without its synchronous standby.
    unconfirmed: Arc<AtomicU64>,
    /// Hears what other servers tell.
    ear: Arc<Ear>,
}

impl Connector {
    pub(super) fn new(address: &Address) -> Result<Self, StoreError> {
        let (config, tls) = (address.config().clone(), address.connector()?);
        let (hosts, write_limit, preferred) = (address.hosts().into(), address.write_limit(), Arc::default());
        let (tasks, unconfirmed, ear) = (TaskTracker::new(), Arc::default(), Arc::new(Ear::new()));
        Ok(Self { config, hosts, preferred, write_limit, tls, tasks, unconfirmed, ear })
    }

    /// How many commits were acknowledged without the standby that they have to wait for. One that ends while this changes counts as not
    /// acknowledged.
    pub(super) fn unconfirmed(&self) -> u64 {
        self.unconfirmed.load(Ordering::SeqCst)
    }

    /// What hears what other servers tell.
    pub(super) fn ear(&self) -> Arc<Ear> {
        Arc::clone(&self.ear)
    }

    /// Makes a connection to the first host that takes one. A host that accepts it and does not answer in time is passed over. That one has no
    /// room is the answer also where another one takes no writes.
    pub(super) async fn connection(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let first = self.preferred.load(Ordering::Relaxed);
        let mut failed = None;
        for offset in 0..self.hosts.len() {
            let index = (first + offset) % self.hosts.len();
            let Some(host) = self.hosts.get(index) else { break };
            match self.connection_to(host).await {
                Ok(connected) => {
                    self.preferred.store(index, Ordering::Relaxed);
                    return Ok(connected);
                }
                Err(error) if failed.as_ref().is_some_and(has_no_room) => {
                    tracing::debug!(%error, "a host of PostgreSQL is passed over")
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(Error::__private_api_timeout))
    }

    async fn connection_to(&self, host: &Config) -> Result<(Client, JoinHandle<()>), Error> {
        let limit = host.get_connect_timeout().copied().unwrap_or(CONNECT_LIMIT);
        // The driver's own limit covers the connection of the socket alone, and not what PostgreSQL answers; it is one for each address that
        // the host has, of which the first may be silent.
        let mut host = host.clone();
        host.connect_timeout(limit / 2);
        let connected = timeout(limit, host.connect(self.tls.clone())).await;
        let (client, mut connection) = connected.unwrap_or_else(|_| Err(Error::__private_api_timeout()))?;
        let (unconfirmed, ear) = (Arc::clone(&self.unconfirmed), self.ear());
        let task = self.tasks.spawn(async move {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notice(notice))) => note(&notice, &unconfirmed),
                    Some(Ok(AsyncMessage::Notification(told))) => ear.hear(told.payload()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        tracing::debug!(%error, "a connection to PostgreSQL broke");
                        return;
                    }
                    None => return,
                }
            }
        });
        Ok((client, task))
    }

    /// Asks PostgreSQL, in the background, to end the statement of a connection that nobody waits for any more.
    pub(super) fn cancel(&self, token: CancelToken) {
        let tls = self.tls.clone();
        let cancel = async move {
            if !matches!(timeout(CONNECT_LIMIT, token.cancel_query(tls)).await, Ok(Ok(()))) {
                tracing::debug!("PostgreSQL was not asked to end a statement that nobody waits for");
            }
        };
        if let Ok(runtime) = Handle::try_current() {
            self.tasks.spawn_on(cancel, &runtime);
        }
    }

    /// A pool of so many connections.
    pub(super) fn pool(&self, connections: usize) -> Result<Pool, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(self.config.clone(), self.clone(), recycling);
        let pool =
            Pool::builder(manager).max_size(connections).runtime(Runtime::Tokio1).wait_timeout(Some(PATIENCE)).build();
        pool.map_err(|error| StoreError::Failed { action: "make its connections", cause: error.to_string() })
    }
}

impl Connect for Connector {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(self.connection())
    }
}

/// Whether a host takes connections, and has no room for another one at present.
fn has_no_room(error: &Error) -> bool {
    error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS)
}

/// Function of PostgreSQL in which a commit waits for the synchronous standby.
const WAIT_FOR_STANDBY: &str = "SyncRepWaitForLSN";

/// Logs warnings of PostgreSQL, and counts commits whose wait for the synchronous standby was cancelled. The texts are translated, and the
/// code `01000` is that of many warnings (of a collation that changed, of a trigger): the function that warns decides.
fn note(notice: &DbError, unconfirmed: &AtomicU64) {
    if notice.parsed_severity() == Some(Severity::Warning) {
        if notice.routine().is_none_or(|routine| routine == WAIT_FOR_STANDBY) {
            unconfirmed.fetch_add(1, Ordering::SeqCst);
        }
        tracing::warn!(code = notice.code().code(), message = notice.message(), "PostgreSQL warns");
    }
}
