//! Makes a data directory of a backup. The file `format` says from the first moment that the directory is not whole, and is replaced
//! as the last step: a restore that was cut off leaves a directory that no server opens, and can be run again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
#[cfg(feature = "postgres")]
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::token::{Ended, Ending};
use fjall::{OwnedWriteBatch, PersistMode, Slice};

use super::committer::Put;
use super::format::{self, FORMAT};
use super::keys::{self, Key};
use super::lock::{Locked, lock};
use super::marks;
use super::own_files;
use super::record::{self, Counters, Happened, Head, History, Marker};
use super::retention_record::{Trim, encode_age, encode_notes, encode_trim};
use super::tables::{Tables, failed};
use super::tokens::Needed;
use super::{batch_record, guard, session_record, sessions, token_record, usage, writes};
use crate::mint;
use crate::store::backup::{self, BackupError, Item, StoreFacts, Summary, WorkspaceFacts};
use crate::store::{Event, StoreError, UploadId};

/// Bytes that are written at once.
const STEP_BYTES: usize = 8 << 20;

/// What becomes of the tokens in a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestoredTokens {
    /// They are what they were when the backup was made.
    Kept,
    /// All of them are revoked: their names stay in use, and calls still need a token.
    Revoked,
}

/// Makes a data directory of a backup, in a directory that is new, empty, or left by a restore that was cut off.
///
/// # Errors
/// When the backup is damaged, the directory has something else in it, or the system refuses. Then it is as empty as it was.
pub fn restore(from: &Path, dir: &Path, tokens: RestoredTokens) -> Result<Summary, BackupError> {
    let mut backup = backup::open(from)?;
    let filling = Filling::begin(dir)?;
    let summary = filling.fill(&mut backup, tokens)?;
    filling.finish()?;
    Ok(summary)
}

/// A directory that becomes a data directory. Until it is finished no server opens it; dropped before, it is emptied.
#[derive(Debug)]
pub(in crate::store) struct Filling {
    dir: PathBuf,
    is_finished: AtomicBool,
    _locked: Locked,
}

impl Filling {
    /// Takes a directory that is new, empty, or left by another one that was cut off, and empties it.
    ///
    /// # Errors
    /// When it has something else in it, or the system refuses.
    pub(in crate::store) fn begin(dir: &Path) -> Result<Self, BackupError> {
        let system = |error: std::io::Error| own_files::failed("restore into the directory", dir, &error);
        own_files::make_dir(dir).map_err(system)?;
        // Looked at under the lock: another restore may have filled it until now.
        let locked = lock(dir)?;
        if !format::is_unrestored(dir) {
            check_empty(dir)?;
        }
        format::begin_restore(dir)?;
        let filling = Self { dir: dir.to_owned(), is_finished: AtomicBool::new(false), _locked: locked };
        own_files::clear(dir).map_err(system)?;
        Ok(filling)
    }

    /// Writes all of a backup.
    ///
    /// # Errors
    /// When it is damaged, or the system refuses.
    pub(in crate::store) fn fill(
        &self,
        backup: &mut backup::Reader<impl Read>,
        tokens: RestoredTokens,
    ) -> Result<Summary, BackupError> {
        fill(backup, &self.dir, tokens)
    }

    /// Reads back what was written.
    ///
    /// # Errors
    /// When it cannot be read, or written on.
    #[cfg(feature = "postgres")]
    pub(in crate::store) fn back_up(&self, out: Box<dyn Write + Send>) -> Result<Summary, StoreError> {
        let tables = Tables::open(&self.dir, guard::Opening::default().open_files)?;
        let history = tables.begin()?;
        tables.now().back_up(history, &Needed::of(&self.dir), out)
    }

    /// Lets servers open it.
    ///
    /// # Errors
    /// When the system refuses.
    pub(in crate::store) fn finish(&self) -> Result<(), BackupError> {
        let dir = &self.dir;
        let parent = dir.canonicalize().ok();
        let synced = parent.as_deref().and_then(Path::parent).map_or(Ok(()), own_files::sync_dir);
        synced.map_err(|error| own_files::failed("restore into the directory", dir, &error))?;
        format::write(dir)?;
        self.is_finished.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        if !self.is_finished.load(Ordering::SeqCst) {
            // What cannot be removed now is removed by the next restore; until then no server opens the directory.
            let _ = own_files::clear(&self.dir).and_then(|()| format::forget(&self.dir));
        }
    }
}

