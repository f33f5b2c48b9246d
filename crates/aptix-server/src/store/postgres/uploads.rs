//! Uploads and blobs. Chunks are kept under the name of their upload, in the database or in a bucket; the transaction that makes an upload a blob counts them, so that
//! no blob lacks one. Every transaction locks the row of its workspace first. One server at a time writes an upload: that which
//! began it, or which resumed it last.

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::WorkspaceId;
use aptix_model::record::UnixMillis;
use tokio_postgres::Row;
use tokio_util::bytes::Bytes;
use uuid::Uuid;

use super::bucket::Object;
use super::chunks::{self, CHUNK, Placed};
use super::database::{BEGIN, Database, Transaction, Values};
use super::fault::Fault;
use super::numbers::{column, digest, get, number};
use super::reads::{self, parsed};
use super::rows::vanished;
use crate::store::{StoreError, Unfinished, UploadId};

/// How many milliseconds longer than it has to a blob stays that a caller learnt of: within them it is not noted again.
const NOTED: u64 = 1000;

/// Until when a blob stays that a caller learns of now.
pub(super) fn until(now: UnixMillis) -> i64 {
    column(now.0.saturating_add(NOTED))
}

const CREATE: &str = "INSERT INTO workspaces (name) VALUES ($1) ON CONFLICT DO NOTHING";
const LOCK: &str = "SELECT deleting FROM workspaces WHERE name = $1 FOR NO KEY UPDATE";

/// Refuses to write in a workspace that is being deleted, by what [`LOCK`] answered.
fn admit(workspace: &WorkspaceId, locked: &[Row]) -> Result<(), Fault> {
    match locked.first().map(|row| get(row, 0)).transpose()? {
        Some(false) => Ok(()),
        Some(true) => Err(StoreError::BeingDeleted { workspace: workspace.clone() }.into()),
        None => Err(vanished()),
    }
}

/// Locks the row of a workspace, if there is one; answers whether it is being deleted.
pub(super) async fn lock_found(transaction: &Transaction<'_>, workspace: &WorkspaceId) -> Result<Option<bool>, Fault> {
    let found = transaction.row(LOCK, &[&workspace.as_str()]).await?;
    found.map(|row| get(&row, 0)).transpose()
}

/// Changes the sum of a workspace's stored bytes.
pub(super) async fn use_bytes(transaction: &Transaction<'_>, workspace: &WorkspaceId, more: i64) -> Result<(), Fault> {
    let sql = "UPDATE workspaces SET used_bytes = greatest(used_bytes + $2, 0) WHERE name = $1";
    transaction.change(sql, &[&workspace.as_str(), &more]).await.map(drop)
}

/// Ends that an upload can be resumed, if it can, and has the workspace use so many bytes more for what it became.
const RELEASE: &str = "WITH released AS (UPDATE uploads SET workspace = NULL, digest = NULL \
        WHERE id = $1 AND workspace = $2 AND digest = $3 AND writer = $4 RETURNING size), \
    changed AS (SELECT $5 - coalesce(sum(size), 0)::bigint AS more FROM released) \
    UPDATE workspaces SET used_bytes = greatest(used_bytes + c.more, 0) FROM changed c WHERE name = $2 AND c.more <> 0";

const UNCLAIM: &str = "UPDATE uploads SET workspace = NULL, digest = NULL, dropped = dropped OR $3 \
    WHERE workspace = $1 AND digest = $2";

