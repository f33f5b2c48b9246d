//! Removes blobs that nothing names, and uploads that were given up: in bounded steps, each found by an index.

use aptix_model::id::WorkspaceId;
use aptix_model::record::UnixMillis;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::chunks;
use super::database::Database;
use super::fault::Fault;
use super::numbers::{column, get, name};
use super::reads::parsed;
use super::uploads::{lock_found, use_bytes};
use crate::store::{StoreError, UploadId};

/// Blobs or uploads that one step removes.
const STEP: i64 = 64;

/// Chunks that one step removes.
const CHUNKS: i64 = 64;

/// Removes what came before a time and is of no use; answers how many blobs and uploads.
pub(super) async fn sweep(database: &Database, before: UnixMillis) -> Result<usize, StoreError> {
    let swept = sweep_uploads(database, before).await? + sweep_blobs(database, before).await?;
    remove_dropped(database).await?;
    Ok(swept)
}

/// Drops uploads that can be resumed and that nobody asked about since, and those that cannot be and that get no chunk any more. An
/// upload's name begins with the time it began.
async fn sweep_uploads(database: &Database, before: UnixMillis) -> Result<usize, StoreError> {
    let sql = "SELECT id, workspace FROM uploads WHERE workspace IS NOT NULL AND seen < $1 AND id > $2 \
        AND ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint < $1 ORDER BY id LIMIT $3";
    let (mut swept, mut after) = (0, Uuid::nil());
    loop {
        let rows = database.read(sql, &[&column(before.0), &after, &STEP]).await?;
        let Some(last) = rows.last() else { break };
        after = parsed(|| get(last, 0))?;
        for row in &rows {
            let (upload, workspace): (Uuid, WorkspaceId) = parsed(|| Ok((get(row, 0)?, name(row, 1)?)))?;
            swept += database.write(|| give_up(database, UploadId(upload), &workspace, before)).await?;
        }
    }
    let unclaimed = "UPDATE uploads SET dropped = true WHERE workspace IS NULL AND NOT dropped \
        AND touched < least(to_timestamp($1::double precision / 1000), now() - interval '1 hour')";
    // The largest time that PostgreSQL knows is far from here.
    let millis = column(before.0).min(1 << 45) as f64;
    database.write(|| async { database.change(unclaimed, &[&millis]).await }).await?;
    Ok(swept)
}

async fn give_up(
    database: &Database,
    upload: UploadId,
    workspace: &WorkspaceId,
    before: UnixMillis,
) -> Result<usize, Fault> {
    let transaction = database.begin().await?;
    lock_found(&transaction, workspace).await?;
    let sql = "UPDATE uploads SET workspace = NULL, digest = NULL, dropped = true \
        WHERE id = $1 AND workspace = $2 AND seen < $3 RETURNING size";
    let given_up = transaction.row(sql, &[&upload.0, &workspace.as_str(), &column(before.0)]).await?;
    if let Some(row) = &given_up {
        use_bytes(&transaction, workspace, -get::<i64>(row, 0)?).await?;
    }
    transaction.commit().await?;
    Ok(usize::from(given_up.is_some()))
}

async fn sweep_blobs(database: &Database, before: UnixMillis) -> Result<usize, StoreError> {
    let sql = "SELECT seen, workspace, digest FROM blobs WHERE names = 0 AND seen < $1 AND (seen, workspace, digest) > ($2, $3, $4) \
        ORDER BY seen, workspace, digest LIMIT $5";
    let (mut swept, mut after) = (0, (i64::MIN, String::new(), Vec::<u8>::new()));
    loop {
        let rows = database.read(sql, &[&column(before.0), &after.0, &after.1, &after.2, &STEP]).await?;
        let mut found = Vec::new();
        for row in &rows {
            let key: (i64, String, Vec<u8>) = parsed(|| Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?)))?;
            after.clone_from(&key);
            found.push((parsed(|| name::<WorkspaceId>(row, 1))?, key.2));
        }
        if found.is_empty() {
            return Ok(swept);
        }
        found.sort();
        for of_one in found.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((workspace, _)) = of_one.first() else { continue };
            let digests: Vec<_> = of_one.iter().map(|(_, digest)| digest.as_slice()).collect();
            swept += database.write(|| remove(database, workspace, &digests, before)).await?;
        }
    }
}

