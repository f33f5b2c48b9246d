//! The state of one file of a record, found out from what its two names mean.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use crate::workspace::commit::record::{FileStep, Hex};
use crate::workspace::fs::beneath;
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::regular;

/// How far the commit has come with one file of its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileState {
    /// The file is as it was; what is to take its place, if anything is, is staged, whole.
    Staged,
    /// The new bytes are not in place, and cannot be put there: the file is no longer as it was.
    Outrun,
    /// The file is as planned and can be taken back.
    Published,
    /// The staged name holds something that was not planned: the new bytes displaced it, or it was moved there instead of
    /// the file that was to be removed.
    Displaced,
    /// The new bytes are in place and the old ones were cleared away.
    Finished,
    /// The file was to be removed and is gone; this commit or another process removed it, and it is not kept.
    Gone,
    /// The file was as planned, and another process has written it since.
    Overwritten,
    /// The old state, with nothing staged.
    Cleared,
    /// Nothing of the batch is there any more, and the old file is not either.
    Foreign,
}

/// What a name means, as far as a record can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    /// There is nothing of this name.
    Nothing,
    /// The file as it was.
    Before,
    /// The file as planned.
    After,
    /// Something else.
    Other,
}

/// Finds out what a name of a directory means, and the stamp of the file it names.
///
/// # Errors
/// When the system refuses to look.
pub(crate) fn holds(dir: &OwnedFd, name: &str, file: &FileStep) -> Result<(Holds, Option<FileStamp>), Errno> {
    let found = regular::digest(dir.as_fd(), name)?;
    let is_executable = |stamp: FileStamp| file.executable.is_none_or(|wanted| stamp.is_executable() == wanted);
    let was_executable = |stamp: FileStamp| file.executable.is_none_or(|wanted| stamp.is_executable() != wanted);
    let holds = match found {
        Some((digest, stamp)) if file.after == Some(Hex(digest)) && is_executable(stamp) => Holds::After,
        Some((digest, stamp)) if file.before == Some(Hex(digest)) && was_executable(stamp) => Holds::Before,
        None if is_gone(dir, name) => Holds::Nothing,
        _ => Holds::Other,
    };
    Ok((holds, found.map(|(_, stamp)| stamp)))
}

/// Whether a name of a directory is known to mean nothing.
pub(crate) fn is_gone(dir: impl AsFd, name: &str) -> bool {
    matches!(beneath::look_up(dir.as_fd(), name), Ok(None))
}

/// Finds out the state of a file from what its two names mean. Without its directory it has neither name.
///
/// # Errors
/// When the system refuses to look.
pub(crate) fn file_state(dir: Option<&OwnedFd>, file: &FileStep) -> Result<FileState, Errno> {
    let nothing = (Holds::Nothing, None);
    let ((now, published), (staged, first)) = match dir {
        Some(dir) => (holds(dir, &file.name, file)?, holds(dir, &file.staged, file)?),
        None => (nothing, nothing),
    };
    let is_one_file = published.zip(first).is_some_and(|(published, first)| published.is_same_file(first));
    Ok(match (file.before.is_some(), file.after.is_some()) {
        (true, true) => of_edited(now, staged),
        (false, _) => of_created(now, staged, is_one_file),
        (true, false) => of_removed(now, staged),
    })
}

const fn of_edited(now: Holds, staged: Holds) -> FileState {
    match (now, staged) {
        (Holds::Before, Holds::After) => FileState::Staged,
        (Holds::After, Holds::Before) => FileState::Published,
        (Holds::After, Holds::Nothing) => FileState::Finished,
        (Holds::Other | Holds::Nothing, Holds::Nothing) => FileState::Foreign,
        (Holds::Before, Holds::Nothing) => FileState::Cleared,
        (_, Holds::Before) => FileState::Overwritten,
        (Holds::After, Holds::Other) => FileState::Displaced,
        // With something else staged, another process saved once more while its save before was being put back.
        (_, Holds::After | Holds::Other) => FileState::Outrun,
    }
}

const fn of_created(now: Holds, staged: Holds, is_one_file: bool) -> FileState {
    match (now, staged) {
        (Holds::Nothing, Holds::After) => FileState::Staged,
        (Holds::After, Holds::Nothing) => FileState::Published,
        // Without a flag for it, a new file is published by a second link; another file of these bytes is of another process.
        (Holds::After, Holds::After) if is_one_file => FileState::Published,
        (Holds::Nothing, Holds::Nothing) => FileState::Cleared,
        (Holds::Other | Holds::Before, Holds::Nothing) => FileState::Overwritten,
        (_, Holds::Other | Holds::Before) => FileState::Displaced,
        (_, Holds::After) => FileState::Outrun,
    }
}

const fn of_removed(now: Holds, staged: Holds) -> FileState {
    match (now, staged) {
        (Holds::Before, Holds::Nothing) => FileState::Staged,
        (Holds::Nothing, Holds::Before) => FileState::Published,
        (Holds::Nothing, Holds::Nothing) => FileState::Gone,
        (_, Holds::Nothing) => FileState::Foreign,
        (_, Holds::Before) => FileState::Overwritten,
        (_, Holds::Other | Holds::After) => FileState::Displaced,
    }
}

impl FileState {
    /// Whether the file can be brought to what was planned, or was.
    pub(crate) const fn can_be_published(self) -> bool {
        matches!(self, Self::Staged | Self::Published | Self::Overwritten | Self::Gone | Self::Finished)
    }

    /// Whether the file can be brought back to what it was, or is that: its old bytes have not been cleared away.
    pub(crate) const fn can_be_rolled_back(self) -> bool {
        !matches!(self, Self::Finished)
    }
}
