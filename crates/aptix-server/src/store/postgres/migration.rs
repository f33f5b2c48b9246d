//! A store in a database that is moved elsewhere, and one that is moved here: workspace by workspace, each in a transaction of its own,
//! into a database that no server opens until all are there.

use std::io::{Read, Write};

use aptix_model::id::{HistoryId, WorkspaceId};
use tokio_postgres::Client;

use super::address::Address;
use super::backup;
use super::database::Database;
use super::deletion::remove;
use super::fault::Fault;
use super::hints::Mouth;
use super::numbers::{get, number};
use super::open::{connect, prepare};
use super::restore::{Pace, fill};
use super::{chunks, connections::Connector, schema};
use crate::store::StoreError;
use crate::store::backup::{BackupError, Reader, Summary};
use crate::store::embedded::restore::RestoredTokens;

/// Held while a store is moved into the database.
const FILLING: i64 = 0x4150_5449_584e;

const COUNT: &str = "SELECT count(*) FROM workspaces WHERE known AND NOT deleting";
const ALIVE: &str = "SELECT f.joined, f.tokens, count(s.id), ceil(extract(epoch FROM max(s.until) - clock_timestamp()))::bigint \
    FROM store_facts f LEFT JOIN servers s ON s.until > clock_timestamp() GROUP BY f.joined, f.tokens";

/// How often a server has joined the others, and how often a token was made or ended: a command may do that before its server has joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Uses {
    joined: i64,
    tokens: i64,
}

/// A store that no server uses, to be read. The database is not changed.
pub struct Source {
    database: Database,
    history: HistoryId,
    place: String,
    /// What had been done with it when it was opened.
    uses: Uses,
}

impl Source {
    /// Opens one.
    ///
    /// # Errors
    /// When a server uses it, it is not whole, its tables have another version, or PostgreSQL refuses.
    pub async fn open(address: &Address) -> Result<Self, BackupError> {
        let (connector, place) = (Connector::new(address)?, format!("the database {address}"));
        let client = connect(&connector).await?;
        let failed = |cause: &str| StoreError::Failed { action: "read the source", cause: format!("{place} {cause}") };
        if !schema::is_newest(&client, &address.to_string()).await? {
            let cause = "has no tables of a store, or those of another version; hint: start this version of aptix-server on it once, or run the version that made them";
            return Err(failed(cause).into());
        }
        let database = Database::new(connector, Mouth::new().0)?;
        let rows = database.read("SELECT history, filling FROM store", &[]).await?;
        let row = rows.first().ok_or_else(|| failed("has no store"))?;
        if get(row, 1).map_err(Fault::into_error)? {
            return Err(StoreError::Unrestored { place }.into());
        }
        let history = HistoryId(get(row, 0).map_err(Fault::into_error)?);
        let mut source = Self { database, history, place, uses: Uses::default() };
        source.uses = source.unused().await?;
        Ok(source)
    }

    /// The name of its history.
    #[must_use]
    pub const fn history(&self) -> HistoryId {
        self.history
    }

    /// How many workspaces it has.
    ///
    /// # Errors
    /// When PostgreSQL refuses.
    pub async fn workspaces(&self) -> Result<u64, StoreError> {
        let rows = self.database.read(COUNT, &[]).await?;
        rows.first().map_or(Ok(0), |row| get(row, 0).map(number)).map_err(Fault::into_error)
    }

    /// Refuses a store that a server uses, or has used since this was opened.
    ///
    /// # Errors
    /// When a server counts among those that live, one has come and gone, or PostgreSQL refuses.
    pub async fn check_unused(&self) -> Result<(), BackupError> {
        if self.unused().await? == self.uses {
            return Ok(());
        }
        let why = "a server has used it meanwhile; hint: stop every server, and run the command again".to_owned();
        Err(BackupError::Served { place: self.place.clone(), why })
    }

    /// Refuses a store that a server uses; answers what has been done with it so far.
    async fn unused(&self) -> Result<Uses, BackupError> {
        let rows = self.database.read(ALIVE, &[]).await?;
        let Some(row) = rows.first() else { return Ok(Uses::default()) };
        let read = || {
            let uses = Uses { joined: get(row, 0)?, tokens: get(row, 1)? };
            Ok((uses, get::<i64>(row, 2)?, get::<Option<i64>>(row, 3)?))
        };
        let (uses, servers, seconds) = read().map_err(Fault::into_error)?;
        let Some(seconds) = seconds else { return Ok(uses) };
        let why = format!(
            "{servers} servers count as alive; hint: stop them, or if they were killed wait {seconds} seconds, and run the command again"
        );
        Err(BackupError::Served { place: self.place.clone(), why })
    }

