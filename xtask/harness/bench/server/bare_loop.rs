//! The least that PostgreSQL takes to keep batches: a loop that makes the transactions of the server's store, and nothing else.
//!
//! Each transaction is one group of batches, each of another workspace. It locks the rows of the workspaces, looks the request ids up,
//! changes the rows of the workspaces, and adds the rows of the batches, which have their first events: prepared statements, all of
//! them sent together with the commit. The tables are copies of those that the server made, and the bytes of each row are those of the newest
//! row that a server stored.

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

/// Columns that are not the same in all rows, with their types: the first parameters of every statement.
const KEYS: [(&str, &str); 4] = [("id", "text"), ("workspace", "text"), ("first", "bigint"), ("request", "text")];
/// What a submitted batch adds a row to.
const TABLE: &str = "batches";
const LOCK: &str = "SELECT name, known, deleting, newest, digest, epoch, secret, roots, open_batches, used_bytes, sessions \
    FROM workspaces WHERE name = ANY($1::text[]) ORDER BY name FOR NO KEY UPDATE";
const LOOK_UP: &str = "WITH n AS (SELECT * FROM unnest($1::text[], $2::text[]) AS n(workspace, request)) \
    SELECT b.id FROM n JOIN batches b ON b.workspace = n.workspace AND b.request = n.request \
        AND hashtextextended(b.workspace || ' ' || b.request, 0) = hashtextextended(n.workspace || ' ' || n.request, 0) \
    UNION ALL SELECT f.batch FROM n JOIN freed_requests f USING (workspace, request)";
const CHANGE: &str = "UPDATE workspaces w SET known = true, newest = n.newest, digest = $3, open_batches = w.open_batches + 1, \
    used_bytes = w.used_bytes + $4 FROM unnest($1::text[], $2::bigint[]) AS n(name, newest) WHERE w.name = n.name";
const CREATE: &str = "INSERT INTO workspaces (name) SELECT unnest($1::text[])";

/// A connection, and what is prepared on it.
pub(crate) struct BareLoop {
    client: Client,
    /// Distinguishes its rows from those of other loops.
    number: usize,
    workspaces: Vec<String>,
    lock: Statement,
    look_up: Statement,
    change: Statement,
    insert: Insert,
    /// How many batches were added.
    added: u64,
    _connection: JoinSet<()>,
}

/// Adds rows.
struct Insert {
    statement: Statement,
    /// The bytes of a row.
    sample: Vec<Vec<u8>>,
}

/// The values of one group.
struct Group<'a> {
    ids: Vec<String>,
    workspaces: Vec<&'a str>,
    revisions: Vec<i64>,
    requests: Vec<String>,
}

impl BareLoop {
    /// Connects to a database with copies of the tables; `stored` is the address of one in which a server stored batches.
    pub(crate) async fn start(address: &str, stored: &str, number: usize, workspaces: usize) -> Result<Self> {
        let mut tasks = JoinSet::new();
        let client = connect(address, &mut tasks).await?;
        let stored = connect(stored, &mut tasks).await?;
        let workspaces: Vec<_> = (0..workspaces).map(|each| format!("bare-{number}-{each}")).collect();
        client.execute(CREATE, &[&workspaces]).await?;
        // What the server has set for the same statements: they find their rows by an index.
        client.batch_execute("SET enable_seqscan = off; SET jit = off").await?;
        let insert = Insert::prepare(&client, &stored).await?;
        let (lock, look_up) = (client.prepare(LOCK).await?, client.prepare(LOOK_UP).await?);
        let change = client.prepare(CHANGE).await?;
        Ok(Self { client, number, workspaces, lock, look_up, change, insert, added: 0, _connection: tasks })
    }

    /// Adds so many batches in groups of one size.
    pub(crate) async fn append(&mut self, batches: usize, group: usize) -> Result<()> {
        let mut left = batches;
        while left > 0 {
            let size = group.clamp(1, left).min(self.workspaces.len());
            self.commit(size).await?;
            left -= size;
        }
        Ok(())
    }

