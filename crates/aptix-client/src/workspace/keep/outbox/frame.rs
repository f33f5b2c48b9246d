//! One entry of the outbox log, and how entries are found again: whole, torn at the end, or damaged in the middle.
//!
//! The head of an entry has a checksum of its own, over the owner of the log and the place of the entry, so that
//! the next whole entry is found behind a damaged one, and no other bytes are ever taken for an entry.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aptix_engine::digest::sha256;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Uuid};
use rustix::io::Errno;

use crate::workspace::fs::reads::read_at;

/// How each entry begins.
const MARK: &[u8; 4] = b"ApxF";
/// A mark, a kind, three zeros, a batch, a length, the digest of the body.
const FIELDS: usize = 4 + 4 + 16 + 8 + 32;
/// Bytes of an entry before its body: all that, and its checksum.
pub(super) const HEAD: usize = FIELDS + 32;
/// Bytes that are searched at a time for the next entry.
const PIECE: usize = 1 << 16;
/// Bytes of the longest body.
const LONGEST: u64 = 256 << 20;

/// What an entry records of its batch; its value is the byte that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// The server is owed this report. A later one takes the place of an earlier one.
    Receipt = b'R',
    /// The server has acknowledged the report; the body names the server's history.
    Ended = b'E',
    /// The batch ended here, and its report cannot be used; the body is the path of what was set aside.
    Lost = b'L',
    /// Entries of batches that are not known were lost here; the batch is nil.
    Gap = b'G',
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        [Self::Receipt, Self::Ended, Self::Lost, Self::Gap].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// An entry without its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    /// Where it begins.
    pub(super) at: u64,
    pub(super) kind: Kind,
    pub(super) batch: BatchId,
    /// Bytes of its body.
    pub(super) length: u64,
    pub(super) digest: Sha256Digest,
}

impl Frame {
    /// How many bytes it takes.
    pub(super) const fn size(&self) -> u64 {
        (HEAD as u64).saturating_add(self.length)
    }

    /// Where the next one begins.
    pub(super) const fn end(&self) -> u64 {
        self.at.saturating_add(self.size())
    }

    /// Its body; `None` where that is not as it was written.
    pub(super) fn body(&self, file: BorrowedFd<'_>) -> Result<Option<Vec<u8>>, Errno> {
        let Some(length) = usize::try_from(self.length).ok().filter(|_| self.length <= LONGEST) else {
            return Ok(None);
        };
        let mut body = vec![0; length];
        let is_whole = read_at(file, &mut body, self.at + HEAD as u64)? == length && sha256(&body) == self.digest;
        Ok(is_whole.then_some(body))
    }
}

/// The head of an entry at a place of the log of an owner.
pub(super) fn head(owner: Sha256Digest, at: u64, kind: Kind, batch: BatchId, body: &[u8]) -> Vec<u8> {
    let (kind, length) = ([kind as u8, 0, 0, 0], (body.len() as u64).to_le_bytes());
    let fields = [MARK.as_slice(), &kind, batch.0.as_bytes(), &length, sha256(body).as_bytes()].concat();
    [fields.as_slice(), checksum(owner, at, &fields).as_bytes()].concat()
}

fn checksum(owner: Sha256Digest, at: u64, fields: &[u8]) -> Sha256Digest {
    sha256(&[owner.as_bytes().as_slice(), &at.to_le_bytes(), fields].concat())
}

/// Reads the head at a place.
fn decode(owner: Sha256Digest, at: u64, bytes: &[u8]) -> Option<Frame> {
    let (fields, check) = bytes.get(..HEAD)?.split_at_checked(FIELDS)?;
    if !fields.starts_with(MARK) || checksum(owner, at, fields).as_bytes().as_slice() != check {
        return None;
    }
    let batch = Uuid::from_slice(fields.get(8..24)?).ok()?;
    let length = u64::from_le_bytes(fields.get(24..32)?.try_into().ok()?);
    let digest = Sha256Digest::from_bytes(fields.get(32..64)?.try_into().ok()?);
    Some(Frame { at, kind: Kind::of(*fields.get(4)?)?, batch: BatchId(batch), length, digest })
}

/// Bytes between whole entries that are none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Damaged {
    pub(super) from: u64,
    pub(super) to: u64,
    /// The entry, where its head is whole.
    pub(super) frame: Option<Frame>,
}

/// The entries of a log from a place on.
#[derive(Default, Debug)]
pub(super) struct Scan {
    pub(super) frames: Vec<Frame>,
    pub(super) damaged: Vec<Damaged>,
    /// Where the last whole entry ends. What follows it and is not listed as damaged was cut short when it was written.
    pub(super) end: u64,
}

/// Reads the entries of a log from a place on.
pub(super) fn scan(file: &OwnedFd, owner: Sha256Digest, from: u64) -> Result<Scan, Errno> {
    let file = file.as_fd();
    let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or_default();
    let mut scan = Scan { end: from, ..Scan::default() };
    let mut bad = Vec::new();
    let mut at = from;
    while at < size {
        let mut bytes = [0; HEAD];
        let read = read_at(file, &mut bytes, at)?;
        let frame = bytes.get(..read).and_then(|bytes| decode(owner, at, bytes));
        match frame {
            Some(frame) if frame.body(file)?.is_some() => {
                scan.damaged.append(&mut bad);
                (at, scan.end) = (frame.end(), frame.end());
                scan.frames.push(frame);
            }
            frame => {
                // A body that is damaged and not cut short ends where its head states.
                let skipped = frame.filter(|frame| frame.end() < size);
                let next = find(file, owner, skipped.map_or(at + 1, |frame| frame.end()), size)?;
                bad.push(Damaged { from: at, to: next, frame });
                at = next;
            }
        }
    }
    for bad in bad {
        if !is_torn(file, &bad, size)? {
            scan.damaged.push(bad);
        }
    }
    Ok(scan)
}

/// Whether bytes at the end of a log are what a write that was cut short leaves: fewer bytes than the head of an entry, fewer
/// than its head states, or zeros, which a power cut leaves.
fn is_torn(file: BorrowedFd<'_>, bad: &Damaged, size: u64) -> Result<bool, Errno> {
    match bad.frame {
        Some(frame) => Ok(frame.end() > size),
        None if bad.to < size => Ok(false),
        None => Ok(bad.to - bad.from < HEAD as u64 || is_zero(file, bad.from)?),
    }
}

/// Whether nothing but zeros follows.
fn is_zero(file: BorrowedFd<'_>, mut from: u64) -> Result<bool, Errno> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = read_at(file, &mut piece, from)?;
        if read == 0 || piece.iter().take(read).any(|byte| *byte != 0) {
            return Ok(read == 0);
        }
        from += read as u64;
    }
}

/// The place of the next head, or the end.
fn find(file: BorrowedFd<'_>, owner: Sha256Digest, mut from: u64, size: u64) -> Result<u64, Errno> {
    let mut piece = vec![0; PIECE];
    while from < size {
        let read = read_at(file, &mut piece, from)?;
        let bytes = piece.get(..read).ok_or(Errno::IO)?;
        for (index, _) in bytes.windows(MARK.len()).enumerate().filter(|(_, window)| window == MARK) {
            let (at, mut head) = (from + index as u64, [0; HEAD]);
            let read = read_at(file, &mut head, at)?;
            if head.get(..read).and_then(|bytes| decode(owner, at, bytes)).is_some() {
                return Ok(at);
            }
        }
        if read < PIECE {
            break;
        }
        from += (PIECE - MARK.len() + 1) as u64;
    }
    Ok(size)
}
