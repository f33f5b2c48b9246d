//! The database as every part of the store uses it: reads, and transactions that write.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::sync::{Notify, OnceCell};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

use super::bucket::Bucket;
use super::connections::{COMMITTING, CONNECTIONS, Connector, RESERVED};
use super::counts::Counts;
use super::fault::Fault;
use super::health::Health;
use super::hints::{Ear, Mouth};
use crate::mint;
use crate::store::StoreError;
use crate::store::fleet::Company;

/// The values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// How every transaction begins that writes. Limits are set for the transaction: what is set for a connection is lost where a pooler
/// hands it on. Warnings are asked for, because a commit that the synchronous standby may lack is reported by one. A server whose machine
/// died in the middle of a transaction keeps its locks no longer than it may be idle. Each statement finds its rows by an index, also
/// where PostgreSQL does not know yet how many there are.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '3s'; \
    SET LOCAL statement_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = '10s'; \
    SET LOCAL client_min_messages = warning; SET LOCAL enable_seqscan = off; SET LOCAL jit = off; \
    SELECT check_tables(1)";
/// The same for a group, which waits for no lock for long. `aptix.grouped` shows the function `check_known` that it is in a transaction.
pub(super) const BEGIN_GROUP: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '250ms'; \
    SET LOCAL aptix.grouped = 'on'; \
    SET LOCAL statement_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = '10s'; \
    SET LOCAL client_min_messages = warning; SET LOCAL enable_seqscan = off; SET LOCAL jit = off; \
    SELECT check_tables(1)";
/// The same for a transaction that may take any time.
pub(super) const BEGIN_EMPTY: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '3s'; \
    SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL client_min_messages = warning; SET LOCAL enable_seqscan = off; SET LOCAL jit = off; \
    SELECT check_tables(1)";

/// How long a read may take.
pub(super) const READ: Duration = Duration::from_secs(30);

/// The database of a store.
pub(super) struct Database {
    pub(super) connector: Connector,
    pool: Pool,
    committing: Pool,
    reserved: Pool,
    /// What has the bytes of blobs, if not the database, as far as it is known.
    pub(super) bucket: OnceCell<Bucket>,
    /// Wakes the task that removes the chunks of uploads that were dropped.
    pub(super) dropped: Notify,
    /// Names this server among those that write uploads.
    pub(super) writer: Uuid,
    pub(super) ear: Arc<Ear>,
    pub(super) mouth: Mouth,
    /// Whether other servers live, as far as it is known.
    pub(super) has_company: AtomicBool,
    pub(super) counts: Counts,
    pub(super) health: Health,
}

impl Database {
    pub(super) fn new(connector: Connector, mouth: Mouth) -> Result<Self, StoreError> {
        let (pool, committing) = (connector.pool(CONNECTIONS)?, connector.pool(COMMITTING)?);
        let (reserved, writer) = (connector.pool(RESERVED)?, mint::uuid());
        let (ear, has_company) = (connector.ear(), AtomicBool::new(false));
        let (counts, health) = (Counts::default(), Health::new());
        Ok(Self {
            connector,
            pool,
            committing,
            reserved,
            bucket: OnceCell::new(),
            dropped: Notify::new(),
            writer,
            ear,
            mouth,
            has_company,
            counts,
            health,
        })
    }

    /// A connection.
    pub(super) async fn client(&self) -> Result<Lent, Fault> {
        self.lend(&self.pool).await
    }

    /// A connection of the committer.
    pub(super) async fn committing(&self) -> Result<Lent, Fault> {
        self.lend(&self.committing).await
    }

    async fn lend(&self, pool: &Pool) -> Result<Lent, Fault> {
        Ok(Lent { client: Some(pool.get().await?), is_idle: true, canceller: None })
    }

    /// Closes every connection that is idle; the others are closed when they become idle.
    pub(super) fn close(&self) {
        self.pool.close();
        self.committing.close();
        self.reserved.close();
    }

