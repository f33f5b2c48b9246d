//! The steps of a commit on one file: put the new bytes in place, take them back, clear away.
//!
//! They need nothing but a record, so that a commit and the recovery from its death are the same steps.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use rustix::io::Errno;

use crate::workspace::commit::displaced_writes::Displacer;
use crate::workspace::commit::file_state::{Holds, Standing, holds, is_gone, standing};
use crate::workspace::commit::journal::{FileStep, Hex, Record};
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::read::snapshot::{self, Stamp};
use crate::workspace::roots::state::StateDir;

/// How often a file that somebody keeps saving is swapped until nothing of theirs is displaced.
const SWAPS: usize = 256;
/// How many copies of what somebody wrote can be kept beside one file in one commit; each has its own name.
const KEPT: usize = 9;
/// How many directories are remembered in which names of our own were made.
const MARKED: usize = 64;
/// Bytes of the longest name that file systems take.
const NAME_BYTES: usize = 255;

/// A disk, and the roots of a record on it.
pub(in crate::workspace) struct Ground<'a> {
    pub(in crate::workspace) disk: &'a dyn Disk,
    /// Takes what is displaced out of the roots.
    pub(in crate::workspace) displacer: Displacer<'a>,
    roots: Vec<Arc<OwnedFd>>,
    /// The directory that was opened last.
    held: RefCell<Option<Held>>,
    /// The directories in which names of our own were made, by root and path: to be cleared wherever somebody moves them.
    marked: RefCell<BTreeMap<(usize, String), Rc<OwnedFd>>>,
}

struct Held {
    root: usize,
    path: String,
    dir: Rc<OwnedFd>,
}

impl<'a> Ground<'a> {
    /// As it is in a commit whose own result names the copies that are kept beside files.
    pub(in crate::workspace) fn of_a_result(self) -> Self {
        Self { displacer: self.displacer.of_a_result(), ..self }
    }

    /// Roots, each with its state.
    pub(in crate::workspace) fn new(disk: &'a dyn Disk, roots: Vec<(Arc<OwnedFd>, StateDir)>) -> Self {
        let (roots, states) = roots.into_iter().unzip();
        Self {
            disk,
            displacer: Displacer::new(disk, states),
            roots,
            held: RefCell::new(None),
            marked: RefCell::new(BTreeMap::new()),
        }
    }

    /// Lets go of the directory that is held, so that none is taken for one that has its path by now.
    pub(in crate::workspace) fn let_go(&self) {
        self.held.replace(None);
    }

    /// Opens a directory, unless it is the one that was opened last.
    pub(in crate::workspace) fn open_dir(&self, root: usize, path: &str) -> Result<Rc<OwnedFd>, Errno> {
        let is_held = |held: &&Held| held.root == root && held.path == path;
        if let Some(held) = self.held.borrow().as_ref().filter(is_held) {
            return Ok(Rc::clone(&held.dir));
        }
        let dir = Rc::new(self.open_anew(root, path)?);
        self.held.replace(Some(Held { root, path: path.to_owned(), dir: Rc::clone(&dir) }));
        Ok(dir)
    }

    /// Remembers a directory in which a name of our own is about to be made, unless there are many; tells whether it is the
    /// one that was remembered for its path before.
    pub(in crate::workspace) fn mark(&self, root: usize, path: &str, dir: &Rc<OwnedFd>) -> Result<bool, Errno> {
        let mut marked = self.marked.borrow_mut();
        let Some(known) = marked.get(&(root, path.to_owned())) else {
            if marked.len() < MARKED {
                marked.insert((root, path.to_owned()), Rc::clone(dir));
            }
            return Ok(true);
        };
        Ok(Rc::ptr_eq(known, dir) || {
            let [known, dir] = [known, dir].map(|dir| rustix::fs::fstat(dir).map(|stat| (stat.st_dev, stat.st_ino)));
            known? == dir?
        })
    }

    /// The directory in which names of our own were made for a path, wherever it is now; else the one that has the path.
    pub(in crate::workspace) fn find_marked(&self, root: usize, path: &str) -> Result<Option<Rc<OwnedFd>>, Errno> {
        let marked = self.marked.borrow().get(&(root, path.to_owned())).map(Rc::clone);
        marked.map_or_else(|| self.find_dir(root, path), |dir| Ok(Some(dir)))
    }

