//! Makes a store of a backup, in a database that has none: in one transaction, so that a restore that is cut off leaves nothing. A
//! migration (`migration.rs`) commits each workspace.

use std::io::Read;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{Revision, WorkspaceId};
use aptix_model::record::UnixMillis;
use aptix_model::token::{Ended, Ending};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::PostgresStore;
use super::address::Address;
use super::backup::{WORKSPACE, workspace};
use super::changes::{Changes, Columns, NewBatch};
use super::chunks;
use super::database::{Database, Lent, Transaction};
use super::deletion::{BATCHES, remove};
use super::fault::Fault;
use super::flush;
use super::hints::Mouth;
use super::numbers::{column, get, signed};
use super::open::prepare;
use super::rows::{Batch, NewEvent, Workspace};
use super::uploads::{self, until};
use crate::mint;
use crate::store::backup::{BackupError, Item, Reader, StoreFacts, Summary, WorkspaceFacts};
use crate::store::embedded::restore::RestoredTokens;
use crate::store::records::batch_record::{encode_batch, encode_state};
use crate::store::records::record::{self, Happened};
use crate::store::records::retention_record::encode_notes;
use crate::store::records::{session_record, token_record};
use crate::store::retention::blobs_of;
use crate::store::{Event, UploadId};

/// Items that wait to be written.
const WAITING: usize = 4;

/// Bytes, and rows, that are written at once.
const STEP_BYTES: usize = 8 << 20;
const STEP_ROWS: usize = 512;

impl PostgresStore {
    /// Makes a store of a backup, in a database that has none.
    ///
    /// # Errors
    /// When the backup is damaged, the database has a store, or PostgreSQL refuses. Then there is none, as before.
    pub async fn restore(
        address: &Address,
        backup: impl Read + Send + 'static,
        tokens: RestoredTokens,
    ) -> Result<Summary, BackupError> {
        let connector = prepare(address).await?;
        let database = Database::new(connector, Mouth::new().0)?;
        let found = database.read("SELECT history FROM store", &[]).await?;
        if !found.is_empty() {
            let found = "the tables of a store".to_owned();
            return Err(BackupError::NotEmpty { dir: format!("the database {address}"), found });
        }
        chunks::open_bucket(&database, address.blobs()).await?;
        fill(&database, || Reader::begin(backup), (Pace::AtOnce, tokens)).await
    }
}

/// Writes every item of a backup, and commits once the whole of it was read.
pub(super) async fn fill<R: Read + Send + 'static>(
    database: &Database,
    open: impl FnOnce() -> Result<Reader<R>, BackupError> + Send + 'static,
    (pace, tokens): (Pace, RestoredTokens),
) -> Result<Summary, BackupError> {
    let (items, waiting) = mpsc::channel(WAITING);
    let read = spawn_blocking(move || {
        let mut backup = open()?;
        while let Some(item) = backup.next()? {
            // Who takes them answers why no more are taken.
            if items.blocking_send(Some(item)).is_err() {
                return Ok(backup.summary());
            }
        }
        let _ = items.blocking_send(None);
        Ok(backup.summary())
    });
    let written = write(database, waiting, (pace, tokens)).await;
    let read: Result<Summary, BackupError> = read.await.map_err(|error| BackupError::Unreadable(error.to_string()))?;
    // What is wrong with the backup is the cause where both fail.
    match (read, written) {
        (Err(BackupError::Unreadable(_)), Err(written)) => Err(written),
        (read, written) => {
            let summary = read?;
            written?;
            Ok(summary)
        }
    }
}

async fn write(
    database: &Database,
    mut items: mpsc::Receiver<Option<Item>>,
    how: (Pace, RestoredTokens),
) -> Result<(), BackupError> {
    let failed = |fault: Fault| BackupError::Store(fault.into_error());
    let mut import = Import::begin(database, how).await.map_err(failed)?;
    while let Some(item) = items.recv().await {
        match item {
            Some(item) => import.item(item).await.map_err(failed)?,
            None => return import.finish().await.map_err(failed),
        }
    }
    Err(BackupError::Unreadable("it ended before it was whole".to_owned()))
}

