//! The lock of the one process that uses a data directory.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use super::own_files;
use crate::store::StoreError;

/// The file that is locked.
const LOCK: &str = "server.lock";

/// How long a former owner may take to let go of the directory: a process that it started holds it as well until it runs
/// its own program.
pub(super) const RELEASE: Duration = Duration::from_millis(500);

/// How often it is tried meanwhile.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A data directory in use by this process, until this is dropped.
#[derive(Debug)]
pub struct Locked(#[expect(dead_code, reason = "held, never looked at")] File);

/// Takes a data directory for this process.
///
/// # Errors
/// When another one has it, or the system refuses.
pub fn lock(dir: &Path) -> Result<Locked, StoreError> {
    let path = dir.join(LOCK);
    let file = own_files::open(&path).map_err(|error| own_files::failed("open the data directory", &path, &error))?;
    let until = Instant::now() + RELEASE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Locked(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOOK_AGAIN),
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse { dir: dir.display().to_string() });
            }
            Err(TryLockError::Error(error)) => {
                return Err(own_files::failed("lock the data directory", &path, &error));
            }
        }
    }
}
