//! Settles what durability mode `journal` of earlier versions left in a state directory, when the root is opened next.
//!
//! The mode wrote contents to the file `ahead` and flushed their files later. A round of that file begins with a name;
//! blocks follow, each chained to the one before: a tag, a length, the digest of the body, a link, the body. A round
//! without a block has nothing pending, and the file is removed. Otherwise the root is refused by name: only the version
//! that wrote the blocks can complete them.

use std::os::fd::AsFd;

use aptix_engine::digest::sha256;

use crate::workspace::commit::commit_error::RecoveryError;
use crate::workspace::commit::file_state::is_gone;
use crate::workspace::commit::journal::Journal;
use crate::workspace::fs::disk;
use crate::workspace::roots::own_file;

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

/// Removes the files of the mode from a journal, unless something in them is pending.
///
/// # Errors
/// When a batch is pending, or the system refuses to look or to remove.
pub(crate) fn settle(journal: &Journal<'_>) -> Result<(), RecoveryError> {
    let ahead = own_file::read_whole(journal.dir.as_fd(), AHEAD).map_err(journal.failed("read"))?;
    if ahead.is_some_and(|ahead| is_pending(&ahead) == Some(true)) {
        return Err(RecoveryError::WrittenAhead { path: journal.path(AHEAD) });
    }
    for name in [AHEAD, SPARE] {
        if !is_gone(&journal.dir, name) {
            disk::unlink_if_there(journal.disk, journal.dir.as_fd(), name).map_err(journal.failed("clear"))?;
        }
    }
    Ok(())
}

/// Whether the first block of the file is whole; `None` where the file ends before.
fn is_pending(file: &[u8]) -> Option<bool> {
    let (start, rest) = file.split_at_checked(START)?;
    let (named, digest) = start.split_at_checked(NAMED)?;
    let round = sha256(named);
    let (head, bodies) = rest.split_at_checked(HEAD)?;
    let (said, link) = head.split_at_checked(SAID)?;
    let length = u64::from_le_bytes(said.get(1..9)?.try_into().ok()?);
    let body = bodies.get(..usize::try_from(length).ok()?)?;
    // A round whose beginning was never whole was never flushed.
    let is_round = named.starts_with(MAGIC) && round.as_bytes() == digest;
    let is_linked = sha256(&[round.as_bytes(), said].concat()).as_bytes() == link;
    Some(is_round && is_linked && said.get(9..)? == sha256(body).as_bytes())
}