/// Makes an upload the one of its blob that can be resumed; the one before is dropped.
pub(super) async fn claim(
    database: &Database,
    upload: UploadId,
    workspace: &WorkspaceId,
    blob: BlobRef,
) -> Result<(), Fault> {
    let transaction = database.begin().await?;
    let (w, sha256) = (workspace.as_str(), blob.sha256.as_bytes().as_slice());
    let former = "SELECT id, size FROM uploads WHERE workspace = $1 AND digest = $2 FOR UPDATE";
    let [_, locked, former] = transaction.all([(CREATE, &[&w]), (LOCK, &[&w]), (former, &[&w, &sha256])]).await?;
    admit(workspace, &locked)?;
    let former = former.first();
    let replaced = former.map_or(Ok(0), |row| get::<i64>(row, 1))?;
    let is_other = former.map_or(Ok(false), |row| get(row, 0).map(|id: uuid::Uuid| id != upload.0))?;
    if is_other {
        transaction.change(UNCLAIM, &[&w, &sha256, &true]).await?;
    }
    let claim = "INSERT INTO uploads (id, workspace, digest, size, writer) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (id) DO UPDATE SET workspace = excluded.workspace, digest = excluded.digest, size = excluded.size, \
        writer = excluded.writer, dropped = false, removable = NULL";
    let size = column(blob.size_bytes);
    transaction.change(claim, &[&upload.0, &w, &sha256, &size, &database.writer]).await?;
    use_bytes(&transaction, workspace, size - replaced).await?;
    transaction.commit().await
}

/// Ends that an upload can be resumed, and drops it.
pub(super) async fn release(
    database: &Database,
    upload: UploadId,
    workspace: &WorkspaceId,
    digest: Sha256Digest,
) -> Result<(), Fault> {
    let transaction = database.begin().await?;
    let drop_it = "UPDATE uploads SET dropped = true WHERE id = $1 AND workspace IS NULL AND writer = $2";
    let (w, sha256, writer) = (workspace.as_str(), digest.as_bytes().as_slice(), database.writer);
    transaction
        .all([(LOCK, &[&w]), (RELEASE, &[&upload.0, &w, &sha256, &writer, &0_i64]), (drop_it, &[&upload.0, &writer])])
        .await?;
    transaction.commit().await
}

/// Begins an upload, unless there is one, or a blob is made of it.
const BEGIN_UPLOAD: &str = "INSERT INTO uploads (id, writer) SELECT $1, $2 \
    WHERE NOT EXISTS (SELECT FROM blobs WHERE upload = $1) ON CONFLICT (id) DO NOTHING";

/// Keeps a chunk. That no blob is made of the upload is looked at again: `BEGIN_UPLOAD` may have waited for the transaction that made one.
const PUT_CHUNK: &str = "WITH u AS (UPDATE uploads SET touched = now() WHERE id = $1 AND writer = $2 AND NOT dropped \
        AND NOT EXISTS (SELECT FROM blobs WHERE upload = $1) RETURNING id), \
    former AS (SELECT object FROM chunks WHERE upload = $1 AND index = $3), \
    put AS (INSERT INTO chunks (upload, index, size, bytes, object) SELECT id, $3, $4, $5, $6 FROM u \
    ON CONFLICT (upload, index) DO UPDATE SET size = excluded.size, bytes = excluded.bytes, object = excluded.object RETURNING 1) \
    SELECT (SELECT count(*) FROM put), (SELECT object FROM former)";

/// Has an upload be dropped, and its objects removed, unless something is made of it before it may be.
pub(super) async fn drop_unless_kept(database: &Database, upload: UploadId) -> Result<(), Fault> {
    database.change("INSERT INTO uploads (id, dropped) VALUES ($1, true)", &[&upload.0]).await.map(drop)
}

/// Takes a chunk of an upload.
pub(super) async fn put_chunk(
    database: &Database,
    (upload, index): (UploadId, u32),
    bytes: Bytes,
) -> Result<(), StoreError> {
    let bucket = database.bucket.get();
    if index == 0 && bucket.is_some() {
        // An object is there before its row, and never without the row of its upload.
        database.write(|| async { database.change(BEGIN_UPLOAD, &[&upload.0, &database.writer]).await }).await?;
    }
    database.health.admit()?;
    let placed = chunks::place(bucket, (upload, i64::from(index)), bytes).await?;
    let former = database.write(|| keep(database, (upload, index), &placed)).await?;
    if let (Some(bucket), Some(number)) = (bucket, former.filter(|former| !placed.is_in(*former))) {
        let former = Object { upload, index: i64::from(index), number };
        if let Err(error) = bucket.remove_one(former).await {
            tracing::warn!(%error, upload = %upload.0, "an object that is of no use is left until its upload is removed");
        }
    }
    Ok(())
}