    async fn commit(&mut self, size: usize) -> Result<()> {
        let group = self.group(size);
        let (digest, bytes) = (vec![0_u8; 32], 5_000_i64);
        let columns = self.insert.columns(size);
        let mut values: Vec<&(dyn ToSql + Sync)> =
            vec![&group.ids, &group.workspaces, &group.revisions, &group.requests];
        values.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
        let insert = async { Ok(self.client.execute(&self.insert.statement, &values).await.map(drop)?) };
        let commit = async { anyhow::Ok(self.client.batch_execute("COMMIT").await?) };
        let begin = async { Ok(self.client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await?) };
        let lock = async { Ok(self.client.query(&self.lock, &[&group.workspaces]).await.map(drop)?) };
        let look_up =
            async { Ok(self.client.query(&self.look_up, &[&group.workspaces, &group.requests]).await.map(drop)?) };
        let change = async {
            let values: [&(dyn ToSql + Sync); 4] = [&group.workspaces, &group.revisions, &digest, &bytes];
            Ok(self.client.execute(&self.change, &values).await.map(drop)?)
        };
        tokio::try_join!(biased; begin, lock, look_up, change, insert, commit)?;
        self.added += size as u64;
        Ok(())
    }

    /// The next group: each batch of another workspace.
    fn group(&self, size: usize) -> Group<'_> {
        let numbers = || (0..size as u64).map(|index| self.added + index);
        let count = self.workspaces.len().max(1) as u64;
        let name = |number: u64| self.workspaces.get((number % count) as usize).map_or("", String::as_str);
        Group {
            // Each after the one before, as those of the server are.
            ids: numbers().map(|number| format!("{:08x}-0000-7000-8000-{number:012x}", self.number)).collect(),
            workspaces: numbers().map(name).collect(),
            revisions: numbers().map(|number| number as i64 + 1).collect(),
            requests: numbers().map(|number| format!("request-{number}")).collect(),
        }
    }
}

impl Insert {
    /// Prepares a statement that adds rows like the newest one that is stored: a column of `bytea` is sent with each row, and what is neither that
    /// nor a key is part of the statement.
    async fn prepare(client: &Client, stored: &Client) -> Result<Self> {
        let sql = "SELECT column_name::text, data_type::text FROM information_schema.columns \
            WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position";
        let (mut columns, mut values, mut types, mut names) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (index, (_, of)) in KEYS.iter().enumerate() {
            types.push(format!("${}::{of}[]", index + 1));
            names.push(format!("k{index}"));
        }
        let mut sample = Vec::new();
        for row in stored.query(sql, &[&TABLE]).await? {
            let (column, of): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let newest = |value: &str| format!("SELECT {value} FROM {TABLE} ORDER BY ctid DESC LIMIT 1");
            let key = KEYS.iter().position(|(key, _)| *key == column);
            values.push(match key {
                Some(index) => format!("n.k{index}::{of}"),
                None if of == "bytea" => {
                    let bytes: Option<Vec<u8>> = stored.query_one(&newest(&column), &[]).await?.try_get(0)?;
                    types.push(format!("${}::bytea[]", types.len() + 1));
                    names.push(format!("b{}", sample.len()));
                    sample.push(bytes.unwrap_or_default());
                    format!("n.b{}", sample.len() - 1)
                }
                None => {
                    let value = newest(&format!("quote_nullable({column}::text)"));
                    let value: String = stored.query_one(&value, &[]).await?.try_get(0)?;
                    format!("{value}::{of}")
                }
            });
            columns.push(column);
        }
        let (columns, values, types, names) =
            (columns.join(", "), values.join(", "), types.join(", "), names.join(", "));
        let insert = format!("INSERT INTO {TABLE} ({columns}) SELECT {values} FROM unnest({types}) AS n({names})");
        let statement = client.prepare(&insert).await.with_context(|| format!("{insert} cannot be prepared"))?;
        Ok(Self { statement, sample })
    }

    /// The columns of so many rows.
    fn columns(&self, rows: usize) -> Vec<Vec<&[u8]>> {
        self.sample.iter().map(|bytes| vec![bytes.as_slice(); rows]).collect()
    }
}

/// Connects; the connection is served for as long as the tasks are there.
async fn connect(address: &str, tasks: &mut JoinSet<()>) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tasks.spawn(async move {
        // Whoever uses it learns why it ended.
        let _ = connection.await;
    });
    Ok(client)
}
