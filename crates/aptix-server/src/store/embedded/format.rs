//! The format of a data directory: how its records are laid out.
//!
//! The record that names the store's history has it, and changes in one commit with the records. The file `format` has it as
//! well: it is read before anything is opened, so that a directory of a newer server is refused untouched.

use std::io::ErrorKind;
use std::path::Path;

use super::record::UNNAMED;
use super::{marks, own_files};
use crate::store::StoreError;

/// The format that this server writes.
pub const FORMAT: u64 = 2;

/// The file's name in the data directory.
pub(super) const FILE: &str = "format";

const BEFORE: &str = "aptix-server data directory, format ";

/// The content of the file while a backup is restored into the directory.
const RESTORING: &str = "aptix-server data directory, being restored: not whole\n";

/// Reads the file of a data directory; `None` if there is none.
///
/// # Errors
/// When it names a newer format or no format, or cannot be read.
pub(super) fn read(dir: &Path) -> Result<Option<u64>, StoreError> {
    let path = dir.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(own_files::failed("read the format of the data directory", &path, &error)),
    };
    if text == RESTORING {
        return Err(StoreError::Unrestored { place: format!("the data directory {}", dir.display()) });
    }
    let Some(found) = text.strip_prefix(BEFORE).and_then(|rest| rest.trim_end().parse().ok()) else {
        let why = format!("expected one line `{BEFORE}N`, found {:?}", text.chars().take(80).collect::<String>());
        return Err(StoreError::Corrupt { what: format!("the format, {}", path.display()), why });
    };
    check(dir, found)?;
    Ok(Some(found))
}

/// Refuses a format that this server does not know.
///
/// # Errors
/// When it is newer.
pub(super) fn check(dir: &Path, found: u64) -> Result<(), StoreError> {
    if (UNNAMED..=FORMAT).contains(&found) {
        return Ok(());
    }
    Err(StoreError::OtherFormat { dir: dir.display().to_string(), found, newest: FORMAT })
}

/// Writes the file, durably.
///
/// # Errors
/// When the system refuses.
pub(super) fn write(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(FILE);
    let written = own_files::replace(&path, format!("{BEFORE}{FORMAT}\n").as_bytes());
    written.map(drop).map_err(|error| own_files::failed("write the format of the data directory", &path, &error))
}

/// Notes, durably, that a backup is being restored into a directory: nothing opens it before [`write()`] replaces that.
///
/// # Errors
/// When the system refuses.
pub(super) fn begin_restore(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(FILE);
    let written = own_files::replace(&path, RESTORING.as_bytes());
    written.map(drop).map_err(|error| own_files::failed("restore into the directory", &path, &error))
}

/// Whether a restore into a directory was cut off.
pub(super) fn is_unrestored(dir: &Path) -> bool {
    matches!(read(dir), Err(StoreError::Unrestored { .. }))
}

/// Removes the file, durably: a directory without one has an older format, or nothing.
///
/// # Errors
/// When the system refuses.
pub(super) fn forget(dir: &Path) -> std::io::Result<()> {
    own_files::remove(&dir.join(FILE))
}

/// Whether a directory has a store in it.
#[must_use]
pub fn is_store(dir: &Path) -> bool {
    dir.join("version").exists() || dir.join(marks::FILE).exists()
}

/// Whether a directory has a store of an older format, which a start would upgrade.
///
/// # Errors
/// When its format cannot be read, or is newer.
pub fn is_old(dir: &Path) -> Result<bool, StoreError> {
    Ok(is_store(dir) && read(dir)?.is_none_or(|found| found < FORMAT))
}

/// Names the format of a directory that has no store yet; answers whether the one there is has an older format.
///
/// # Errors
/// When the format cannot be read, or is newer, or the system refuses.
pub(super) fn begin(dir: &Path) -> Result<bool, StoreError> {
    if read(dir)?.is_none() && !is_store(dir) {
        write(dir)?;
    }
    is_old(dir)
}
