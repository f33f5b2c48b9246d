//! This build has no support for buckets.

use aptix_model::id::HistoryId;
use tokio_util::bytes::Bytes;

use super::object::Object;
use crate::store::bucket_address::BucketAddress;
use crate::store::{StoreError, UploadId};

/// A bucket, of which there is none.
#[derive(Debug)]
pub(in super::super) enum Bucket {}

impl Bucket {
    /// Opens none.
    pub(in super::super) fn open(address: &BucketAddress) -> Result<Self, StoreError> {
        let cause = format!(
            "{address}: this aptix-server was built without support for buckets; hint: use a released one, or build it with `--features s3`"
        );
        Err(StoreError::Failed { action: "open the bucket of its blobs", cause })
    }

    pub(in super::super) const fn address(&self) -> &BucketAddress {
        match *self {}
    }

    pub(in super::super) async fn claim(&self, _: HistoryId, _: bool) -> Result<(), StoreError> {
        match *self {}
    }

    pub(in super::super) async fn put(&self, _: Object, _: Bytes) -> Result<(), StoreError> {
        match *self {}
    }

    pub(in super::super) async fn get(&self, _: Object, _: u64) -> Result<Bytes, StoreError> {
        match *self {}
    }

    pub(in super::super) async fn remove_one(&self, _: Object) -> Result<(), StoreError> {
        match *self {}
    }

    pub(in super::super) async fn remove(&self, _: UploadId) -> Result<(), StoreError> {
        match *self {}
    }
}
