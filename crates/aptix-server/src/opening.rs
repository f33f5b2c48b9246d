//! Opens the store that is configured.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_server::config::{Config, StoreChoice};
use aptix_server::store::embedded::lock::Locked;
use aptix_server::store::embedded::{EmbeddedStore, OnLoss, Opening};
use aptix_server::store::healing::HealingStore;
use aptix_server::store::{Store, StoreError};

#[cfg(feature = "postgres")]
use {
    anyhow::{Context, bail},
    aptix_server::store::backup::BackupError,
    aptix_server::store::embedded::{format, lock::lock},
    aptix_server::store::postgres::PostgresStore,
    aptix_server::store::postgres::address::Address,
};

/// An open store.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// What keeps other servers from the data directory, if the store does not do that itself.
    pub(crate) dir: Option<Locked>,
}

/// Opens the store for a server.
///
/// # Errors
/// When it cannot be used, or another server uses it or the data directory.
pub(crate) async fn open(config: &Config, open_files: usize, accept_loss: bool) -> anyhow::Result<Opened> {
    match &config.store {
        StoreChoice::Embedded => Ok(Opened { store: embedded(&config.data_dir, open_files, accept_loss)?, dir: None }),
        #[cfg(feature = "postgres")]
        StoreChoice::Postgres(address) => {
            if accept_loss {
                bail!(
                    "expected no --accept-loss: it is for journals in the data directory, and the store is {address}"
                );
            }
            let dir = &config.data_dir;
            let unusable = || format!("failed to open the data directory {}; give another --data-dir", dir.display());
            make_dir(dir).with_context(unusable)?;
            let held = lock(dir)?;
            if format::is_store(dir) {
                tracing::warn!(dataDir = %dir.display(), store = %address, "the batches in the data directory are not served");
            }
            let address = Address::clone(address).with_blobs(config.blobs.clone());
            Ok(Opened { store: open_database(&address).await?, dir: Some(held) })
        }
    }
}

fn embedded(data_dir: &Path, open_files: usize, accept_loss: bool) -> Result<Arc<dyn Store>, StoreError> {
    let dir = data_dir.to_owned();
    // Consent is for what is missing at the start, and not for what may be missing after a failed write.
    let accept_loss = AtomicBool::new(accept_loss);
    let store = HealingStore::open(data_dir.to_owned(), move || {
        let on_loss = if accept_loss.swap(false, Ordering::Relaxed) { OnLoss::Accept } else { OnLoss::Refuse };
        Ok(Arc::new(EmbeddedStore::open_with(&dir, Opening { open_files, on_loss })?))
    })?;
    Ok(Arc::new(store))
}

/// Opens the store in a database.
///
/// # Errors
/// When the database cannot be used, or another server uses it.
#[cfg(feature = "postgres")]
pub(crate) async fn open_database(address: &Address) -> Result<Arc<dyn Store>, StoreError> {
    match PostgresStore::open(address).await {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(with_address(&address.to_string(), error)),
    }
}

/// Adds the address to the error of a database that cannot be reached.
#[cfg(feature = "postgres")]
fn with_address(address: &str, error: StoreError) -> StoreError {
    match error {
        StoreError::Failed { action: action @ "connect to PostgreSQL", cause } => {
            let cause =
                format!("{cause}; hint: check the address {address}, and that PostgreSQL takes connections there");
            StoreError::Failed { action, cause }
        }
        error => error,
    }
}

/// Adds the address to the error of a restore or a migration whose database cannot be reached.
#[cfg(feature = "postgres")]
pub(crate) fn name_database(address: &str, error: BackupError) -> BackupError {
    match error {
        BackupError::Store(error) => BackupError::Store(with_address(address, error)),
        error => error,
    }
}

/// Makes a data directory that its owner alone can use, unless there is one.
///
/// # Errors
/// When the system refuses.
pub(crate) fn make_dir(data_dir: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir)
}
