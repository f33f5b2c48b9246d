//! What the server is still owed: receipts of ended batches, and the new contents that belong to them.
//!
//! A receipt is put here by the same rename that ends its commit, so that no batch is applied and forgotten.

use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::BatchId;
use rustix::fs::{Dir, Mode};
use rustix::io::Errno;

use super::disk::{self, Disk};
use super::journal::{self, Record, RecordError};
use super::state::{StateDir, StateError};
use super::{Workspace, beneath};

/// Why the outbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refuses.
    #[error("cannot {doing} {}: {errno}", path.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// The directory.
        path: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// A receipt that is there and cannot be read.
    #[error("the receipt {} cannot be used: {source}", path.display())]
    Receipt {
        /// The receipt.
        path: PathBuf,
        /// What is wrong with it.
        source: RecordError,
    },
}

impl OutboxError {
    /// Whether it is for want of space on the disk, which somebody can make.
    #[must_use]
    pub(crate) fn is_lack_of_room(&self) -> bool {
        match self {
            Self::System { errno, .. } => matches!(*errno, Errno::NOSPC | Errno::DQUOT),
            Self::State(StateError::System { source, .. }) => {
                matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            }
            Self::State(_) | Self::Receipt { .. } => false,
        }
    }
}

/// A receipt that the server has not acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Whose.
    pub batch: BatchId,
    /// What was given to the commit, unchanged.
    pub receipt: Vec<u8>,
}

/// The batches whose receipts wait, oldest first.
///
/// # Errors
/// When the outbox cannot be read.
pub fn waiting(workspace: &Workspace) -> Result<Vec<BatchId>, OutboxError> {
    let outbox = Outbox::open(workspace)?;
    batches(&outbox.dir).map_err(outbox.system("read"))
}

/// The receipt of one batch, if it waits.
///
/// # Errors
/// When the outbox cannot be read, or the receipt is damaged.
pub fn find(workspace: &Workspace, batch: BatchId) -> Result<Option<Pending>, OutboxError> {
    Outbox::open(workspace)?.read(batch)
}

/// The new content of a file that a batch changed, by its digest; `None` once it is acknowledged.
///
/// # Errors
/// When the system refuses to read it.
pub fn content(workspace: &Workspace, batch: BatchId, digest: Sha256Digest) -> Result<Option<Vec<u8>>, OutboxError> {
    let outbox = Outbox::open(workspace)?;
    let held = outbox.dir.as_fd();
    let read = match beneath::open_dir(held, &contents_name(&batch.to_string())) {
        Ok(dir) => journal::read_whole(&dir, &digest.to_string()),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    };
    read.map_err(outbox.system("read"))
}

/// Keeps a receipt: that of a batch that changed nothing, or a fuller one for the one that its commit left.
///
/// # Errors
/// When it cannot be made durable.
pub fn put(workspace: &Workspace, batch: BatchId, receipt: &[u8]) -> Result<(), OutboxError> {
    let outbox = Outbox::open(workspace)?;
    let record = Record {
        boot: workspace.disk().boot(),
        history: None,
        ahead: None,
        roots: Vec::new(),
        clipboards: None,
        batch: Some(batch.to_string()),
        dirs: Vec::new(),
        files: Vec::new(),
    };
    let bytes = journal::encode(&record, receipt);
    journal::put_durably(workspace.disk(), &outbox.dir, &batch.to_string(), &bytes).map_err(outbox.system("write"))
}

/// Forgets what the server has acknowledged, but not that the batch has ended: it may come again, from a server that
/// tells its events once more. Doing it again does nothing.
///
/// # Errors
/// When the system refuses to remove it.
pub fn acknowledge(workspace: &Workspace, batch: BatchId) -> Result<(), OutboxError> {
    let outbox = Outbox::open(workspace)?;
    let done = Outbox::open_done(workspace)?;
    let (disk, name) = (workspace.disk(), batch.to_string());
    match disk.create(done.dir.as_fd(), &name, Mode::RUSR | Mode::WUSR) {
        Ok(_) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(done.system("note an ended batch in")(errno)),
    }
    disk::sync_dir(disk, done.dir.as_fd()).map_err(done.system("write"))?;
    // The receipt goes last: as long as it is there, whoever dies half-way comes back to finish this.
    remove_contents(disk, &outbox.dir, &name)
        .and_then(|()| disk::unlink_if_there(disk, outbox.dir.as_fd(), &name))
        .and_then(|()| disk::sync_dir(disk, outbox.dir.as_fd()))
        .map_err(outbox.system("clear"))
}

/// Whether a batch has ended here and the server has acknowledged it.
///
/// # Errors
/// When the system refuses to look.
pub fn is_done(workspace: &Workspace, batch: BatchId) -> Result<bool, OutboxError> {
    let done = Outbox::open_done(workspace)?;
    let found = beneath::look_up(done.dir.as_fd(), &batch.to_string()).map_err(done.system("read"))?;
    Ok(found.is_some())
}