/// What is written in one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Pace {
    /// Everything.
    AtOnce,
    /// A workspace, after this one; those that are there already are not written again.
    ByWorkspace(Option<WorkspaceId>),
}

/// Writes items.
struct Import<'a> {
    database: &'a Database,
    transaction: Transaction<'a>,
    pace: Pace,
    tokens: RestoredTokens,
    now: UnixMillis,
    tokens_needed: bool,
    workspace: Option<(WorkspaceFacts, Workspace)>,
    changes: Changes,
    /// Bytes and rows in `changes`.
    staged: (usize, usize),
    /// The upload that the bytes of the last blob are kept as, and how many chunks it has.
    blob: (UploadId, i64),
}

impl<'a> Import<'a> {
    async fn begin(database: &'a Database, (pace, tokens): (Pace, RestoredTokens)) -> Result<Self, Fault> {
        let transaction = database.begin_empty().await?;
        Ok(Self {
            database,
            transaction,
            pace,
            tokens,
            now: mint::now(),
            tokens_needed: false,
            workspace: None,
            changes: Changes::default(),
            staged: (0, 0),
            blob: (UploadId(Uuid::nil()), 0),
        })
    }

    const fn client(&self) -> &Lent {
        self.transaction.client()
    }

    async fn item(&mut self, item: Item) -> Result<(), Fault> {
        match item {
            Item::Store(facts) => self.store(&facts).await,
            Item::Token(mut kept) => {
                self.tokens_needed = true;
                if self.tokens == RestoredTokens::Revoked {
                    kept.token.ended.get_or_insert(Ended { at: self.now, how: Ending::Revoked });
                }
                let workspace = match &kept.token.scope {
                    aptix_model::token::Scope::All => None,
                    aptix_model::token::Scope::One(workspace) => Some(workspace.as_str()),
                };
                let sql = "INSERT INTO tokens (name, workspace, proof, record) VALUES ($1, $2, $3, $4)";
                let (proof, record) = (kept.digest.as_bytes().as_slice(), token_record::encode(&kept));
                self.transaction
                    .change(sql, &[&kept.token.name.as_str(), &workspace, &proof, &&*record])
                    .await
                    .map(drop)
            }
            Item::Workspace(facts) => {
                self.close().await?;
                if self.has(&facts).await? { Ok(()) } else { self.open(*facts).await }
            }
            item => self.of_workspace(item).await,
        }
    }

    async fn store(&mut self, facts: &StoreFacts) -> Result<(), Fault> {
        self.tokens_needed |= facts.tokens_needed;
        if self.pace == Pace::AtOnce {
            if let Some(bucket) = self.database.bucket.get() {
                bucket.claim(facts.history, false).await?;
            }
            // A server that starts meanwhile waits for it, and finds the restored store.
            self.transaction.change("INSERT INTO store (history) VALUES ($1)", &[&facts.history.0]).await?;
        }
        self.transaction.change("DELETE FROM tokens", &[]).await?;
        let age = facts.age.map_or(0, |age| column(age.0));
        let blobs = self.database.bucket.get().map(|bucket| bucket.address().to_string());
        let sql = "INSERT INTO store_facts (age, blobs) VALUES ($1, $2) \
            ON CONFLICT (one) DO UPDATE SET age = excluded.age, blobs = excluded.blobs";
        self.transaction.change(sql, &[&age, &blobs]).await.map(drop)
    }

    /// Whether a workspace was written before; what the source has no more, or has otherwise, is removed.
    async fn has(&mut self, facts: &WorkspaceFacts) -> Result<bool, Fault> {
        let Pace::ByWorkspace(last) = &mut self.pace else { return Ok(false) };
        let last = last.replace(facts.id.clone());
        remove_others(&self.transaction, last.as_ref(), Some(facts)).await
    }

