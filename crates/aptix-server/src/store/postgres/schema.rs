//! The tables of the store, and their migrations: forward only, each in a transaction of its own.

use tokio_postgres::Client;

use super::fault::Fault;
use crate::store::StoreError;

/// Held while tables are migrated: of servers that start at once, one migrates and the others find it done.
const MIGRATING: i64 = 0x4150_5449_584d;

refinery::embed_migrations!("src/store/postgres/migrations");

/// Brings the tables up to the newest version that this server knows.
///
/// # Errors
/// When the database has tables of a newer version, or refuses.
pub(super) async fn migrate(client: &mut Client, database: &str) -> Result<(), StoreError> {
    let failed = |error: tokio_postgres::Error| Fault::from(error).into_error();
    client.execute("SELECT pg_advisory_lock($1)", &[&MIGRATING]).await.map_err(failed)?;
    let migrated = migrate_locked(client, database).await;
    let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&MIGRATING]).await.map_err(failed);
    migrated.and(unlocked.map(drop))
}

/// Whether a database has tables of the newest version that this server knows; changes nothing.
///
/// # Errors
/// When it has tables of a newer version, or refuses.
pub(super) async fn is_newest(client: &Client, database: &str) -> Result<bool, StoreError> {
    let failed = |error: tokio_postgres::Error| Fault::from(error).into_error();
    let runner = migrations::runner();
    let newest = runner.get_migrations().iter().map(refinery::Migration::version).max().unwrap_or_default();
    let history = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    if !client.query_one(history, &[]).await.map_err(failed)?.get::<_, bool>(0) {
        return Ok(false);
    }
    let found = "SELECT coalesce(max(version), 0)::bigint FROM refinery_schema_history";
    let found: i64 = client.query_one(found, &[]).await.map_err(failed)?.get(0);
    if found > i64::from(newest) {
        let (found, newest) = (found.unsigned_abs(), u64::try_from(newest).unwrap_or_default());
        return Err(StoreError::OtherSchema { database: database.to_owned(), found, newest });
    }
    Ok(found == i64::from(newest))
}

async fn migrate_locked(client: &mut Client, database: &str) -> Result<(), StoreError> {
    is_newest(client, database).await?;
    let ran = migrations::runner().run_async(client).await;
    ran.map(drop).map_err(|error| StoreError::Failed { action: "create its tables", cause: error.to_string() })
}
