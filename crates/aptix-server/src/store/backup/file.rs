//! The file that a backup becomes: it has its name only once all of it is on disk and was read back.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::item::BackupError;
use super::reader::verify;
use crate::mint;
use crate::store::backup_summary::Summary;

/// A backup that is being written, beside the place that it will have. Removed when dropped.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    partial: PathBuf,
    file: File,
    replaces: bool,
}

impl NewFile {
    /// Begins a file that only its owner reads; `replaces` says whether it may take the place of another one.
    ///
    /// # Errors
    /// When there is another one that it may not replace, or the system refuses.
    #[expect(clippy::disallowed_types, reason = "the server's own file")]
    pub fn create(path: &Path, replaces: bool) -> Result<Self, BackupError> {
        check(path, replaces)?;
        let unwritable = |why: &str| BackupError::Unwritable { path: path.display().to_string(), why: why.to_owned() };
        let Some(name) = path.file_name() else { return Err(unwritable("it is no name of a file")) };
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".partial-{}", mint::uuid()));
        let partial = path.with_file_name(partial);
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial);
        let file = file.map_err(|error| unwritable(&error.to_string()))?;
        Ok(Self { path: path.to_owned(), partial, file, replaces })
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.file.write_all(bytes).map_err(|error| self.unwritable(&error))
    }

    /// Flushes the file, reads it back, and gives it its name.
    ///
    /// # Errors
    /// When it is not a whole backup, when another file has the name by now, or the system refuses.
    #[expect(clippy::disallowed_methods, reason = "the server's own file")]
    pub fn finish(self) -> Result<Summary, BackupError> {
        self.file.sync_all().map_err(|error| self.unwritable(&error))?;
        let summary = verify(&self.partial)?;
        check(&self.path, self.replaces)?;
        std::fs::rename(&self.partial, &self.path).map_err(|error| self.unwritable(&error))?;
        let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| self.unwritable(&error))?;
        Ok(summary)
    }

    fn unwritable(&self, error: &std::io::Error) -> BackupError {
        BackupError::Unwritable { path: self.path.display().to_string(), why: error.to_string() }
    }
}

impl Drop for NewFile {
    #[expect(clippy::disallowed_methods, reason = "the server's own file")]
    fn drop(&mut self) {
        // It is gone where it got its name.
        let _ = std::fs::remove_file(&self.partial);
    }
}

fn check(path: &Path, replaces: bool) -> Result<(), BackupError> {
    if !replaces && path.symlink_metadata().is_ok() {
        return Err(BackupError::Exists { path: path.display().to_string() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// The bytes of a backup of a store that has nothing.
    fn empty() -> Vec<u8> {
        use crate::store::backup::{Item, StoreFacts, Writer};
        use aptix_model::id::{HistoryId, Uuid};
        use aptix_model::record::UnixMillis;
        let (history, taken, server) = (HistoryId(Uuid::from_u128(7)), UnixMillis(1), String::new());
        let mut bytes = Vec::new();
        let mut backup = Writer::begin(&mut bytes).unwrap();
        backup.item(&Item::Store(StoreFacts { history, taken, server, age: None, tokens_needed: false })).unwrap();
        backup.finish().unwrap();
        bytes
    }

    fn names(dir: &Path) -> usize {
        std::fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn a_file_has_its_name_once_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("backup");
        let bytes = empty();
        for length in [0, 15, bytes.len() - 1] {
            let mut file = NewFile::create(&path, false).unwrap();
            file.write(&bytes[..length]).unwrap();
            assert!(file.finish().is_err(), "{length} bytes");
            assert_eq!(names(dir.path()), 0);
        }
        let mut file = NewFile::create(&path, false).unwrap();
        file.write(&bytes).unwrap();
        assert!(!path.exists());
        let summary = file.finish().unwrap();
        assert_eq!(summary.bytes, bytes.len() as u64);
        assert_eq!(verify(&path), Ok(summary));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(NewFile::create(&path, false), Err(BackupError::Exists { .. })));
        NewFile::create(&path, true).unwrap().write(b"x").unwrap();
        assert_eq!(names(dir.path()), 1);
        assert!(verify(&path).is_ok(), "it is replaced by a whole backup alone");
    }
}
