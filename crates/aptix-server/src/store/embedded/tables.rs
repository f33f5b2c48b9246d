//! The tables on disk: opening them, and what is done to them before anything is served.

use std::collections::{HashMap, HashSet};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use aptix_model::id::{HistoryId, WorkspaceId};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use super::earliest_due::EarliestDue;
use super::format::FORMAT;
use super::keys;
use super::lock::{LOOK_AGAIN, RELEASE};
use super::reads::Counted;
use super::record::{self, Counters, History};
use crate::mint;
use crate::store::{StoreError, UploadId};

/// The database and its two tables.
#[derive(Clone)]
pub(super) struct Tables {
    pub(super) db: Database,
    pub(super) records: Keyspace,
    pub(super) chunks: Keyspace,
    pub(super) reads: Arc<Counted>,
    pub(super) earliest_due: EarliestDue,
    /// What was last acknowledged of each workspace.
    known: Arc<Mutex<HashMap<WorkspaceId, Counters>>>,
    /// How many deletions of workspaces were begun since it was opened, or were under way then. While there is none, no read looks for
    /// one.
    deletions: Arc<AtomicU64>,
}

/// Makes the error of something that the database did not do.
pub(super) fn failed(action: &'static str) -> impl Fn(fjall::Error) -> StoreError {
    move |error| StoreError::Failed { action, cause: error.to_string() }
}

impl Tables {
    /// Opens the tables in a directory, or makes them; so many of their files are open at one time.
    pub(super) fn open(dir: &Path, open_files: usize) -> Result<Self, StoreError> {
        // Its reader panics on some damaged journals; to the operator that is damage like any other.
        let open = || {
            catch_unwind(|| Database::builder(dir).max_cached_files(Some(open_files)).open()).map_err(|_| {
                StoreError::Corrupt {
                    what: format!("the data directory {}", dir.display()),
                    why: "its journal does not read".to_owned(),
                }
            })
        };
        let until = Instant::now() + RELEASE;
        let opened = loop {
            match open()? {
                Err(fjall::Error::Locked) if Instant::now() < until => std::thread::sleep(LOOK_AGAIN),
                opened => break opened,
            }
        };
        let db = opened.map_err(|error| match error {
            fjall::Error::Locked => StoreError::InUse { dir: dir.display().to_string() },
            other => {
                StoreError::Failed { action: "open the data directory", cause: format!("{}: {other}", dir.display()) }
            }
        })?;
        let records = db.keyspace("records", KeyspaceCreateOptions::default).map_err(failed("open the records"))?;
        let separate = || KeyspaceCreateOptions::default().with_kv_separation(Some(KvSeparationOptions::default()));
        let chunks = db.keyspace("chunks", separate).map_err(failed("open the chunks"))?;
        // One that cannot be read may be one.
        let deletions = records.prefix(keys::DELETIONS).next().is_some();
        let deletions = Arc::new(AtomicU64::new(u64::from(deletions)));
        Ok(Self {
            db,
            records,
            chunks,
            reads: Arc::default(),
            earliest_due: EarliestDue::default(),
            known: Arc::default(),
            deletions,
        })
    }

    /// Removes what unfinished uploads left that cannot be resumed, and answers the name of the store's history.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub(super) fn begin(&self) -> Result<HistoryId, StoreError> {
        let mut resumable = HashSet::new();
        for entry in self.records.prefix(keys::UNFINISHED) {
            let value = entry.value().map_err(failed("list uploads"))?;
            resumable.insert(record::decode_marker(&value)?.upload);
        }
        for entry in self.records.prefix(keys::UPLOADS) {
            let value = entry.value().map_err(failed("list uploads"))?;
            let upload = UploadId(record::decode_id(&value)?.0);
            if !resumable.contains(&upload) {
                self.remove_upload(upload)?;
            }
        }
        self.history()
    }

    /// The id of the store's history; minted now if there is none.
    fn history(&self) -> Result<HistoryId, StoreError> {
        if let Some(found) = self.history_record()? {
            return Ok(found.id);
        }
        let minted = History { id: HistoryId(mint::uuid()), format: FORMAT };
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.records, keys::HISTORY, record::encode_history(minted));
        batch.commit().map_err(failed("keep the history's name"))?;
        Ok(minted.id)
    }

    /// The name of the store's history, with the format of its records.
    pub(super) fn history_record(&self) -> Result<Option<History>, StoreError> {
        let record = self.records.get(keys::HISTORY).map_err(failed("read the history's name"))?;
        record.map(|record| record::decode_history(&record)).transpose()
    }

    /// Remembers the counters of workspaces beside their records; `None` forgets those of one that was deleted.
    pub(super) fn know(&self, workspaces: impl IntoIterator<Item = (WorkspaceId, Option<Counters>)>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (workspace, counters) in workspaces {
            match counters {
                Some(counters) => known.insert(workspace, counters),
                None => known.remove(&workspace),
            };
        }
    }

    /// How many deletions of workspaces were begun since the tables were opened, or were under way then.
    pub(super) fn deletions(&self) -> u64 {
        self.deletions.load(Ordering::SeqCst)
    }

    /// Counts a deletion that begins. Called before its record can be read.
    pub(super) fn count_deletion(&self) {
        self.deletions.fetch_add(1, Ordering::SeqCst);
    }

    /// The counters of a workspace as they were last acknowledged, should their record be damaged.
    pub(super) fn known(&self, workspace: &WorkspaceId) -> Option<Counters> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(workspace).copied()
    }
}
