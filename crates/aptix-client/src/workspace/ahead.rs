//! The contents of batches, written ahead of their files: all that mode `journal` makes durable at once.
//!
//! One file, written over in rounds: bytes that take the place of others are durable without the file system's journal.
//! The file begins with the round's name. Blocks follow: a tag, a length, the digest of the body, a link that follows from
//! the link before, the body. Where the chain breaks, what comes after is of an earlier round, or was never durable.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aptix_engine::digest::sha256;
use aptix_model::digest::Sha256Digest;
use rustix::fs::Stat;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::disk::{self, Disk};
use super::history::{self, Draft};
use super::journal::{self, FileStep, Journal, JournalError, Record};
use super::{Workspace, beneath};

/// The file's name in the journal.
const NAME: &str = "ahead";
/// The first word of the file, with the version of its form.
const MAGIC: [u8; 16] = *b"aptix-ahead-3\n\0\0";
/// The first word, a name, the digest of both.
const START: usize = 16 + 16 + 32;
/// A tag, a length, a digest, a link.
const HEAD: usize = 1 + 8 + 32 + 32;
/// Bytes from which on another round begins.
const FULL: u64 = 64 << 20;
/// Bytes that the file has at least; it grows twofold.
const LEAST: u64 = 1 << 20;
/// Bytes that it has at most once everything in it is forgotten.
const KEPT: u64 = 16 << 20;
/// Bytes that are free behind a batch, for what is said of it later.
const MARKS: u64 = 4096;
/// Bytes that are written at a time.
const PIECE: usize = 1 << 20;
const CONTENT: u8 = b'C';
const HISTORY: u8 = b'H';
const BATCH: u8 = b'B';
const UNDONE: u8 = b'U';
const REWRITTEN: u8 = b'R';
const FOUND: u8 = b'D';
const FORGOTTEN: u8 = b'F';

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
    /// What it takes to undo it.
    history: Option<Vec<u8>>,
    /// The contents of its files, for those that have any.
    pub(super) contents: Vec<Option<Vec<u8>>>,
    pub(super) undone: bool,
}

impl Kept {
    fn is_named(&self, name: &[u8]) -> bool {
        self.written.record.files.first().is_some_and(|file| file.staged.as_bytes() == name)
    }
}

/// Everything that was written ahead.
#[derive(Default)]
pub(super) struct Past {
    pub(super) batches: Vec<Kept>,
    /// Names that a healing which was cut short has brought to what a batch made of them, or was about to: the number of
    /// the root, and the path in it.
    pub(super) rewritten: BTreeSet<(usize, String)>,
    /// The directories of the batches as healing has found them, once it has begun.
    pub(super) found: Option<Vec<Found>>,
}

/// A directory as healing has found it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Found {
    /// The number of the root.
    pub(super) root: usize,
    /// The path in it.
    pub(super) dir: String,
    /// When it was changed last.
    pub(super) changed: (i64, u64),
}

/// Where a round has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    round: Sha256Digest,
    at: u64,
    link: Sha256Digest,
}

/// The first bytes of a new round.
fn start() -> [u8; START] {
    let mut bytes = [0; START];
    let (head, digest) = bytes.split_at_mut(START - 32);
    let (magic, name) = head.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    name.copy_from_slice(&disk::nonce());
    digest.copy_from_slice(sha256(head).as_bytes());
    bytes
}

impl End {
    /// The end of a round in which nothing was written yet.
    fn of_start(bytes: &[u8; START]) -> Option<Self> {
        let (head, digest) = bytes.split_at(START - 32);
        let round = sha256(head);
        let is_start = head.starts_with(&MAGIC) && round.as_bytes() == digest;
        is_start.then_some(Self { round, at: START as u64, link: round })
    }

    /// The end once another block is there, and the head of that block.
    fn after(self, tag: u8, length: u64, digest: Sha256Digest) -> (Self, [u8; HEAD]) {
        let mut named = Vec::with_capacity(HEAD);
        named.push(tag);
        named.extend_from_slice(&length.to_le_bytes());
        named.extend_from_slice(digest.as_bytes());
        let link = sha256(&[self.link.as_bytes(), named.as_slice()].concat());
        named.extend_from_slice(link.as_bytes());
        let mut head = [0; HEAD];
        head.copy_from_slice(&named);
        (Self { at: self.at.saturating_add(HEAD as u64).saturating_add(length), link, ..self }, head)
    }

