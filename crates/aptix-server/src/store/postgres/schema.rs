//! The tables of the store, and their migrations: forward only, each in a transaction of its own.
//!
//! Servers of two versions use the tables side by side while the older one can: a migration that it cannot live with raises
//! [`OLDEST`], and is refused as long as a server lives that is older.

use tokio_postgres::{Client, Row};

use super::fault::Fault;
use super::numbers::get;
use crate::store::StoreError;

/// Held while tables are migrated: of servers that start at once, one migrates and the others find it done.
const MIGRATING: i64 = 0x4150_5449_584d;

/// The oldest version of the tables whose servers can use those of the newest version.
const OLDEST: i32 = 1;

const HOLDER: &str = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
    AND classid::bigint << 32 | objid::bigint = $1";

const HAS_TABLES: &str = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
const FOUND: &str = "SELECT (SELECT coalesce(max(version), 0) FROM refinery_schema_history), \
    (SELECT oldest FROM table_versions)";
const OLDER: &str = "SELECT count(*), min(knows), max(ceil(extract(epoch FROM until - clock_timestamp())))::bigint FROM servers \
    WHERE until > clock_timestamp() AND knows < $1";

refinery::embed_migrations!("src/store/postgres/migrations");

/// The newest version of the tables that this server knows.
pub(super) fn newest() -> i32 {
    migrations::runner().get_migrations().iter().map(refinery::Migration::version).max().unwrap_or_default()
}

/// Brings the tables up to the newest version that this server knows, or leaves newer ones as they are that it can use.
///
/// # Errors
/// When the database has tables that this server cannot use, a server lives that could not use the new ones, or it refuses.
pub(super) async fn migrate(client: &mut Client, database: &str) -> Result<(), StoreError> {
    if let Err(error) = client.execute("SELECT pg_advisory_lock($1)", &[&MIGRATING]).await {
        return Err(match Fault::from(error) {
            Fault::Locked => {
                let cause = held(client, MIGRATING, "another server migrates them").await;
                StoreError::Failed { action: "migrate its tables", cause }
            }
            fault => fault.into_error(),
        });
    }
    let migrated = migrate_locked(client, database).await;
    let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&MIGRATING]).await.map_err(failed);
    migrated.and(unlocked.map(drop))
}

/// Why a lock cannot be had, with the process of PostgreSQL that has it.
pub(super) async fn held(client: &Client, lock: i64, why: &str) -> String {
    let holder = client.query_opt(HOLDER, &[&lock]).await.ok().flatten();
    let process = holder.and_then(|row| row.try_get::<_, i32>(0).ok()).map(|pid| {
        format!(
            " (PostgreSQL's process {pid}); hint: wait until that has ended; if its machine died, end it with SELECT pg_terminate_backend({pid})"
        )
    });
    format!("{why}{}", process.unwrap_or_default())
}

/// Whether a database has tables that this server can read; changes nothing.
///
/// # Errors
/// When it has tables that this server cannot use, or refuses.
pub(super) async fn is_usable(client: &Client, database: &str) -> Result<bool, StoreError> {
    if !column::<bool>(&client.query_one(HAS_TABLES, &[]).await.map_err(failed)?, 0)? {
        return Ok(false);
    }
    let row = client.query_one(FOUND, &[]).await.map_err(failed)?;
    let (found, oldest): (i32, i32) = (column(&row, 0)?, column(&row, 1)?);
    if oldest > newest() {
        let version = |number: i32| u64::from(number.unsigned_abs());
        let (found, newest) = (version(found), version(newest()));
        return Err(StoreError::OtherSchema { database: database.to_owned(), found, newest });
    }
    Ok(found >= newest())
}

async fn migrate_locked(client: &mut Client, database: &str) -> Result<(), StoreError> {
    let has_tables = client.query_one(HAS_TABLES, &[]).await.map_err(failed)?;
    if column(&has_tables, 0)? {
        let is_usable = is_usable(client, database).await?;
        raise_oldest(client).await?;
        if is_usable {
            return Ok(());
        }
    }
    let ran = migrations::runner().run_async(client).await;
    ran.map(drop).map_err(|error| StoreError::Failed { action: "create its tables", cause: error.to_string() })?;
    raise_oldest(client).await
}

/// Keeps servers away that cannot use the newest tables.
///
/// # Errors
/// When one lives, or PostgreSQL refuses.
async fn raise_oldest(client: &mut Client) -> Result<(), StoreError> {
    let is_lower = client.query_one("SELECT oldest < $1 FROM table_versions", &[&OLDEST]).await.map_err(failed)?;
    if !column::<bool>(&is_lower, 0)? {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(failed)?;
    // Nobody joins meanwhile.
    transaction.batch_execute("LOCK TABLE servers IN SHARE ROW EXCLUSIVE MODE").await.map_err(failed)?;
    let older = transaction.query_one(OLDER, &[&OLDEST]).await.map_err(failed)?;
    let alive = (column::<i64>(&older, 0)?, column::<Option<i32>>(&older, 1)?, column::<Option<i64>>(&older, 2)?);
    if let (servers, Some(knows), Some(seconds)) = alive {
        let cause = format!(
            "{servers} servers that know its tables up to version {knows} count as alive, and cannot use those of version {}; hint: stop \
             them, or if they were killed wait {seconds} seconds, and start again",
            newest()
        );
        return Err(StoreError::Failed { action: "migrate its tables", cause });
    }
    transaction.execute("UPDATE table_versions SET oldest = $1", &[&OLDEST]).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

/// A column of a row.
fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, StoreError> {
    get(row, index).map_err(Fault::into_error)
}

fn failed(error: tokio_postgres::Error) -> StoreError {
    Fault::from(error).into_error()
}
