//! A regular file that is open for reading: what the system says about it, and its bytes piece by piece.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::Stat;
use rustix::io::Errno;

use crate::workspace::fs::reads;
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::listing::Listings;
use crate::workspace::read::place::Place;
use crate::workspace::read::regular;
use crate::workspace::read::snapshot::{self, ReadError};
use crate::workspace::roots::workspace::Workspace;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// An open regular file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    file: OwnedFd,
    stat: Stat,
}

impl OpenFile {
    /// Opens the file at a place; `None` when there is none.
    ///
    /// # Errors
    /// When it is no longer a regular file, or the system refuses.
    pub(crate) fn at(workspace: &Workspace, listings: &mut Listings, place: &Place) -> Result<Option<Self>, ReadError> {
        Ok(snapshot::open(workspace, listings, place)?.map(|(file, stat)| Self { file, stat }))
    }

    /// Opens what has a name in a directory; `None` when that is no regular file.
    pub(crate) fn of_name(dir: BorrowedFd<'_>, name: &str) -> Result<Option<Self>, Errno> {
        Ok(regular::open(dir, name)?.map(|(file, stat)| Self { file, stat }))
    }

    /// How many bytes it stated to have when it was opened.
    pub(crate) fn size(&self) -> u64 {
        regular::stated_size(&self.stat)
    }

    /// How many names it has.
    pub(crate) fn names(&self) -> usize {
        usize::try_from(self.stat.st_nlink).unwrap_or(usize::MAX)
    }

    /// Whether its owner may run it.
    pub(crate) fn is_executable(&self) -> bool {
        FileStamp::of(&self.stat).is_executable()
    }

    /// What it begins with, at most so many bytes.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn head(&self, most: usize) -> Result<Vec<u8>, Errno> {
        let mut head = vec![0; most];
        let count = reads::read_at(self.file.as_fd(), &mut head, 0)?;
        head.truncate(count);
        Ok(head)
    }

    /// All its bytes; none if there are more than `limit`.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn bytes(self, limit: u64) -> Result<Option<Vec<u8>>, Errno> {
        if self.size() > limit {
            return Ok(None);
        }
        Ok(Some(reads::read_rest(self.file, limit + 1)?).filter(|bytes| bytes.len() as u64 <= limit))
    }

    /// All its bytes, if there are at most so many; the file can still be read afterwards.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn small(&self, most: usize) -> Result<Option<Vec<u8>>, Errno> {
        if self.size() > most as u64 {
            return Ok(None);
        }
        let bytes = self.head(most + 1)?;
        Ok(Some(bytes).filter(|bytes| bytes.len() <= most))
    }

    /// Hands over its bytes from the first on, piece by piece, until `take` breaks off.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn pieces(&self, take: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Errno> {
        let room = usize::try_from(self.size()).unwrap_or(usize::MAX).saturating_add(1).min(PIECE_BYTES);
        let mut piece = vec![0; room];
        let mut at = 0;
        loop {
            let count = reads::read_at(self.file.as_fd(), &mut piece, at)?;
            let is_last = count < piece.len();
            if take(piece.get(..count).unwrap_or_default()).is_break() || is_last {
                return Ok(());
            }
            at += count as u64;
        }
    }

    /// Whether no process has written to it since it was opened, as far as the system shows.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn is_unchanged(&self) -> Result<bool, Errno> {
        let now = FileStamp::of(&rustix::fs::fstat(&self.file)?);
        Ok(now.has_content_of(FileStamp::of(&self.stat)))
    }
}
