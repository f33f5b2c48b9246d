//! Free space, and access to directories.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::workspace::fs::shell_word::shell_word;
use crate::workspace::fs::volume;
use crate::workspace::roots::exposed::other_owner;

use super::finding::{Finding, Subject};

/// Free bytes below which there is a warning: a history takes up to 256 MiB unless the policy differs.
const LITTLE_ROOM: u64 = 256 << 20;

/// The room on the file system of a directory.
///
/// # Errors
/// The finding that there is little or none.
pub(super) fn check_room(check: &'static str, dir: &Path) -> Result<String, Finding> {
    let subject = || Subject::at(check, dir);
    let mending =
        format!("make room on its file system: `df -h {0}` and `df -i {0}` show what is left", shell_word(dir));
    let room = volume::room(dir)
        .map_err(|error| subject().warning(format!("the free space is not known: {error}"), &*mending))?;
    if room.bytes == 0 || !room.has_files_left {
        return Err(subject().problem("the file system is full", mending));
    }
    let free = format!("{} MiB are free", room.bytes >> 20);
    if room.bytes < LITTLE_ROOM { Err(subject().warning(format!("only {free}"), mending)) } else { Ok(free) }
}

/// A directory of which the system refuses this.
pub(super) fn refused(subject: Subject, dir: &Path, doing: &str, error: &io::Error) -> Finding {
    let hint = access_hint(dir, error.kind(), "u+rwx");
    subject.problem(
        format!("cannot be {doing}: {error}"),
        hint.unwrap_or_else(|| "look into the system's log for what is wrong with the disk".to_owned()),
    )
}

/// What gives this user access to a directory.
pub(super) fn access_hint(dir: &Path, refused: ErrorKind, mode: &str) -> Option<String> {
    let path = shell_word(dir);
    Some(match (refused, other_owner(dir)) {
        (ErrorKind::ReadOnlyFilesystem, _) => {
            format!("run `sudo mount -o remount,rw \"$(findmnt -n -o TARGET -T {path})\"`")
        }
        (ErrorKind::PermissionDenied, Ok(Some(owner))) => {
            format!("have the user with the id {owner}, who owns it, give you access, or run aptix as that user")
        }
        (ErrorKind::PermissionDenied, Ok(None)) => format!("run `chmod {mode} {path}`"),
        (ErrorKind::PermissionDenied, Err(_)) => format!("run `chmod u+x` on the directories above {path}"),
        _ => return None,
    })
}
