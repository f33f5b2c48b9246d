//! The contents of batches, written ahead of their files: all that mode `journal` makes durable at once.
//!
//! One file, a row of blocks: a tag, a length, a checksum, the bytes. Contents come before the batch they belong to.
//! What follows the last whole block was never durable.

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use aptix_model::digest::Sha256Digest;
use rustix::fs::Stat;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::disk::{self, Disk};
use super::journal::{self, Journal, JournalError, Record};
use super::{Workspace, beneath};

/// The file's name in the journal.
const NAME: &str = "ahead";
/// Bytes from which on the file is emptied before it grows further.
const FULL: u64 = 64 << 20;
/// A tag, a length, a SHA-256.
const HEAD: usize = 1 + 8 + 32;
const CONTENT: u8 = b'C';
const BATCH: u8 = b'B';
const UNDONE: u8 = b'U';
const REWRITTEN: u8 = b'R';

/// Which file it was, and when its bytes were last written and anything about it was last changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seen {
    pub(super) inode: u64,
    pub(super) changed: (i64, u64),
    pub(super) written: (i64, u64),
    pub(super) mode: u32,
}

impl Seen {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            changed: (stat.st_ctime, stat.st_ctime_nsec),
            written: (stat.st_mtime, stat.st_mtime_nsec),
            mode: stat.st_mode,
        }
    }
}

/// What was seen of one file just before the commit point: by it lost steps are told from later ones of somebody else.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sight {
    /// The old file.
    pub(super) original: Option<Seen>,
    /// The new one, staged.
    pub(super) staged: Option<Seen>,
    /// Its directory.
    pub(super) dir: Seen,
}

/// A batch whose contents are kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) record: Record,
    /// One for each file of the record.
    pub(super) sights: Vec<Sight>,
    /// One for each directory of the record: what was seen of its parent.
    pub(super) parents: Vec<Seen>,
}

/// A batch as it is read back.
pub(super) struct Kept {
    pub(super) written: Written,
    pub(super) receipt: Vec<u8>,
    /// Where the contents of its files are, for those that have any.
    contents: Vec<Option<Range<usize>>>,
    pub(super) undone: bool,
}

/// Everything that was written ahead.
pub(super) struct Past {
    bytes: Vec<u8>,
    pub(super) batches: Vec<Kept>,
    /// Names that a healing which was cut short has brought to what a batch made of them, or was about to: the number of
    /// the root, and the path in it.
    pub(super) rewritten: BTreeSet<(usize, String)>,
    /// Where the last whole block ends.
    end: usize,
}

impl Past {
    pub(super) fn content(&self, batch: &Kept, file: usize) -> Option<&[u8]> {
        self.bytes.get(batch.contents.get(file)?.clone()?)
    }
}

/// Where the contents of one batch are being written.
pub(super) struct Ahead<'a> {
    disk: &'a dyn Disk,
    file: OwnedFd,
    /// How many bytes there were before.
    pub(super) start: u64,
}

impl<'a> Ahead<'a> {
    /// Begins to write a batch; what is there is flushed and forgotten first if it has become much.
    pub(super) fn begin(workspace: &'a Workspace, journal: &Journal<'a>) -> Result<Self, JournalError> {
        let failed = journal.failed("write ahead in");
        if size(journal).map_err(&failed)? > FULL {
            settle(workspace, journal)?;
        }
        let disk = workspace.disk();
        let file = disk.open_end(journal.dir(), NAME).map_err(&failed)?;
        let start = rustix::fs::fstat(&file).map_err(&failed)?.st_size;
        Ok(Self { disk, file, start: u64::try_from(start).unwrap_or_default() })
    }

    /// Keeps a content. Nothing is durable yet.
    pub(super) fn put(&self, digest: Sha256Digest, bytes: &[u8]) -> Result<(), Errno> {
        disk::write_all(self.disk, self.file.as_fd(), &head(CONTENT, bytes.len(), digest))?;
        disk::write_all(self.disk, self.file.as_fd(), bytes)
    }

    /// Makes a batch durable, with the contents that were put before: its commit point for a power cut.
    pub(super) fn commit(&self, written: &Written, receipt: &[u8]) -> Result<(), Errno> {
        // A batch is strings and numbers: there is nothing in it that JSON could refuse.
        let mut body = serde_json::to_vec(written).unwrap_or_default();
        body.push(b'\n');
        body.extend_from_slice(receipt);
        self.append(BATCH, &body)
    }

    fn append(&self, tag: u8, body: &[u8]) -> Result<(), Errno> {
        let mut block = head(tag, body.len(), aptix_engine::digest::sha256(body));
        block.extend_from_slice(body);
        disk::write_all(self.disk, self.file.as_fd(), &block)?;
        self.disk.sync_data(self.file.as_fd())
    }
}

fn head(tag: u8, length: usize, digest: Sha256Digest) -> Vec<u8> {
    let mut head = vec![tag];
    head.extend_from_slice(&(length as u64).to_le_bytes());
    head.extend_from_slice(digest.as_bytes());
    head
}

