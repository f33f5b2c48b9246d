//! The one way in which Aptix writes a file of its own: whole, durable, under its name or not at all.
//!
//! Each write has a temporary name of its own, so that any number of writers, in one process or in several, never meet.
//! A sealed file begins with a checksum of all that follows, and with its owner: which file it is, and of which root. It is
//! believed under no other name. The formats are in `docs/disk-format.md`.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use aptix_engine::digest::sha256;
use rustix::fs::{FlockOperation, Mode};
use rustix::io::{Errno, retry_on_intr};

use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, errno, reads};
use crate::workspace::roots::state::{Part, StateDir, StateError};

/// The first word of every sealed file; the version of the form follows.
const KIND: &str = "aptix-own-";
/// The version that is written.
const MAGIC: &str = "aptix-own-1";
/// How the name of a file ends that is being written.
const ENDING: &str = ".aptix-own";
/// How often a temporary file is made anew because another process took it for one of a dead process.
const ATTEMPTS: usize = 100;

/// Which file it is: the part of the state directory, the name in it, and the state directory of which root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) part: Part,
    pub(crate) name: &'a str,
    pub(crate) state: &'a StateDir,
}

impl Owner<'_> {
    fn path(&self) -> PathBuf {
        self.state.part(self.part).join(self.name)
    }

    /// That the system refuses to do something with the file.
    pub(crate) fn failed(&self, doing: &'static str) -> impl FnOnce(Errno) -> StateError + use<> {
        let path = self.path();
        move |errno| StateError::Part { doing, path, errno }
    }
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} of {}", self.part.0, self.name, self.state.name())
    }
}

/// Why the bytes of a file are not believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Damage {
    /// Written by another version.
    #[error("its form is not one that this version knows")]
    Version,
    /// Cut short or altered.
    #[error("its checksum does not fit")]
    Checksum,
    /// The file of something else, under this name.
    #[error("it is the file of something else")]
    Owner,
    /// The right checksum over something else.
    #[error("it does not hold what such a file holds")]
    Content,
}

/// What a file holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Found<T> {
    /// What its owner wrote.
    Sealed(T),
    /// The bytes of a file that is not sealed: earlier versions wrote such.
    Old(T),
    /// Nothing that can be believed.
    Damaged(Damage),
}

/// The bytes of a sealed file.
pub(crate) fn seal(owner: Owner<'_>, body: &[u8]) -> Vec<u8> {
    let mut sealed = format!("{owner}\n").into_bytes();
    sealed.extend_from_slice(body);
    let mut bytes = format!("{MAGIC} {}\n", sha256(&sealed)).into_bytes();
    bytes.append(&mut sealed);
    bytes
}

/// Reads back what [`seal`] wrote.
pub(crate) fn unseal<'b>(owner: Owner<'_>, bytes: &'b [u8]) -> Found<&'b [u8]> {
    if !bytes.starts_with(KIND.as_bytes()) {
        return Found::Old(bytes);
    }
    let Some((head, sealed)) = split_line(bytes) else { return Found::Damaged(Damage::Checksum) };
    let digest = std::str::from_utf8(head).ok().and_then(|head| head.strip_prefix(MAGIC)?.strip_prefix(' '));
    let Some(digest) = digest else { return Found::Damaged(Damage::Version) };
    if digest.parse() != Ok(sha256(sealed)) {
        return Found::Damaged(Damage::Checksum);
    }
    match split_line(sealed) {
        Some((stated, body)) if stated == owner.to_string().as_bytes() => Found::Sealed(body),
        _ => Found::Damaged(Damage::Owner),
    }
}

/// The first line of a text and what follows it; `None` where no line ends.
pub(crate) fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

/// Reads a file of a part of the state directory; nothing where there is none. A directory, a link or a bad sector in its
/// place is damage.
pub(crate) fn read(dir: BorrowedFd<'_>, owner: Owner<'_>) -> Result<Option<Found<Vec<u8>>>, Errno> {
    let bytes = match read_whole(dir, owner.name) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(Errno::ISDIR | Errno::LOOP | Errno::NXIO | Errno::IO) => {
            return Ok(Some(Found::Damaged(Damage::Content)));
        }
        Err(errno) => return Err(errno),
    };
    Ok(Some(match unseal(owner, &bytes) {
        Found::Sealed(body) => Found::Sealed(body.to_vec()),
        Found::Old(bytes) => Found::Old(bytes.to_vec()),
        Found::Damaged(damage) => Found::Damaged(damage),
    }))
}

/// The whole of a file, whatever it holds; `None` when there is none.
pub(crate) fn read_whole(dir: BorrowedFd<'_>, name: &str) -> Result<Option<Vec<u8>>, Errno> {
    let file = errno::optional(beneath::open_file(dir, name))?;
    file.map(|file| reads::read_rest(file, u64::MAX)).transpose()
}

/// Writes a sealed file, durably, in the place of whatever has its name.
pub(crate) fn put(disk: &dyn Disk, dir: BorrowedFd<'_>, owner: Owner<'_>, body: &[u8]) -> Result<(), StateError> {
    let tmp = owner.state.open(Part::TMP)?;
    replace(disk, tmp.as_fd(), dir, owner.name, &seal(owner, body)).map_err(owner.failed("write"))
}

/// Writes a file, durably, in the place of whatever has its name; `tmp` is the directory of its temporary name.
pub(crate) fn replace(
    disk: &dyn Disk,
    tmp: BorrowedFd<'_>,
    dir: BorrowedFd<'_>,
    name: &str,
    bytes: &[u8],
) -> Result<(), Errno> {
    let mut new = Temporary::make(disk, tmp)?;
    new.write(bytes)?;
    new.put_durably(dir, name)
}

