//! Where the bytes of chunks are: with their rows, or in the bucket that the database names.

use std::time::Duration;

use aptix_model::id::HistoryId;
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;
use tokio_util::bytes::Bytes;
use uuid::Uuid;

use super::bucket::{Bucket, Object};
use super::database::Database;
use super::fault::Fault;
use super::numbers::{column, get, number};
use super::reads::parsed;
use crate::mint;
use crate::store::bucket_address::BucketAddress;
use crate::store::{StoreError, UploadId};

/// The bytes of a chunk, or the number of the object that has them, and how many there are.
pub(super) enum Placed {
    Here(Bytes),
    InBucket(Uuid, usize),
}

impl Placed {
    /// The columns `size`, `bytes` and `object`.
    pub(super) fn columns(&self) -> (i64, Option<&[u8]>, Option<Uuid>) {
        match self {
            Self::Here(bytes) => (column(bytes.len() as u64), Some(bytes), None),
            Self::InBucket(number, size) => (column(*size as u64), None, Some(*number)),
        }
    }

    /// Whether the object with this number has them.
    pub(super) fn is_in(&self, object: Uuid) -> bool {
        matches!(self, Self::InBucket(number, _) if *number == object)
    }
}

/// Keeps the bytes of a chunk where chunks are kept: in the bucket if there is one, and else with the chunk's row.
pub(super) async fn place(
    bucket: Option<&Bucket>,
    (upload, index): (UploadId, i64),
    bytes: Bytes,
) -> Result<Placed, StoreError> {
    let Some(bucket) = bucket else { return Ok(Placed::Here(bytes)) };
    let (number, size) = (mint::uuid(), bytes.len());
    bucket.put(Object { upload, index, number }, bytes).await?;
    Ok(Placed::InBucket(number, size))
}

/// How long a restore or a backup asks a bucket again that is out of reach, and how often.
const PATIENCE: Duration = Duration::from_secs(300);
const AGAIN: Duration = Duration::from_secs(1);

/// Asks again for a while where the bucket is out of reach: what takes hours does not end with a moment's outage.
pub(super) async fn patiently<T, F: Future<Output = Result<T, StoreError>> + Send>(
    mut ask: impl FnMut() -> F + Send,
) -> Result<T, StoreError> {
    let due = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Err(error @ StoreError::NoBucket { .. }) if Instant::now() < due => {
                tracing::warn!(%error, "it is tried again");
                sleep(AGAIN).await;
            }
            answered => return answered,
        }
    }
}

/// The columns of the row `c` of a chunk, for [`bytes()`].
pub(super) const CHUNK: &str = "c.bytes, c.upload, c.index, c.object, c.size";

/// The bytes of a chunk, wherever they are.
pub(super) async fn bytes(database: &Database, row: &Row) -> Result<Bytes, StoreError> {
    if let Some(bytes) = parsed(|| get::<Option<&[u8]>>(row, 0))? {
        return Ok(Bytes::copy_from_slice(bytes));
    }
    let read =
        || Ok((Object { upload: UploadId(get(row, 1)?), index: get(row, 2)?, number: get(row, 3)? }, get(row, 4)?));
    let (object, size) = parsed(read)?;
    match known(database).await? {
        Some(bucket) => bucket.get(object, number(size)).await,
        None => Err(StoreError::Corrupt {
            what: format!("chunk {} of upload {}", object.index, object.upload.0),
            why: "it is in a bucket, and the database names none".to_owned(),
        }),
    }
}

/// Has the bucket belong to the store, and the database say so from now on.
///
/// # Errors
/// When it belongs to another one, or the database says that its chunks are in another bucket. A bucket that the database knows may be out
/// of reach: then what needs no blob is served.
pub(super) async fn claim_bucket(database: &Database, history: HistoryId) -> Result<(), StoreError> {
    let Some(bucket) = database.bucket.get() else { return Ok(()) };
    let address = bucket.address().to_string();
    let known = "SELECT 1 FROM store_facts WHERE blobs = $1";
    let is_known = !database.read(known, &[&address]).await?.is_empty();
    match bucket.claim(history, is_known).await {
        Err(error @ StoreError::NoBucket { .. }) if is_known => tracing::error!(%error, "blobs are not served"),
        claimed => claimed?,
    }
    if is_known {
        return Ok(());
    }
    database.write(|| note(database, &address)).await
}

async fn note(database: &Database, address: &str) -> Result<(), Fault> {
    let transaction = database.begin().await?;
    let sql = "UPDATE store_facts SET blobs = $1 WHERE blobs IS NULL OR blobs = $1";
    if transaction.change(sql, &[&address]).await? == 0 {
        return Err(Fault::Conflict("another server has it keep its blobs in another bucket".to_owned()));
    }
    transaction.commit().await
}

/// Opens the bucket that the database names, or that is wanted where it names none.
///
/// # Errors
/// When they differ, or this build has no support for buckets.
pub(super) async fn open_bucket(database: &Database, wanted: Option<&BucketAddress>) -> Result<(), StoreError> {
    if let Some(bucket) = bucket_of(database, wanted).await? {
        // What another task opened meanwhile is as good.
        let _ = database.bucket.set(bucket);
    }
    Ok(())
}

/// The bucket that the database names by now: another server may have been the first that was started with one.
pub(super) async fn known(database: &Database) -> Result<Option<&Bucket>, StoreError> {
    if !database.bucket.initialized() {
        open_bucket(database, None).await?;
    }
    Ok(database.bucket.get())
}

async fn bucket_of(database: &Database, wanted: Option<&BucketAddress>) -> Result<Option<Bucket>, StoreError> {
    let rows = database.read("SELECT blobs FROM store_facts", &[]).await?;
    let found = rows.first().map_or(Ok(None), |row| get::<Option<&str>>(row, 0)).map_err(Fault::into_error)?;
    let failed = |cause| StoreError::Failed { action: "open the bucket of its blobs", cause };
    let parse =
        |found| BucketAddress::parse(found).map_err(|error| failed(format!("the database names none: {error}")));
    let found = found.map(parse).transpose()?;
    if let (Some(found), Some(wanted)) = (&found, wanted)
        && found != wanted
    {
        return Err(failed(format!(
            "expected {found}, where the database has them, found {wanted}; hint: name the same bucket as `blobs`, or none"
        )));
    }
    found.as_ref().or(wanted).map(Bucket::open).transpose()
}