/// Writes the row of a chunk; answers the number of the object that it took the place of. Everything is sent together, and PostgreSQL is
/// waited for once.
async fn keep(database: &Database, (upload, index): (UploadId, u32), placed: &Placed) -> Result<Option<Uuid>, Fault> {
    let mut client = database.client().await?;
    let (start, put) = (client.statement(BEGIN_UPLOAD).await?, client.statement(PUT_CHUNK).await?);
    client.set_idle(false);
    let object = client.object()?;
    let (is_first, number, (size, bytes, in_bucket)) = (index == 0, i64::from(index), placed.columns());
    let by: Values<'_> = &[&upload.0, &database.writer];
    let values: Values<'_> = &[&upload.0, &database.writer, &number, &size, &bytes, &in_bucket];
    let start = async { if is_first { object.execute(&start, by).await } else { Ok(0) } };
    database.counts.other_commit();
    let (mut changed, mut former) = (0, None);
    let sent = async {
        let (began, started, put, ended) = tokio::join!(
            biased;
            object.batch_execute(BEGIN),
            start,
            object.query_one(&put, values),
            object.batch_execute("COMMIT"),
        );
        let row = began.and(started).and(put)?;
        (changed, former) = (get::<i64>(&row, 0)?, get(&row, 1)?);
        Ok(ended?)
    };
    let put = database.commit(sent).await;
    // Whatever failed, the commit ended the transaction.
    client.set_idle(!matches!(put, Err(Fault::Unavailable(_))));
    put?;
    drop(client);
    if changed == 0 { Err(not_ours(database, upload).await) } else { Ok(former) }
}

/// Why this server cannot go on with an upload.
async fn not_ours(database: &Database, upload: UploadId) -> Fault {
    let other = "SELECT 1 FROM uploads WHERE id = $1 AND writer <> $2 AND NOT dropped";
    match database.read(other, &[&upload.0, &database.writer]).await {
        Ok(rows) if rows.is_empty() => gone(),
        Ok(_) => taken(),
        Err(error) => error.into(),
    }
}

fn taken() -> Fault {
    StoreError::Busy { cause: "the upload is resumed through another server".to_owned() }.into()
}

/// Refuses an upload that was dropped meanwhile: by a sweep, or because the store was opened again.
fn gone() -> Fault {
    let cause = "its first bytes are gone, upload it again".to_owned();
    StoreError::Failed { action: "keep an upload", cause }.into()
}

