//! Opens the store: its tables are brought up to date, and its tasks are started.

use std::sync::Arc;

use aptix_model::id::HistoryId;
use tokio::sync::mpsc;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::PostgresStore;
use super::address::Address;
use super::committer::{Committer, GROUP, Groups};
use super::connections::Connector;
use super::database::Database;
use super::fault::Fault;
use super::hints::Mouth;
use super::numbers::get;
use super::{chunks, healing, schema, sweep, telling};
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
    /// When the database cannot be used, has tables of a newer version, or a store that is not whole.
    pub async fn open(address: &Address) -> Result<Self, StoreError> {
        let connector = prepare(address).await?;
        let (mouth, untold) = Mouth::new();
        let database = Arc::new(Database::new(connector, mouth)?);
        let history = database.write(|| create(&database, address)).await?;
        chunks::open_bucket(&database, address.blobs()).await?;
        chunks::claim_bucket(&database, history).await?;
        warn_of_lost_writes(&database).await?;
        let (orders, waiting) = mpsc::channel(QUEUE);
        let (given_up, giving_up) = mpsc::channel(GIVEN_UP);
        let (groups, closing, tasks) = (Groups::default(), CancellationToken::new(), TaskTracker::new());
        tasks.spawn(Committer::new(Arc::clone(&database), waiting, groups.clone()).run());
        let theirs = || (Arc::clone(&database), closing.clone());
        let (healed, ending) = theirs();
        tasks.spawn(async move { healing::run(&healed, ending).await });
        let (swept, ending) = theirs();
        tasks.spawn(async move { sweep::run(&swept, giving_up, ending).await });
        let (told, ending) = theirs();
        tasks.spawn(async move { telling::tell(&told, untold, ending).await });
        let (heard, ending) = theirs();
        tasks.spawn(async move { telling::hear(&heard.connector, &heard.ear, ending).await });
        let clock = Arc::default();
        Ok(Self { database, history, orders, groups, given_up, clock, closing, tasks })
    }
}

/// Connects, and brings the tables up to date.
pub(super) async fn prepare(address: &Address) -> Result<Connector, StoreError> {
    let connector = Connector::new(address)?;
    let mut client = connect(&connector).await?;
    schema::migrate(&mut client, &address.to_string()).await?;
    Ok(connector)
}

/// How long a lock is waited for before the store is open. PostgreSQL ends the connection of a machine that died within half of that,
/// and so the locks that only end with it.
const BEFORE: &str = "SET lock_timeout = '60s'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; \
    SET tcp_keepalives_count = 3; SET tcp_user_timeout = '30s'";

/// A connection, for what comes before the store is open.
pub(super) async fn connect(connector: &Connector) -> Result<Client, StoreError> {
    let connected = connector.connection().await.map_err(|error| match Fault::from(error) {
        Fault::Unavailable(cause) | Fault::Busy(cause) => StoreError::Failed { action: "connect to PostgreSQL", cause },
        fault => fault.into_error(),
    });
    let (client, _) = connected?;
    client.batch_execute(BEFORE).await.map_err(|error| Fault::from(error).into_error())?;
    Ok(client)
}

/// Warns where the settings of the role or the database let PostgreSQL acknowledge what a crash or a failover loses.
async fn warn_of_lost_writes(database: &Database) -> Result<(), StoreError> {
    let rows = database.read("SELECT current_setting('synchronous_commit')", &[]).await?;
    let setting: &str = rows.first().map_or(Ok("on"), |row| super::numbers::get(row, 0)).map_err(Fault::into_error)?;
    let lost = match setting {
        "off" => "a crash of PostgreSQL loses what the server acknowledged; hint: set it to on",
        "local" => "a failover loses what the server acknowledged; hint: set it to on",
        _ => return Ok(()),
    };
    tracing::warn!(synchronous_commit = setting, "{lost}");
    Ok(())
}

/// Creates the store, if there is none; answers the name of its history.
async fn create(database: &Database, address: &Address) -> Result<HistoryId, Fault> {
    let transaction = database.begin().await?;
    let insert = "INSERT INTO store (history) VALUES ($1) ON CONFLICT DO NOTHING";
    transaction.change(insert, &[&mint::uuid()]).await?;
    transaction.change("INSERT INTO store_facts DEFAULT VALUES ON CONFLICT DO NOTHING", &[]).await?;
    let row = transaction.row("SELECT history, filling FROM store", &[]).await?;
    let row = row.ok_or_else(|| Fault::Failed("the row of the store is gone".to_owned()))?;
    if get(&row, 1)? {
        transaction.roll_back().await?;
        return Err(StoreError::Unrestored { place: format!("the database {address}") }.into());
    }
    transaction.commit().await?;
    Ok(HistoryId(get(&row, 0)?))
}
