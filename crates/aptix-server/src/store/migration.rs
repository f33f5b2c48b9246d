//! Moves a whole store from a data directory into a database, or back: the items of a backup of the source are written into the target,
//! and then those of both are compared. Until they are equal no server opens the target.

use std::io::{BufWriter, Write, pipe};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aptix_model::id::{HistoryId, WorkspaceId};
use tokio::task::spawn_blocking;

use super::backup::{BackupError, Reader, Report, Summary, Unequal, compare};
use super::embedded::restore::{Filling, RestoredTokens};
use super::embedded::{EmbeddedStore, format};
use super::postgres::address::Address;
use super::postgres::migration as postgres;
use super::{Store, StoreError};

/// Bytes that are handed on at once.
const HANDED_ON: usize = 128 << 10;

/// Workspaces that are listed at once.
const LISTED: usize = 256;

/// How often progress is reported.
const EVERY: Duration = Duration::from_secs(1);

/// Where a store is, or is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a data directory.
    Embedded(PathBuf),
    /// In a PostgreSQL database.
    Postgres(Box<Address>),
}

/// What is done with every workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It is written into the target, unless it is there.
    Copy,
    /// It is read back and compared with the source.
    Compare,
}

/// Takes a stage, and how many workspaces are done of how many.
pub type Progress = fn(Stage, u64, u64);

/// Moves a store; the source stays as it is.
///
/// # Errors
/// When a server uses the source, the target has another store or a whole one, what was written differs from the source, or the system
/// refuses. Then no server opens the target, and the same call goes on: into a database with the workspaces that are not there yet, into
/// a directory from the beginning.
pub async fn migrate(from: Place, to: Place, progress: Progress) -> Result<Summary, BackupError> {
    let source = Source::open(from).await?;
    let target = Target::begin(to, source.history()).await?;
    let total = source.workspaces().await?;
    copy(&source, &target, report(Stage::Copy, total, progress)).await?;
    let summary = hold_against(&source, &target, report(Stage::Compare, total, progress)).await?;
    source.check_unused().await?;
    target.finish().await?;
    Ok(summary)
}

/// Reports how many workspaces are done: all, and others from time to time.
fn report(stage: Stage, total: u64, progress: Progress) -> Report {
    let mut last: Option<Instant> = None;
    Box::new(move |done| {
        if done == total || last.is_none_or(|last| last.elapsed() >= EVERY) {
            last = Some(Instant::now());
            progress(stage, done, total);
        }
    })
}

/// Where a backup is written to.
type Out = Box<dyn Write + Send>;

/// What is written into the one end is read from the other; the writer waits for the reader.
fn handing_on() -> Result<(std::io::PipeReader, Out), StoreError> {
    let made = pipe().map_err(|error| StoreError::Failed { action: "make a pipe", cause: error.to_string() });
    let (reader, writer) = made?;
    Ok((reader, Box::new(BufWriter::with_capacity(HANDED_ON, writer))))
}

/// Writes all of the source into the target.
async fn copy(source: &Source, target: &Target, report: Report) -> Result<(), BackupError> {
    let (items, out) = handing_on()?;
    let written = target.fill(move || Ok(Reader::begin(items)?.reporting(report)));
    let (read, written) = tokio::join!(source.back_up(out), written);
    match (read, written) {
        // A source that ended before is the cause of what looks cut off.
        (Err(read), Err(BackupError::Damaged { .. } | BackupError::Unreadable(_) | BackupError::NoBackup)) => {
            Err(read.into())
        }
        (read, written) => {
            written?;
            read?;
            Ok(())
        }
    }
}

/// Reads all of both and compares it. A workspace that differs is removed where the others stay.
async fn hold_against(source: &Source, target: &Target, report: Report) -> Result<Summary, BackupError> {
    let ((ours, ours_out), (theirs, theirs_out)) = (handing_on()?, handing_on()?);
    let compared = spawn_blocking(move || compare(ours, theirs, report));
    let (read, read_back, compared) = tokio::join!(source.back_up(ours_out), target.back_up(theirs_out), compared);
    let (workspace, why) = match compared.map_err(|error| BackupError::Unreadable(error.to_string()))? {
        Ok(summary) => {
            read?;
            read_back?;
            return Ok(summary);
        }
        Err(Unequal::Source(error)) => return Err(read.map_or_else(BackupError::from, |_| error)),
        Err(Unequal::Target { workspace, why }) => (workspace, why),
    };
    let why = match (why, read_back) {
        (Some(why), _) => why,
        (None, Err(StoreError::Corrupt { what, why })) => format!("the record of {what} is damaged: {why}"),
        (None, Err(error)) => return Err(error.into()),
        (None, Ok(_)) => "it does not read as a whole store".to_owned(),
    };
    if let Some(workspace) = &workspace {
        target.remove(workspace).await?;
    }
    Err(BackupError::Differs { place: target.place(), workspace, why })
}