/// Turns blobs of a workspace back into uploads that are dropped, unless something names them by now.
async fn remove(
    database: &Database,
    workspace: &WorkspaceId,
    digests: &[&[u8]],
    before: UnixMillis,
) -> Result<usize, Fault> {
    let transaction = database.begin().await?;
    lock_found(&transaction, workspace).await?;
    let sql = "WITH gone AS (DELETE FROM blobs WHERE workspace = $1 AND digest = ANY($2::bytea[]) AND names = 0 AND seen < $3 \
            RETURNING upload, size), \
        left_over AS (INSERT INTO uploads (id, dropped) SELECT upload, true FROM gone ON CONFLICT (id) DO UPDATE SET dropped = true) \
        SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone";
    let gone = transaction.row(sql, &[&workspace.as_str(), &digests, &column(before.0)]).await?;
    let (count, bytes) = gone.map_or(Ok((0, 0)), |row| Ok::<_, Fault>((get::<i64>(&row, 0)?, get::<i64>(&row, 1)?)))?;
    use_bytes(&transaction, workspace, -bytes).await?;
    transaction.commit().await?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// From when on the chunks may be removed of uploads that were dropped. Objects stay for a day: a backup that is being made reads
/// them, and a database that is set back by less than a day finds them.
const REMOVABLE: &str = "UPDATE uploads SET removable = now() + CASE WHEN f.blobs IS NULL THEN '0' ELSE '1 day' END::interval \
    FROM store_facts f WHERE dropped AND removable IS NULL";

/// Uploads whose chunks may be removed, whether a blob has the name of each, and whether there is a bucket.
const NEXT: &str = "SELECT u.id, EXISTS (SELECT FROM blobs b WHERE b.upload = u.id), f.blobs IS NOT NULL \
    FROM uploads u CROSS JOIN store_facts f WHERE u.dropped AND u.removable <= now() ORDER BY u.removable, u.id LIMIT $1";

/// Puts off an upload whose objects could not be removed, so that it keeps no other one back.
const LATER: &str = "UPDATE uploads SET removable = now() + interval '10 minutes' WHERE id = $1 AND dropped";

/// Uploads whose objects may fail to be removed before the others are left to the next sweep: the bucket is out of reach.
const FAILURES: usize = 3;

/// Removes the chunks of all uploads that were dropped, once they may be. One whose objects cannot be removed is put off.
pub(super) async fn remove_dropped(database: &Database) -> Result<(), StoreError> {
    database.write(|| async { database.change(REMOVABLE, &[]).await }).await?;
    let mut failed = 0;
    loop {
        let rows = database.read(NEXT, &[&STEP]).await?;
        for row in &rows {
            let (upload, is_blob, is_in_bucket): (Uuid, bool, bool) =
                parsed(|| Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?)))?;
            // Chunks of a blob stay, also where an upload of the same name is dropped. One that was dropped never becomes a blob.
            let removed = if is_blob { Ok(()) } else { remove_chunks(database, upload, is_in_bucket).await };
            let sql = match removed {
                Ok(()) => "DELETE FROM uploads WHERE id = $1 AND dropped",
                Err(error @ (StoreError::NoBucket { .. } | StoreError::Failed { .. })) if is_in_bucket => {
                    tracing::warn!(%error, %upload, "objects of an upload are not removed yet");
                    failed += 1;
                    LATER
                }
                Err(error) => return Err(error),
            };
            database.write(|| async { database.change(sql, &[&upload]).await }).await?;
            if failed == FAILURES {
                return Ok(());
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

/// Removes the chunks of an upload that was dropped, some at a time.
async fn remove_chunks(database: &Database, upload: Uuid, is_in_bucket: bool) -> Result<(), StoreError> {
    let sql = "DELETE FROM chunks WHERE upload = $1 AND index IN \
        (SELECT index FROM chunks WHERE upload = $1 ORDER BY index LIMIT $2)";
    while database.write(|| async { database.change(sql, &[&upload, &CHUNKS]).await }).await? > 0 {}
    match chunks::known(database).await? {
        Some(bucket) if is_in_bucket => bucket.remove(UploadId(upload)).await,
        _ => Ok(()),
    }
}

/// Removes uploads that are given up, until the store is closed. What fails is left to the next sweep.
pub(super) async fn run(database: &Database, mut given_up: mpsc::Receiver<UploadId>, closing: CancellationToken) {
    let serve = async {
        note(remove_dropped(database).await);
        loop {
            let mut uploads = Vec::new();
            tokio::select! {
                Some(upload) = given_up.recv() => uploads.push(upload.0),
                () = database.dropped.notified() => {}
            }
            while let Ok(more) = given_up.try_recv() {
                uploads.push(more.0);
            }
            let sql = "UPDATE uploads SET dropped = true WHERE id = ANY($1::uuid[]) AND workspace IS NULL";
            let dropped = database.write(|| async { database.change(sql, &[&uploads]).await }).await;
            note(dropped.map(drop));
            note(remove_dropped(database).await);
        }
    };
    closing.run_until_cancelled(serve).await;
}

fn note(done: Result<(), StoreError>) {
    if let Err(error) = done {
        tracing::debug!(%error, "uploads that were given up are left to the next sweep");
    }
}