/// Makes a file, durably, unless something has its name: then the answer is `EXIST`.
pub(crate) fn make(disk: &dyn Disk, dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let mut new = Temporary::make(disk, dir)?;
    new.write(bytes)?;
    disk.sync(new.file.as_ref().ok_or(Errno::BADF)?.as_fd())?;
    disk.rename_new(dir, &new.name, name)?;
    new.file = None;
    disk::sync_dir(disk, dir)
}

/// A file that is being written. It vanishes unless it gets its name.
pub(crate) struct Temporary<'a> {
    disk: &'a dyn Disk,
    tmp: BorrowedFd<'a>,
    name: String,
    file: Option<OwnedFd>,
}

impl<'a> Temporary<'a> {
    /// Makes an empty file under a name that nothing else has. It is locked for as long as it is open, so that it is not
    /// taken for one of a dead process.
    pub(crate) fn make(disk: &'a dyn Disk, tmp: BorrowedFd<'a>) -> Result<Self, Errno> {
        for _ in 0..ATTEMPTS {
            let name = format!(".{}{ENDING}", disk::random_digits());
            let file = disk.create(tmp, &name, Mode::RUSR | Mode::WUSR)?;
            // Where a file system has no locks, nothing is swept either.
            let _ = lock(&file, FlockOperation::LockExclusive);
            let is_swept = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink == 0);
            if !is_swept {
                return Ok(Self { disk, tmp, name, file: Some(file) });
            }
        }
        Err(Errno::AGAIN)
    }

    /// Writes more bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        disk::write_all(self.disk, self.file.as_ref().ok_or(Errno::BADF)?.as_fd(), bytes)
    }

    /// Gives it its name, durably.
    pub(crate) fn put_durably(self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        let disk = self.disk;
        disk.sync(self.file.as_ref().ok_or(Errno::BADF)?.as_fd())?;
        self.put(dir, name)?;
        disk::sync_dir(disk, dir)
    }

    /// Gives it its name; returns the file, which is not durable yet.
    pub(crate) fn put(mut self, dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
        self.disk.rename(self.tmp, &self.name, dir, name)?;
        self.file.take().ok_or(Errno::BADF)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.file.is_some() {
            // If even this fails, the next one to open the root removes it.
            let _ = disk::unlink_if_there(self.disk, self.tmp, &self.name);
        }
    }
}

/// Removes what processes that died were writing.
pub(crate) fn sweep(disk: &dyn Disk, tmp: BorrowedFd<'_>) -> Result<(), Errno> {
    for name in disk::names(tmp)?.into_iter().filter(|name| name.ends_with(ENDING)) {
        let Ok(file) = beneath::open_file(tmp, &name) else { continue };
        if lock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            disk::unlink_if_there(disk, tmp, &name)?;
        }
    }
    Ok(())
}

fn lock(file: &OwnedFd, operation: FlockOperation) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::flock(file, operation))
}

/// Takes a file that is not believed out of the way, under a name of its own in the part `damaged`; returns its new path.
pub(crate) fn set_aside(
    disk: &dyn Disk,
    dir: BorrowedFd<'_>,
    owner: Owner<'_>,
    damage: Damage,
) -> Result<PathBuf, StateError> {
    let aside = owner.state.open(Part::DAMAGED)?;
    let name = aside_name(owner.part, owner.name);
    let moved = disk.rename(dir, owner.name, aside.as_fd(), &name);
    moved.map_err(owner.failed("set aside"))?;
    let kept = owner.state.part(Part::DAMAGED).join(name);
    tracing::error!(file = %owner.path().display(), kept = %kept.display(), "a file of our own cannot be used and is set aside: {damage}");
    Ok(kept)
}

/// Keeps the bytes of a part that are not believed in the part `damaged`; returns their path.
pub(crate) fn keep_aside(
    disk: &dyn Disk,
    state: &StateDir,
    (part, name): (Part, &str),
    bytes: &[u8],
) -> Result<PathBuf, StateError> {
    let (aside, tmp) = (state.open(Part::DAMAGED)?, state.open(Part::TMP)?);
    let name = aside_name(part, name);
    replace(disk, tmp.as_fd(), aside.as_fd(), &name, bytes).map_err(state.failed(Part::DAMAGED, "write"))?;
    Ok(state.part(Part::DAMAGED).join(name))
}

/// A name in the part `damaged` that nothing else has.
fn aside_name(part: Part, name: &str) -> String {
    let random = disk::random_digits();
    format!("{}-{name}-{}", part.0, random.split_at(8).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_file_is_believed_under_its_own_name_alone() {
        let state = StateDir::of_root("/state".as_ref(), "/root".as_ref());
        let other = StateDir::of_root("/state".as_ref(), "/other".as_ref());
        let owner = Owner { part: Part::AGENT, name: "cursor", state: &state };
        let bytes = seal(owner, b"what it holds\nand more");
        assert_eq!(unseal(owner, &bytes), Found::Sealed(&b"what it holds\nand more"[..]));
        let owners = [
            Owner { part: Part::CLIPBOARDS, ..owner },
            Owner { name: "agent-id", ..owner },
            Owner { state: &other, ..owner },
        ];
        for owner in owners {
            assert_eq!(unseal(owner, &bytes), Found::Damaged(Damage::Owner), "{owner}");
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            assert!(!matches!(unseal(owner, &flipped), Found::Sealed(_)), "bit of byte {at}");
            assert!(!matches!(unseal(owner, &bytes[..at]), Found::Sealed(_)), "cut at {at}");
        }
        assert_eq!(unseal(owner, b"earlier"), Found::Old(&b"earlier"[..]));
        assert_eq!(unseal(owner, b"aptix-own-2 x\n"), Found::Damaged(Damage::Version));
    }
}