    /// The block that stands here, if one does, and the end after it.
    fn read(self, file: BorrowedFd<'_>) -> Result<Option<(Self, u8, Vec<u8>)>, Errno> {
        let mut found = [0; HEAD];
        if read_at(file, &mut found, self.at)? < HEAD {
            return Ok(None);
        }
        let [tag, rest @ ..] = &found;
        let Some((length, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
        let Some(digest) = rest.first_chunk::<32>() else { return Ok(None) };
        let (length, digest) = (u64::from_le_bytes(*length), Sha256Digest::from_bytes(*digest));
        let (end, head) = self.after(*tag, length, digest);
        let Some(length) = usize::try_from(length).ok().filter(|_| head == found) else { return Ok(None) };
        let mut body = vec![0; length];
        let is_whole = read_at(file, &mut body, self.at + HEAD as u64)? == length && sha256(&body) == digest;
        Ok(is_whole.then_some((end, *tag, body)))
    }
}

/// Reads as many bytes as there are at a place.
fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    let mut count = 0;
    while let Some(rest) = buffer.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, at + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(count)
}

/// The end of the round that a file begins with, as if nothing was written in it.
fn round(file: BorrowedFd<'_>) -> Result<Option<End>, Errno> {
    let mut bytes = [0; START];
    Ok(if read_at(file, &mut bytes, 0)? < START { None } else { End::of_start(&bytes) })
}

/// Where the contents of one batch are being written.
pub(super) struct Ahead<'a> {
    workspace: &'a Workspace,
    file: OwnedFd,
    /// How many bytes there were before.
    pub(super) start: u64,
    end: End,
    /// What is to be written next, and where.
    piece: Vec<u8>,
    at: u64,
}

impl<'a> Ahead<'a> {
    /// Begins to write a batch; what is there is flushed and forgotten first if it has become much.
    pub(super) fn begin(workspace: &'a Workspace, journal: &Journal<'a>) -> Result<Self, JournalError> {
        let failed = journal.failed("write ahead in");
        let ahead = Self::open(workspace, journal).map_err(&failed)?;
        if ahead.start < FULL {
            return Ok(ahead);
        }
        settle(workspace, journal, NoSpace::Stay)?;
        Self::open(workspace, journal).map_err(failed)
    }

    fn open(workspace: &'a Workspace, journal: &Journal<'a>) -> Result<Self, Errno> {
        let file = workspace.disk().open_own(journal.dir(), NAME)?;
        let Some(mut end) = round(file.as_fd())? else {
            let bytes = start();
            let end = End::of_start(&bytes).ok_or(Errno::INVAL)?;
            return Ok(Self { workspace, file, start: end.at, end, piece: bytes.to_vec(), at: 0 });
        };
        if let Some(known) = workspace.ahead_end().filter(|known| known.round == end.round) {
            end = known;
        }
        while let Some((next, ..)) = end.read(file.as_fd())? {
            end = next;
        }
        if end.at == START as u64 {
            // What a power cut has left of a batch may fit what comes before it now: another round begins.
            let bytes = start();
            let end = End::of_start(&bytes).ok_or(Errno::INVAL)?;
            return Ok(Self { workspace, file, start: end.at, end, piece: bytes.to_vec(), at: 0 });
        }
        Ok(Self { workspace, file, start: end.at, end, piece: Vec::new(), at: end.at })
    }

    /// Keeps a content. Nothing is durable yet.
    pub(super) fn put(&mut self, digest: Sha256Digest, bytes: &[u8]) -> Result<(), Errno> {
        self.push(CONTENT, digest, bytes)
    }

    /// Keeps what it takes to undo the batch. Nothing is durable yet.
    pub(super) fn put_history(&mut self, entry: &Draft) -> Result<(), Errno> {
        self.push(HISTORY, sha256(&entry.bytes), &entry.bytes)
    }

    /// Makes a batch durable, with what was put before: its commit point for a power cut.
    pub(super) fn commit(mut self, written: &Written, receipt: &[u8]) -> Result<(), Errno> {
        // A batch is strings and numbers: there is nothing in it that JSON could refuse.
        let mut body = serde_json::to_vec(written).unwrap_or_default();
        body.push(b'\n');
        body.extend_from_slice(receipt);
        self.push(BATCH, sha256(&body), &body)?;
        self.make_room()?;
        self.finish()
    }