/// Names in a data directory that mean nothing: the lock, and what a file system puts into each of its own.
const IDLE: [&str; 2] = ["server.lock", "lost+found"];

/// Refuses a directory that has something in it.
///
/// # Errors
/// The name of what is there.
fn check_empty(dir: &Path) -> Result<(), BackupError> {
    let failed = |error: std::io::Error| own_files::failed("restore into the directory", dir, &error);
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if !IDLE.iter().any(|idle| name == *idle) {
            let (dir, found) = (dir.display().to_string(), name.to_string_lossy().into_owned());
            return Err(BackupError::NotEmpty { dir, found });
        }
    }
    Ok(())
}

/// Writes every record, and the marks that say that all of them are acknowledged.
fn fill(
    backup: &mut backup::Reader<impl std::io::Read>,
    dir: &Path,
    tokens: RestoredTokens,
) -> Result<Summary, BackupError> {
    let tables = Tables::open(dir, guard::Opening::default().open_files)?;
    let mut import = Import::new(&tables, tokens);
    while let Some(item) = backup.next()? {
        import.item(item)?;
    }
    let summary = backup.summary();
    let head = Head { number: 1, digest: summary.digest };
    let needed = import.finish(head)?;
    usage::count_unknown(&tables)?;
    if needed {
        Needed::of(dir).say()?;
    }
    let workspaces = tables.now().every_workspace(None);
    marks::Writer::create(dir, head, workspaces)?;
    own_files::sync_tree(dir).map_err(|error| own_files::failed("restore into the directory", dir, &error))?;
    Ok(summary)
}

/// Writes the records of items.
struct Import<'a> {
    tables: &'a Tables,
    batch: OwnedWriteBatch,
    /// Bytes in it.
    staged: usize,
    tokens: RestoredTokens,
    now: UnixMillis,
    needed: bool,
    workspace: Option<Workspace>,
    /// The upload that the bytes of the last blob are kept as, and how many chunks it has.
    blob: (UploadId, u32),
}

/// What is written once all items of a workspace are there.
struct Workspace {
    facts: WorkspaceFacts,
    open: u64,
    sessions: u64,
    /// The paths with each key.
    paths: BTreeMap<DocPath, BTreeSet<RootedPath>>,
}

impl<'a> Import<'a> {
    fn new(tables: &'a Tables, tokens: RestoredTokens) -> Self {
        let (batch, now, blob) = (tables.db.batch(), mint::now(), (UploadId(mint::uuid()), 0));
        Self { tables, batch, staged: 0, tokens, now, needed: false, workspace: None, blob }
    }

    fn item(&mut self, item: Item) -> Result<(), StoreError> {
        match item {
            Item::Store(facts) => return self.store(&facts),
            Item::Token(mut kept) => {
                self.needed = true;
                if self.tokens == RestoredTokens::Revoked {
                    kept.token.ended.get_or_insert(Ended { at: self.now, how: Ending::Revoked });
                }
                return self.put(keys::token(&kept.token.name), token_record::encode(&kept));
            }
            Item::Workspace(facts) => {
                self.close()?;
                let (open, sessions, paths) = (0, 0, BTreeMap::new());
                self.workspace = Some(Workspace { facts: *facts, open, sessions, paths });
                return Ok(());
            }
            Item::Session(_) | Item::Batch(..) | Item::Plan(..) | Item::Event(..) => {}
            Item::File(_) | Item::Blob(_) | Item::Chunk(_) => {}
        }
        // The reader lets no such item come before its workspace.
        let Some(current) = &mut self.workspace else { return Ok(()) };
        let workspace = current.facts.id.clone();
        match item {
            Item::Store(_) | Item::Token(_) | Item::Workspace(_) => Ok(()),
            Item::Session(session) => {
                current.sessions += 1;
                self.put(keys::session(&workspace, &session.id), session_record::encode(&session))
            }
            Item::Batch(first, batch) => {
                current.open += u64::from(batch.state.is_open());
                self.put(keys::listed(&workspace, first), record::encode_id(batch.id.0))?;
                self.batch(&batch)
            }
            Item::Plan(hunk, batch) => self.put(keys::hunk(&workspace, hunk), record::encode_id(batch.0)),
            Item::Event(event, previous) => {
                let Event { revision, batch, digest, facts } = *event;
                let happened = Happened { batch, digest, facts, previous };
                self.put(keys::event(&workspace, revision), record::encode_event(&happened))
            }
            Item::File(file) => {
                current.paths.entry(file.doc_path.clone()).or_default().insert(file.path.clone());
                self.put(keys::file(&workspace, &file.path), record::encode_file(&file))
            }
            Item::Blob(blob) => {
                // A name of its own, from now: what nothing names is kept as if it had come just now.
                self.blob = (UploadId(mint::uuid()), 0);
                let marker = Marker { upload: self.blob.0, size_bytes: blob.size_bytes };
                self.put(keys::blob(&workspace, &blob.sha256), record::encode_marker(marker))
            }
            Item::Chunk(bytes) => {
                let (upload, index) = self.blob;
                self.blob.1 += 1;
                self.staged += bytes.len();
                self.batch.insert(&self.tables.chunks, keys::chunk(upload, index), Slice::from(&*bytes));
                self.step()
            }
        }
    }

