//! A store with the reference beside it: what was acknowledged, and what must be there because of it.

use std::sync::Arc;

use aptix_model::batch::{BlobRef, Content, CreateFile, FileEdit};
use aptix_model::batch_event::EventKind;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::path::RootedPath;
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::state::BatchState;
use aptix_server::store::embedded::{EmbeddedStore, verify::verify};
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::retention::{Age, Limits, Retention};
use aptix_server::store::{
    Appended, BatchSelector, FileUpdate, Store, StoreError, Transition, Transitioned, Twins, UploadId,
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::forgetful::{Files, Forgetful};
use super::history::{BLOBS, PATHS, Step};
#[cfg(feature = "postgres")]
use crate::cluster::Database;
use crate::sample::file;
use crate::store_contract::{batch, prepared, step, workspace};

/// Parts of each blob.
const PARTS: usize = 3;
/// When every upload began, and what a sweep names that takes whatever came before the history.
const BEGAN: u128 = 100;
const BEFORE_ASKING: UnixMillis = UnixMillis(10_000);

pub(super) type Outcome = Result<(), String>;

/// What store is held against the reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// It removes nothing, and takes whatever it is given.
    Memory,
    Embedded,
    /// In a database.
    #[cfg(feature = "postgres")]
    Postgres,
    /// In a database that leaves blobs to a bucket.
    #[cfg(feature = "s3")]
    Bucket,
    /// The embedded one with a defect.
    Forgetful,
}

/// What is certain of a blob that nothing names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Certain {
    /// It may have been removed, or never came.
    Nothing,
    /// It is there until a sweep.
    UntilSwept,
    /// It is there until a sweep of everything, or a start: a caller learnt of it.
    UntilAllSwept,
}

struct Batch {
    record: BatchRecord,
    blob: usize,
    /// Whether retention ran since it ended.
    may_go: bool,
}

struct Upload {
    id: UploadId,
    blob: usize,
    next: usize,
    claimed: bool,
    /// Whether it may be gone: swept, or another upload took its place.
    may_fail: bool,
}

pub(super) struct World {
    kind: Kind,
    dir: TempDir,
    #[cfg(feature = "postgres")]
    database: Option<Database>,
    files_aside: Files,
    store: Option<Arc<dyn Store>>,
    sweeps: JoinSet<Result<usize, StoreError>>,
    /// Whether a sweep of everything is under way.
    sweeps_all: bool,
    numbers: u128,
    batches: Vec<Batch>,
    files: [Option<usize>; PATHS],
    uploads: Vec<Upload>,
    certain: [Certain; BLOBS],
}

fn parts(blob: usize) -> [Vec<u8>; PARTS] {
    [0, 1, 2].map(|part| vec![u8::try_from(blob * PARTS + part).unwrap(); 7])
}

fn named(blob: usize) -> BlobRef {
    let bytes = parts(blob).concat();
    BlobRef { sha256: Sha256Digest::from_bytes(Sha256::digest(&bytes).into()), size_bytes: bytes.len() as u64 }
}

fn path(number: usize) -> RootedPath {
    RootedPath::new(&format!("main/{number}.txt")).unwrap()
}

fn with_blob(record: BatchRecord, blob: usize) -> BatchRecord {
    let mut record = record;
    let create = CreateFile { content: Content::Blob(named(blob)), overwrite: false, content_format: None };
    record.batch.files[0].edit = FileEdit::CreateFile(create);
    record
}

fn said(error: StoreError) -> String {
    error.to_string()
}

impl World {
    pub(super) async fn new(kind: Kind) -> Self {
        let mut world = Self {
            kind,
            dir: tempfile::tempdir().unwrap(),
            #[cfg(feature = "postgres")]
            database: match kind {
                Kind::Postgres => Database::new(),
                #[cfg(feature = "s3")]
                Kind::Bucket => Database::with_bucket(),
                _ => None,
            },
            files_aside: Files::default(),
            store: None,
            sweeps: JoinSet::new(),
            sweeps_all: false,
            numbers: 0,
            batches: Vec::new(),
            files: [None; PATHS],
            uploads: Vec::new(),
            certain: [Certain::Nothing; BLOBS],
        };
        world.open().await;
        world
    }

    async fn open(&mut self) {
        let embedded = || EmbeddedStore::open(self.dir.path()).unwrap();
        self.store = Some(match self.kind {
            Kind::Memory => Arc::new(MemoryStore::default()),
            Kind::Embedded => Arc::new(embedded()),
            #[cfg(feature = "postgres")]
            Kind::Postgres => Arc::new(self.database.as_ref().unwrap().open().await),
            #[cfg(feature = "s3")]
            Kind::Bucket => Arc::new(self.database.as_ref().unwrap().open().await),
            Kind::Forgetful => Arc::new(Forgetful { inner: embedded(), files: Arc::clone(&self.files_aside) }),
        });
    }