    fn push(&mut self, tag: u8, digest: Sha256Digest, body: &[u8]) -> Result<(), Errno> {
        let (end, head) = self.end.after(tag, body.len() as u64, digest);
        if self.piece.len() + HEAD + body.len() > PIECE {
            self.write()?;
        }
        self.piece.extend_from_slice(&head);
        if body.len() > PIECE {
            self.write()?;
            self.write_at(self.at, body)?;
            self.at += body.len() as u64;
        } else {
            self.piece.extend_from_slice(body);
        }
        self.end = end;
        Ok(())
    }

    fn write(&mut self) -> Result<(), Errno> {
        self.write_at(self.at, &self.piece)?;
        self.at += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), Errno> {
        disk::write_all_at(self.workspace.disk(), self.file.as_fd(), bytes, at)
    }

    fn finish(mut self) -> Result<(), Errno> {
        self.write()?;
        self.workspace.disk().sync_data(self.file.as_fd())?;
        self.workspace.set_ahead_end(self.end);
        Ok(())
    }

    /// Makes room for what is to be written, and for saying that it is taken back, which may not fail for want of space.
    fn make_room(&self) -> Result<(), Errno> {
        let size = u64::try_from(rustix::fs::fstat(&self.file)?.st_size).unwrap_or_default();
        let least = self.at + self.piece.len() as u64 + MARKS;
        if size >= least {
            return Ok(());
        }
        self.fill(size, least)?;
        // Room for later batches is not worth a failure.
        let _ = self.fill(least, least.next_power_of_two().clamp(LEAST, FULL));
        Ok(())
    }

    fn fill(&self, mut from: u64, to: u64) -> Result<(), Errno> {
        let zeros = vec![0; PIECE];
        while from < to {
            let count = usize::try_from(to - from).unwrap_or(PIECE).min(PIECE);
            self.write_at(from, zeros.get(..count).unwrap_or_default())?;
            from += count as u64;
        }
        Ok(())
    }
}

/// Says, durably, that a batch that was written ahead is taken back.
pub(super) fn undo(workspace: &Workspace, journal: &Journal<'_>, record: &Record) -> Result<(), Errno> {
    mark(workspace, journal, record, UNDONE).map(drop)
}

/// Forgets, durably, what a batch has written ahead; tells whether there was anything.
pub(super) fn forget(workspace: &Workspace, journal: &Journal<'_>, record: &Record) -> Result<bool, Errno> {
    mark(workspace, journal, record, FORGOTTEN)
}

fn mark(workspace: &Workspace, journal: &Journal<'_>, record: &Record, tag: u8) -> Result<bool, Errno> {
    let (Some(_), Some(FileStep { staged, .. })) = (record.ahead, record.files.first()) else { return Ok(false) };
    let past = read(journal)?.unwrap_or_default();
    if !past.batches.iter().any(|kept| kept.is_named(staged.as_bytes())) {
        return Ok(false);
    }
    let mut ahead = Ahead::open(workspace, journal)?;
    ahead.push(tag, sha256(staged.as_bytes()), staged.as_bytes())?;
    ahead.finish().map(|()| true)
}

/// Says, durably, that a name is about to be rewritten by healing: what is found there afterwards is our own.
pub(super) fn note_rewritten(
    workspace: &Workspace,
    journal: &Journal<'_>,
    name: &(usize, String),
) -> Result<(), Errno> {
    note(workspace, journal, REWRITTEN, name)
}

/// Keeps, durably, what healing finds before it changes anything.
pub(super) fn note_found(workspace: &Workspace, journal: &Journal<'_>, found: &[Found]) -> Result<(), Errno> {
    note(workspace, journal, FOUND, found)
}

fn note(workspace: &Workspace, journal: &Journal<'_>, tag: u8, noted: &(impl Serialize + ?Sized)) -> Result<(), Errno> {
    // What is noted is strings and numbers: there is nothing in it that JSON could refuse.
    let body = serde_json::to_vec(noted).unwrap_or_default();
    let mut ahead = Ahead::open(workspace, journal)?;
    ahead.push(tag, sha256(&body), &body)?;
    ahead.finish()
}