    fn open_anew(&self, root: usize, path: &str) -> Result<OwnedFd, Errno> {
        let root = self.roots.get(root).ok_or(Errno::NOENT)?;
        beneath::open_dir(root.as_fd(), path)
    }

    /// As [`Self::open_dir`]; `None` when somebody took the directory away, or put something else in its place.
    pub(in crate::workspace) fn find_dir(&self, root: usize, path: &str) -> Result<Option<Rc<OwnedFd>>, Errno> {
        match self.open_dir(root, path) {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// What it means that a name was not found: the file is gone, or its whole directory is.
    fn missing(&self, file: &FileStep) -> PublishError {
        self.let_go();
        match self.find_dir(file.root, &file.dir) {
            Ok(None) => PublishError::ParentGone,
            Ok(Some(_)) => PublishError::Changed,
            Err(errno) => errno.into(),
        }
    }
}

/// Why a file was not published, or not taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PublishError {
    /// Somebody else wrote it; their bytes are in place.
    #[error("somebody else wrote the file meanwhile; their version was kept")]
    Changed,
    /// A file that must not exist has appeared.
    #[error("a file appeared at this path meanwhile")]
    Exists,
    /// The directory has vanished.
    #[error("the directory was removed meanwhile")]
    ParentGone,
    /// The system refuses.
    #[error("{0}")]
    System(#[from] Errno),
}

/// Makes a file what it is to be. Afterwards its old bytes have the staged name; gives the stamp of the file that holds them.
///
/// The old bytes, where they are at hand, need not be hashed to be known again.
pub(in crate::workspace) fn publish(
    ground: &Ground<'_>,
    file: &FileStep,
    original: Option<&[u8]>,
) -> Result<Option<Stamp>, PublishError> {
    let dir = ground.open_dir(file.root, &file.dir).map_err(|errno| match errno {
        Errno::NOENT => PublishError::ParentGone,
        errno => errno.into(),
    })?;
    // Somebody has put another directory in its place since something was staged in it.
    if file.after.is_none() && !ground.mark(file.root, &file.dir, &dir)? {
        return Err(PublishError::ParentGone);
    }
    if file.before.is_none() {
        return match publish_new(ground.disk, &dir, file) {
            Err(PublishError::System(Errno::NOENT)) => Err(ground.missing(file)),
            outcome => outcome.map(|()| None),
        };
    }
    let swapped = match file.after {
        Some(_) => exchange(ground.disk, &dir, file),
        None => ground.disk.rename(dir.as_fd(), &file.name, dir.as_fd(), &file.staged),
    };
    swapped.map_err(|errno| match errno {
        Errno::NOENT if is_gone(&dir, &file.name) => ground.missing(file),
        errno => errno.into(),
    })?;
    if let Some(displaced) = displaced(&dir, file, original)? {
        return Ok(Some(displaced));
    }
    match file.after {
        Some(_) => give_back(ground, &dir, file)?,
        None => put_back(ground.disk, &dir, file)?,
    }
    Err(PublishError::Changed)
}

/// The stamp of the old file under the staged name; `None` when something else was displaced.
fn displaced(dir: &OwnedFd, file: &FileStep, original: Option<&[u8]>) -> Result<Option<Stamp>, Errno> {
    if let (Some(bytes), None) = (original, file.executable)
        && let Some(stamp) = snapshot::compare(dir.as_fd(), &file.staged, bytes)?
    {
        return Ok(Some(stamp));
    }
    Ok(match holds(dir, &file.staged, file)? {
        (Holds::Before, stamp) => stamp,
        _ => None,
    })
}

/// Whether a file that was published is something else than planned by now, read back to see.
pub(in crate::workspace) fn is_overwritten(
    ground: &Ground<'_>,
    file: &FileStep,
    planned: Option<&[u8]>,
) -> Result<bool, Errno> {
    let dir = ground.open_dir(file.root, &file.dir)?;
    if let Some(planned) = planned
        && snapshot::compare(dir.as_fd(), &file.name, planned)?.is_some()
    {
        return Ok(false);
    }
    let now = snapshot::digest(dir.as_fd(), &file.name)?;
    Ok(now.map(|(digest, _)| Hex(digest)) != file.after)
}

fn publish_new(disk: &dyn Disk, dir: &OwnedFd, file: &FileStep) -> Result<(), PublishError> {
    rename_new(disk, dir, &file.staged, &file.name).map_err(|errno| match errno {
        Errno::EXIST => PublishError::Exists,
        errno => errno.into(),
    })
}

/// Renames unless the new name is taken.
fn rename_new(disk: &dyn Disk, dir: &OwnedFd, from: &str, to: &str) -> Result<(), Errno> {
    let held = dir.as_fd();
    match disk.rename_new(held, from, to) {
        // File systems without the flag still refuse a second link of one name.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            disk.link(held, from, to).and_then(|()| disk.unlink(held, from))
        }
        outcome => outcome,
    }
}

/// Swaps what the file's name and its staged name mean.
fn exchange(disk: &dyn Disk, dir: &OwnedFd, file: &FileStep) -> Result<(), Errno> {
    let held = dir.as_fd();
    match disk.exchange(held, &file.staged, &file.name) {
        // Without the call it takes three steps; `settle` finishes them if they are cut short.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let aside = aside(file);
            disk.link(held, &file.name, &aside)?;
            if let Err(errno) = disk.rename(held, &file.staged, held, &file.name) {
                // The second name of the old file is cleared away with the batch, if not now.
                let _ = disk.unlink(held, &aside);
                return Err(errno);
            }
            disk.rename(held, &aside, held, &file.staged)
        }
        outcome => outcome,
    }
}