    fn is_in_a_database(&self) -> bool {
        match self.kind {
            #[cfg(feature = "postgres")]
            Kind::Postgres => true,
            #[cfg(feature = "s3")]
            Kind::Bucket => true,
            _ => false,
        }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(self.store.as_ref().unwrap())
    }

    fn number(&mut self) -> u128 {
        self.numbers += 1;
        self.numbers
    }

    /// Takes a step, and looks whether everything is there that must be.
    pub(super) async fn step(&mut self, step: Step) -> Outcome {
        match step {
            Step::Upload { blob } => self.upload(blob).await?,
            Step::Begin { blob, claimed } => self.begin(blob, claimed).await?,
            Step::Continue { upload } => self.go_on(upload).await?,
            Step::Resume { blob } => self.resume(blob).await?,
            Step::GiveUp { upload } => self.give_up(upload).await?,
            Step::Ask { blob } => drop(self.asks(blob).await?),
            Step::Submit { blob, prepared, asked } => self.submit(blob, prepared, asked).await?,
            Step::Retry { batch } => self.retry(batch).await?,
            Step::Free { batch } => self.free(batch).await?,
            Step::Report { batch, blob, path, asked } => self.report(batch, blob, path, asked).await?,
            Step::Cancel { batch } => self.end_batch(batch, BatchState::Cancelled, Vec::new()).await?,
            Step::Remove { batch, path } => self.remove(batch, path).await?,
            Step::Retain { contents, events } => self.retain(contents, events).await?,
            Step::Sweep { all } => self.sweep(all),
            Step::Swept => self.swept().await?,
            Step::Reopen { closed } => self.reopen(closed).await?,
        }
        self.check().await
    }

    fn is_named(&self, blob: usize) -> bool {
        self.batches.iter().any(|batch| batch.blob == blob) || self.files.contains(&Some(blob))
    }

    /// A caller learnt that a blob is there.
    fn learnt(&mut self, blob: usize) {
        if !self.sweeps_all {
            self.certain[blob] = Certain::UntilAllSwept;
        }
    }

    async fn asks(&mut self, blob: usize) -> Result<bool, String> {
        let sizes = self.store().blob_sizes(workspace("w"), vec![named(blob).sha256]).await.map_err(said)?;
        let is_there = sizes == [Some(named(blob).size_bytes)];
        if is_there {
            self.learnt(blob);
        } else if self.is_named(blob) || self.certain[blob] > Certain::Nothing {
            return Err(format!("blob {blob} is lost: {sizes:?}"));
        }
        Ok(is_there)
    }

    async fn upload(&mut self, blob: usize) -> Outcome {
        self.begin(blob, false).await?;
        for _ in 0..PARTS {
            self.go_on(self.uploads.len() - 1).await?;
        }
        Ok(())
    }

    async fn begin(&mut self, blob: usize, claimed: bool) -> Outcome {
        let id = UploadId(Uuid::from_u128((BEGAN << 80) | self.number()));
        if claimed {
            self.store().claim_upload(id, workspace("w"), named(blob)).await.map_err(said)?;
            let former = self.uploads.iter_mut().filter(|upload| upload.claimed && upload.blob == blob);
            former.for_each(|former| former.may_fail = true);
        }
        self.store().put_chunk(id, 0, parts(blob)[0].clone().into()).await.map_err(said)?;
        // Every upload began long ago: a sweep that is under way takes those that can be resumed.
        self.uploads.push(Upload { id, blob, next: 1, claimed, may_fail: claimed && !self.sweeps.is_empty() });
        Ok(())
    }

    async fn go_on(&mut self, which: usize) -> Outcome {
        if self.uploads.is_empty() {
            return Ok(());
        }
        let which = which % self.uploads.len();
        let store = self.store();
        let Upload { id, blob, next, may_fail, .. } = self.uploads[which];
        let done = match parts(blob).get(next) {
            Some(part) => store.put_chunk(id, u32::try_from(next).unwrap(), part.clone().into()).await,
            None => store.commit_upload(id, workspace("w"), named(blob)).await,
        };
        self.uploads[which].next += 1;
        if done.is_err() || next == PARTS {
            self.uploads.remove(which);
        }
        match done {
            Ok(()) if next == PARTS => self.learnt(blob),
            Ok(()) => {}
            Err(error) if !may_fail => return Err(said(error)),
            Err(_) => {}
        }
        Ok(())
    }

