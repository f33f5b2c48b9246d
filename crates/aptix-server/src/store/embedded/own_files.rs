//! The server's own files beside its database: written whole, copied aside, or linked into a directory where they can be looked
//! at without being touched.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::mint;
use crate::store::StoreError;

/// How the name of a look-alike begins.
const VIEW: &str = ".view-";

/// Makes the error of something that the system refused.
pub(super) fn failed(action: &'static str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Failed { action, cause: format!("{}: {error}", path.display()) }
}

/// Makes a directory that only its owner reads, if it is not there.
pub(super) fn make_dir(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[expect(clippy::disallowed_types, reason = "the server's own data")]
fn options() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Opens a file, and makes it if there is none.
pub(super) fn open(path: &Path) -> std::io::Result<File> {
    options().create(true).truncate(false).open(path)
}

/// Writes a file as a whole, durably, over the one there may be.
#[expect(clippy::disallowed_methods, reason = "the server's own data")]
pub(super) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<File> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let staged = dir.join(format!(".new-{}", mint::uuid()));
    let mut file = options().create_new(true).open(&staged)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&staged, path));
    if let Err(error) = written {
        // The file that is left is never read.
        let _ = std::fs::remove_file(&staged);
        return Err(error);
    }
    sync_dir(dir)?;
    Ok(file)
}

/// Removes a file, durably.
#[expect(clippy::disallowed_methods, reason = "the server's own data")]
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    std::fs::remove_file(path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> std::io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Cuts a file off.
pub(super) fn truncate(path: &Path, length: u64) -> std::io::Result<()> {
    let file = options().open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

/// Copies the first bytes of a file into a new one, durably; of the rest, only how long it is.
pub(super) fn copy(from: &Path, to: &Path, length: u64) -> std::io::Result<()> {
    let mut target = options().create_new(true).open(to)?;
    std::io::copy(&mut File::open(from)?.take(length), &mut target)?;
    target.sync_all()
}

/// Where the bytes of a file end that are not zero.
pub(super) fn used(path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let mut end = file.metadata()?.len();
    let (mut block, zeros) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let length = usize::try_from(end - start).ok();
        let part = length.and_then(|length| block.get_mut(..length)).ok_or(ErrorKind::InvalidData)?;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        // Most of a journal is zeros, set aside in advance: whole blocks of them are passed at once.
        if !zeros.starts_with(part)
            && let Some(last) = part.iter().rposition(|byte| *byte != 0)
        {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Removes what a restore writes, but for the file that says that the directory is not whole.
#[expect(clippy::disallowed_methods, reason = "the server's own data")]
pub(super) fn clear(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let Some(text) = name.to_str() else { continue };
        let path = dir.join(&name);
        if text == "keyspaces" {
            std::fs::remove_dir_all(&path)?;
        } else if ["version", "lock", "acknowledged", "tokens-needed"].contains(&text)
            || text.ends_with(".jnl")
            || text.starts_with(".new-")
        {
            std::fs::remove_file(&path)?;
        }
    }
    sync_dir(dir)
}

/// A look-alike of a data directory, which a database can be opened in without changing the real one. Gone when dropped.
#[derive(Debug)]
pub(super) struct View(PathBuf);

impl View {
    /// Makes one. Tables never change once they are written, so they are linked; the rest is copied, journals only up to the
    /// given lengths.
    pub(super) fn of(dir: &Path, journals: &[(PathBuf, u64)]) -> std::io::Result<Self> {
        let view = Self(dir.join(format!("{VIEW}{}", mint::uuid())));
        if make_dir(&view.0).is_err() {
            // A directory that cannot be written in can be looked at as well.
            return Self(std::env::temp_dir().join(format!("aptix-server{VIEW}{}", mint::uuid())))
                .filled(dir, journals);
        }
        view.filled(dir, journals)
    }

    fn filled(self, dir: &Path, journals: &[(PathBuf, u64)]) -> std::io::Result<Self> {
        make_dir(&self.0)?;
        for name in ["version", "lock"] {
            if dir.join(name).exists() {
                copy(&dir.join(name), &self.0.join(name), u64::MAX)?;
            }
        }
        for (journal, length) in journals {
            if let Some(name) = journal.file_name() {
                copy(journal, &self.0.join(name), *length)?;
            }
        }
        if dir.join("keyspaces").exists() {
            link_tree(&dir.join("keyspaces"), &self.0.join("keyspaces"))?;
        }
        Ok(self)
    }

    /// Keeps it, durably, in another place on the same file system.
    #[expect(clippy::disallowed_methods, reason = "the server's own data")]
    pub(super) fn keep(mut self, path: &Path) -> std::io::Result<()> {
        sync_tree(&self.0)?;
        std::fs::rename(&self.0, path)?;
        // There is nothing left to remove.
        self.0 = PathBuf::new();
        path.parent().map_or(Ok(()), sync_dir)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes what an earlier process left.
    #[expect(clippy::disallowed_methods, reason = "the server's own data")]
    pub(super) fn sweep(dir: &Path) {
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let path = entry.path();
            match name.to_str() {
                Some(name) if name.starts_with(VIEW) => drop(std::fs::remove_dir_all(path)),
                Some(name) if name.starts_with(".new-") => drop(std::fs::remove_file(path)),
                _ => {}
            }
        }
    }
}

impl Drop for View {
    #[expect(clippy::disallowed_methods, reason = "the server's own data")]
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // What stays is swept at the next start.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the server's own data")]
fn link_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    make_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            link_tree(&source, &target)?;
            continue;
        }
        if !is_table(&source) || std::fs::hard_link(&source, &target).is_err() {
            copy(&source, &target, u64::MAX)?;
        }
    }
    Ok(())
}

/// Whether a file never changes once it is written.
fn is_table(path: &Path) -> bool {
    path.parent().and_then(Path::file_name).is_some_and(|dir| dir == "tables" || dir == "blobs")
}

/// Makes the names in a directory and in those below it durable.
pub(super) fn sync_tree(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        }
    }
    sync_dir(dir)
}

/// Bytes that a look-alike of a data directory takes: of journals up to these lengths, and of what is not linked.
pub(super) fn copied_bytes(dir: &Path, journals: &[(PathBuf, u64)]) -> std::io::Result<u64> {
    let journals: u64 = journals.iter().map(|(_, length)| length).sum();
    let tables = dir.join("keyspaces");
    let others = if tables.exists() { tree_bytes(&tables, &mut None)? } else { 0 };
    Ok(journals + others)
}

/// Bytes of the files in a tree, without the tables, if the file system links files; the first one found is tried.
#[expect(clippy::disallowed_methods, reason = "the server's own data")]
fn tree_bytes(dir: &Path, links: &mut Option<bool>) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            bytes += tree_bytes(&path, links)?;
            continue;
        }
        let is_linked = is_table(&path)
            && *links.get_or_insert_with(|| {
                let tried = dir.with_file_name(format!(".new-{}", mint::uuid()));
                std::fs::hard_link(&path, &tried).and_then(|()| std::fs::remove_file(&tried)).is_ok()
            });
        bytes += if is_linked { 0 } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
