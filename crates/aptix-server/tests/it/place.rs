//! Where a durable store is opened, and opened again: a data directory, or a database. The stores of the contract.

use std::path::Path;
use std::sync::Arc;

use aptix_server::store::Store;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::healing::HealingStore;
use aptix_server::store::memory::MemoryStore;

/// A place for one store.
pub(crate) enum Place {
    /// A data directory.
    Directory(tempfile::TempDir),
    /// A database in PostgreSQL.
    #[cfg(feature = "postgres")]
    Database(crate::cluster::Database),
}

impl Place {
    /// A new data directory.
    pub(crate) fn directory() -> Self {
        Self::Directory(tempfile::tempdir().unwrap())
    }

    /// A new database; `None`, after announcing that the test is skipped, where there is no PostgreSQL.
    #[cfg(feature = "postgres")]
    pub(crate) fn database() -> Option<Self> {
        crate::cluster::Database::new().map(Self::Database)
    }

    /// A new database that leaves blobs to a bucket; `None` likewise, or where there is no bucket.
    #[cfg(feature = "s3")]
    pub(crate) fn bucket() -> Option<Self> {
        crate::cluster::Database::with_bucket().map(Self::Database)
    }

    /// Opens the store that is there. The one that was opened before is closed, or nothing holds it any more.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Directory(dir) => Arc::new(EmbeddedStore::open(dir.path()).unwrap()),
            #[cfg(feature = "postgres")]
            Self::Database(database) => Arc::new(database.open().await),
        }
    }
}

/// A store of each kind: in memory, in this directory, and in a database where there is PostgreSQL.
pub(crate) async fn every_store(dir: &Path) -> Vec<Arc<dyn Store>> {
    let stores: [Arc<dyn Store>; 2] = [Arc::new(MemoryStore::default()), Arc::new(EmbeddedStore::open(dir).unwrap())];
    #[cfg(feature = "postgres")]
    let database = crate::cluster::store().await.map(|store| Arc::new(store) as Arc<dyn Store>);
    #[cfg(not(feature = "postgres"))]
    let database = None;
    stores.into_iter().chain(database).collect()
}

/// A store in a directory that is opened again after a failed write.
pub(crate) fn healing(dir: &Path) -> HealingStore {
    let inner = dir.to_owned();
    HealingStore::open(dir.to_owned(), move || Ok(Arc::new(EmbeddedStore::open(&inner)?))).unwrap()
}

/// Runs tests, functions that take a place, with a data directory and with a database.
macro_rules! durable {
    ($($name:ident,)+) => {
        mod directory {
            $(#[tokio::test] async fn $name() {
                super::$name(crate::place::Place::directory()).await;
            })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test] async fn $name() {
                let Some(place) = crate::place::Place::database() else { return };
                super::$name(place).await;
            })+
        }
    };
}

/// The same with a database that leaves blobs to a bucket.
macro_rules! in_a_bucket {
    ($($name:ident,)+) => {
        #[cfg(feature = "s3")]
        mod bucket {
            $(#[tokio::test] async fn $name() {
                let Some(place) = crate::place::Place::bucket() else { return };
                super::$name(place).await;
            })+
        }
    };
}

/// Runs tests, functions that take a store, with every store, which `with_empty_blob` of their module prepares.
macro_rules! promised {
    ($($name:ident,)+) => {
        mod memory {
            $(#[tokio::test] async fn $name() {
                let store = aptix_server::store::memory::MemoryStore::default();
                super::$name(super::with_empty_blob(store).await).await;
            })+
        }
        mod embedded {
            $(#[tokio::test] async fn $name() {
                let dir = tempfile::tempdir().unwrap();
                let store = aptix_server::store::embedded::EmbeddedStore::open(dir.path()).unwrap();
                super::$name(super::with_empty_blob(store).await).await;
            })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test] async fn $name() {
                let Some(store) = crate::cluster::store().await else { return };
                super::$name(super::with_empty_blob(store).await).await;
            })+
        }
        #[cfg(feature = "postgres")]
        mod several_servers {
            $(#[tokio::test] async fn $name() {
                let Some(store) = crate::dealt::store().await else { return };
                super::$name(super::with_empty_blob(store).await).await;
            })+
        }
        #[cfg(feature = "s3")]
        mod bucket {
            $(#[tokio::test] async fn $name() {
                let Some(database) = crate::cluster::Database::with_bucket() else { return };
                super::$name(super::with_empty_blob(database.open().await).await).await;
            })+
        }
        mod healing {
            $(#[tokio::test] async fn $name() {
                let dir = tempfile::tempdir().unwrap();
                super::$name(super::with_empty_blob(crate::place::healing(dir.path())).await).await;
            })+
        }
    };
}

pub(crate) use {durable, in_a_bucket, promised};