    /// As the server does: what came is read, and the upload goes on behind it.
    async fn resume(&mut self, blob: usize) -> Outcome {
        let found = self.store().unfinished_upload(workspace("w"), named(blob)).await.map_err(said)?;
        let Some(found) = found.filter(|found| self.uploads.iter().all(|upload| upload.id != found.upload)) else {
            return Ok(());
        };
        let mut next = 0;
        for part in parts(blob) {
            let chunk = self.store().upload_chunk(found.upload, next).await.map_err(said)?;
            if chunk.is_none_or(|chunk| chunk != part) {
                break;
            }
            next += 1;
        }
        let may_fail = !self.sweeps.is_empty();
        self.uploads.push(Upload { id: found.upload, blob, next: next as usize, claimed: true, may_fail });
        Ok(())
    }

    async fn give_up(&mut self, which: usize) -> Outcome {
        if self.uploads.is_empty() {
            return Ok(());
        }
        let Upload { id, blob, claimed, .. } = self.uploads.remove(which % self.uploads.len());
        match claimed {
            true => self.store().release_upload(id, workspace("w"), named(blob).sha256).await.map_err(said),
            false => {
                self.store().discard_upload(id);
                Ok(())
            }
        }
    }

    /// Whether a write that names a blob may be refused because the blob is not there.
    fn may_be_refused(&self, blob: usize) -> bool {
        self.kind != Kind::Memory && !self.is_named(blob) && self.certain[blob] == Certain::Nothing
    }

    async fn submit(&mut self, blob: usize, is_prepared: bool, asked: bool) -> Outcome {
        if (asked || self.kind == Kind::Memory) && !self.asks(blob).await? {
            return Ok(());
        }
        let number = self.number();
        let request = format!("r{number}");
        let record = match is_prepared {
            true => prepared(number, &request, u64::MAX, None),
            false => batch(number, "w", &request),
        };
        match self.store().append(with_blob(record, blob)).await {
            Ok(Appended::New(record)) => self.batches.push(Batch { record: *record, blob, may_go: false }),
            Err(StoreError::Failed { .. }) if self.may_be_refused(blob) => {}
            other => return Err(format!("a batch is not stored: {other:?}")),
        }
        Ok(())
    }

    /// A known request is answered, whatever became of its blob.
    async fn retry(&self, which: usize) -> Outcome {
        let Some(batch) = self.batches.get(which % self.batches.len().max(1)) else { return Ok(()) };
        match self.store().append(batch.record.clone()).await {
            Ok(Appended::Known(known)) if known.stored.id == batch.record.id => Ok(()),
            other => Err(format!("a known request is answered {other:?}")),
        }
    }

    /// One of the batches that are in a state.
    fn in_state(&self, which: usize, state: BatchState) -> Option<usize> {
        let found: Vec<_> = (0..self.batches.len()).filter(|at| self.batches[*at].record.state == state).collect();
        found.get(which % found.len().max(1)).copied()
    }

    async fn take(&mut self, at: usize, step: Transition) -> Result<bool, String> {
        let refusable = step
            .files
            .iter()
            .any(|file| (0..BLOBS).any(|blob| file.content == Some(named(blob)) && self.may_be_refused(blob)));
        match self.store().transition(step).await {
            Ok(Transitioned::Done(record)) => {
                self.batches[at].record = record;
                Ok(true)
            }
            Err(StoreError::Failed { .. }) if refusable => Ok(false),
            other => Err(format!("a step is not taken: {other:?}")),
        }
    }

    async fn free(&mut self, which: usize) -> Outcome {
        let Some(at) = self.in_state(which, BatchState::Prepared) else { return Ok(()) };
        let freed = Some(format!("f{}", self.number()).parse().unwrap());
        let step = step(&self.batches[at].record, BatchState::Approved);
        self.take(at, Transition { kind: EventKind::Freed, freed, report: None, ..step }).await.map(drop)
    }

    /// Whether one ended.
    async fn ends(&mut self, which: usize, to: BatchState, files: Vec<FileUpdate>) -> Result<bool, String> {
        let Some(at) = self.in_state(which, BatchState::Approved) else { return Ok(false) };
        let step = Transition { files, ..step(&self.batches[at].record, to) };
        self.take(at, step).await
    }

    async fn end_batch(&mut self, which: usize, to: BatchState, files: Vec<FileUpdate>) -> Outcome {
        self.ends(which, to, files).await.map(drop)
    }

    async fn report(&mut self, which: usize, blob: usize, at: usize, asked: bool) -> Outcome {
        if (asked || self.kind == Kind::Memory) && !self.asks(blob).await? {
            return Ok(());
        }
        let update = file(path(at).as_str(), Some(named(blob)), Twins::MayExist);
        if self.ends(which, BatchState::Applied, vec![update]).await? {
            self.files[at] = Some(blob);
        }
        Ok(())
    }