/// The name that keeps the old bytes while an exchange is made of three steps.
fn aside(file: &FileStep) -> String {
    format!("{}-old", file.staged)
}

/// Brings an exchange that was cut short to one of its ends.
fn settle(disk: &dyn Disk, dir: &OwnedFd, file: &FileStep) -> Result<(), Errno> {
    let aside = aside(file);
    if is_gone(dir, &aside) {
        return Ok(());
    }
    if is_gone(dir, &file.staged) {
        return disk.rename(dir.as_fd(), &aside, dir.as_fd(), &file.staged);
    }
    disk.unlink(dir.as_fd(), &aside)
}

/// Takes published bytes out again, swapping until what comes out is what was last put in: then the last save of
/// anybody is in place. A save that a later one has overtaken is kept beside it.
fn give_back(ground: &Ground<'_>, dir: &OwnedFd, file: &FileStep) -> Result<(), PublishError> {
    let digest = || Ok::<_, Errno>(snapshot::digest(dir.as_fd(), &file.staged)?.map(|(digest, _)| digest));
    let after = file.after.map(|hex| hex.0);
    let mut put_in = after;
    for _ in 0..SWAPS {
        let restored = digest()?;
        match exchange(ground.disk, dir, file) {
            // Somebody removed the file, which overtakes every save before.
            Err(Errno::NOENT) if is_gone(dir, &file.name) => {}
            outcome => {
                outcome?;
                let out = digest()?;
                if out != put_in {
                    put_in = restored;
                    continue;
                }
                if out == after {
                    return Ok(());
                }
            }
        }
        break;
    }
    // Should somebody be faster than all our swaps, theirs are in place and beside it.
    Ok(set_aside(ground, dir, file, None).map(drop)?)
}

/// Takes one file back to its old bytes, if it has the new ones. Where there is no directory any more, there is
/// nothing to take back.
pub(in crate::workspace) fn withdraw(ground: &Ground<'_>, file: &FileStep) -> Result<(), PublishError> {
    let Some(dir) = ground.find_marked(file.root, &file.dir)? else { return Ok(()) };
    settle(ground.disk, &dir, file)?;
    match (standing(Some(&dir), file)?, file.before, file.after) {
        (Standing::Published, None, _) => take_out(ground, &dir, file),
        (Standing::Published | Standing::Displaced, Some(_), Some(_)) => give_back(ground, &dir, file),
        (Standing::Published | Standing::Displaced, Some(_), None) => put_back(ground.disk, &dir, file),
        // What somebody has written since is theirs; what they wrote and we moved is kept when all is cleared away.
        (
            Standing::Displaced
            | Standing::Staged
            | Standing::Outrun
            | Standing::Cleared
            | Standing::Overwritten
            | Standing::Gone
            | Standing::Foreign,
            ..,
        ) => Ok(()),
        (Standing::Finished, ..) => Err(PublishError::Changed),
    }
}

