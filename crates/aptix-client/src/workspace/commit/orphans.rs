//! Orphans: staged files whose record a power cut has taken, known by their names alone.
//!
//! A staged file that no record names was never published: no other process has seen it as a file of its own.

use std::os::fd::AsFd;

use aptix_model::protection::{self, Protection};
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use crate::workspace::commit::ending::Ending;
use crate::workspace::commit::{history_draft, staged_name};
use crate::workspace::fs::{beneath, disk};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::workspace::Workspace;

/// Removes what commits had staged in a root, and kept in its state, that never came to their commit point and whose
/// record is lost.
///
/// # Errors
/// When the system refuses to look or to remove.
pub(crate) fn sweep(workspace: &Workspace, root: &Root, ending: &dyn Ending) -> Result<(), Errno> {
    let mut removed = 0;
    let mut dirs = vec![String::new()];
    while let Some(path) = dirs.pop() {
        // What is not to be entered was not written in either: other mounts, directories closed to us.
        let Ok(dir) = beneath::open_dir(root.dir(), &path) else { continue };
        let Ok(readable) = disk::open_readable(dir.as_fd()) else { continue };
        for entry in Dir::new(readable)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    beneath::look_up(dir.as_fd(), name)?.map(|stat| FileType::from_raw_mode(stat.st_mode))
                }
                kind => Some(kind),
            };
            let is_closed = || protection::of(name) == Some(Protection::Protected);
            match kind {
                Some(FileType::Directory) if !matches!(name, "." | "..") && !is_closed() => {
                    dirs.push(if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") });
                }
                Some(FileType::RegularFile) if staged_name::is_staged_in(root.path().as_os_str(), name) => {
                    disk::unlink_if_there(workspace.disk(), dir.as_fd(), name)?;
                    removed += 1;
                }
                _ => {}
            }
        }
    }
    if removed > 0 {
        tracing::warn!(removed, "a power cut had left files that a batch had staged; they are cleared away");
    }
    history_draft::discard_all(workspace.disk(), root.state()).map_err(|error| error.errno())?;
    ending.drop_lost(workspace, root.state())
}