    async fn open(&mut self, facts: WorkspaceFacts) -> Result<(), Fault> {
        let sql = "INSERT INTO workspaces (name, trimmed, trimmed_digest, swept, notes) VALUES ($1, $2, $3, $4, $5)";
        let notes = (!facts.notes.0.is_empty()).then(|| encode_notes(&facts.notes));
        let digest = facts.trim.digest.as_ref().map(|digest| digest.as_bytes().as_slice());
        let (upto, swept) = (column(facts.trim.upto.0), column(facts.trim.swept.0));
        self.transaction.change(sql, &[&facts.id.as_str(), &upto, &digest, &swept, &notes.as_deref()]).await?;
        let row = Workspace {
            is_known: true,
            newest: facts.newest,
            digest: facts.digest,
            lease: facts.lease,
            roots: (facts.lease.epoch > 0).then(|| record::encode_texts(&facts.roots).to_vec()),
            ..Workspace::default()
        };
        self.workspace = Some((facts, row));
        Ok(())
    }

    async fn of_workspace(&mut self, item: Item) -> Result<(), Fault> {
        // The reader lets no such item come before its workspace.
        let Some((facts, row)) = &mut self.workspace else { return Ok(()) };
        let id = facts.id.clone();
        self.staged.1 += 1;
        match item {
            Item::Store(_) | Item::Token(_) | Item::Workspace(_) => {}
            Item::Session(session) => {
                row.sessions += 1;
                let record = session_record::encode(&session).to_vec();
                self.changes.sessions.insert((id, session.id), Some(record));
            }
            Item::Batch(first, batch) => {
                row.open += u64::from(batch.state.is_open());
                let (content, progress) = (encode_batch(&batch).to_vec(), encode_state(&batch).to_vec());
                row.added_bytes += signed(content.len() + progress.len());
                self.staged.0 += content.len() + progress.len();
                self.batch(first, &batch, content, progress);
            }
            Item::Plan(hunk, batch) => drop(self.changes.hunks.insert((id, hunk), batch)),
            Item::Event(event, previous) => {
                let Event { revision, batch, digest, facts } = *event;
                let happened = Happened { batch, digest, facts, previous };
                self.changes.events.push((id, *NewEvent::of(revision, &happened)));
            }
            Item::File(file) => self.changes.put_file(id, file),
            Item::Blob(BlobRef { sha256, size_bytes }) => {
                row.added_bytes += column(size_bytes);
                self.blob = (UploadId(mint::uuid()), 0);
                if self.database.bucket.initialized() {
                    self.database.in_time(uploads::drop_unless_kept(self.database, self.blob.0)).await?;
                    self.transaction.change("DELETE FROM uploads WHERE id = $1", &[&self.blob.0.0]).await?;
                }
                self.blob_row(sha256, size_bytes, &id).await?;
            }
            Item::Chunk(bytes) => {
                let (upload, index) = self.blob;
                self.blob.1 += 1;
                let bucket = self.database.bucket.get();
                let chunk = chunks::patiently(|| chunks::place(bucket, (upload, index), bytes.clone())).await?;
                let sql = "INSERT INTO chunks (upload, index, size, bytes, object) VALUES ($1, $2, $3, $4, $5)";
                let (size, bytes, object) = chunk.columns();
                self.transaction.change(sql, &[&upload.0, &index, &size, &bytes, &object]).await?;
            }
        }
        if self.staged.0 >= STEP_BYTES || self.staged.1 >= STEP_ROWS { self.flush().await } else { Ok(()) }
    }

    fn batch(
        &mut self,
        first: Revision,
        batch: &aptix_model::record::BatchRecord,
        content: Vec<u8>,
        progress: Vec<u8>,
    ) {
        let (workspace, request) = (batch.workspace.clone(), batch.request_id.clone());
        for blob in blobs_of(&batch.batch) {
            self.changes.batch_blobs.insert((batch.id, blob.sha256), blob.size_bytes);
        }
        let freed = batch.preparation().and_then(|preparation| preparation.freed.clone());
        for request in [Some(request.clone()), freed].into_iter().flatten() {
            self.changes.requests.insert((workspace.clone(), request), batch.id);
        }
        let records = Batch { first, content, progress };
        self.changes.new.insert(batch.id, NewBatch { workspace, request, columns: Columns::of(batch), records });
    }

