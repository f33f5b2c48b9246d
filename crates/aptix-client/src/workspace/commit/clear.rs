//! Clears away what a commit staged and displaced; keeps beside its file what another process wrote.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use crate::workspace::commit::file_state::is_gone;
use crate::workspace::commit::record::{FileStep, Hex, NewDir, Record};
use crate::workspace::commit::swap::rename_new;
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::fs::{beneath, disk, errno};
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::regular;

/// How many copies of what other processes wrote can be kept beside one file in one commit; each has its own name.
const KEPT: usize = 9;
/// Bytes of the longest name that file systems take.
const NAME_BYTES: usize = 255;

/// Displaces what has the staged name, unless it is neither old nor new bytes: then it is kept beside the file, and its
/// name is given.
pub(crate) fn clear(tree: &WorkTree<'_>, file: &FileStep, seen: Option<FileStamp>) -> Result<Option<String>, Errno> {
    match tree.dirs.find_marked(file.root, &file.dir)? {
        Some(dir) => set_aside(tree, &dir, file, seen),
        None => Ok(None),
    }
}

pub(crate) fn set_aside(
    tree: &WorkTree<'_>,
    dir: &OwnedFd,
    file: &FileStep,
    seen: Option<FileStamp>,
) -> Result<Option<String>, Errno> {
    let Some(stat) = beneath::look_up(dir.as_fd(), &file.staged)? else { return Ok(None) };
    let held = match (seen.filter(|seen| *seen == FileStamp::of(&stat)), file.before) {
        (Some(seen), Some(Hex(before))) => Some((before, seen)),
        _ => regular::digest(dir.as_fd(), &file.staged)?,
    };
    let is_planned = |digest| [file.after, file.before].contains(&Some(Hex(digest)));
    if let Some((digest, stamp)) = held.filter(|(digest, _)| is_planned(*digest)) {
        tree.displacer.take(dir, file, digest, stamp)?;
        return Ok(None);
    }
    for kept in kept_names(file) {
        match rename_new(tree.disk, dir, &file.staged, &kept) {
            Err(Errno::EXIST) => {}
            outcome => {
                outcome?;
                tree.displacer.note_copy(file, &kept, &stat);
                return Ok(Some(kept));
            }
        }
    }
    Err(Errno::EXIST)
}

/// The real paths of what was kept beside the files of a record.
pub(crate) fn kept(tree: &WorkTree<'_>, record: &Record) -> Vec<String> {
    let of_file = |file: &FileStep| {
        let Ok(Some(dir)) = tree.dirs.find_marked(file.root, &file.dir) else { return Vec::new() };
        let present = kept_names(file).take_while(|kept| !is_gone(&dir, kept));
        present.map(|kept| FileStep { name: kept, ..file.clone() }.real()).collect()
    };
    record.files.iter().flat_map(of_file).collect()
}

/// The names under which what another process wrote is kept beside a file, in the order in which they are taken; cut
/// where they would be too long for one.
pub(crate) fn kept_names(file: &FileStep) -> impl Iterator<Item = String> {
    let mark = format!(".kept-{}", file.staged.trim_matches('.').split('.').next().unwrap_or("copy"));
    (1..=KEPT).map(move |number| {
        let mark = if number == 1 { mark.clone() } else { format!("{mark}-{number}") };
        let end = file.name.floor_char_boundary(NAME_BYTES.saturating_sub(mark.len()));
        format!("{}{mark}", file.name.split_at(end).0)
    })
}

/// Clears away what every file has staged or kept. `entry` is the batch's entry in the history, if it is carried out.
pub(crate) fn clear_all(tree: &WorkTree<'_>, record: &Record, entry: Option<&str>) -> Result<(), Errno> {
    tree.dirs.let_go();
    for file in &record.files {
        if let Some(kept) = clear(tree, file, None)? {
            tracing::warn!(
                file = file.real(),
                kept,
                "what another process wrote meanwhile was kept under another name"
            );
        }
    }
    for file in &record.files {
        let dir = tree.dirs.find_marked(file.root, &file.dir)?;
        tree.displacer.adopt(dir.as_deref(), file)?;
        let Some(dir) = dir else { continue };
        // One that died may have kept copies before it could note them.
        for kept in kept_names(file) {
            let Some(stat) = beneath::look_up(dir.as_fd(), &kept)? else { break };
            tree.displacer.note_copy(file, &kept, &stat);
        }
    }
    tree.displacer.note(entry).map(drop)
}

/// Removes staged files of a commit that never reached its commit point, whatever is in them.
pub(crate) fn unstage(tree: &WorkTree<'_>, record: &Record) -> Result<(), Errno> {
    tree.dirs.let_go();
    for file in record.files.iter().filter(|file| file.after.is_some()) {
        if let Some(dir) = tree.dirs.find_marked(file.root, &file.dir)? {
            disk::unlink_if_there(tree.disk, dir.as_fd(), &file.staged)?;
        }
    }
    remove_dirs(tree, record)
}

/// Removes the directories that a commit made, as far as they are empty.
pub(crate) fn remove_dirs(tree: &WorkTree<'_>, record: &Record) -> Result<(), Errno> {
    record.dirs.iter().rev().try_for_each(|made| remove_if_empty(tree, made))
}

/// Removes the directories that an undone batch had made and that are empty, as the last step of its undo. One that cannot be
/// removed stays, which is logged.
pub(crate) fn remove_emptied(tree: &WorkTree<'_>, record: &Record) {
    tree.dirs.let_go();
    for made in record.emptied.iter().rev() {
        match remove_if_empty(tree, made) {
            Ok(()) | Err(Errno::LOOP | Errno::XDEV) => {}
            Err(errno) => tracing::warn!(%errno, dir = made.name, "a directory that the undone batch had made stays"),
        }
    }
}

/// Removes a directory, unless another process uses it, has removed it, or has put something else in its place.
fn remove_if_empty(tree: &WorkTree<'_>, made: &NewDir) -> Result<(), Errno> {
    let Some(parent) = tree.dirs.find_dir(made.root, &made.parent)? else { return Ok(()) };
    match tree.disk.remove_dir(parent.as_fd(), &made.name) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        outcome => outcome,
    }
}

/// Makes every directory durable in which the commit changed a name.
pub(crate) fn sync_dirs(tree: &WorkTree<'_>, record: &Record) -> Result<(), Errno> {
    tree.dirs.let_go();
    let of_files = record.files.iter().map(|file| (file.root, file.dir.as_str()));
    let of_dirs = record.dirs.iter().map(|dir| (dir.root, dir.parent.as_str()));
    let distinct: std::collections::BTreeSet<_> = of_files.chain(of_dirs).collect();
    for (root, path) in distinct {
        let Some(dir) = tree.dirs.find_marked(root, path)? else { continue };
        errno::optional(disk::sync_dir(tree.disk, dir.as_fd()))?;
    }
    Ok(())
}