    async fn remove(&mut self, which: usize, at: usize) -> Outcome {
        let update = file(path(at).as_str(), None, Twins::MayExist);
        if self.ends(which, BatchState::Applied, vec![update]).await? {
            self.files[at] = None;
        }
        Ok(())
    }

    async fn retain(&mut self, contents: u64, events: u64) -> Outcome {
        self.batches.iter_mut().for_each(|batch| batch.may_go |= !batch.record.state.is_open());
        let limits = Limits { content_batches: Some(contents), record_events: Some(events), ..Limits::default() };
        let limits = Limits { record_least: std::time::Duration::ZERO, ..limits };
        let order = Retention { workspace: workspace("w"), limits, now: Age(0), is_rehearsal: false };
        self.store().retain(order).await.map(drop).map_err(said)
    }

    fn sweep(&mut self, all: bool) {
        let store = self.store();
        let before = if all { UnixMillis(u64::MAX) } else { BEFORE_ASKING };
        self.sweeps.spawn(async move { store.sweep_blobs(before).await });
        self.sweeps_all |= all;
        let left = if all { Certain::UntilAllSwept } else { Certain::UntilSwept };
        self.certain.iter_mut().filter(|certain| **certain <= left).for_each(|certain| *certain = Certain::Nothing);
        self.uploads.iter_mut().for_each(|upload| upload.may_fail |= upload.claimed);
    }

    async fn swept(&mut self) -> Outcome {
        while let Some(swept) = self.sweeps.join_next().await {
            swept.unwrap().map_err(said)?;
        }
        self.sweeps_all = false;
        Ok(())
    }

    async fn reopen(&mut self, closed: bool) -> Outcome {
        if self.kind == Kind::Memory {
            return Ok(());
        }
        self.sweeps.shutdown().await;
        self.sweeps_all = false;
        // Another process takes a database over when the former one has let go of it.
        if closed || self.is_in_a_database() {
            self.store().close().await.map_err(said)?;
        }
        self.store = None;
        self.open().await;
        self.uploads.clear();
        self.certain = self.certain.map(|certain| certain.min(Certain::UntilSwept));
        Ok(())
    }

    /// Whether a blob has its bytes. Reading does not count as asking.
    async fn has(&self, blob: usize) -> Result<bool, String> {
        let mut bytes = Vec::new();
        for part in 0..=u32::try_from(PARTS).unwrap() {
            let chunk = self.store().blob_chunk(workspace("w"), named(blob).sha256, part).await.map_err(said)?;
            bytes.extend(chunk.unwrap_or_default());
        }
        Ok(bytes == parts(blob).concat())
    }

    /// Whether everything is there that must be.
    async fn check(&mut self) -> Outcome {
        let (store, mut kept) = (self.store(), Vec::new());
        for batch in std::mem::take(&mut self.batches) {
            let found = store.batch(workspace("w"), BatchSelector::Id(batch.record.id)).await.map_err(said)?;
            let has_content = found.as_ref().is_some_and(|found| found.removed_content.is_none());
            if has_content && found.is_some_and(|found| found.batch == batch.record.batch) {
                kept.push(batch);
            } else if !batch.may_go {
                return Err(format!("batch {} is lost, or its content", batch.record.id));
            }
        }
        self.batches = kept;
        for (at, expected) in self.files.iter().enumerate() {
            let found = store.file(workspace("w"), path(at)).await.map_err(said)?.map(|file| file.content);
            if found != expected.map(named) {
                return Err(format!("file {at} is {found:?}"));
            }
        }
        for blob in 0..BLOBS {
            if (self.is_named(blob) || self.certain[blob] > Certain::Nothing) && !self.has(blob).await? {
                return Err(format!("blob {blob} is lost"));
            }
        }
        Ok(())
    }

    /// A last sweep takes everything that nothing names, and nothing else; the store has no damage.
    pub(super) async fn end(mut self) -> Outcome {
        self.swept().await?;
        self.sweep(true);
        self.swept().await?;
        self.check().await?;
        for blob in 0..BLOBS {
            let is_swept = self.kind == Kind::Embedded || self.is_in_a_database();
            if is_swept && !self.is_named(blob) && self.has(blob).await? {
                return Err(format!("nothing names blob {blob}, and it is there"));
            }
        }
        self.store().close().await.map_err(said)?;
        self.store = None;
        if self.kind == Kind::Embedded {
            let damages = verify(self.dir.path()).map_err(said)?.damages;
            if !damages.is_empty() {
                return Err(format!("damages: {damages:?}"));
            }
        }
        Ok(())
    }
}
