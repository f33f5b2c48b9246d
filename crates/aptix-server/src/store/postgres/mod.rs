//! The store in a PostgreSQL database.

pub mod address;

use std::pin::Pin;

use aptix_model::id::HistoryId;
use tokio::sync::watch;
use uuid::Uuid;

use self::address::Address;
use super::wrapper::Wrapper;
use super::{Answer, Store, StoreError, UploadId};

/// Keeps everything in one PostgreSQL database.
pub struct PostgresStore {
    history: HistoryId,
}

impl PostgresStore {
    /// Opens the store in a database; creates its tables if there are none.
    ///
    /// # Errors
    /// When the database cannot be used, or another server uses it.
    pub async fn open(address: &Address) -> Result<Self, StoreError> {
        let _ = address;
        Ok(Self { history: HistoryId(Uuid::nil()) })
    }
}

impl Wrapper for PostgresStore {
    fn ask<T: Send + 'static>(
        &self,
        call: &'static str,
        _: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        let cause = "it is not built yet".to_owned();
        Box::pin(std::future::ready(Err(StoreError::Failed { action: call, cause })))
    }

    fn history(&self) -> HistoryId {
        self.history
    }

    fn discard_upload(&self, _: UploadId) {}

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}