/// The store that is moved.
enum Source {
    Embedded(Box<EmbeddedStore>),
    Postgres(Box<postgres::Source>),
}

impl Source {
    async fn open(place: Place) -> Result<Self, BackupError> {
        let dir = match place {
            Place::Postgres(address) => {
                return Ok(Self::Postgres(Box::new(postgres::Source::open(&address).await?)));
            }
            Place::Embedded(dir) => dir,
        };
        let opened = blocking(move || {
            if !format::is_store(&dir) {
                let cause = format!("{} has none; hint: name the directory of one with --data-dir", dir.display());
                return Err(StoreError::Failed { action: "be found", cause });
            }
            EmbeddedStore::look(&dir)
        });
        opened.await?.map(|store| Self::Embedded(Box::new(store))).map_err(|error| match error {
            StoreError::InUse { dir } => BackupError::Served {
                place: format!("the data directory {dir}"),
                why: "a server or a command has it; hint: stop the server and run the command again".to_owned(),
            },
            error => error.into(),
        })
    }

    fn history(&self) -> HistoryId {
        match self {
            Self::Embedded(store) => store.history(),
            Self::Postgres(store) => store.history(),
        }
    }

    async fn workspaces(&self) -> Result<u64, StoreError> {
        let store = match self {
            Self::Embedded(store) => store,
            Self::Postgres(store) => return store.workspaces().await,
        };
        let (mut count, mut last): (u64, Option<WorkspaceId>) = (0, None);
        loop {
            let page = store.workspaces(last.take(), LISTED).await?;
            let Some((listed, _)) = page.last() else { return Ok(count) };
            count += page.len() as u64;
            last = Some(listed.clone());
        }
    }

    async fn back_up(&self, out: Out) -> Result<Summary, StoreError> {
        match self {
            Self::Embedded(store) => store.back_up(out).await,
            Self::Postgres(store) => store.back_up(out).await,
        }
    }

    /// Refuses a store that a server began to use meanwhile; a data directory is locked.
    async fn check_unused(&self) -> Result<(), BackupError> {
        match self {
            Self::Embedded(_) => Ok(()),
            Self::Postgres(store) => store.check_unused().await,
        }
    }
}

/// What it becomes.
enum Target {
    Embedded(Arc<Filling>, PathBuf),
    Postgres(Box<postgres::Target>),
}

impl Target {
    async fn begin(place: Place, history: HistoryId) -> Result<Self, BackupError> {
        match place {
            Place::Postgres(address) => Ok(Self::Postgres(Box::new(postgres::Target::begin(&address, history).await?))),
            Place::Embedded(dir) => {
                let theirs = dir.clone();
                let filling = blocking(move || Filling::begin(&theirs)).await??;
                Ok(Self::Embedded(Arc::new(filling), dir))
            }
        }
    }

    async fn fill(
        &self,
        open: impl FnOnce() -> Result<Reader<std::io::PipeReader>, BackupError> + Send + 'static,
    ) -> Result<Summary, BackupError> {
        match self {
            Self::Postgres(target) => target.fill(open).await,
            Self::Embedded(filling, _) => {
                let filling = Arc::clone(filling);
                blocking(move || filling.fill(&mut open()?, RestoredTokens::Kept)).await?
            }
        }
    }

    async fn back_up(&self, out: Out) -> Result<Summary, StoreError> {
        match self {
            Self::Postgres(target) => target.back_up(out).await,
            Self::Embedded(filling, _) => {
                let filling = Arc::clone(filling);
                blocking(move || filling.back_up(out)).await?
            }
        }
    }

    /// Removes a workspace where others stay; a directory is emptied as a whole.
    async fn remove(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        match self {
            Self::Postgres(target) => target.remove(workspace).await,
            Self::Embedded(..) => Ok(()),
        }
    }

    async fn finish(&self) -> Result<(), BackupError> {
        match self {
            Self::Postgres(target) => Ok(target.finish().await?),
            Self::Embedded(filling, _) => {
                let filling = Arc::clone(filling);
                blocking(move || filling.finish()).await?
            }
        }
    }

    fn place(&self) -> String {
        match self {
            Self::Postgres(target) => target.place().to_owned(),
            Self::Embedded(_, dir) => format!("the data directory {}", dir.display()),
        }
    }
}

/// Does what blocks.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    let broken = |error: tokio::task::JoinError| StoreError::Failed { action: "be migrated", cause: error.to_string() };
    spawn_blocking(work).await.map_err(broken)
}
