//! Directories that an undone batch had made: its undo removes those that are empty as its last step. They stand in the
//! record of the undo, so that recovery removes them after the process died.

use std::os::fd::AsFd;

use rustix::io::Errno;

use crate::workspace::Workspace;
use crate::workspace::commit::journal::{NewDir, Record};
use crate::workspace::commit::publish::Ground;
use crate::workspace::keep::history::Reversal;

/// The directories that a batch had made in roots of this workspace, parents first.
pub(in crate::workspace) fn of(workspace: &Workspace, undoes: Option<&Reversal>) -> Vec<NewDir> {
    let made = undoes.map_or(&[][..], |undoes| &undoes.dirs).iter();
    let in_root = made.filter_map(|made| {
        let root = workspace.roots().iter().position(|root| root.path() == made.root)?;
        Some(NewDir { root, parent: made.parent.clone(), name: made.name.clone() })
    });
    in_root.collect()
}

/// Removes the directories that nothing uses any more. One that cannot be removed stays, which is logged.
pub(in crate::workspace) fn remove(ground: &Ground<'_>, record: &Record) {
    ground.let_go();
    for made in record.emptied.iter().rev() {
        let removed = ground.find_dir(made.root, &made.parent).and_then(|parent| match parent {
            Some(parent) => ground.disk.remove_dir(parent.as_fd(), &made.name),
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