/// Makes an upload the workspace's blob, unless there is one already. What that is decided by is asked for together, and so is what changes.
pub(super) async fn commit(
    database: &Database,
    upload: UploadId,
    workspace: &WorkspaceId,
    blob: BlobRef,
    now: UnixMillis,
) -> Result<(), Fault> {
    let transaction = database.begin().await?;
    let (w, sha256, id) = (workspace.as_str(), blob.sha256.as_bytes().as_slice(), upload.0);
    let (writer, size, until) = (database.writer, column(blob.size_bytes), until(now));
    let there = "SELECT 1 FROM blobs WHERE workspace = $1 AND digest = $2";
    let held = "SELECT writer = $2 FROM uploads WHERE id = $1 AND NOT dropped \
        AND NOT EXISTS (SELECT FROM blobs WHERE workspace = $3 AND digest = $4) FOR UPDATE";
    let counted = "SELECT count(*), coalesce(max(index) + 1, 0), coalesce(sum(size), 0)::bigint \
        FROM chunks WHERE upload = $1";
    let [_, locked, there, held, counted] = transaction
        .all([
            (CREATE, &[&w]),
            (LOCK, &[&w]),
            (there, &[&w, &sha256]),
            (held, &[&id, &writer, &w, &sha256]),
            (counted, &[&id]),
        ])
        .await?;
    admit(workspace, &locked)?;
    if there.is_empty() {
        if size > 0 {
            check(&held, &counted, blob.size_bytes)?;
        }
        let insert = "INSERT INTO blobs (workspace, digest, upload, size, seen) VALUES ($1, $2, $3, $4, $5)";
        let release: Values<'_> = &[&id, &w, &sha256, &writer, &size];
        let kept: Values<'_> = &[&w, &sha256, &id, &size, &until];
        transaction.all([(RELEASE, release), (insert, kept), ("DELETE FROM uploads WHERE id = $1", &[&id])]).await?;
    } else {
        let drop_it = "UPDATE uploads SET dropped = true WHERE id = $1 AND writer = $2";
        let noted = "UPDATE blobs SET seen = greatest(seen, $3) WHERE workspace = $1 AND digest = $2";
        let release: Values<'_> = &[&id, &w, &sha256, &writer, &0_i64];
        transaction.all([(RELEASE, release), (drop_it, &[&id, &writer]), (noted, &[&w, &sha256, &until])]).await?;
    }
    transaction.commit().await
}

/// Looks whether every chunk of an upload is there, and it is this server's.
fn check(held: &[Row], counted: &[Row], size: u64) -> Result<(), Fault> {
    let held = held.first().ok_or_else(gone)?;
    if !get::<Option<bool>>(held, 0)?.unwrap_or(false) {
        return Err(taken());
    }
    let row = counted.first().ok_or_else(gone)?;
    let (count, next, bytes): (i64, i64, i64) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
    if count == next && number(bytes) == size {
        return Ok(());
    }
    let cause = format!("it has {count} of {next} chunks and {bytes} of {size} bytes, upload it again");
    Err(StoreError::Failed { action: "keep an upload", cause }.into())
}

/// The upload of a blob that can be resumed.
pub(super) async fn unfinished(
    database: &Database,
    workspace: &WorkspaceId,
    blob: BlobRef,
    now: UnixMillis,
) -> Result<Option<Unfinished>, StoreError> {
    let sql = "SELECT u.id, u.seen, c.index, c.size FROM uploads u JOIN workspaces w ON w.name = u.workspace \
        LEFT JOIN chunks c ON c.upload = u.id \
        WHERE u.workspace = $1 AND u.digest = $2 AND u.size = $3 AND NOT u.dropped AND NOT w.deleting ORDER BY c.index";
    let size = column(blob.size_bytes);
    let values: Values<'_> = &[&workspace.as_str(), &blob.sha256.as_bytes().as_slice(), &size];
    let rows = database.read(sql, values).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (upload, seen) = parsed(|| Ok((UploadId(get(row, 0)?), get::<i64>(row, 1)?)))?;
    let mut bytes = 0;
    for (expected, row) in (0_i64..).zip(&rows) {
        let chunk: Option<i64> = parsed(|| get(row, 2))?;
        if chunk != Some(expected) {
            break;
        }
        bytes += number(parsed(|| get(row, 3))?);
    }
    if seen < column(now.0) {
        let noted = database.write(|| note_upload(database, upload, now)).await;
        noted.unwrap_or_else(|error| tracing::warn!(%error, "not noted that an upload is asked for"));
    }
    Ok(Some(Unfinished { upload, bytes }))
}

async fn note_upload(database: &Database, upload: UploadId, now: UnixMillis) -> Result<(), Fault> {
    let sql = "UPDATE uploads SET seen = greatest(seen, $2) WHERE id = $1";
    database.change(sql, &[&upload.0, &until(now)]).await.map(drop)
}

