//! A backup of the tables at one instant: one transaction that only reads, rows in small portions. What cannot be read, or is missing,
//! ends it: a backup is whole, or there is none.

use std::io::Write;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, FilePatchId, HistoryId, Revision, WorkspaceId};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_postgres::{IsolationLevel, Row, Transaction};
use uuid::Uuid;

use super::chunks::{self, CHUNK};
use super::database::{Database, Values};
use super::fault::Fault;
use super::numbers::{column, digest, get, name, number, optional_digest};
use super::reads::NEXT_EVENTS;
use crate::mint;
use crate::store::backup::{Item, StoreFacts, Summary, WorkspaceFacts, Writer};
use crate::store::records::record::{self, Happened};
use crate::store::records::retention_record::{Trim, decode_notes};
use crate::store::records::{batch_record, session_record, token_record};
use crate::store::retention::Age;
use crate::store::{Event, Lease, StoreError};

/// Items that wait to be written.
const WAITING: usize = 4;

/// Rows that are read at once: small ones, and those with the content of a batch or a chunk.
const SMALL: i32 = 256;
const LARGE: i32 = 4;

/// Where items go.
type Out = mpsc::Sender<Result<Option<Item>, StoreError>>;

/// Writes a backup.
pub(super) async fn back_up(
    database: &Database,
    history: HistoryId,
    out: Box<dyn Write + Send>,
) -> Result<Summary, StoreError> {
    let (items, mut waiting) = mpsc::channel(WAITING);
    let written = spawn_blocking(move || {
        let mut backup = Writer::begin(out)?;
        while let Some(item) = waiting.blocking_recv() {
            match item? {
                Some(item) => backup.item(&item)?,
                None => return backup.finish(),
            }
        }
        Err(StoreError::Failed { action: "write a backup", cause: "it was given up".to_owned() })
    });
    let end = match read(database, history, &items).await {
        Ok(()) => Ok(None),
        Err(fault) => Err(fault.into_error()),
    };
    // A writer that failed takes nothing more, and answers why.
    let _ = items.send(end).await;
    drop(items);
    written.await.map_err(|error| StoreError::Failed { action: "write a backup", cause: error.to_string() })?
}

/// Sends an item to be written.
async fn send(out: &Out, item: Item) -> Result<(), Fault> {
    let ended = || Fault::Failed("the backup is not written any more".to_owned());
    out.send(Ok(Some(item))).await.map_err(|_| ended())
}

fn corrupt(what: String, why: &str) -> Fault {
    StoreError::Corrupt { what, why: why.to_owned() }.into()
}

