//! Displaced writes: what another process writes to a file after a batch has replaced or removed it.
//!
//! Such a process holds the old file open. A commit therefore moves the old file into the state directory instead of
//! removing it. Every command that opens the root compares it with what it held at the exchange (`sweep.rs`): a changed
//! file stays and is named, an unchanged one is removed after [`HELD_FOR`] or when all of them exceed [`HELD_BYTES`].

mod index;
mod sweep;

use std::cell::{OnceCell, RefCell};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Visible;
use aptix_model::report::Warning;
use rustix::fs::Stat;
use rustix::io::Errno;

use crate::workspace::Workspace;
use crate::workspace::commit::journal::{FileStep, Hex};
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::keep::age::Since;
use crate::workspace::read::snapshot::{self, Stamp};
use crate::workspace::roots::state::StateDir;
use index::{DisplacedFile, Standing};
pub(in crate::workspace) use sweep::{Sweeping, sweep};

/// How long a displaced file is held at most while it is unchanged.
pub const HELD_FOR: Duration = Duration::from_hours(24);
/// Bytes of unchanged displaced files of one root; beyond them the oldest are removed first.
pub const HELD_BYTES: u64 = 256 << 20;
/// How long a displaced file is held at least, however many bytes there are.
pub const HELD_AT_LEAST: Duration = Duration::from_mins(1);
/// Bytes that a displaced file counts for at least, which bounds how many there are.
const LEAST_BYTES: u64 = 4096;
/// Bytes of the longest name that file systems take.
const NAME_BYTES: usize = 255;
/// How the name of a displaced file ends that stays in the directory of its file.
const BESIDE: &str = ".aptix-displaced";

/// A file that another process wrote after a batch had replaced or removed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DisplacedWrite {
    /// Position of the root.
    pub(in crate::workspace) root: usize,
    /// Real path in the root of the file that was replaced; only its name where a power cut took the rest.
    pub path: String,
    /// Where the version of the other process is kept.
    pub kept_as: PathBuf,
    /// The entry of the history whose batch replaced the file; absent when the batch was rolled back.
    pub entry: Option<String>,
    /// Whether a result has named it.
    pub is_named: bool,
    /// The name in the index.
    name: String,
}

impl DisplacedWrite {
    /// The code of the warning about it.
    pub const CODE: &str = "DISPLACED_WRITE";

    /// Path of the file as users of the workspace name it: with several roots it begins with the root's name.
    #[must_use]
    pub fn path_in(&self, workspace: &Workspace) -> String {
        match workspace.root(self.root) {
            Some(root) if workspace.roots().len() > 1 => format!("{}/{}", root.name(), self.path),
            _ => self.path.clone(),
        }
    }

    /// The warning about it for a reader on this machine.
    #[must_use]
    pub fn warning(&self, workspace: &Workspace) -> Warning {
        self.warn(workspace, &format!("that version is kept as {}", self.kept_as.display()))
    }

    /// The warning about it for a reader who does not learn where the state directory is.
    #[must_use]
    pub fn warning_elsewhere(&self, workspace: &Workspace) -> Warning {
        self.warn(workspace, "`aptix log`, run by the user, names the kept copy")
    }

    fn warn(&self, workspace: &Workspace, kept: &str) -> Warning {
        let path = self.path_in(workspace);
        let path = Visible(&path);
        let message = format!("another process wrote to the old version of {path} after a batch replaced it; {kept}");
        Warning { code: Self::CODE.to_owned(), message, line: None }
    }
}

/// Moves the files that one commit displaces.
pub(in crate::workspace) struct Displacer<'a> {
    disk: &'a dyn Disk,
    /// The state of each root of the record.
    states: Vec<StateDir>,
    /// The directory of displaced files of each root, once it is needed.
    dirs: Vec<OnceCell<OwnedFd>>,
    /// What was moved and is not in the index yet, by root.
    moved: RefCell<Vec<(usize, DisplacedFile)>>,
    /// What is said of a copy that is kept beside its file.
    kept_is: Standing,
}