    fn store(&mut self, facts: &StoreFacts) -> Result<(), StoreError> {
        self.needed |= facts.tokens_needed;
        let history = History { id: facts.history, format: FORMAT };
        self.put(keys::HISTORY.to_vec(), record::encode_history(history))?;
        // Every batch in flight of a session is listed with its batch.
        self.put(keys::IN_FLIGHT.to_vec(), record::encode_id(mint::uuid()))?;
        match facts.age {
            Some(age) => self.put(keys::AGE.to_vec(), encode_age(age)),
            None => Ok(()),
        }
    }

    fn batch(&mut self, batch: &BatchRecord) -> Result<(), StoreError> {
        self.put(keys::batch(batch.id), batch_record::encode_batch(batch))?;
        self.put(keys::state(batch.id), batch_record::encode_state(batch))?;
        let freed = batch.preparation().and_then(|preparation| preparation.freed.as_ref());
        for request in [Some(&batch.request_id), freed].into_iter().flatten() {
            self.put(keys::request(&batch.workspace, request), record::encode_id(batch.id.0))?;
        }
        for put in writes::put_due(batch).into_iter().chain(sessions::put_flight(None, batch)) {
            if let Put::Record(key, value) = put {
                self.put(key, value)?;
            }
        }
        Ok(())
    }

    /// Writes what is known of a workspace once all its items are there.
    fn close(&mut self) -> Result<(), StoreError> {
        let Some(Workspace { facts, open, sessions, paths }) = self.workspace.take() else { return Ok(()) };
        let WorkspaceFacts { id, newest, digest, lease, roots, trim, notes } = facts;
        let counters = Counters { newest, digest, lease, open: Some(open) };
        self.put(keys::workspace(&id), record::encode_counters(counters))?;
        if lease.epoch > 0 {
            self.put(keys::roots(&id), record::encode_texts(&roots))?;
        }
        if trim != Trim::default() {
            self.put(keys::trim(&id), encode_trim(&trim))?;
        }
        if !notes.0.is_empty() {
            self.put(keys::notes(&id), encode_notes(&notes))?;
        }
        if sessions > 0 {
            self.put(keys::session_count(&id), session_record::encode_count(sessions))?;
        }
        paths.into_iter().try_for_each(|(key, paths)| {
            let paths: Vec<_> = paths.into_iter().collect();
            self.put(keys::paths(&id, &key), record::encode_paths(&paths))
        })
    }

    /// Writes the rest, durably; answers whether calls need a token.
    fn finish(mut self, head: Head) -> Result<bool, StoreError> {
        self.close()?;
        self.batch.insert(&self.tables.records, keys::HEAD, record::encode_head(head));
        self.batch.commit().map_err(failed("write"))?;
        self.tables.db.persist(PersistMode::SyncAll).map_err(failed("flush"))?;
        Ok(self.needed)
    }

    fn put(&mut self, key: Key, value: Slice) -> Result<(), StoreError> {
        self.staged += key.len() + value.len();
        self.batch.insert(&self.tables.records, key, value);
        self.step()
    }

    /// Writes what is staged, if that is much.
    fn step(&mut self) -> Result<(), StoreError> {
        if self.staged < STEP_BYTES {
            return Ok(());
        }
        self.staged = 0;
        let full = std::mem::replace(&mut self.batch, self.tables.db.batch());
        full.commit().map_err(failed("write"))
    }
}
