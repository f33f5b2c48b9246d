//! Settles what durability mode `journal` of earlier versions left in a state directory, when the root is opened next.
//!
//! The mode wrote contents to the file `ahead` and flushed their files later. A round of that file begins with a name;
//! blocks follow, each chained to the one before: a tag, a length, the digest of the body, a link, the body. A round
//! without a block has nothing pending, and the file is removed. Otherwise the root is refused by name: only the version
//! that wrote the blocks can complete them.

use std::os::fd::{AsFd, BorrowedFd};

use aptix_engine::digest::sha256;
use rustix::io::Errno;

use crate::workspace::commit::commit_error::RecoveryError;
use crate::workspace::commit::file_state::is_gone;
use crate::workspace::commit::journal::Journal;
use crate::workspace::fs::reads::read_at;
use crate::workspace::fs::{beneath, disk, errno};

/// The file that contents were written to.
const AHEAD: &str = "ahead";
/// The file of a record between two batches.
const SPARE: &str = "spare";
/// How a round begins; its name and the digest of both follow.
const MAGIC: &[u8] = b"aptix-ahead-3\n\0\0";
/// Bytes of the magic and the name.
const NAMED: usize = 32;
/// Bytes of the magic, the name and their digest.
const START: usize = NAMED + 32;
/// Bytes of a block's tag, length and digest.
const SAID: usize = 1 + 8 + 32;
/// Bytes of a block before its body.
const HEAD: usize = SAID + 32;
/// Bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// Removes the files of the mode from a journal, unless something in them is pending.
///
/// # Errors
/// When a batch is pending, or the system refuses to look or to remove.
pub(crate) fn settle(journal: &Journal<'_>) -> Result<(), RecoveryError> {
    let ahead = errno::optional(beneath::open_file(journal.dir.as_fd(), AHEAD)).map_err(journal.failed("read"))?;
    if let Some(ahead) = ahead
        && is_pending(ahead.as_fd()).map_err(journal.failed("read"))?
    {
        return Err(RecoveryError::WrittenAhead { path: journal.path(AHEAD) });
    }
    for name in [AHEAD, SPARE] {
        if !is_gone(&journal.dir, name) {
            disk::unlink_if_there(journal.disk, journal.dir.as_fd(), name).map_err(journal.failed("clear"))?;
        }
    }
    Ok(())
}

/// Whether the round of the file has a whole first block.
fn is_pending(file: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut start = [0; START];
    if read_at(file, &mut start, 0)? < START {
        return Ok(false);
    }
    let (named, digest) = start.split_at(NAMED);
    let round = sha256(named);
    if !named.starts_with(MAGIC) || round.as_bytes() != digest {
        // A round whose beginning was never whole was never flushed.
        return Ok(false);
    }
    let mut head = [0; HEAD];
    if read_at(file, &mut head, START as u64)? < HEAD {
        return Ok(false);
    }
    let (said, link) = head.split_at(SAID);
    if sha256(&[round.as_bytes(), said].concat()).as_bytes() != link {
        return Ok(false);
    }
    let length = said.get(1..9).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or_default();
    if size.saturating_sub((START + HEAD) as u64) < length {
        return Ok(false);
    }
    let mut body = Vec::new();
    let mut piece = vec![0; PIECE];
    while (body.len() as u64) < length {
        let at = (START + HEAD + body.len()) as u64;
        let left = usize::try_from(length - body.len() as u64).unwrap_or(PIECE).min(PIECE);
        let count = read_at(file, piece.get_mut(..left).ok_or(Errno::IO)?, at)?;
        if count == 0 {
            return Ok(false);
        }
        body.extend_from_slice(piece.get(..count).ok_or(Errno::IO)?);
    }
    Ok(said.get(9..) == Some(sha256(&body).as_bytes().as_slice()))
}
