//! A bucket that is reached over the protocol of S3.

use std::time::Duration;

use aptix_model::id::HistoryId;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{ClientConfigKey, Error, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio_rustls::rustls::crypto::ring;
use tokio_stream::StreamExt as _;
use tokio_util::bytes::Bytes;

use super::object::Object;
use crate::store::bucket_address::BucketAddress;
use crate::store::{StoreError, UploadId};

/// How long a connection may take to be made, and a request to be answered.
const LIMITS: [(ClientConfigKey, &str); 2] =
    [(ClientConfigKey::ConnectTimeout, "3s"), (ClientConfigKey::Timeout, "10s")];

/// Until when a request that failed is made again: within the time that a call has.
const RETRIES: usize = 3;
const RETRY_LIMIT: Duration = Duration::from_secs(15);

/// The object that says which store the bucket belongs to.
const OWNER: &str = "aptix-store";

/// A bucket with the objects of one store.
pub(in super::super) struct Bucket {
    objects: Box<dyn ObjectStore>,
    /// What the names of its objects begin with.
    prefix: Path,
    address: BucketAddress,
}

impl Bucket {
    /// Reads from the environment how it is reached; asks it nothing.
    ///
    /// # Errors
    /// When the environment contradicts itself.
    pub(in super::super) fn open(address: &BucketAddress) -> Result<Self, StoreError> {
        // Whatever was installed before is as good.
        let _ = ring::default_provider().install_default();
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_LIMIT, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(address.bucket()).with_retry(retry);
        for (key, limit) in LIMITS {
            builder = builder.with_config(AmazonS3ConfigKey::Client(key), limit);
        }
        match builder.build() {
            Ok(objects) => {
                let prefix = Path::from_iter(address.prefix().iter().map(String::as_str));
                Ok(Self { objects: Box::new(objects), prefix, address: address.clone() })
            }
            Err(error) => Err(StoreError::Failed {
                action: "open the bucket of its blobs",
                cause: format!(
                    "{address}: {error}; hint: look at the variables of the environment that begin with AWS_"
                ),
            }),
        }
    }

    /// Where it is.
    pub(in super::super) const fn address(&self) -> &BucketAddress {
        &self.address
    }

    /// Has the bucket say that it belongs to a store, unless it does. Whoever cannot do that could keep no blob there either.
    ///
    /// # Errors
    /// When it belongs to another store, or to none although the database knows it as its own, or cannot be read or written.
    pub(in super::super) async fn claim(&self, history: HistoryId, is_known: bool) -> Result<(), StoreError> {
        let (name, history) = (self.prefix.clone().join(OWNER), history.to_string());
        let owner = match self.objects.get(&name).await {
            Ok(found) => found.bytes().await.map_err(|error| self.unreachable(&error))?,
            Err(Error::NotFound { .. }) if is_known => {
                let cause = format!(
                    "expected the object {name} in {}, where the database has its blobs, found none; hint: check AWS_ENDPOINT_URL, and copy \
                     the whole prefix when a bucket is moved",
                    self.address
                );
                return Err(StoreError::Failed { action: "use the bucket of its blobs", cause });
            }
            Err(Error::NotFound { .. }) => {
                let put = self.objects.put(&name, history.into_bytes().into()).await;
                return put.map(drop).map_err(|error| self.unreachable(&error));
            }
            Err(error) => return Err(self.unreachable(&error)),
        };
        if owner == history.as_bytes() {
            return Ok(());
        }
        let (address, owner) = (&self.address, String::from_utf8_lossy(&owner));
        let cause = format!(
            "expected {address} with the blobs of store {history}, found those of store {owner}; hint: give another prefix"
        );
        Err(StoreError::Failed { action: "use the bucket of its blobs", cause })
    }

    /// Keeps a chunk. What failed may have been kept all the same.
    pub(in super::super) async fn put(&self, object: Object, bytes: Bytes) -> Result<(), StoreError> {
        let put = self.objects.put(&self.name(object), bytes.into()).await;
        put.map(drop).map_err(|error| self.unreachable(&error))
    }

    /// A chunk of so many bytes.
    pub(in super::super) async fn get(&self, object: Object, size: u64) -> Result<Bytes, StoreError> {
        let name = self.name(object);
        let read = async { self.objects.get(&name).await?.bytes().await };
        let why = match read.await {
            Ok(bytes) if bytes.len() as u64 == size => return Ok(bytes),
            Ok(bytes) => format!("it has {} bytes in the place of {size}", bytes.len()),
            Err(Error::NotFound { .. }) => "it is missing".to_owned(),
            Err(error) => return Err(self.unreachable(&error)),
        };
        Err(StoreError::Corrupt { what: format!("object {name} of the bucket {}", self.address), why })
    }

    /// Removes every object of an upload.
    pub(in super::super) async fn remove(&self, upload: UploadId) -> Result<(), StoreError> {
        let found = self.objects.list(Some(&self.of_upload(upload)));
        let names = Box::pin(found.map(|found| found.map(|object| object.location)));
        let mut removed = self.objects.delete_stream(names);
        while let Some(removed) = removed.next().await {
            match removed {
                // Another server removes the same.
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.unreachable(&error)),
            }
        }
        Ok(())
    }

    fn of_upload(&self, upload: UploadId) -> Path {
        self.prefix.clone().join(upload.0.to_string())
    }

    fn name(&self, Object { upload, index, number }: Object) -> Path {
        self.of_upload(upload).join(index.to_string()).join(number.to_string())
    }

    fn unreachable(&self, error: &Error) -> StoreError {
        StoreError::NoBucket { cause: format!("{}: {error}", self.address) }
    }
}