    /// Reads rows with one statement. One that found its connection closed is sent once more.
    pub(super) async fn read(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        let read = async {
            match self.read_once(sql, values).await {
                Err(Fault::Unavailable(_)) => self.read_once(sql, values).await,
                answered => answered,
            }
        };
        let read = timeout(READ, read).await;
        read.unwrap_or_else(|_| Err(Fault::Unavailable("a read took over 30 s".to_owned()))).map_err(Fault::into_error)
    }

    async fn read_once(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Fault> {
        let mut client = self.client().await?;
        client.is_idle = false;
        client.canceller = Some(self.connector.clone());
        let rows = client.rows(sql, values).await;
        client.is_idle = true;
        rows
    }

    /// Begins a transaction that writes.
    pub(super) async fn begin(&self) -> Result<Transaction<'_>, Fault> {
        self.begin_in(self.client().await?, BEGIN).await
    }

    /// The same in a reserved connection: for the membership of this server.
    pub(super) async fn begin_reserved(&self) -> Result<Transaction<'_>, Fault> {
        self.begin_in(self.lend(&self.reserved).await?, BEGIN).await
    }

    /// The same for a probe. PostgreSQL is asked to end it if it is dropped, also in its commit: what a probe changes nobody needs.
    pub(super) async fn begin_probe(&self) -> Result<Transaction<'_>, Fault> {
        let mut transaction = self.begin_reserved().await?;
        transaction.client.canceller = Some(self.connector.clone());
        Ok(transaction)
    }

    async fn begin_in(&self, mut client: Lent, begin: &str) -> Result<Transaction<'_>, Fault> {
        client.is_idle = false;
        client.object()?.batch_execute(begin).await?;
        Ok(Transaction { database: self, client })
    }

    /// Begins a transaction that fills a database without a store: it may take any time.
    pub(super) async fn begin_empty(&self) -> Result<Transaction<'_>, Fault> {
        self.begin_in(self.client().await?, BEGIN_EMPTY).await
    }

    /// A transaction of one statement; answers how many rows it changed.
    pub(super) async fn change(&self, sql: &str, values: Values<'_>) -> Result<u64, Fault> {
        let transaction = self.begin().await?;
        let changed = transaction.change(sql, values).await?;
        transaction.commit().await?;
        Ok(changed)
    }

    /// Carries out a write; once more if PostgreSQL rolled it back for another one.
    pub(super) async fn write<T, F: Future<Output = Result<T, Fault>> + Send>(
        &self,
        attempt: impl Fn() -> F + Send + Sync,
    ) -> Result<T, StoreError> {
        self.health.admit()?;
        self.attempt(attempt).await.map_err(|fault| self.fault(fault))
    }

    /// Carries out a write of the membership of this server, also while others fail. A server that writes nothing else detects by it that the
    /// database is out of reach.
    pub(super) async fn write_membership<T, F: Future<Output = Result<T, Fault>> + Send>(
        &self,
        attempt: impl Fn() -> F + Send + Sync,
    ) -> Result<T, StoreError> {
        self.attempt(attempt).await.map_err(|fault| self.fault(fault))
    }

    async fn attempt<T, F: Future<Output = Result<T, Fault>> + Send>(
        &self,
        attempt: impl Fn() -> F + Send + Sync,
    ) -> Result<T, Fault> {
        match self.in_time(attempt()).await {
            Err(Fault::Conflict(_)) => self.in_time(attempt()).await,
            written => written,
        }
    }

    /// Bounds how long a write waits for PostgreSQL, its commit included: that may wait for a standby, or for a host that is frozen,
    /// without end.
    pub(super) async fn in_time<T>(&self, write: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let limit = self.connector.write_limit;
        let late = || Fault::Unavailable(format!("a write took over {limit:?}, and may have been stored"));
        timeout(limit, write).await.unwrap_or_else(|_| Err(late()))
    }

    /// Notes whether other servers live.
    pub(super) fn in_company(&self, company: Company) -> Company {
        self.has_company.store(!company.others.is_empty(), Ordering::Relaxed);
        company
    }

    /// What a caller is answered; the store's health follows from it.
    pub(super) fn fault(&self, fault: Fault) -> StoreError {
        self.health.note(&fault);
        fault.into_error()
    }

    /// Sends a commit, and answers whether it is durable wherever it has to be.
    pub(super) async fn commit(&self, commit: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
        let before = self.connector.unconfirmed();
        commit.await?;
        if self.connector.unconfirmed() == before {
            return Ok(());
        }
        Err(Fault::Unavailable("the wait for the synchronous standby was cancelled: it may lack the write".to_owned()))
    }
}

