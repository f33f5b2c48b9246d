//! The locks in a state directory: one batch, one outbox entry, one agent at a time.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::workspace::fs::disk;
use crate::workspace::roots::state::{StateDir, StateError};

/// How long a command waits for another one's batch to end.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// The lock of the agent that serves a root.
const AGENT_LOCK: &str = "agent.lock";
/// How often it looks.
const LOCK_STEP: Duration = Duration::from_millis(10);

/// A lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Puts a text into the file, in the place of the one before.
    pub(super) fn set_text(&self, text: &[u8]) -> Result<(), std::io::Error> {
        disk::set_lock_text(&self.file, text)
    }
}

impl StateDir {
    /// Takes the lock under which one batch at a time is committed; waits ten seconds for it.
    pub(crate) fn lock_commit(&self) -> Result<Lock, StateError> {
        self.lock("lock", LOCK_WAIT)
    }

    /// As [`Self::lock_commit`], at once or not at all.
    pub(crate) fn try_lock_commit(&self) -> Result<Lock, StateError> {
        self.lock("lock", Duration::ZERO)
    }

    /// Takes the lock under which the outbox is read and written, for as long as one entry takes.
    pub(crate) fn lock_outbox(&self) -> Result<Lock, StateError> {
        self.lock("outbox.lock", LOCK_WAIT)
    }

    /// Takes the lock under which prepared edits are kept, replaced and applied.
    pub(crate) fn lock_prepared(&self) -> Result<Lock, StateError> {
        self.lock("prepared.lock", LOCK_WAIT)
    }

    /// Takes the lock of the one agent that serves the root at this path, at once or not at all.
    ///
    /// # Errors
    /// When another agent has it or serves a root that lies in this one or around it, or the state directory cannot be
    /// used.
    pub fn lock_agent(&self, root: &Path) -> Result<Lock, StateError> {
        let lock = self.lock(AGENT_LOCK, Duration::ZERO)?;
        let path = self.path().join(AGENT_LOCK);
        let signed = lock.set_text(root.as_os_str().as_bytes());
        signed.map_err(|source| StateError::System { path, source })?;
        for sibling in self.siblings()? {
            let path = sibling.path().join(AGENT_LOCK);
            // A lock that an agent of long ago left still holds its path, and no process holds it.
            let overlaps = |other: Vec<u8>| {
                let other = PathBuf::from(OsString::from_vec(other));
                !other.as_os_str().is_empty() && (other.starts_with(root) || root.starts_with(&other))
            };
            if std::fs::read(&path).is_ok_and(overlaps) {
                sibling.lock(AGENT_LOCK, Duration::ZERO)?;
            }
        }
        Ok(lock)
    }

    pub(super) fn lock(&self, name: &str, wait: Duration) -> Result<Lock, StateError> {
        match self.check_own() {
            Err(StateError::System { source, .. }) if source.kind() == ErrorKind::NotFound => self.make(self.path())?,
            checked => checked?,
        }
        take_lock(self.path().join(name), wait)
    }

    /// Takes the lock under which what is of no root alone is read and written anew.
    pub(crate) fn lock_shared(&self) -> Result<Lock, StateError> {
        self.make(self.path())?;
        let home = self.path().parent().and_then(Path::parent).unwrap_or(self.path());
        take_lock(home.join("lock"), LOCK_WAIT)
    }
}

fn take_lock(path: PathBuf, wait: Duration) -> Result<Lock, StateError> {
    let system = |source| StateError::System { path: path.clone(), source };
    let file = disk::lock_file(&path).map_err(system)?;
    let deadline = Instant::now() + wait;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock { file }),
            Err(TryLockError::Error(source)) => return Err(system(source)),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(StateError::Busy(path));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_STEP),
        }
    }
}
