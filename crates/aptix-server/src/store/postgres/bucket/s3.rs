//! A bucket that is reached over the protocol of S3.

use std::time::Duration;

use aptix_model::id::HistoryId;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, Error, ObjectStore, ObjectStoreExt, PutMode, RetryConfig};
use tokio::time::timeout;
use tokio_rustls::rustls::crypto::ring;
use tokio_stream::StreamExt as _;
use tokio_util::bytes::Bytes;

use super::super::fault::described;
use super::object::Object;
use crate::store::bucket_address::BucketAddress;
use crate::store::{StoreError, UploadId};

/// How long a connection may take to be made, and a request to be answered.
const LIMITS: [(ClientConfigKey, &str); 2] =
    [(ClientConfigKey::ConnectTimeout, "3s"), (ClientConfigKey::Timeout, "10s")];

/// How often and until when a request that failed is made again, and until when all of it is given up: within the time that a call has.
const RETRIES: usize = 5;
const BACKOFF: BackoffConfig =
    BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(2), base: 2.0 };
const RETRY_LIMIT: Duration = Duration::from_secs(15);
const LIMIT: Duration = Duration::from_secs(25);

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
        let retry = RetryConfig { backoff: BACKOFF, max_retries: RETRIES, retry_timeout: RETRY_LIMIT };
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
                    "{address}: {}; hint: look at the variables of the environment that begin with AWS_; http takes AWS_ALLOW_HTTP=true, \
                     and https the certificates of authorities, of the system or of the file SSL_CERT_FILE",
                    told(&described(&error))
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
        let history = history.to_string();
        let owner = match self.owner().await? {
            Some(owner) => owner,
            None if is_known => {
                let cause = format!(
                    "expected the object {} in {}, where the database has its blobs, found none; hint: check AWS_ENDPOINT_URL, and copy \
                     the whole prefix when a bucket is moved",
                    self.mark(),
                    self.address
                );
                return Err(StoreError::Failed { action: "use the bucket of its blobs", cause });
            }
            None => {
                let (name, own) = (self.mark(), history.clone().into_bytes());
                match self.in_time(self.objects.put_opts(&name, own.into(), PutMode::Create.into())).await? {
                    Ok(_) => return Ok(()),
                    // Another store was faster, or another server of this one.
                    Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                        self.owner().await?.unwrap_or_default()
                    }
                    Err(error) => return Err(self.unreachable(&error)),
                }
            }
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

    /// The store that the bucket says it belongs to.
    async fn owner(&self) -> Result<Option<Bytes>, StoreError> {
        let name = self.mark();
        match self.in_time(async { self.objects.get(&name).await?.bytes().await }).await? {
            Ok(owner) => Ok(Some(owner)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.unreachable(&error)),
        }
    }

    /// Keeps a chunk. What failed may have been kept all the same.
    pub(in super::super) async fn put(&self, object: Object, bytes: Bytes) -> Result<(), StoreError> {
        let put = self.in_time(self.objects.put(&self.name(object), bytes.into())).await?;
        put.map(drop).map_err(|error| self.unreachable(&error))
    }

    /// A chunk of so many bytes.
    pub(in super::super) async fn get(&self, object: Object, size: u64) -> Result<Bytes, StoreError> {
        let name = self.name(object);
        let why = match self.in_time(async { self.objects.get(&name).await?.bytes().await }).await? {
            Ok(bytes) if bytes.len() as u64 == size => return Ok(bytes),
            Ok(bytes) => format!("it has {} bytes in the place of {size}", bytes.len()),
            // Where the mark of the store is missing as well, something else answers in the place of the bucket.
            Err(Error::NotFound { .. }) if self.owner().await?.is_some() => "it is missing".to_owned(),
            Err(error) => return Err(self.unreachable(&error)),
        };
        Err(StoreError::Corrupt { what: format!("object {name} of the bucket {}", self.address), why })
    }

    /// Removes the object of a chunk that another one took the place of.
    pub(in super::super) async fn remove_one(&self, object: Object) -> Result<(), StoreError> {
        let removed = self.in_time(self.objects.delete(&self.name(object))).await?;
        removed.map_err(|error| self.unreachable(&error))
    }

    /// Removes every object of an upload.
    pub(in super::super) async fn remove(&self, upload: UploadId) -> Result<(), StoreError> {
        let found = self.objects.list(Some(&self.of_upload(upload)));
        let names = Box::pin(found.map(|found| found.map(|object| object.location)));
        let mut removed = self.objects.delete_stream(names);
        while let Some(removed) = self.in_time(removed.next()).await? {
            removed.map_err(|error| self.unreachable(&error))?;
        }
        Ok(())
    }

    fn mark(&self) -> Path {
        self.prefix.clone().join(OWNER)
    }

    fn of_upload(&self, upload: UploadId) -> Path {
        self.prefix.clone().join(upload.0.to_string())
    }

    fn name(&self, Object { upload, index, number }: Object) -> Path {
        self.of_upload(upload).join(index.to_string()).join(number.to_string())
    }

    /// Bounds a request with all that belongs to it: credentials may have to be asked for first.
    async fn in_time<T>(&self, request: impl Future<Output = T>) -> Result<T, StoreError> {
        let late = |_| StoreError::NoBucket { cause: format!("{}: no answer within {LIMIT:?}", self.address) };
        timeout(LIMIT, request).await.map_err(late)
    }

    fn unreachable(&self, error: &Error) -> StoreError {
        StoreError::NoBucket { cause: format!("{}: {}", self.address, told(&described(error))) }
    }
}

/// An error without the request, which some stores send back in the body of their answer.
fn told(error: &str) -> String {
    let part = |name: &str| {
        let (_, rest) = error.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(part, _)| part)
    };
    match (error.split_once('<'), part("Code")) {
        (Some((before, _)), Some(code)) => format!("{before}{code}: {}", part("Message").unwrap_or_default()),
        _ => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn an_error_does_not_have_the_request() {
        let error = "403: <?xml version=\"1.0\"?>\n<Error><Code>SignatureDoesNotMatch</Code><Message>not yours</Message>\
                     <CanonicalRequest>x-amz-security-token:hush</CanonicalRequest></Error>: 403";
        assert_eq!(told(error), "403: SignatureDoesNotMatch: not yours");
        assert_eq!(told("refused"), "refused");
    }
}
