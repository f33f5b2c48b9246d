//! Reads the files of a batch: their bytes, and what a new file in their place has to have as well.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::workspace::fs::{beneath, errno};
use crate::workspace::read::attributes::{self, Attributes};
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::listing::Listings;
use crate::workspace::read::place::Place;
use crate::workspace::read::regular;
use crate::workspace::read::resolve_error::ResolveError;
use crate::workspace::roots::workspace::Workspace;

/// A file as it was read.
#[derive(Clone, Debug)]
pub struct Original {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// How many names it has.
    pub links: usize,
    pub(crate) attributes: Attributes,
    /// Whether the system would refuse to replace it.
    pub(crate) immutable: bool,
    /// Shows whether another process has touched it since.
    pub(crate) stamp: FileStamp,
}

impl Original {
    /// Whether it runs with the rights of its owner or group, whatever user starts it.
    #[must_use]
    pub const fn is_setuid(&self) -> bool {
        self.attributes.mode & 0o6000 != 0
    }
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It, or its directory, became something else since it was resolved.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Too many bytes.
    #[error("the file has more than {limit} bytes, which is the most that are edited")]
    TooLarge {
        /// How many it may have.
        limit: u64,
    },
    /// Too many bytes, with those of the files before it.
    #[error("the files of the batch have more than {limit} bytes together, counting up to this one")]
    BatchTooLarge {
        /// How many they may have.
        limit: u64,
    },
    /// The system refuses.
    #[error("cannot read the file: {0}")]
    System(Errno),
}

impl ReadError {
    /// The failure that the author of the edit gets.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Resolve(error) => error.failure(),
            Self::TooLarge { .. } => Failure::new(Reason::TooLarge, self.to_string())
                .detail(Detail::File)
                .hint("leave the file out; a person can raise `file_bytes` of `[limits]` in the policy file"),
            Self::BatchTooLarge { .. } => Failure::new(Reason::TooLarge, self.to_string())
                .detail(Detail::Files)
                .hint("split the batch: send the changes of these files in several batches"),
            Self::System(errno) => errno::read_failure(*errno, self.to_string()),
        }
    }
}

/// Reads the file at a place; `None` when there is none.
///
/// # Errors
/// When it is too large, no longer a regular file, or the system refuses.
pub fn read(
    workspace: &Workspace,
    listings: &mut Listings,
    place: &Place,
    limit: u64,
) -> Result<Option<Original>, ReadError> {
    let Some((file, stat)) = open(workspace, listings, place)? else { return Ok(None) };
    let size = regular::stated_size(&stat);
    if size > limit {
        return Err(ReadError::TooLarge { limit });
    }
    let attributes = Attributes::of(file.as_fd(), &stat);
    let immutable = attributes::is_immutable(file.as_fd());
    let bytes = read_all(file, size, limit).map_err(ReadError::System)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { limit });
    }
    Ok(Some(Original {
        bytes,
        links: usize::try_from(stat.st_nlink).unwrap_or(usize::MAX),
        attributes,
        immutable,
        stamp: FileStamp::of(&stat),
    }))
}

/// Opens the regular file at a place, without ever waiting for it; `None` when there is none.
///
/// # Errors
/// When it is no longer a regular file, or the system refuses.
pub(crate) fn open(
    workspace: &Workspace,
    listings: &mut Listings,
    place: &Place,
) -> Result<Option<(OwnedFd, Stat)>, ReadError> {
    let Some(root) = workspace.root(place.root).filter(|_| place.found.is_some()) else { return Ok(None) };
    let dir = listings.open((place.root, root), &place.dir);
    let opened = dir.and_then(|dir| beneath::open_file(dir.as_fd(), &place.name));
    let not_regular = |kind| ResolveError::NotRegular { real: place.real(), kind }.into();
    let file = match opened {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::XDEV) => return Err(ResolveError::CrossDevice(place.real()).into()),
        Err(Errno::LOOP) => return Err(not_regular("a link")),
        Err(Errno::NXIO) => return Err(not_regular("a socket or a device")),
        Err(errno) => return Err(ReadError::System(errno)),
    };
    let stat = rustix::fs::fstat(&file).map_err(ReadError::System)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(not_regular("no regular file any more"));
    }
    Ok(Some((file, stat)))
}

/// The bytes of a file of which nothing was read yet, as far as one more than `limit`, in one call if it has its
/// stated size.
fn read_all(file: OwnedFd, size: u64, limit: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1));
    let room = bytes.capacity();
    let count = retry_on_intr(|| rustix::io::read(&file, spare_capacity(&mut bytes)))? as u64;
    if regular::is_all(bytes.len(), room, count, size) {
        return Ok(bytes);
    }
    let rest = std::fs::File::from(file).take(limit.saturating_add(1).saturating_sub(count)).read_to_end(&mut bytes);
    rest.map(|_| bytes).map_err(|error| errno::of(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: impl AsRef<std::path::Path>) -> OwnedFd {
        std::fs::File::open(path).unwrap().into()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own directory")]
    fn a_file_is_read_to_its_end_whatever_size_it_states() {
        let place = tempfile::tempdir().unwrap();
        for length in [0, 1, 100, 70_000] {
            let file = place.path().join("file");
            let bytes = vec![b'x'; length];
            std::fs::write(&file, &bytes).unwrap();
            for stated in [0, length / 2, length.saturating_sub(1), length, length + 1, 2 * length] {
                let read = |limit| read_all(open(&file), stated as u64, limit).unwrap();
                assert!(read(1 << 20) == bytes, "{stated} of {length}");
                assert_eq!(read(stated as u64).len(), length.min(stated + 1), "{stated} of {length}, and no more");
            }
        }
        let made_up = std::fs::read("/proc/version").unwrap();
        assert_eq!(read_all(open("/proc/version"), 0, 1 << 20), Ok(made_up));
    }
}
