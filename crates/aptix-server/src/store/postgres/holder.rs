//! Keeps the store to one server at a time. A lock of the database, held by a connection of its own, keeps a second server from
//! starting. The value `holder` of the store's row keeps one that lost the lock from writing: every write fails that does not know
//! the newest value, and it changes when another server takes the store over.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::connections::Connector;
use super::database::Database;
use super::fault::Fault;
use super::health::State;
use crate::store::StoreError;

/// The lock, for each schema of the database.
const TAKE: &str = "SELECT pg_try_advisory_lock(1095783497, hashtext(current_schema()))";
const GIVE: &str = "SELECT pg_advisory_unlock(1095783497, hashtext(current_schema()))";
/// Who has it.
const OTHER: &str = "SELECT coalesce(host(a.client_addr), 'a local socket'), a.pid, a.backend_start::text \
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted \
    AND l.classid = 1095783497 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1";
/// Changes a row, which a standby and a full disk refuse, and only the server that holds the store may.
const PROBE: &str = "UPDATE store_facts SET age = age";

/// How long a start waits for a server that is just ending.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long after a failure it is tried again, and how long at most after another one.
const TRY_AFTER: Duration = Duration::from_millis(200);
const TRY_EVERY: Duration = Duration::from_secs(5);

/// The connection that holds the lock, and the task that serves it.
pub(super) struct Lock {
    client: Client,
    served: JoinHandle<()>,
}

impl Lock {
    /// Takes the lock with this connection.
    ///
    /// # Errors
    /// When another server has it.
    pub(super) async fn take((client, served): (Client, JoinHandle<()>), database: &str) -> Result<Self, StoreError> {
        let until = Instant::now() + PATIENCE;
        loop {
            if try_take(&client).await.map_err(Fault::into_error)? {
                return Ok(Self { client, served });
            }
            if Instant::now() >= until {
                let other = client.query_opt(OTHER, &[]).await.map_err(|error| Fault::from(error).into_error())?;
                let by = other.map(|row| {
                    let (from, pid, since): (String, i32, String) = (row.get(0), row.get(1), row.get(2));
                    format!("connected from {from} since {since}, process {pid} of PostgreSQL")
                });
                let by = by.unwrap_or_else(|| "which is just ending".to_owned());
                return Err(StoreError::DatabaseInUse { database: database.to_owned(), by });
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// Gives the lock back, so that another server need not wait for the end of the connection.
    async fn give(self) {
        // Ended, the connection gives it back.
        let _ = self.client.query_one(GIVE, &[]).await;
        drop(self.client);
        let _ = self.served.await;
    }
}

async fn try_take(client: &Client) -> Result<bool, Fault> {
    Ok(client.query_one(TAKE, &[]).await?.try_get(0)?)
}

/// Takes the lock again when its connection broke, and tries writes again when one failed, until the store is closed or another
/// server takes it over.
pub(super) async fn keep(database: Arc<Database>, lock: Lock, closing: CancellationToken) {
    let mut lock = Some(lock);
    closing.run_until_cancelled(tend(&database, &mut lock)).await;
    if let Some(lock) = lock {
        lock.give().await;
    }
}

/// Ends once no write is ever taken again.
async fn tend(database: &Database, lock: &mut Option<Lock>) {
    loop {
        if let Some(held) = lock {
            tokio::select! {
                _ = &mut held.served => {
                    *lock = None;
                    database.health.fail("the connection that holds the lock of the store broke");
                }
                () = database.health.until(|state| *state != State::Well) => {}
            }
        }
        if !matches!(database.health.state(), State::Failed(_)) {
            return;
        }
        heal(database, lock).await;
    }
}

/// Tries until writes are taken again, or another server is found to have taken the store over.
async fn heal(database: &Database, lock: &mut Option<Lock>) {
    let (mut wait, mut logged) = (TRY_AFTER, String::new());
    loop {
        sleep(wait).await;
        wait = (wait * 2).min(TRY_EVERY);
        match attempt(database, lock).await {
            Ok(()) => {
                database.health.heal();
                return;
            }
            Err(Fault::TakenOver) => {
                database.health.take_over();
                return;
            }
            Err(fault) => {
                let error = fault.into_error().to_string();
                if logged != error {
                    tracing::warn!(error, "the store takes no writes yet");
                    logged = error;
                }
            }
        }
    }
}

/// Takes the lock, if it is not held, and writes. A lock that is held stays so when the write fails.
async fn attempt(database: &Database, lock: &mut Option<Lock>) -> Result<(), Fault> {
    if lock.as_ref().is_none_or(|lock| lock.client.is_closed()) {
        *lock = None;
        let (client, served) = database.connector.connection().await?;
        // First who may write: another server may have started and ended meanwhile.
        check(&client, database.holder).await?;
        if !try_take(&client).await? {
            return Err(Fault::Unavailable("another connection has the lock of the store".to_owned()));
        }
        *lock = Some(Lock { client, served });
    }
    let transaction = database.begin().await?;
    transaction.change(PROBE, &[]).await?;
    transaction.commit().await
}

async fn check(client: &Client, holder: Uuid) -> Result<(), Fault> {
    let found = client.query_opt("SELECT holder FROM store", &[]).await?;
    match found.map(|row| row.try_get::<_, Uuid>(0)).transpose()? {
        Some(found) if found == holder => Ok(()),
        _ => Err(Fault::TakenOver),
    }
}

/// Takes the store over under the lock; creates it if there is none. Answers the name of its history.
pub(super) async fn take_over(client: &Client, holder: Uuid, history: Uuid) -> Result<Uuid, Fault> {
    let taken = "INSERT INTO store (history, holder) VALUES ($1, $2) \
        ON CONFLICT (one) DO UPDATE SET holder = excluded.holder RETURNING history";
    let row = client.query_one(taken, &[&history, &holder]).await?;
    client.execute("INSERT INTO store_facts DEFAULT VALUES ON CONFLICT DO NOTHING", &[]).await?;
    Ok(row.try_get(0)?)
}

/// A connection, for what comes before the store is open.
pub(super) async fn connect(connector: &Connector) -> Result<(Client, JoinHandle<()>), StoreError> {
    connector.connection().await.map_err(|error| match Fault::from(error) {
        Fault::Unavailable(cause) => StoreError::Failed { action: "connect to PostgreSQL", cause },
        fault => fault.into_error(),
    })
}
