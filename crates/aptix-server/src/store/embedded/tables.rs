//! The tables on disk: opening them, and what is done to them before anything is served.

use std::os::unix::fs::DirBuilderExt;
use std::panic::catch_unwind;
use std::path::Path;

use aptix_model::id::HistoryId;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use super::{keys, record};
use crate::mint;
use crate::store::{StoreError, UploadId};

/// The database and its two tables.
#[derive(Clone)]
pub(super) struct Tables {
    pub(super) db: Database,
    pub(super) records: Keyspace,
    pub(super) chunks: Keyspace,
    /// Names the history of the store.
    pub(super) history: HistoryId,
}

/// Makes the error of something that the database did not do.
pub(super) fn failed(action: &'static str) -> impl Fn(fjall::Error) -> StoreError {
    move |error| StoreError::Failed { action, cause: error.to_string() }
}

impl Tables {
    /// Opens the tables in a directory, makes them if there are none, and removes what unfinished uploads left.
    pub(super) fn open(dir: &Path, open_files: usize) -> Result<Self, StoreError> {
        // What people write is in there: nobody else reads it.
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|error| StoreError::Failed {
            action: "make the data directory",
            cause: format!("{}: {error}", dir.display()),
        })?;
        // Its reader panics on some damaged journals; to whoever starts the server that is damage like any other.
        let opened =
            catch_unwind(|| Database::builder(dir).max_cached_files(Some(open_files)).open()).map_err(|_| {
                StoreError::Corrupt {
                    what: format!("the data directory {}", dir.display()),
                    why: "its journal does not read".to_owned(),
                }
            })?;
        let db = opened.map_err(|error| match error {
            fjall::Error::Locked => StoreError::Failed {
                action: "open the data directory",
                cause: format!("{} is in use by another server; give this one another --data-dir", dir.display()),
            },
            other => {
                StoreError::Failed { action: "open the data directory", cause: format!("{}: {other}", dir.display()) }
            }
        })?;
        let records = db.keyspace("records", KeyspaceCreateOptions::default).map_err(failed("open the records"))?;
        let separate = || KeyspaceCreateOptions::default().with_kv_separation(Some(KvSeparationOptions::default()));
        let chunks = db.keyspace("chunks", separate).map_err(failed("open the chunks"))?;
        let history = history(&db, &records)?;
        let tables = Self { db, records, chunks, history };
        tables.remove_unfinished_uploads()?;
        Ok(tables)
    }

    fn remove_unfinished_uploads(&self) -> Result<(), StoreError> {
        for entry in self.records.prefix(keys::UPLOADS) {
            let value = entry.value().map_err(failed("list uploads"))?;
            self.remove_upload(UploadId(record::decode_id(&value)?.0))?;
        }
        Ok(())
    }
}

/// The name of the store's history; minted now if there is none.
fn history(db: &Database, records: &Keyspace) -> Result<HistoryId, StoreError> {
    if let Some(record) = records.get(keys::HISTORY).map_err(failed("read the history's name"))? {
        return Ok(HistoryId(record::decode_id(&record)?.0));
    }
    let minted = mint::uuid();
    let mut batch = db.batch().durability(Some(PersistMode::SyncAll));
    batch.insert(records, keys::HISTORY, record::encode_id(minted));
    batch.commit().map_err(failed("keep the history's name"))?;
    Ok(HistoryId(minted))
}
