//! Moves the files that one commit displaces out of the workspace, and notes them in the index.

use std::cell::{OnceCell, RefCell};
use std::os::fd::{AsFd, OwnedFd};

use aptix_model::digest::Sha256Digest;
use rustix::fs::Stat;
use rustix::io::Errno;

use super::displaced_file::{DisplacedFile, Standing, beside, name_of};
use super::index;
use crate::workspace::commit::record::{FileStep, Hex};
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::since::Since;
use crate::workspace::fs::{beneath, errno};
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::regular;
use crate::workspace::roots::state::{Part, StateDir};

/// Moves the files that one commit displaces.
pub(crate) struct Displacer<'a> {
    disk: &'a dyn Disk,
    /// The state of each root of the record, and its directory of displaced files, once that is needed.
    roots: Vec<(StateDir, OnceCell<OwnedFd>)>,
    /// What was moved and is not in the index yet, by root.
    moved: RefCell<Vec<(usize, DisplacedFile)>>,
    /// Whether the commit's own result names the copies that are kept beside files.
    pub(crate) names_copies: bool,
}

impl<'a> Displacer<'a> {
    /// `states` belong to the roots of the record, in its order.
    pub(crate) fn new(disk: &'a dyn Disk, states: Vec<StateDir>) -> Self {
        let roots = states.into_iter().map(|state| (state, OnceCell::new())).collect();
        Self { disk, roots, moved: RefCell::default(), names_copies: false }
    }

    /// Notes a copy of another process's version that is kept beside a file, under a name in the same directory.
    pub(crate) fn note_copy(&self, file: &FileStep, kept: &str, stat: &Stat) {
        let Some(Hex(digest)) = file.before.or(file.after) else { return };
        let copy = FileStep { name: kept.to_owned(), ..file.clone() }.real();
        if self.moved.borrow().iter().any(|(root, moved)| *root == file.root && moved.name == copy) {
            return;
        }
        let found = DisplacedFile::found(copy.clone(), file.real(), digest, stat, Since::now(self.disk));
        let standing = if self.names_copies { Standing::Named } else { Standing::Changed };
        self.moved.borrow_mut().push((file.root, DisplacedFile { copy: Some(copy), standing, ..found }));
    }

    fn dir(&self, root: usize) -> Result<&OwnedFd, Errno> {
        let (state, cell) = self.roots.get(root).ok_or(Errno::NOENT)?;
        if let Some(dir) = cell.get() {
            return Ok(dir);
        }
        let dir = state.open(Part::DISPLACED).map_err(|error| error.errno())?;
        Ok(cell.get_or_init(|| dir))
    }

    /// Moves the file with the staged name out of the workspace, where processes that hold it open can still write to it.
    /// `digest` and `stamp` are of what it holds. A file that has another name is on disk there: it only loses this one.
    /// Where the file cannot be moved, it keeps a hidden name in its directory.
    pub(crate) fn take(
        &self,
        dir: &OwnedFd,
        file: &FileStep,
        digest: Sha256Digest,
        stamp: FileStamp,
    ) -> Result<(), Errno> {
        let Some(stat) = beneath::look_up(dir.as_fd(), &file.staged)? else { return Ok(()) };
        if stat.st_nlink > 1 {
            return disk::unlink_if_there(self.disk, dir.as_fd(), &file.staged);
        }
        let name = name_of(file, digest);
        let moved = self.dir(file.root).and_then(|to| {
            self.disk.rename(dir.as_fd(), &file.staged, to.as_fd(), &name)?;
            beneath::look_up(to.as_fd(), &name)
        });
        let (stat, beside) = match moved {
            Ok(stat) => (stat, None),
            Err(errno) => {
                tracing::debug!(%errno, file = file.real(), "the displaced file stays in its directory");
                let beside = beside(&name);
                let renamed = self.disk.rename(dir.as_fd(), &file.staged, dir.as_fd(), &beside);
                // Another process may have removed it, with its directory.
                let Some(()) = errno::optional(renamed)? else { return Ok(()) };
                (beneath::look_up(dir.as_fd(), &beside)?, Some(file.dir.clone()))
            }
        };
        let now = stat.as_ref().map(FileStamp::of);
        let entry = DisplacedFile {
            name,
            path: file.real(),
            beside,
            digest: Hex(digest),
            stamp: now.filter(|now| now.has_content_of(stamp) && stamp.is_settled(self.disk.now())),
            since: Since::now(self.disk),
            entry: None,
            copy: None,
            size: stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or_default()),
            standing: Standing::Held,
        };
        self.moved.borrow_mut().push((file.root, entry));
        Ok(())
    }

    /// Takes over a file that was moved by a process which died, or failed, before it wrote the index. `dir` is the
    /// directory of the file, where there still is one.
    pub(crate) fn adopt(&self, dir: Option<&OwnedFd>, file: &FileStep) -> Result<(), Errno> {
        let Some((state, _)) = self.roots.get(file.root) else { return Ok(()) };
        let displaced = state.find(Part::DISPLACED).map_err(|error| error.errno())?;
        let mut digests: Vec<_> = [file.before, file.after].into_iter().flatten().map(|hex| hex.0).collect();
        let names: Vec<_> = digests.iter().map(|digest| name_of(file, *digest)).collect();
        if self.moved.borrow().iter().any(|(_, moved)| names.contains(&moved.name)) {
            return Ok(());
        }
        let mut found = Vec::new();
        for (name, digest) in names.iter().zip(&digests) {
            let Some(displaced) = &displaced else { continue };
            found.extend(beneath::look_up(displaced.as_fd(), name)?.map(|stat| (*digest, stat, None)));
        }
        if let (Some(dir), Some(name), []) = (dir, names.first().map(|name| beside(name)), found.as_slice())
            && let Some(stat) = beneath::look_up(dir.as_fd(), &name)?
        {
            // Which of the two it was shows while it is unchanged.
            let now = regular::digest(dir.as_fd(), &name)?.map(|(digest, _)| digest);
            digests.sort_by_key(|digest| Some(*digest) != now);
            found.extend(digests.first().map(|digest| (*digest, stat, Some(file.dir.clone()))));
        }
        for (digest, stat, beside) in found {
            let since = Since::now(self.disk);
            let found = DisplacedFile::found(name_of(file, digest), file.real(), digest, &stat, since);
            self.moved.borrow_mut().push((file.root, DisplacedFile { beside, ..found }));
        }
        Ok(())
    }

    /// Writes to the index what was moved, with the batch's entry in the history. The index is durable only if it is needed to
    /// find a file again. Returns the bytes of what was moved.
    pub(crate) fn note(&self, entry: Option<&str>) -> Result<u64, Errno> {
        let mut moved = self.moved.take();
        moved.iter_mut().for_each(|(_, file)| file.entry = entry.map(str::to_owned));
        for (root, (state, _)) in self.roots.iter().enumerate() {
            let files: Vec<_> = moved.iter().filter(|(of, _)| *of == root).map(|(_, file)| file).collect();
            let is_needed = files.iter().any(|file| file.beside.is_some());
            let written = match files.as_slice() {
                [] => Ok(()),
                files => self.dir(root).and_then(|dir| index::append(self.disk, state, dir, files)),
            };
            match written {
                // What is in the directory is known by its name as well.
                Err(errno) if !is_needed => tracing::warn!(%errno, "the index of displaced files is not written"),
                written => written?,
            }
            if is_needed {
                self.dir(root).and_then(|dir| index::sync(self.disk, dir))?;
            }
        }
        Ok(moved.iter().map(|(_, file)| file.counted()).sum())
    }
}
