//! Looks for what would make a commit fail half-way, while nothing has been touched yet.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;

use crate::workspace::commit::change::{Change, steps};
use crate::workspace::commit::commit_error::{CommitError, FileFault};
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::fs::disk;
use crate::workspace::read::attributes;
use crate::workspace::read::place::Place;
use crate::workspace::roots::workspace::Workspace;

/// Looks for what would make a commit of these changes fail, as far as that can be seen without touching anything.
///
/// # Errors
/// Names the first change that could not be made.
pub fn check(workspace: &Workspace, changes: &[Change<'_>]) -> Result<(), CommitError> {
    let tree = WorkTree::of(workspace);
    // Directories that were looked at: their root, their path, and how many of its last components do not exist.
    let mut checked = BTreeSet::new();
    for step in &steps(changes) {
        let place = step.place;
        let outcome = if step.original.is_some_and(|original| original.immutable) {
            Err(FileFault::Immutable)
        } else if checked.insert((place.root, place.dir.as_str(), place.missing)) {
            check_dir(&tree, place)
        } else {
            Ok(())
        };
        outcome.map_err(|fault| CommitError::File { change: step.change, fault })?;
    }
    Ok(())
}

fn check_dir(tree: &WorkTree<'_>, place: &Place) -> Result<(), FileFault> {
    let names: Vec<&str> = place.dir.split('/').filter(|name| !name.is_empty()).collect();
    let existing = names.split_at(names.len().saturating_sub(place.missing)).0.join("/");
    let dir = tree.dirs.open_dir(place.root, &existing).map_err(gone)?;
    let denied = |errno| match place.missing {
        0 => FileFault::System { doing: "write in the directory", errno },
        _ => FileFault::MakeDir { errno },
    };
    // What cannot be read cannot be flushed either.
    let unreadable =
        |errno| FileFault::System { doing: "read the directory, which is needed to make names in it durable", errno };
    let readable = disk::open_readable(dir.as_fd()).map_err(unreadable)?;
    if attributes::is_immutable(readable.as_fd()) {
        return Err(FileFault::Immutable);
    }
    rustix::fs::accessat(&dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(denied)
}

pub(crate) const fn gone(errno: Errno) -> FileFault {
    match errno {
        Errno::NOENT => FileFault::ParentGone,
        errno => FileFault::System { doing: "open the directory", errno },
    }
}