/// One chunk of an upload that can be resumed. The call for the first one makes this server the one that writes the upload: what it
/// reads from then on no other server changes.
pub(super) async fn upload_chunk(
    database: &Database,
    upload: UploadId,
    index: u32,
) -> Result<Option<Bytes>, StoreError> {
    if index == 0 {
        database.write(|| resume(database, upload)).await?;
    }
    let sql = format!(
        "SELECT {CHUNK} FROM uploads u JOIN chunks c ON c.upload = u.id WHERE u.id = $1 AND NOT u.dropped AND c.index = $2"
    );
    chunk(database, &database.read(&sql, &[&upload.0, &i64::from(index)]).await?).await
}

async fn resume(database: &Database, upload: UploadId) -> Result<(), Fault> {
    let transaction = database.begin().await?;
    let sql = "UPDATE uploads SET writer = $2 WHERE id = $1 AND workspace IS NOT NULL AND NOT dropped \
        AND writer IS DISTINCT FROM $2";
    transaction.change(sql, &[&upload.0, &database.writer]).await?;
    transaction.commit().await
}

/// One chunk of a blob.
pub(super) async fn blob_chunk(
    database: &Database,
    workspace: &WorkspaceId,
    digest: Sha256Digest,
    index: u32,
) -> Result<Option<Bytes>, StoreError> {
    let sql = format!(
        "SELECT {CHUNK} FROM blobs b JOIN workspaces w ON w.name = b.workspace JOIN chunks c ON c.upload = b.upload \
        WHERE b.workspace = $1 AND b.digest = $2 AND c.index = $3 AND NOT w.deleting"
    );
    let values: Values<'_> = &[&workspace.as_str(), &digest.as_bytes().as_slice(), &i64::from(index)];
    chunk(database, &database.read(&sql, values).await?).await
}

async fn chunk(database: &Database, rows: &[Row]) -> Result<Option<Bytes>, StoreError> {
    match rows.first() {
        Some(row) => chunks::bytes(database, row).await.map(Some),
        None => Ok(None),
    }
}

/// For each digest, how many bytes its blob has; notes that a caller learnt of it.
pub(super) async fn blob_sizes(
    database: &Database,
    workspace: &WorkspaceId,
    digests: &[Sha256Digest],
    now: UnixMillis,
) -> Result<Vec<Option<u64>>, StoreError> {
    let mut found = reads::blobs(database, workspace, digests).await?;
    let stale: Vec<_> = found.iter().filter(|(.., seen)| *seen < column(now.0)).map(|(digest, ..)| *digest).collect();
    if !stale.is_empty() {
        match database.write(|| note_blobs(database, workspace, &stale, now)).await {
            // One that was removed meanwhile is not there.
            Ok(noted) => found.retain(|(digest, ..)| !stale.contains(digest) || noted.contains(digest)),
            Err(error) => tracing::warn!(%error, "not noted that blobs are asked for"),
        }
    }
    let size = |digest: &Sha256Digest| found.iter().find(|(found, ..)| found == digest).map(|(_, size, _)| *size);
    Ok(digests.iter().map(size).collect())
}

async fn note_blobs(
    database: &Database,
    workspace: &WorkspaceId,
    digests: &[Sha256Digest],
    now: UnixMillis,
) -> Result<Vec<Sha256Digest>, Fault> {
    let transaction = database.begin().await?;
    lock_found(&transaction, workspace).await?;
    let sql = "UPDATE blobs SET seen = greatest(seen, $3) WHERE workspace = $1 AND digest = ANY($2::bytea[]) RETURNING digest";
    let wanted: Vec<_> = digests.iter().map(|digest| digest.as_bytes().as_slice()).collect();
    let rows = transaction.rows(sql, &[&workspace.as_str(), &wanted, &until(now)]).await?;
    let noted = rows.iter().map(|row| digest(row, 0)).collect::<Result<_, _>>()?;
    transaction.commit().await?;
    Ok(noted)
}