/// Gives what was taken away its name again. Something newer that has the name by now stays; what was taken away is
/// then kept beside it when all is cleared away, unless it is what was planned to go.
fn put_back(disk: &dyn Disk, dir: &OwnedFd, file: &FileStep) -> Result<(), PublishError> {
    match publish_new(disk, dir, file) {
        Err(PublishError::Exists) => Ok(()),
        outcome => outcome,
    }
}

/// Takes a new file out again, and looks at what came out: only the bytes that were put in are taken away.
fn take_out(ground: &Ground<'_>, dir: &OwnedFd, file: &FileStep) -> Result<(), PublishError> {
    let (disk, held) = (ground.disk, dir.as_fd());
    // Where a new file is published by a second link, it may still have its first; the name is nobody else's.
    disk::unlink_if_there(disk, held, &file.staged)?;
    match disk.rename(held, &file.name, held, &file.staged) {
        // Somebody removed the file: there is nothing to take out.
        Err(Errno::NOENT) => return Ok(()),
        outcome => outcome?,
    }
    match (holds(dir, &file.staged, file)?, file.after) {
        ((Holds::After, Some(stamp)), Some(Hex(after))) => Ok(ground.displacer.take(dir, file, after, stamp)?),
        _ => put_back(disk, dir, file),
    }
}

/// Brings a file that was cut short in the middle of a step to one of the step's ends.
pub(in crate::workspace) fn settle_in(ground: &Ground<'_>, file: &FileStep) -> Result<Option<Rc<OwnedFd>>, Errno> {
    let dir = ground.find_dir(file.root, &file.dir)?;
    dir.map(|dir| settle(ground.disk, &dir, file).map(|()| dir)).transpose()
}

/// Displaces what has the staged name, unless it is something that nobody planned: then it is kept beside the file, and its
/// name is given.
pub(in crate::workspace) fn clear(
    ground: &Ground<'_>,
    file: &FileStep,
    seen: Option<Stamp>,
) -> Result<Option<String>, Errno> {
    match ground.find_marked(file.root, &file.dir)? {
        Some(dir) => set_aside(ground, &dir, file, seen),
        None => Ok(None),
    }
}

fn set_aside(
    ground: &Ground<'_>,
    dir: &OwnedFd,
    file: &FileStep,
    seen: Option<Stamp>,
) -> Result<Option<String>, Errno> {
    let Some(stat) = beneath::look_up(dir.as_fd(), &file.staged)? else { return Ok(None) };
    let held = match (seen.filter(|seen| *seen == Stamp::of(&stat)), file.before) {
        (Some(seen), Some(Hex(before))) => Some((before, seen)),
        _ => snapshot::digest(dir.as_fd(), &file.staged)?,
    };
    let is_planned = |digest| [file.after, file.before].contains(&Some(Hex(digest)));
    if let Some((digest, stamp)) = held.filter(|(digest, _)| is_planned(*digest)) {
        ground.displacer.take(dir, file, digest, stamp)?;
        return Ok(None);
    }
    for kept in kept_names(file) {
        match rename_new(ground.disk, dir, &file.staged, &kept) {
            Err(Errno::EXIST) => {}
            outcome => {
                outcome?;
                ground.displacer.note_copy(file, &kept, &stat);
                return Ok(Some(kept));
            }
        }
    }
    Err(Errno::EXIST)
}

/// The real paths of what was kept beside the files of a record.
pub(in crate::workspace) fn kept(ground: &Ground<'_>, record: &Record) -> Vec<String> {
    let of_file = |file: &FileStep| {
        let Ok(Some(dir)) = ground.find_marked(file.root, &file.dir) else { return Vec::new() };
        let present = kept_names(file).take_while(|kept| !is_gone(&dir, kept));
        present.map(|kept| FileStep { name: kept, ..file.clone() }.real()).collect()
    };
    record.files.iter().flat_map(of_file).collect()
}