impl<'a> Displacer<'a> {
    /// `states` belong to the roots of the record, in its order.
    pub(in crate::workspace) fn new(disk: &'a dyn Disk, states: Vec<StateDir>) -> Self {
        let dirs = states.iter().map(|_| OnceCell::new()).collect();
        Self { disk, states, dirs, moved: RefCell::default(), kept_is: Standing::Changed }
    }

    /// As it is in a commit whose own result names the copies that are kept beside files.
    pub(in crate::workspace) fn of_a_result(self) -> Self {
        Self { kept_is: Standing::Named, ..self }
    }

    /// Notes a copy of another process's version that is kept beside a file, under a name in the same directory.
    pub(in crate::workspace) fn note_copy(&self, file: &FileStep, kept: &str, stat: &Stat) {
        let Some(Hex(digest)) = file.before.or(file.after) else { return };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let copy = FileStep { name: kept.to_owned(), ..file.clone() }.real();
        if self.moved.borrow().iter().any(|(root, moved)| *root == file.root && moved.name == copy) {
            return;
        }
        let found = DisplacedFile::found(copy.clone(), file.real(), digest, size, Since::now(self.disk));
        let (copy, standing) = (Some(copy), self.kept_is);
        self.moved.borrow_mut().push((file.root, DisplacedFile { copy, standing, ..found }));
    }

    fn dir(&self, root: usize) -> Result<&OwnedFd, Errno> {
        let (cell, state) = self.dirs.get(root).zip(self.states.get(root)).ok_or(Errno::NOENT)?;
        if let Some(dir) = cell.get() {
            return Ok(dir);
        }
        let dir = state.open_displaced().map_err(|error| error.errno())?;
        Ok(cell.get_or_init(|| dir))
    }

