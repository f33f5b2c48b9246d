//! Opens what lies beneath a directory, and nothing else: no link is followed, no mount is entered.
//!
//! The kernel's `openat2` decides where there is one; otherwise every component is opened by itself.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;

use crate::workspace::fs::errno;

/// How often a look-up that raced with a rename is begun again.
const RACES: u32 = 100;

/// How a directory is held: by name only.
const DIRECTORY: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::PATH).union(OFlags::DIRECTORY);
/// How a file is opened: for reading, without waiting for it.
const FILE: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::RDONLY).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Holds the directory at a relative path, `""` for the top itself. The descriptor only names it.
///
/// # Errors
/// `XDEV` when the path enters another mount, `LOOP` or `NOTDIR` when it has a link, `NOENT` and others as usual.
pub(crate) fn open_dir(top: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    open(top, path, DIRECTORY)
}

/// Opens a file of a directory for reading, without ever waiting for it. Not yet known to be a regular file.
///
/// # Errors
/// As [`open_dir`].
pub(crate) fn open_file(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    open(dir, name, FILE)
}

/// Holds the directory at an absolute path, by name only. Its last component is no link.
pub(crate) fn open_held(path: &Path) -> Result<OwnedFd, std::io::Error> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

/// What a name of a directory means, links not followed; `None` when it means nothing.
pub(crate) fn look_up(dir: BorrowedFd<'_>, name: &str) -> Result<Option<Stat>, Errno> {
    errno::optional(rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW))
}

fn open(top: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { "." } else { path };
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let mut races = 0;
    loop {
        match rustix::fs::openat2(top, path, flags, Mode::empty(), resolve) {
            Err(Errno::INTR) => {}
            // What is moved out of the directory just then looks like another mount.
            Err(Errno::AGAIN | Errno::XDEV) if races < RACES => races += 1,
            // Old kernels do not have the call, and some sandboxes deny it.
            Err(Errno::NOSYS | Errno::PERM) => return walk(top, path, flags),
            outcome => return outcome,
        }
    }
}

/// Does what `openat2` does, one component at a time.
fn walk(top: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mount = mount_of(top)?;
    let mut held: Option<OwnedFd> = None;
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        if name == ".." {
            return Err(Errno::XDEV);
        }
        let flags = if names.peek().is_some() { DIRECTORY } else { flags };
        let dir = held.as_ref().map_or(top, AsFd::as_fd);
        let opened = rustix::fs::openat(dir, name, flags, Mode::empty())?;
        if mount_of(opened.as_fd())? != mount {
            return Err(Errno::XDEV);
        }
        held = Some(opened);
    }
    held.ok_or(Errno::NOENT)
}

/// Which mount something is on: its device, and the mount's own number where the kernel reports it, since a directory
/// that is mounted a second time is on the same device.
fn mount_of(file: BorrowedFd<'_>) -> Result<(u64, Option<u64>), Errno> {
    let mount = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok();
    let number = mount.filter(|stat| stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).map(|stat| stat.stx_mnt_id);
    Ok((rustix::fs::fstat(file)?.st_dev, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Opens both ways, which must agree, and returns the outcome.
    fn both(top: &OwnedFd, path: &str, flags: OFlags) -> Result<(), Errno> {
        let walked = walk(top.as_fd(), path, flags).map(drop);
        let asked = open(top.as_fd(), path, flags).map(drop);
        assert_eq!(walked.is_ok(), asked.is_ok(), "{path:?}: {walked:?} and {asked:?}");
        asked
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own directory")]
    fn neither_way_of_opening_follows_a_link_or_leaves_the_directory() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("a/b")).unwrap();
        std::fs::write(place.path().join("a/b/file"), "x").unwrap();
        symlink("a", place.path().join("inside")).unwrap();
        symlink("/etc", place.path().join("outside")).unwrap();
        let top = rustix::fs::open(place.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();

        both(&top, ".", DIRECTORY).unwrap();
        both(&top, "a/b", DIRECTORY).unwrap();
        both(&top, "a/b/file", FILE).unwrap();
        for path in ["inside/b", "outside", "inside", "..", "a/../..", "a/b/file", "nothing"] {
            both(&top, path, DIRECTORY).unwrap_err();
        }
        let root = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        assert_eq!(both(&root, "proc/self", DIRECTORY), Err(Errno::XDEV));
        assert_eq!(walk(root.as_fd(), "proc/version", FILE).unwrap_err(), Errno::XDEV);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own directory")]
    fn neither_way_of_opening_enters_a_mount_of_the_same_device() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("a/b")).unwrap();
        std::fs::create_dir(place.path().join("c")).unwrap();
        // The mount is the child's alone, and goes with it; it is seen through the child's root.
        let child = Command::new("unshare")
            .args(["-rm", "sh", "-c", "mount --bind c a/b && echo mounted && cat"])
            .current_dir(place.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { return };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // Where mounting is not permitted there is nothing to see.
        if line == "mounted\n" {
            let path = format!("/proc/{}/root{}/a", child.id(), place.path().display());
            let top = rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
            assert_eq!(both(&top, "b", DIRECTORY), Err(Errno::XDEV));
            both(&top, ".", DIRECTORY).unwrap();
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