/// The names under which something that nobody planned is kept beside a file, in the order in which they are taken; cut
/// where they would be too long for one.
pub(in crate::workspace) fn kept_names(file: &FileStep) -> impl Iterator<Item = String> {
    let mark = format!(".kept-{}", file.staged.trim_matches('.').split('.').next().unwrap_or("copy"));
    (1..=KEPT).map(move |number| {
        let mark = if number == 1 { mark.clone() } else { format!("{mark}-{number}") };
        let end = file.name.floor_char_boundary(NAME_BYTES.saturating_sub(mark.len()));
        format!("{}{mark}", file.name.get(..end).unwrap_or_default())
    })
}

/// Clears away what every file has staged or kept. `entry` is what the history tells of the batch by, if it is carried out.
pub(in crate::workspace) fn clear_all(ground: &Ground<'_>, record: &Record, entry: Option<&str>) -> Result<(), Errno> {
    ground.let_go();
    for file in &record.files {
        if let Some(kept) = clear(ground, file, None)? {
            tracing::warn!(file = file.real(), kept, "what somebody else wrote meanwhile was kept under another name");
        }
    }
    for file in &record.files {
        let dir = ground.find_marked(file.root, &file.dir)?;
        ground.displacer.adopt(dir.as_deref(), file)?;
        let Some(dir) = dir else { continue };
        // One that died may have kept copies before it could note them.
        for kept in kept_names(file) {
            let Some(stat) = beneath::look_up(dir.as_fd(), &kept)? else { break };
            ground.displacer.note_copy(file, &kept, &stat);
        }
    }
    ground.displacer.note(entry).map(drop)
}

/// Removes staged files that were never published, so that no other process can have one open as a file of its own. What is
/// not as it was staged stays, to be kept.
pub(in crate::workspace) fn drop_unpublished<'f>(
    ground: &Ground<'_>,
    files: impl IntoIterator<Item = &'f FileStep>,
) -> Result<(), Errno> {
    for file in files.into_iter().filter(|file| file.after.is_some()) {
        let Some(dir) = ground.find_marked(file.root, &file.dir)? else { continue };
        if holds(&dir, &file.staged, file)?.0 == Holds::After {
            disk::unlink_if_there(ground.disk, dir.as_fd(), &file.staged)?;
        }
    }
    Ok(())
}

/// Removes staged files of a commit that never reached its commit point, whatever is in them.
pub(in crate::workspace) fn unstage(ground: &Ground<'_>, record: &Record) -> Result<(), Errno> {
    ground.let_go();
    for file in record.files.iter().filter(|file| file.after.is_some()) {
        if let Some(dir) = ground.find_marked(file.root, &file.dir)? {
            disk::unlink_if_there(ground.disk, dir.as_fd(), &file.staged)?;
        }
    }
    remove_dirs(ground, record)
}

/// Removes the directories that a commit made, as far as they are empty.
pub(in crate::workspace) fn remove_dirs(ground: &Ground<'_>, record: &Record) -> Result<(), Errno> {
    for made in record.dirs.iter().rev() {
        let Some(parent) = ground.find_dir(made.root, &made.parent)? else { continue };
        match ground.disk.remove_dir(parent.as_fd(), &made.name) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Makes every directory durable in which the commit changed a name.
pub(in crate::workspace) fn sync_dirs(ground: &Ground<'_>, record: &Record) -> Result<(), Errno> {
    ground.let_go();
    let of_files = record.files.iter().map(|file| (file.root, file.dir.as_str()));
    let of_dirs = record.dirs.iter().map(|dir| (dir.root, dir.parent.as_str()));
    let distinct: std::collections::BTreeSet<_> = of_files.chain(of_dirs).collect();
    for (root, path) in distinct {
        let Some(dir) = ground.find_marked(root, path)? else { continue };
        match disk::sync_dir(ground.disk, dir.as_fd()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