/// Says, durably, that a batch that was written ahead is taken back.
pub(super) fn undo(disk: &dyn Disk, journal: &Journal<'_>, record: &Record) -> Result<(), Errno> {
    let (Some(start), Some(file)) = (record.ahead, record.files.first()) else { return Ok(()) };
    let ahead = Ahead { disk, file: disk.open_end(journal.dir(), NAME)?, start };
    ahead.append(UNDONE, file.staged.as_bytes())
}

/// Says, durably, that a name is about to be rewritten by healing: what is found there afterwards is our own.
pub(super) fn note_rewritten(disk: &dyn Disk, journal: &Journal<'_>, name: &(usize, String)) -> Result<(), Errno> {
    let ahead = Ahead { disk, file: disk.open_end(journal.dir(), NAME)?, start: 0 };
    ahead.append(REWRITTEN, &serde_json::to_vec(name).unwrap_or_default())
}

/// Forgets what was never durable: more can be written after the last whole block then.
pub(super) fn trim(disk: &dyn Disk, journal: &Journal<'_>, past: &Past) -> Result<(), Errno> {
    let end = past.end as u64;
    if size(journal)? > end { truncate(disk, journal, end) } else { Ok(()) }
}

/// Forgets what a batch has written ahead.
pub(super) fn cut(disk: &dyn Disk, journal: &Journal<'_>, record: &Record) -> Result<(), Errno> {
    match record.ahead {
        // What was settled meanwhile is shorter. Making it longer would hide every later batch behind zeros.
        Some(start) if start < size(journal)? => truncate(disk, journal, start),
        _ => Ok(()),
    }
}

fn truncate(disk: &dyn Disk, journal: &Journal<'_>, length: u64) -> Result<(), Errno> {
    let file = disk.open_end(journal.dir(), NAME)?;
    disk.truncate(file.as_fd(), length)?;
    disk.sync_data(file.as_fd())
}

fn size(journal: &Journal<'_>) -> Result<u64, Errno> {
    let found = beneath::look_up(journal.dir(), NAME)?;
    Ok(found.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or_default()))
}

/// Makes everything durable that was published since, and forgets what was written ahead of it.
pub(super) fn settle(workspace: &Workspace, journal: &Journal<'_>) -> Result<(), JournalError> {
    let failed = journal.failed("settle");
    if size(journal).map_err(&failed)? == 0 {
        return Ok(());
    }
    let disk = workspace.disk();
    for root in workspace.roots() {
        disk::open_readable(root.dir()).and_then(|dir| disk.sync_system(dir.as_fd())).map_err(&failed)?;
    }
    disk::open_readable(journal.dir()).and_then(|dir| disk.sync_system(dir.as_fd())).map_err(&failed)?;
    truncate(disk, journal, 0).map_err(&failed)
}

/// Reads everything that was written ahead and made durable; `None` when there is nothing.
pub(super) fn read(journal: &Journal<'_>) -> Result<Option<Past>, Errno> {
    if size(journal)? == 0 {
        return Ok(None);
    }
    let bytes = journal.read_file(NAME)?.unwrap_or_default();
    let mut batches: Vec<Kept> = Vec::new();
    let mut contents: Vec<Range<usize>> = Vec::new();
    let mut rewritten = BTreeSet::new();
    let mut at = 0;
    while let Some((tag, range)) = block(&bytes, at) {
        let body = bytes.get(range.clone()).unwrap_or_default();
        match tag {
            CONTENT => contents.push(range.clone()),
            BATCH => {
                let Some((written, receipt)) = journal::split_line(body).and_then(|(json, receipt)| {
                    Some((serde_json::from_slice::<Written>(json).ok()?, receipt.to_vec()))
                }) else {
                    break;
                };
                let own = written.record.files.iter().filter(|file| file.after.is_some()).count();
                let mut own = contents.split_off(contents.len().saturating_sub(own)).into_iter();
                let contents_of = |file: &journal::FileStep| file.after.and_then(|_| own.next());
                let contents = written.record.files.iter().map(contents_of).collect();
                batches.push(Kept { written, receipt, contents, undone: false });
            }
            UNDONE => {
                let named = |kept: &&mut Kept| {
                    kept.written.record.files.first().is_some_and(|file| file.staged.as_bytes() == body)
                };
                if let Some(kept) = batches.iter_mut().find(named) {
                    kept.undone = true;
                }
            }
            REWRITTEN => rewritten.extend(serde_json::from_slice::<(usize, String)>(body).ok()),
            _ => break,
        }
        at = range.end;
    }
    Ok(Some(Past { bytes, batches, rewritten, end: at }))
}

/// The whole block at a place: its tag, and where its bytes are.
fn block(bytes: &[u8], at: usize) -> Option<(u8, Range<usize>)> {
    let head = bytes.get(at..at.checked_add(HEAD)?)?;
    let (tag, rest) = head.split_first()?;
    let (length, digest) = rest.split_first_chunk::<8>()?;
    let start = at + HEAD;
    let end = start.checked_add(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let body = bytes.get(start..end)?;
    (aptix_engine::digest::sha256(body).as_bytes() == digest).then_some((*tag, start..end))
}
