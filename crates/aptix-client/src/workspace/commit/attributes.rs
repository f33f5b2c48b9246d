//! Gives a staged file the owner, mode and extended attributes of the file that it replaces.

use std::os::fd::BorrowedFd;

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::workspace::fs::disk::Disk;
use crate::workspace::read::attributes::Attributes;

/// What a file that is replaced has, and the system does not give to the new one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The owner or the group.
    Owner,
    /// The extended attribute of this name.
    Attribute(String),
}

/// Gives a staged file what its original has, and a mode, as far as the system lets us; tells what it does not.
pub(crate) fn dress(
    disk: &dyn Disk,
    staged: BorrowedFd<'_>,
    original: &Attributes,
    mode: u32,
) -> Result<Vec<Loss>, Errno> {
    let (owner, group) = own(disk, staged, original)?;
    let mut losses = Vec::new();
    if owner == Kept::No || group == Kept::No {
        losses.push(Loss::Owner);
    }
    for (name, value) in &original.xattrs {
        match disk.set_xattr(staged, name, value) {
            // Some attributes are the system's to give; others need a file system that has them.
            Err(Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS) => {
                losses.push(Loss::Attribute(String::from_utf8_lossy(name).into_owned()));
            }
            outcome => outcome?,
        }
    }
    // New bytes get nobody's rights but those of whoever runs them.
    let mode = mode & 0o1777;
    let mode = match group {
        Kept::Yes => mode,
        // Another group may do no more than everybody.
        Kept::No => mode & (0o1707 | ((mode & 0o007) << 3)),
    };
    disk.set_mode(staged, Mode::from_raw_mode(mode))?;
    Ok(losses)
}

/// Whether a new file has what the old one has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// Gives a staged file its original's owner and group, or the group alone.
fn own(disk: &dyn Disk, staged: BorrowedFd<'_>, original: &Attributes) -> Result<(Kept, Kept), Errno> {
    let stat = rustix::fs::fstat(staged)?;
    if (stat.st_uid, stat.st_gid) == (original.user, original.group) {
        return Ok((Kept::Yes, Kept::Yes));
    }
    if is_given(disk.set_owner(staged, Some(original.user), original.group))? == Kept::Yes {
        return Ok((Kept::Yes, Kept::Yes));
    }
    let owner = if stat.st_uid == original.user { Kept::Yes } else { Kept::No };
    if stat.st_gid == original.group {
        return Ok((owner, Kept::Yes));
    }
    Ok((owner, is_given(disk.set_owner(staged, None, original.group))?))
}

/// Tells a system that may not give something from one that fails.
fn is_given(outcome: Result<(), Errno>) -> Result<Kept, Errno> {
    match outcome {
        Ok(()) => Ok(Kept::Yes),
        Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(Kept::No),
        Err(errno) => Err(errno),
    }
}
