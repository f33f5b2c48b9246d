//! Directories that an undone batch had made: its undo removes those that are empty as its last step. They stand in the
//! record of the undo, so that recovery removes them after the process died.

use std::os::fd::AsFd;

use rustix::io::Errno;

use crate::workspace::commit::record::Record;
use crate::workspace::commit::work_tree::WorkTree;

/// Removes the directories that nothing uses any more. One that cannot be removed stays, which is logged.
pub(crate) fn remove(tree: &WorkTree<'_>, record: &Record) {
    tree.dirs.let_go();
    for made in record.emptied.iter().rev() {
        let removed = tree.dirs.find_dir(made.root, &made.parent).and_then(|parent| match parent {
            Some(parent) => tree.disk.remove_dir(parent.as_fd(), &made.name),
            None => Ok(()),
        });
        match removed {
            // Another process uses it, has removed it, or has put something else in its place.
            Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {
            }
            Err(errno) => {
                tracing::warn!(%errno, dir = made.name, "a directory that the undone batch had made stays");
            }
        }
    }
}
