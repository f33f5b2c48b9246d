//! The tables of the store, and their migrations: forward only, each in a transaction of its own.
//!
//! Servers of two versions use the tables side by side while the older one can: a migration that it cannot live with begins with
//! `SELECT require_tables(VERSION)`, which refuses it as long as an older server lives, and has each of its transactions fail afterwards.

use tokio_postgres::{Client, Row};

use super::fault::Fault;
use super::numbers::get;
use crate::store::StoreError;

/// Held while tables are migrated: of servers that start at once, one migrates and the others find it done.
const MIGRATING: i64 = 0x4150_5449_584d;

const HOLDER: &str = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
    AND classid::bigint << 32 | objid::bigint = $1";

/// The first version has this table; the history of migrations may be there before it.
const HAS_TABLES: &str = "SELECT to_regclass('table_versions') IS NOT NULL";
const FOUND: &str = "SELECT (SELECT coalesce(max(version), 0) FROM refinery_schema_history), \
    (SELECT oldest FROM table_versions)";
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

/// Whether a database has tables of exactly the newest version that this server knows; changes nothing.
///
/// # Errors
/// When it has tables that this server cannot use, or refuses.
pub(super) async fn is_newest(client: &Client, database: &str) -> Result<bool, StoreError> {
    Ok(find(client, database).await? == Some(newest()))
}

/// The version of the tables; `None` where there are none.
async fn find(client: &Client, database: &str) -> Result<Option<i32>, StoreError> {
    if !column::<bool>(&client.query_one(HAS_TABLES, &[]).await.map_err(failed)?, 0)? {
        return Ok(None);
    }
    let row = client.query_one(FOUND, &[]).await.map_err(failed)?;
    let (found, oldest): (i32, i32) = (column(&row, 0)?, column(&row, 1)?);
    if oldest > newest() {
        let version = |number: i32| u64::from(number.unsigned_abs());
        let (found, newest) = (version(found), version(newest()));
        return Err(StoreError::OtherSchema { database: database.to_owned(), found, newest });
    }
    Ok(Some(found))
}

async fn migrate_locked(client: &mut Client, database: &str) -> Result<(), StoreError> {
    if find(client, database).await? >= Some(newest()) {
        return Ok(());
    }
    let ran = migrations::runner().run_async(client).await;
    ran.map(drop).map_err(|error| StoreError::Failed { action: "migrate its tables", cause: cause(&error) })
}

/// What PostgreSQL says, where that is the cause.
fn cause(error: &refinery::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if let Some(said) = error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::as_db_error) {
            return said.message().to_owned();
        }
        cause = error.source();
    }
    error.to_string()
}

/// A column of a row.
fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, StoreError> {
    get(row, index).map_err(Fault::into_error)
}

fn failed(error: tokio_postgres::Error) -> StoreError {
    Fault::from(error).into_error()
}

#[cfg(test)]
mod tests {
    use super::super::database::{BEGIN, BEGIN_EMPTY, BEGIN_GROUP};
    use super::newest;

    #[test]
    fn every_write_says_which_tables_it_knows() {
        let check = format!("SELECT check_tables({})", newest());
        for begin in [BEGIN, BEGIN_GROUP, BEGIN_EMPTY] {
            assert!(begin.ends_with(&check), "{begin}");
        }
    }
}