async fn read(database: &Database, history: HistoryId, out: &Out) -> Result<(), Fault> {
    // A connection of its own: it is used as long as the backup takes.
    let (mut client, _) = database.connector.connection().await?;
    let begin = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let transaction = begin.start().await?;
    // It waits for who takes the items, and for the bucket.
    transaction.batch_execute("SET LOCAL idle_in_transaction_session_timeout = 0").await?;
    let facts = transaction.query_one("SELECT age, tokens_needed FROM store_facts", &[]).await?;
    let facts = StoreFacts {
        history,
        taken: mint::now(),
        server: env!("CARGO_PKG_VERSION").to_owned(),
        age: Some(Age(number(get(&facts, 0)?))),
        tokens_needed: get(&facts, 1)?,
    };
    send(out, Item::Store(facts)).await?;
    let tokens = "SELECT name, record FROM tokens ORDER BY name";
    let token = |row: &Row| {
        let kept = token_record::decode(get(row, 1)?)?;
        match kept.token.name.as_str() == get::<&str>(row, 0)? {
            true => Ok(Item::Token(kept)),
            false => Err(corrupt("a token".to_owned(), "it has the record of another one")),
        }
    };
    each(&transaction, out, (tokens, &[], SMALL), token).await?;
    let workspaces = format!("SELECT {WORKSPACE} FROM workspaces WHERE known AND NOT deleting ORDER BY name");
    let portal = transaction.bind(&workspaces, &[]).await?;
    loop {
        let rows = transaction.query_portal(&portal, SMALL).await?;
        for row in &rows {
            let facts = workspace(row)?;
            let (id, trimmed) = (facts.id.clone(), facts.trim.upto);
            send(out, Item::Workspace(Box::new(facts))).await?;
            back_up_workspace(database, &transaction, &id, trimmed, out).await?;
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

/// Sends an item for each row, read in portions.
async fn each(
    transaction: &Transaction<'_>,
    out: &Out,
    (sql, values, rows_at_once): (&str, Values<'_>, i32),
    item: impl Fn(&Row) -> Result<Item, Fault> + Send + Sync,
) -> Result<(), Fault> {
    let portal = transaction.bind(sql, values).await?;
    loop {
        let rows = transaction.query_portal(&portal, rows_at_once).await?;
        for row in &rows {
            send(out, item(row)?).await?;
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

/// The columns of a workspace, for [`workspace()`].
pub(super) const WORKSPACE: &str = "name, newest, digest, epoch, secret, roots, trimmed, trimmed_digest, swept, notes";

/// What is kept of a workspace as a whole.
pub(super) fn workspace(row: &Row) -> Result<WorkspaceFacts, Fault> {
    let (roots, notes): (Option<&[u8]>, Option<&[u8]>) = (get(row, 5)?, get(row, 9)?);
    Ok(WorkspaceFacts {
        id: name(row, 0)?,
        newest: Revision(number(get(row, 1)?)),
        digest: optional_digest(row, 2)?,
        lease: Lease { epoch: number(get(row, 3)?), secret: optional_digest(row, 4)? },
        roots: roots.map(record::decode_texts).transpose()?.unwrap_or_default(),
        trim: Trim {
            upto: Revision(number(get(row, 6)?)),
            digest: optional_digest(row, 7)?,
            swept: Revision(number(get(row, 8)?)),
        },
        notes: notes.map(decode_notes).transpose()?.unwrap_or_default(),
    })
}

async fn back_up_workspace(
    database: &Database,
    transaction: &Transaction<'_>,
    id: &WorkspaceId,
    trimmed: Revision,
    out: &Out,
) -> Result<(), Fault> {
    let name = id.as_str();
    let of: Values<'_> = &[&name];
    let sessions = "SELECT record FROM sessions WHERE workspace = $1 ORDER BY session";
    let session = |row: &Row| Ok(Item::Session(session_record::decode_any(get(row, 0)?)?));
    each(transaction, out, (sessions, of, SMALL), session).await?;
    let batches = "SELECT id, first, content, coalesce((SELECT s.progress FROM batch_states s WHERE s.id = b.id), progress) FROM (\
            (SELECT id, first, content, progress FROM batches WHERE workspace = $1 AND has_content ORDER BY first) \
            UNION ALL (SELECT id, first, content, progress FROM batches WHERE workspace = $1 AND NOT has_content \
                ORDER BY first)) b ORDER BY first";
    let batch = |row: &Row| {
        let (id, first) = (BatchId(get(row, 0)?), Revision(number(get(row, 1)?)));
        let batch = batch_record::decode_batch(id, get(row, 2)?, get(row, 3)?)?;
        Ok(Item::Batch(first, Box::new(batch)))
    };
    each(transaction, out, (batches, of, LARGE), batch).await?;
    let hunks = "SELECT hunk, batch FROM hunks WHERE workspace = $1 ORDER BY hunk";
    let hunk = |row: &Row| Ok(Item::Plan(FilePatchId(get(row, 0)?), BatchId(get(row, 1)?)));
    each(transaction, out, (hunks, of, SMALL), hunk).await?;
    let event = |row: &Row| {
        let revision = Revision(number(get(row, 1)?));
        let Happened { batch, digest, facts, previous } = record::decode_event(get(row, 2)?)?;
        Ok(Item::Event(Box::new(Event { revision, batch, digest, facts }), previous))
    };
    let all: Values<'_> = &[&name, &column(trimmed.0), &None::<i64>];
    each(transaction, out, (NEXT_EVENTS, all, SMALL), event).await?;
    let files = "SELECT path, record FROM files WHERE workspace = $1 AND workspace <> '' ORDER BY path";
    let file = |row: &Row| {
        let file = record::decode_file(get(row, 1)?)?;
        match file.path.as_str().as_bytes() == get::<&[u8]>(row, 0)? {
            true => Ok(Item::File(file)),
            false => Err(corrupt(format!("file {}", file.path), "it is the record of another file")),
        }
    };
    each(transaction, out, (files, of, SMALL), file).await?;
    back_up_blobs(database, transaction, of, out).await
}

/// The chunks of a blob, wherever they are.
async fn back_up_chunks(
    database: &Database,
    transaction: &Transaction<'_>,
    (sql, values): (&str, Values<'_>),
    out: &Out,
) -> Result<(), Fault> {
    let portal = transaction.bind(sql, values).await?;
    loop {
        let rows = transaction.query_portal(&portal, LARGE).await?;
        for row in &rows {
            let bytes = chunks::patiently(|| chunks::bytes(database, row)).await?;
            send(out, Item::Chunk(bytes)).await?;
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

/// Every blob with its bytes, those of uploads that were not finished left out.
async fn back_up_blobs(
    database: &Database,
    transaction: &Transaction<'_>,
    of: Values<'_>,
    out: &Out,
) -> Result<(), Fault> {
    let blobs = "SELECT digest, size, upload FROM blobs WHERE workspace = $1 ORDER BY digest";
    let chunks = format!("SELECT {CHUNK} FROM chunks c WHERE c.upload = $1 ORDER BY c.index");
    let portal = transaction.bind(blobs, of).await?;
    loop {
        let rows = transaction.query_portal(&portal, SMALL).await?;
        for row in &rows {
            let (sha256, size_bytes): (Sha256Digest, u64) = (digest(row, 0)?, number(get(row, 1)?));
            let upload: Uuid = get(row, 2)?;
            send(out, Item::Blob(BlobRef { sha256, size_bytes })).await?;
            back_up_chunks(database, transaction, (&chunks, &[&upload]), out).await?;
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}
