//! Connections to the database, and the tasks that serve them.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{Connect, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::{AsyncMessage, Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::TaskTracker;

use super::address::Address;
use super::hints::Ear;
use crate::store::StoreError;

/// Connections at most, beside those of the committer and that of the lock.
pub(super) const CONNECTIONS: usize = 16;
/// Connections of the committer: others that wait for a lock take none of them.
pub(super) const COMMITTING: usize = 5;

/// How long a call waits for a free connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes connections; each is served by a task until it ends.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
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
        Ok(Self { config, tls, tasks: TaskTracker::new(), unconfirmed: Arc::default(), ear: Arc::new(Ear::new()) })
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

    /// Makes a connection.
    pub(super) async fn connection(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let (client, mut connection) = self.config.connect(self.tls.clone()).await?;
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

    /// A pool of so many connections.
    pub(super) fn pool(&self, connections: usize) -> Result<Pool, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(self.config.clone(), self.clone(), recycling);
        let pool = Pool::builder(manager)
            .max_size(connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .build();
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

/// Notes what PostgreSQL warns of. Its texts are translated, so the code decides: a commit whose wait for the synchronous standby was
/// cancelled has that of a warning of no kind.
fn note(notice: &DbError, unconfirmed: &AtomicU64) {
    let is_warning = notice.parsed_severity() == Some(Severity::Warning);
    if is_warning && *notice.code() == SqlState::WARNING {
        unconfirmed.fetch_add(1, Ordering::SeqCst);
    }
    if is_warning {
        tracing::warn!(code = notice.code().code(), message = notice.message(), "PostgreSQL warns");
    }
}