/// The file, if anything was written in its round.
fn find(journal: &Journal<'_>) -> Result<Option<(OwnedFd, End)>, Errno> {
    let file = match beneath::open_file(journal.dir(), NAME) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let end = round(file.as_fd())?;
    let is_first = |end: &End| Ok::<_, Errno>(end.read(file.as_fd())?.is_some());
    let written = end.map(|end| Ok::<_, Errno>(is_first(&end)?.then_some(end))).transpose()?.flatten();
    Ok(written.map(|end| (file, end)))
}

/// What becomes of what undoes a batch where there is no space for it in the history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoSpace {
    /// It stays ahead, with everything else.
    Stay,
    /// It is lost.
    LetGo,
}

/// Makes everything durable that was published since, and forgets what was written ahead of it. What it takes to undo a
/// batch comes into the history. The caller knows that every batch is over: their records may come back after a power cut.
pub(super) fn settle(workspace: &Workspace, journal: &Journal<'_>, no_space: NoSpace) -> Result<(), JournalError> {
    let failed = journal.failed("settle");
    let Some(past) = read(journal).map_err(&failed)? else { return Ok(()) };
    let disk = workspace.disk();
    for Kept { written, history, .. } in past.batches.iter().filter(|kept| !kept.undone) {
        let Some(entry) = history else { continue };
        match history::keep_written(disk, journal.state(), &written.record, entry) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT)) if no_space == NoSpace::LetGo => {
                tracing::warn!(%errno, "a batch cannot be undone: what was in its files is not kept");
                history::discard(disk, journal.state(), &written.record).map_err(&failed)?;
            }
            kept => kept.map_err(&failed)?,
        }
    }
    for root in workspace.roots() {
        disk::open_readable(root.dir()).and_then(|dir| disk.sync_system(dir.as_fd())).map_err(&failed)?;
    }
    disk::open_readable(journal.dir()).and_then(|dir| disk.sync_system(dir.as_fd())).map_err(&failed)?;
    restart(disk, journal).map_err(failed)
}

/// Begins another round, durably.
fn restart(disk: &dyn Disk, journal: &Journal<'_>) -> Result<(), Errno> {
    let file = disk.open_own(journal.dir(), NAME)?;
    disk::write_all_at(disk, file.as_fd(), &start(), 0)?;
    if u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or_default() > KEPT {
        disk.truncate(file.as_fd(), KEPT)?;
    }
    disk.sync_data(file.as_fd())
}

/// Reads everything that was written ahead and made durable; `None` when there is nothing.
pub(super) fn read(journal: &Journal<'_>) -> Result<Option<Past>, Errno> {
    let Some((file, mut end)) = find(journal)? else { return Ok(None) };
    let Past { mut batches, mut rewritten, mut found } = Past::default();
    let mut contents: Vec<Vec<u8>> = Vec::new();
    let mut history = None;
    while let Some((next, tag, body)) = end.read(file.as_fd())? {
        match tag {
            CONTENT => contents.push(body),
            HISTORY => history = Some(body),
            BATCH => {
                let Some((written, receipt)) = journal::split_line(&body).and_then(|(json, receipt)| {
                    Some((serde_json::from_slice::<Written>(json).ok()?, receipt.to_vec()))
                }) else {
                    break;
                };
                let own = written.record.files.iter().filter(|file| file.after.is_some()).count();
                let mut own = contents.split_off(contents.len().saturating_sub(own)).into_iter();
                let contents_of = |file: &FileStep| file.after.and_then(|_| own.next());
                let own = written.record.files.iter().map(contents_of).collect();
                contents.clear();
                let history = history.take().filter(|_| written.record.history.is_some());
                batches.push(Kept { written, receipt, history, contents: own, undone: false });
            }
            UNDONE => batches.iter_mut().filter(|kept| kept.is_named(&body)).for_each(|kept| kept.undone = true),
            REWRITTEN => rewritten.extend(serde_json::from_slice::<(usize, String)>(&body).ok()),
            FOUND => found = found.or(serde_json::from_slice(&body).ok()),
            FORGOTTEN => batches.retain(|kept| !kept.is_named(&body)),
            _ => break,
        }
        end = next;
    }
    Ok(Some(Past { batches, rewritten, found }))
}