/// Forgets ended batches but for the newest so many.
///
/// # Errors
/// When the system refuses.
pub fn forget_done(workspace: &Workspace, keep: usize) -> Result<(), OutboxError> {
    let done = Outbox::open_done(workspace)?;
    let batches = batches(&done.dir).map_err(done.system("read"))?;
    for batch in batches.iter().take(batches.len().saturating_sub(keep)) {
        disk::unlink_if_there(workspace.disk(), done.dir.as_fd(), &batch.to_string()).map_err(done.system("clear"))?;
    }
    Ok(())
}

struct Outbox {
    dir: OwnedFd,
    path: PathBuf,
}

impl Outbox {
    fn open(workspace: &Workspace) -> Result<Self, OutboxError> {
        let state = workspace.primary().state();
        Ok(Self { dir: state.open_outbox()?, path: state.path().join("outbox") })
    }

    /// The names of ended batches, beside what is still owed.
    fn open_done(workspace: &Workspace) -> Result<Self, OutboxError> {
        let state = workspace.primary().state();
        Ok(Self { dir: state.open_done()?, path: state.path().join("done") })
    }

    fn system(&self, doing: &'static str) -> impl Fn(Errno) -> OutboxError + use<> {
        let path = self.path.clone();
        move |errno| OutboxError::System { doing, path: path.clone(), errno }
    }

    fn read(&self, batch: BatchId) -> Result<Option<Pending>, OutboxError> {
        let bytes = journal::read_whole(&self.dir, &batch.to_string()).map_err(self.system("read"))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let path = self.path.join(batch.to_string());
        let (_, receipt) = journal::decode(&bytes).map_err(|source| OutboxError::Receipt { path, source })?;
        Ok(Some(Pending { batch, receipt: receipt.to_vec() }))
    }
}

/// The batches that a directory has an entry for, oldest first.
pub(super) fn batches(dir: &OwnedFd) -> Result<Vec<BatchId>, Errno> {
    let mut batches = Vec::new();
    for entry in Dir::new(disk::open_readable(dir.as_fd())?)? {
        batches.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<BatchId>().ok()));
    }
    batches.sort();
    Ok(batches)
}

fn contents_name(batch: &str) -> String {
    format!("{batch}.d")
}

/// Makes the place for a batch's new contents, empty.
pub(super) fn open_contents(disk: &dyn Disk, state: &StateDir, batch: &str) -> Result<OwnedFd, Errno> {
    let outbox = state.open_outbox().map_err(|_| Errno::IO)?;
    remove_contents(disk, &outbox, batch)?;
    let name = contents_name(batch);
    disk.make_dir(outbox.as_fd(), &name, Mode::RWXU)?;
    beneath::open_dir(outbox.as_fd(), &name)
}

/// Keeps one new content. It is durable once the file that is returned, if any, is, and [`sync_contents`] was called.
pub(super) fn put_content(
    disk: &dyn Disk,
    dir: &OwnedFd,
    digest: Sha256Digest,
    bytes: &[u8],
) -> Result<Option<OwnedFd>, Errno> {
    if beneath::look_up(dir.as_fd(), &digest.to_string())?.is_some() {
        return Ok(None);
    }
    let file = disk.create(dir.as_fd(), &digest.to_string(), Mode::RUSR | Mode::WUSR)?;
    disk::write_all(disk, file.as_fd(), bytes)?;
    Ok(Some(file))
}

/// Makes the names of new contents durable.
pub(super) fn sync_contents(disk: &dyn Disk, state: &StateDir, dir: &OwnedFd) -> Result<(), Errno> {
    let outbox = state.open_outbox().map_err(|_| Errno::IO)?;
    disk::sync_dir(disk, dir.as_fd())?;
    disk::sync_dir(disk, outbox.as_fd())
}

/// Forgets the contents of a batch that was not applied.
pub(super) fn drop_contents(
    disk: &dyn Disk,
    state: &StateDir,
    batch: Option<&str>,
) -> Result<(), journal::JournalError> {
    let Some(batch) = batch else { return Ok(()) };
    let outbox = state.open_outbox()?;
    remove_contents(disk, &outbox, batch).map_err(|errno| journal::JournalError::System {
        doing: "clear",
        path: state.path().join("outbox"),
        errno,
    })
}

/// Forgets the contents of batches that have no receipt. The caller knows that no batch may still be carried out.
pub(super) fn drop_unclaimed(disk: &dyn Disk, state: &StateDir) -> Result<(), Errno> {
    let Some(outbox) = state.find_outbox().map_err(|_| Errno::IO)? else { return Ok(()) };
    for entry in Dir::new(disk::open_readable(outbox.as_fd())?)? {
        let entry = entry?;
        let Some(batch) = entry.file_name().to_str().ok().and_then(|name| name.strip_suffix(".d")) else { continue };
        if beneath::look_up(outbox.as_fd(), batch)?.is_none() {
            remove_contents(disk, &outbox, batch)?;
        }
    }
    Ok(())
}

fn remove_contents(disk: &dyn Disk, outbox: &OwnedFd, batch: &str) -> Result<(), Errno> {
    let name = contents_name(batch);
    let dir = match beneath::open_dir(outbox.as_fd(), &name) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    for entry in Dir::new(disk::open_readable(dir.as_fd())?)? {
        let entry = entry?;
        if let Some(file) = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | "..")) {
            disk::unlink_if_there(disk, dir.as_fd(), file)?;
        }
    }
    disk.remove_dir(outbox.as_fd(), &name)
}
