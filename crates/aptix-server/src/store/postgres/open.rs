//! Opens the store: its tables are brought up to date, its lock is taken, and its tasks are started.

use std::sync::Arc;

use aptix_model::id::HistoryId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::PostgresStore;
use super::address::Address;
use super::committer::{Committer, GROUP, Groups};
use super::connections::Connector;
use super::database::Database;
use super::fault::Fault;
use super::holder::{self, Lock};
use super::{schema, sweep};
use crate::mint;
use crate::store::StoreError;

/// How many writes may wait for the committer; further ones wait to wait.
const QUEUE: usize = GROUP;

/// Uploads that may wait to be removed.
const GIVEN_UP: usize = 1024;

impl PostgresStore {
    /// Opens the store in a database; creates its tables if there are none.
    ///
    /// # Errors
    /// When the database cannot be used, is used by another server, or has tables of a newer version.
    pub async fn open(address: &Address) -> Result<Self, StoreError> {
        let (connector, lock) = take(address).await?;
        let holder = random()?;
        let history = holder::take_over(lock.client(), holder, mint::uuid()).await.map_err(Fault::into_error)?;
        let database = Arc::new(Database::new(connector, holder)?);
        sweep::drop_unclaimed(&database).await?;
        let (orders, waiting) = mpsc::channel(QUEUE);
        let (given_up, giving_up) = mpsc::channel(GIVEN_UP);
        let (groups, closing, tasks) = (Groups::default(), CancellationToken::new(), TaskTracker::new());
        tasks.spawn(Committer::new(Arc::clone(&database), waiting, groups.clone()).run());
        tasks.spawn(holder::keep(Arc::clone(&database), lock, closing.clone()));
        let (theirs, ending) = (Arc::clone(&database), closing.clone());
        tasks.spawn(async move { sweep::run(&theirs, giving_up, ending).await });
        let (history, clock) = (HistoryId(history), Arc::default());
        Ok(Self { database, history, orders, groups, given_up, clock, closing, tasks })
    }
}

/// Connects, brings the tables up to date, and takes the lock of the store.
pub(super) async fn take(address: &Address) -> Result<(Connector, Lock), StoreError> {
    let connector = Connector::new(address)?;
    let shown = address.to_string();
    let (mut client, served) = holder::connect(&connector).await?;
    schema::migrate(&mut client, &shown).await?;
    let lock = Lock::take((client, served), &shown).await?;
    Ok((connector, lock))
}

/// A value that no other server chooses.
pub(super) fn random() -> Result<Uuid, StoreError> {
    let secret = mint::secret();
    let secret =
        secret.map_err(|error| StoreError::Failed { action: "choose a random value", cause: error.to_string() })?;
    Ok(Uuid::from_bytes(std::array::from_fn(|index| secret.get(index).copied().unwrap_or_default())))
}
