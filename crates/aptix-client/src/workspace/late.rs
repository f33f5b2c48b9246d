//! Old files that a commit has replaced or removed, held open for a while: who had one open writes to it still.
//!
//! What is written into such a file by then is kept beside the new one. Nothing of this needs the disk until somebody has.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime};

use aptix_model::digest::Sha256Digest;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::disk::{self, Disk};
use super::journal::{FileStep, Hex, Record};
use super::publish;
use super::{Workspace, beneath, history, snapshot};

/// How many are held; what is replaced while there are so many is not looked at again.
const HELD: usize = 256;
/// How long one is held before it is looked at.
const AGE: Duration = Duration::from_secs(5);
/// How long somebody is waited for who writes on and on.
const PATIENCE: Duration = Duration::from_mins(1);

/// An old file that has no name any more.
pub(super) struct Nameless {
    file: OwnedFd,
    step: FileStep,
    since: SystemTime,
    /// What it holds if nobody writes to it; afterwards what it held when it was last looked at.
    seen: Sha256Digest,
    /// The entry of the history that tells of the batch.
    entry: Option<String>,
}

/// How many more old files can be held.
pub(super) fn room(workspace: &Workspace) -> usize {
    HELD.saturating_sub(workspace.nameless().len())
}

/// Holds an old file that has lost its name.
pub(super) fn hold(workspace: &Workspace, record: &Record, step: &FileStep, file: OwnedFd) {
    let Some(Hex(seen)) = step.before else { return };
    let (since, entry) = (workspace.disk().now(), record.history.clone());
    workspace.nameless().push(Nameless { file, step: step.clone(), since, seen, entry });
}

/// Who is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// Whoever may not be done.
    Writers,
    /// Nobody.
    Nobody,
}

/// Looks at the files that were held for long enough. What somebody wrote into one is kept, once they pause.
pub(super) fn look(workspace: &Workspace, wait: Wait) {
    let now = workspace.disk().now();
    // A clock that was set back makes nothing young.
    let age = |nameless: &Nameless| now.duration_since(nameless.since).unwrap_or(PATIENCE);
    let is_due = |nameless: &mut Nameless| wait == Wait::Nobody || age(nameless) >= AGE;
    let due: Vec<_> = workspace.nameless().extract_if(.., is_due).collect();
    for mut nameless in due {
        let Ok(found) = snapshot::digest_of(nameless.file.as_fd()) else { continue };
        // What has another name is not lost.
        let is_named = rustix::fs::fstat(&nameless.file).is_ok_and(|stat| stat.st_nlink > 0);
        if is_named || nameless.step.before == Some(Hex(found)) {
            continue;
        }
        if nameless.seen != found && wait == Wait::Writers && age(&nameless) < PATIENCE {
            nameless.seen = found;
            workspace.nameless().push(nameless);
            continue;
        }
        let file = nameless.step.real();
        match keep(workspace, &nameless) {
            Ok(kept) => {
                tracing::warn!(file, kept, "somebody wrote into the old file after it was replaced; that is kept");
                if let Some(entry) = &nameless.entry
                    && let Err(error) = history::note_kept(workspace, entry, kept)
                {
                    tracing::warn!(%error, "the log does not tell of what was kept");
                }
            }
            Err(errno) => tracing::warn!(file, %errno, "what somebody wrote into the old file cannot be kept"),
        }
    }
}

/// Copies an old file beside the new one; tells its real path.
fn keep(workspace: &Workspace, nameless: &Nameless) -> Result<String, Errno> {
    let Nameless { file, step, .. } = nameless;
    let (disk, root) = (workspace.disk(), workspace.root(step.root).ok_or(Errno::NOENT)?);
    let dir = beneath::open_dir(root.dir(), &step.dir)?;
    for kept in publish::kept_names(step) {
        match disk.create(dir.as_fd(), &kept, Mode::RUSR | Mode::WUSR) {
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
            Ok(copy) => {
                copy_all(disk, file, &copy)?;
                disk::sync_dir(disk, dir.as_fd())?;
                return Ok(FileStep { name: kept, ..step.clone() }.real());
            }
        }
    }
    Err(Errno::EXIST)
}

fn copy_all(disk: &dyn Disk, from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    loop {
        let count = match rustix::io::pread(from, buffer.as_mut_slice(), at) {
            Ok(0) => return disk.sync(to.as_fd()),
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        disk::write_all(disk, to.as_fd(), buffer.get(..count).unwrap_or_default())?;
        at += count as u64;
    }
}