    /// Writes a backup of it.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub async fn back_up(&self, out: Box<dyn Write + Send>) -> Result<Summary, StoreError> {
        backup::back_up(&self.database, self.history, out).await
    }
}

/// A database that a store is moved into. No server opens it before [`Self::finish`].
pub struct Target {
    database: Database,
    history: HistoryId,
    place: String,
    /// Has the lock that keeps other migrations away.
    lock: Client,
}

impl Target {
    /// Takes a database without a store, or with what an earlier migration of the same store left.
    ///
    /// # Errors
    /// When it has another store or a whole one, another migration is under way, or PostgreSQL refuses.
    pub async fn begin(address: &Address, history: HistoryId) -> Result<Self, BackupError> {
        let (connector, place) = (prepare(address).await?, format!("the database {address}"));
        let client = connect(&connector).await?;
        if !schema::is_newest(&client, &address.to_string()).await? {
            let why = "tables of a newer version; hint: run the version of aptix-server that made them".to_owned();
            return Err(BackupError::Occupied { place, why });
        }
        let failed = |error: tokio_postgres::Error| Fault::from(error).into_error();
        let locked = client.query_one("SELECT pg_try_advisory_lock($1)", &[&FILLING]).await.map_err(failed)?;
        if !get::<bool>(&locked, 0).map_err(Fault::into_error)? {
            let why = schema::held(&client, FILLING, "another migration into it is under way").await;
            return Err(BackupError::Served { place, why });
        }
        let database = Database::new(connector, Mouth::new().0)?;
        let found = database.write(|| mark(&database, history)).await?;
        let target = Self { database, history, place, lock: client };
        let occupied = |why: String| BackupError::Occupied { place: target.place.clone(), why };
        match found {
            (found, true) if found == history => {
                chunks::open_bucket(&target.database, address.blobs()).await?;
                chunks::claim_bucket(&target.database, history).await?;
                Ok(target)
            }
            (found, false) if found == history => Err(occupied(format!(
                "the whole store {history} that was to be moved; hint: have servers use it, or give another database"
            ))),
            (found, _) => Err(occupied(format!(
                "{found}, and {history} was to be moved; hint: give a database that has none, or drop this one and create it anew"
            ))),
        }
    }

    /// Copies every workspace that is not there yet. Cut off, it goes on where it was.
    ///
    /// # Errors
    /// When the backup cannot be read, or PostgreSQL refuses.
    pub(in crate::store) async fn fill<R: Read + Send + 'static>(
        &self,
        open: impl FnOnce() -> Result<Reader<R>, BackupError> + Send + 'static,
    ) -> Result<Summary, BackupError> {
        fill(&self.database, open, (Pace::ByWorkspace(None), RestoredTokens::Kept)).await
    }

    /// Reads back what was written.
    ///
    /// # Errors
    /// When it cannot be read or written on.
    pub async fn back_up(&self, out: Box<dyn Write + Send>) -> Result<Summary, StoreError> {
        backup::back_up(&self.database, self.history, out).await
    }

    /// Removes a workspace, so that the same migration copies it anew.
    ///
    /// # Errors
    /// When PostgreSQL refuses.
    pub async fn remove(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        let removed = async {
            let transaction = self.database.begin_empty().await?;
            remove(&transaction, workspace.as_str()).await?;
            transaction.commit().await
        };
        removed.await.map_err(Fault::into_error)
    }

    /// Lets servers open it.
    ///
    /// # Errors
    /// When PostgreSQL refuses.
    pub async fn finish(&self) -> Result<(), StoreError> {
        // Where the lock is: with its connection ended, another migration may have begun.
        let finish = async { Ok(self.lock.execute("UPDATE store SET filling = false", &[]).await.map(drop)?) };
        let finished = self.database.in_time(self.database.commit(finish)).await;
        finished.map_err(Fault::into_error)
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }
}

/// Notes that a store is moved into the database, if there is none; answers the history that there is, and whether it is being moved.
async fn mark(database: &Database, history: HistoryId) -> Result<(HistoryId, bool), Fault> {
    let transaction = database.begin().await?;
    let insert = "INSERT INTO store (history, filling) VALUES ($1, true) ON CONFLICT DO NOTHING";
    transaction.change(insert, &[&history.0]).await?;
    transaction.change("INSERT INTO store_facts DEFAULT VALUES ON CONFLICT DO NOTHING", &[]).await?;
    let row = transaction.row("SELECT history, filling FROM store", &[]).await?;
    let row = row.ok_or_else(|| Fault::Failed("the row of the store is gone".to_owned()))?;
    transaction.commit().await?;
    Ok((HistoryId(get(&row, 0)?), get(&row, 1)?))
}