    /// Moves the file with the staged name out of the workspace, where processes that hold it open can still write to it.
    /// `digest` and `stamp` are of what it holds. A file that has another name is on disk there: it only loses this one.
    /// Where the file cannot be moved, it keeps a hidden name in its directory.
    pub(in crate::workspace) fn take(
        &self,
        dir: &OwnedFd,
        file: &FileStep,
        digest: Sha256Digest,
        stamp: Stamp,
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
                match self.disk.rename(dir.as_fd(), &file.staged, dir.as_fd(), &beside) {
                    // Another process removed it, with its directory.
                    Err(Errno::NOENT) => return Ok(()),
                    renamed => renamed?,
                }
                (beneath::look_up(dir.as_fd(), &beside)?, Some(file.dir.clone()))
            }
        };
        let now = stat.as_ref().map(Stamp::of);
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
    pub(in crate::workspace) fn adopt(&self, dir: Option<&OwnedFd>, file: &FileStep) -> Result<(), Errno> {
        let Some(state) = self.states.get(file.root) else { return Ok(()) };
        let displaced = state.find_displaced().map_err(|error| error.errno())?;
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
            let now = snapshot::digest(dir.as_fd(), &name)?.map(|(digest, _)| digest);
            digests.sort_by_key(|digest| Some(*digest) != now);
            found.extend(digests.first().map(|digest| (*digest, stat, Some(file.dir.clone()))));
        }
        for (digest, stat, beside) in found {
            let (name, size) = (name_of(file, digest), u64::try_from(stat.st_size).unwrap_or_default());
            let found = DisplacedFile::found(name, file.real(), digest, size, Since::now(self.disk));
            self.moved.borrow_mut().push((file.root, DisplacedFile { beside, ..found }));
        }
        Ok(())
    }

    /// Writes to the index what was moved, with the entry of the history that tells of the batch. The index is durable only
    /// if it is needed to find a file again. Gives the bytes of what was moved.
    pub(in crate::workspace) fn note(&self, entry: Option<&str>) -> Result<u64, Errno> {
        let mut moved = self.moved.take();
        moved.iter_mut().for_each(|(_, file)| file.entry = entry.map(str::to_owned));
        for (root, state) in self.states.iter().enumerate() {
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

/// The name of a displaced file: what no other has, the digest of what it held, and the name of the file, cut if need be.
fn name_of(file: &FileStep, digest: Sha256Digest) -> String {
    let unique = file.staged.trim_matches('.').split('.').next().unwrap_or_default();
    let mark = format!("{unique}.{digest}-");
    let room = NAME_BYTES.saturating_sub(mark.len());
    format!("{mark}{}", file.name.get(..file.name.floor_char_boundary(room)).unwrap_or_default())
}

/// The name of a displaced file that stays in the directory of its file.
fn beside(name: &str) -> String {
    let unique = name.split('.').next().unwrap_or_default();
    format!(".{unique}{BESIDE}")
}

/// The digest in the name of a displaced file, and what the file was called.
fn parse_name(name: &str) -> Option<(Sha256Digest, &str)> {
    let (digest, name) = name.split_once('.')?.1.split_once('-')?;
    Some((digest.parse().ok()?, name))
}

/// The displaced writes of the roots of a workspace that are kept, oldest first.
///
/// # Errors
/// When the index cannot be read.
pub(in crate::workspace) fn list(workspace: &Workspace) -> Result<Vec<DisplacedWrite>, Errno> {
    let mut writes = Vec::new();
    for (root, held) in workspace.roots().iter().enumerate() {
        let Some(dir) = held.state().find_displaced().map_err(|error| error.errno())? else { continue };
        let changed = index::read(held.state(), &dir)?.into_iter().filter(|file| file.standing != Standing::Held);
        for file in changed {
            let (place, kept) = match (&file.copy, &file.beside) {
                (Some(copy), _) => (held.path().to_owned(), copy.clone()),
                (None, None) => (held.state().displaced(), file.name.clone()),
                (None, Some(dir)) => (held.path().join(dir), beside(&file.name)),
            };
            // A user may remove a copy that is no longer needed.
            if !matches!(rustix::fs::lstat(place.join(&kept)), Err(Errno::NOENT)) {
                let is_named = file.standing == Standing::Named;
                let DisplacedFile { path, entry, name, .. } = file;
                writes.push(DisplacedWrite { root, path, kept_as: place.join(kept), entry, is_named, name });
            }
        }
    }
    Ok(writes)
}

/// The indexes of the roots of a workspace, held open; nothing for a root without one.
pub(in crate::workspace) struct Indexes(Vec<Option<OwnedFd>>);

impl Indexes {
    /// Holds the indexes that there are.
    pub(in crate::workspace) fn hold(workspace: &Workspace) -> Result<Self, Errno> {
        let hold = |state: &StateDir| match state.find_displaced().map_err(|error| error.errno())? {
            Some(dir) => index::hold(&dir),
            None => Ok(None),
        };
        workspace.roots().iter().map(|root| hold(root.state())).collect::<Result<_, _>>().map(Self)
    }

    /// Whether nothing has become known of a displaced file since, in this process or another one.
    pub(in crate::workspace) fn are_current(&self, workspace: &Workspace) -> Result<bool, Errno> {
        for (root, held) in workspace.roots().iter().zip(&self.0) {
            let is_current = match root.state().find_displaced().map_err(|error| error.errno())? {
                Some(dir) => index::is_current(&dir, held.as_ref())?,
                None => held.is_none(),
            };
            if !is_current {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The displaced writes that no result has named yet; from now on they count as named. The caller holds the lock.
pub(in crate::workspace) fn take_unnamed(workspace: &Workspace) -> Result<Vec<DisplacedWrite>, Errno> {
    let mut writes = list(workspace)?;
    writes.retain(|write| !write.is_named);
    for (root, held) in workspace.roots().iter().enumerate() {
        let Some(dir) = held.state().find_displaced().map_err(|error| error.errno())? else { continue };
        let is_taken = |file: &DisplacedFile| writes.iter().any(|write| write.root == root && write.name == file.name);
        let mut files = index::read(held.state(), &dir)?;
        let mut taken = files.iter_mut().filter(|file| is_taken(file)).peekable();
        if taken.peek().is_some() {
            taken.for_each(|file| file.standing = Standing::Named);
            index::write(workspace.disk(), held.state(), &dir, &files)?;
        }
    }
    Ok(writes)
}