    /// Keeps a blob. Most of what names it came before it: what does is counted anew when the workspace is closed.
    async fn blob_row(&mut self, sha256: Sha256Digest, size: u64, workspace: &WorkspaceId) -> Result<(), Fault> {
        let sql = "INSERT INTO blobs (workspace, digest, upload, size, seen) VALUES ($1, $2, $3, $4, $5)";
        let values: super::database::Values<'_> =
            &[&workspace.as_str(), &sha256.as_bytes().as_slice(), &self.blob.0.0, &column(size), &until(self.now)];
        self.transaction.change(sql, values).await.map(drop)
    }

    async fn flush(&mut self) -> Result<(), Fault> {
        let changes = std::mem::take(&mut self.changes);
        self.staged = (0, 0);
        flush::write(self.client(), &changes, None).await
    }

    /// Writes what is known of a workspace once all its items are there.
    async fn close(&mut self) -> Result<(), Fault> {
        let Some((facts, row)) = self.workspace.take() else { return Ok(()) };
        self.changes.workspaces.insert(facts.id.clone(), row);
        self.flush().await?;
        let sql = format!(
            "WITH counted AS (SELECT digest, count(*) AS names FROM (SELECT digest FROM files WHERE workspace = $1 AND workspace <> '' \
                UNION ALL SELECT n.digest FROM ({BATCHES}) a \
                    CROSS JOIN LATERAL (SELECT m.digest FROM batch_blobs m WHERE m.batch = a.id OFFSET 0) n) named GROUP BY digest) \
            UPDATE blobs b SET names = c.names FROM counted c WHERE b.workspace = $1 AND b.digest = c.digest"
        );
        self.transaction.change(&sql, &[&facts.id.as_str()]).await?;
        if self.pace != Pace::AtOnce {
            let next = self.database.begin_empty().await?;
            std::mem::replace(&mut self.transaction, next).commit().await?;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<(), Fault> {
        self.close().await?;
        if let Pace::ByWorkspace(last) = &self.pace {
            remove_others(&self.transaction, last.as_ref(), None).await?;
        }
        let sql = "UPDATE store_facts SET tokens_needed = $1";
        self.transaction.change(sql, &[&self.tokens_needed]).await?;
        self.transaction.commit().await?;
        if let Err(fault) = analyze(self.database).await {
            tracing::warn!(?fault, "PostgreSQL has not counted what was restored; it does so by itself in a while");
        }
        Ok(())
    }
}

/// Has PostgreSQL count what the tables have: until it does so by itself, it plans as if it knew nothing of them.
async fn analyze(database: &Database) -> Result<(), Fault> {
    let transaction = database.begin_empty().await?;
    for table in ["batches", "batch_states", "batch_blobs", "events", "blobs", "files"] {
        transaction.change(&format!("ANALYZE {table}"), &[]).await?;
    }
    transaction.commit().await
}

/// Removes what is there after one workspace up to another one, or to the end, but for that one if it is there as it is to be; answers
/// whether it is.
async fn remove_others(
    transaction: &Transaction<'_>,
    after: Option<&WorkspaceId>,
    upto: Option<&WorkspaceFacts>,
) -> Result<bool, Fault> {
    let sql = format!(
        "SELECT {WORKSPACE} FROM workspaces WHERE ($1::text IS NULL OR name > $1) AND ($2::text IS NULL OR name <= $2) ORDER BY name"
    );
    let (after, name) = (after.map(WorkspaceId::as_str), upto.map(|upto| upto.id.as_str()));
    let mut is_there = false;
    for row in &transaction.rows(&sql, &[&after, &name]).await? {
        // One that cannot be read is copied anew.
        is_there = upto.is_some() && workspace(row).ok().as_ref() == upto;
        if !is_there {
            remove(transaction, get(row, 0)?).await?;
        }
    }
    Ok(is_there)
}
