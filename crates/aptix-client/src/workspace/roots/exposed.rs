//! Directories in which a user other than the one who runs this can replace what lies below.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::workspace::fs::shell_word::shell_word;

/// Mode bits that let group members or everybody write.
const OTHERS_WRITE: u32 = 0o022;
/// The mode bit by which only the owner of an entry may rename or remove it.
const STICKY: u32 = 0o1000;

/// A directory in which another user can write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Exposed {
    pub(crate) path: PathBuf,
    pub(crate) to: Others,
}

/// Who besides this user and root can write in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Others {
    /// The user with this id, who owns it.
    Owner(u32),
    /// Its group or everybody, by this mode.
    Mode(u32),
}

impl Exposed {
    /// The command that closes the directory.
    pub(crate) fn mending(&self) -> String {
        let path = shell_word(&self.path);
        match self.to {
            Others::Owner(_) => format!("sudo chown {} {path}", own_id()),
            Others::Mode(_) => format!("chmod go-w {path}"),
        }
    }
}

/// The exposed directories above a path, nearest first. The path itself is not looked at, and need not exist.
///
/// A directory with the sticky bit is not exposed: others can add entries to it, and cannot replace those of this user.
///
/// # Errors
/// A directory above it cannot be looked at.
pub(crate) fn above(path: &Path) -> io::Result<Vec<Exposed>> {
    let mut found = Vec::new();
    for dir in path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()) {
        match dir.metadata() {
            Ok(metadata) => found.extend(others(&metadata).map(|to| Exposed { path: dir.to_owned(), to })),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn others(metadata: &Metadata) -> Option<Others> {
    let (mode, owner) = (metadata.mode() & 0o7777, metadata.uid());
    if owner != own_id() && owner != 0 {
        return Some(Others::Owner(owner));
    }
    (mode & OTHERS_WRITE != 0 && mode & STICKY == 0).then_some(Others::Mode(mode))
}

/// The user who owns a path, if that is another one than runs this.
///
/// # Errors
/// It cannot be looked at.
pub(crate) fn other_owner(path: &Path) -> io::Result<Option<u32>> {
    let owner = path.metadata()?.uid();
    Ok(Some(owner).filter(|owner| *owner != own_id()))
}

/// The id of the user who runs this.
pub(crate) fn own_id() -> u32 {
    rustix::process::geteuid().as_raw()
}