/// A connection of the pool. It goes back only if no transaction was left open in it.
pub(super) struct Lent {
    client: Option<Object>,
    is_idle: bool,
    /// Has PostgreSQL end the statement, if this is dropped before its answer.
    canceller: Option<Connector>,
}

impl Lent {
    pub(super) fn object(&self) -> Result<&Object, Fault> {
        self.client.as_ref().ok_or_else(|| Fault::Failed("the connection was given back".to_owned()))
    }

    /// A transaction begins, or ended.
    pub(super) fn set_idle(&mut self, is_idle: bool) {
        self.is_idle = is_idle;
    }

    /// A prepared statement; prepared at its first use in a connection.
    pub(super) async fn statement(&self, sql: &str) -> Result<Statement, Fault> {
        Ok(self.object()?.prepare_cached(sql).await?)
    }

    pub(super) async fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Fault> {
        let statement = self.statement(sql).await?;
        Ok(self.object()?.query(&statement, values).await?)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.is_idle
            && let Some(client) = self.client.take()
        {
            if let Some(connector) = self.canceller.take() {
                connector.cancel(client.cancel_token());
            }
            // Not to the pool: dropped, the connection ends, and its transaction with it.
            drop(Object::take(client));
        }
    }
}

/// A transaction that writes. Dropped, it is rolled back with its connection.
pub(super) struct Transaction<'a> {
    database: &'a Database,
    client: Lent,
}

impl Transaction<'_> {
    /// The rows that a statement answers.
    pub(super) async fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Fault> {
        self.client.rows(sql, values).await
    }

    /// The one row that a statement answers, if there is one.
    pub(super) async fn row(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>, Fault> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Changes rows; answers how many.
    pub(super) async fn change(&self, sql: &str, values: Values<'_>) -> Result<u64, Fault> {
        let statement = self.client.statement(sql).await?;
        Ok(self.client.object()?.execute(&statement, values).await?)
    }

    /// The rows that several statements answer. They are sent together, and carried out in their order.
    ///
    /// # Errors
    /// The first failure: it is the cause of those that follow.
    pub(super) async fn all<const N: usize>(&self, asked: [(&str, Values<'_>); N]) -> Result<[Vec<Row>; N], Fault> {
        let mut sent = Vec::<Pin<Box<dyn Future<Output = _> + Send + '_>>>::with_capacity(N);
        let object = self.client.object()?;
        for (sql, values) in asked {
            let statement = self.client.statement(sql).await?;
            sent.push(Box::pin(async move { object.query(&statement, values).await }));
        }
        let answers = together(sent).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        answers.try_into().map_err(|_| Fault::Failed("a statement has no answer".to_owned()))
    }

    /// The connection.
    pub(super) const fn client(&self) -> &Lent {
        &self.client
    }

    pub(super) async fn commit(mut self) -> Result<(), Fault> {
        self.database.counts.other_commit();
        let object = self.client.object()?;
        self.database.commit(async { Ok(object.batch_execute("COMMIT").await?) }).await?;
        self.client.is_idle = true;
        Ok(())
    }

    pub(super) async fn roll_back(mut self) -> Result<(), Fault> {
        self.client.object()?.batch_execute("ROLLBACK").await?;
        self.client.is_idle = true;
        Ok(())
    }
}

/// Polls all futures in their order until each is done: statements are sent in the order in which they are polled first.
pub(super) async fn together<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut is_pending = false;
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(answer) => *done = Some(answer),
                    std::task::Poll::Pending => is_pending = true,
                }
            }
        }
        if is_pending { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
    done.into_iter().flatten().collect()
}
