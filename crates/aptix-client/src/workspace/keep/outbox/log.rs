//! The outbox log: one file to which entries are appended, and what they come to.
//!
//! Whoever appends holds the lock of the outbox. An entry is durable before anything relies on it; how many entries share
//! a flush is not part of the form. What is no longer needed goes when the log is written anew (`compact`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aptix_engine::digest::sha256;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Uuid};
use rustix::fs::Stat;
use rustix::io::Errno;

use super::ended;
use super::frame::{self, Damaged, Frame, Kind};
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::keep::outbox::error::OutboxError;
use crate::workspace::roots::own_file::{self, Damage, Owner, Temporary};
use crate::workspace::roots::state::StateDir;

/// The file's name in the outbox.
pub(super) const NAME: &str = "log";
/// How the log begins, whatever its version.
const FORM: &[u8] = b"aptix-outbox-";
/// How this version begins it.
const MAGIC: &[u8; 16] = b"aptix-outbox-1\n\0";
/// A magic, the owner, the digest of both.
const START: usize = 16 + 32 + 32;
/// Batches that have ended, from which on their ids move to the part `ended`.
const ENDED: usize = 4096;
/// Bytes of entries that nobody needs any more, from which on the log is written anew.
const DEAD: u64 = 4 << 20;
/// The batch of the entry of a gap.
pub(super) const NO_BATCH: BatchId = BatchId(Uuid::nil());
/// Bytes of a damaged place that are kept aside.
const ASIDE: u64 = 64 << 20;

/// What the log says about a batch that has not ended at the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot {
    /// Its place among those that wait.
    order: u64,
    /// The entry that counts.
    frame: Frame,
}

/// The log as it was read last.
#[derive(Debug)]
pub(in crate::workspace) struct Log {
    file: OwnedFd,
    /// Where the next entry goes.
    end: u64,
    slots: HashMap<BatchId, Slot>,
    /// Batches that wait, in the order in which they ended here.
    order: BTreeMap<u64, BatchId>,
    /// Batches that the server knows the end of, with its history.
    ended: HashMap<BatchId, String>,
    gap: Gap,
    /// Bytes of entries that nobody needs.
    dead: u64,
}

/// The body of the entry of a gap after which the server's events are read from the beginning.
pub(super) const ASKED: &[u8] = b"asked";

/// Whether entries of unknown batches were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gap {
    No,
    /// They were lost, and the server has not been asked again for its open batches.
    Open,
    /// They were lost, and the server's events are read from the beginning.
    Asked,
}

/// Where a batch stands, as far as the log knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// Its report waits, or its loss does.
    Waits,
    /// The server knows its end.
    Ended,
    /// Nothing is known.
    No,
}

fn owner(state: &StateDir) -> Sha256Digest {
    sha256(Owner { part: "outbox", name: NAME, state }.to_string().as_bytes())
}

fn start(state: &StateDir) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(owner(state).as_bytes());
    let digest = sha256(&bytes);
    bytes.extend_from_slice(digest.as_bytes());
    bytes
}

/// Which file it is.
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

impl Log {
    /// The log as it is now; `known` is what this process read before, if anything. The caller holds the lock.
    pub(super) fn read(
        disk: &dyn Disk,
        state: &StateDir,
        dir: BorrowedFd<'_>,
        known: Option<Self>,
    ) -> Result<Option<Self>, OutboxError> {
        let failed = |doing| OutboxError::system(state, doing);
        let Some(stat) = beneath::look_up(dir, NAME).map_err(failed("read"))? else { return Ok(None) };
        if let Some(log) = known {
            let own = rustix::fs::fstat(&log.file).map_err(failed("read"))?;
            if identity(&own) == identity(&stat) {
                return log.catch_up(disk, state, dir).map(Some);
            }
        }
        if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
            return Self::replaced(disk, state, dir, Damage::Content).map(Some);
        }
        let file = disk.open_own(dir, NAME).map_err(failed("read"))?;
        // Whoever gave it this name may have died before the name was durable.
        disk::sync_dir(disk, dir).map_err(failed("read"))?;
        let mut found = vec![0; START];
        let count = own_file::read_at(file.as_fd(), &mut found, 0).map_err(failed("read"))?;
        let wanted = start(state);
        let mut log = Self {
            file,
            end: START as u64,
            slots: HashMap::new(),
            order: BTreeMap::new(),
            ended: HashMap::new(),
            gap: Gap::No,
            dead: 0,
        };
        if count == START && found == wanted {
            return log.catch_up(disk, state, dir).map(Some);
        }
        if found.starts_with(FORM) && !found.starts_with(MAGIC) {
            let scan = frame::scan(&log.file, owner(state), START as u64).map_err(failed("read"))?;
            if scan.frames.is_empty() {
                return Err(OutboxError::Version { path: state.path().join("outbox").join(NAME) });
            }
        }
        // The beginning says nothing that the entries do not say themselves.
        let scan = frame::scan(&log.file, owner(state), START as u64).map_err(failed("read"))?;
        if scan.frames.is_empty() {
            return Self::replaced(disk, state, dir, Damage::Checksum).map(Some);
        }
        tracing::error!(log = %state.path().join("outbox").join(NAME).display(),
            "the beginning of the outbox log is damaged; its entries are not, and are kept");
        log.take(state, scan)?;
        log.compact(disk, state, dir).map(Some)
    }

    /// A new log in the place of one that cannot be used, which is set aside.
    fn replaced(disk: &dyn Disk, state: &StateDir, dir: BorrowedFd<'_>, damage: Damage) -> Result<Self, OutboxError> {
        let kept = own_file::set_aside(disk, dir, Owner { part: "outbox", name: NAME, state }, damage)?;
        let mut log = Self::make(disk, state, dir)?;
        log.append(disk, state, Kind::Gap, NO_BATCH, kept.as_os_str().as_encoded_bytes())?;
        Ok(log)
    }

    /// Makes an empty log.
    pub(super) fn make(disk: &dyn Disk, state: &StateDir, dir: BorrowedFd<'_>) -> Result<Self, OutboxError> {
        let failed = |doing| OutboxError::system(state, doing);
        let tmp = state.open_tmp()?;
        own_file::replace(disk, tmp.as_fd(), dir, NAME, &start(state)).map_err(failed("write"))?;
        let file = disk.open_own(dir, NAME).map_err(failed("write"))?;
        let (slots, order, ended) = (HashMap::new(), BTreeMap::new(), HashMap::new());
        Ok(Self { file, end: START as u64, slots, order, ended, gap: Gap::No, dead: 0 })
    }

    /// Reads what others have appended, cuts off what was never whole, and sets aside what is damaged.
    fn catch_up(mut self, disk: &dyn Disk, state: &StateDir, dir: BorrowedFd<'_>) -> Result<Self, OutboxError> {
        let failed = |doing| OutboxError::system(state, doing);
        let size = rustix::fs::fstat(&self.file).map_err(failed("read"))?.st_size;
        let size = u64::try_from(size).unwrap_or_default();
        if size == self.end {
            return Ok(self);
        }
        if size < self.end {
            // Somebody has cut it off: what was read before does not hold any more.
            let read = Self::read(disk, state, dir, None)?;
            return read.map_or_else(|| Self::make(disk, state, dir), Ok);
        }
        let scan = frame::scan(&self.file, owner(state), self.end).map_err(failed("read"))?;
        let is_damaged = !scan.damaged.is_empty();
        if is_damaged {
            self.report(disk, state, &scan.damaged)?;
        }
        self.take(state, scan)?;
        if is_damaged {
            return self.compact(disk, state, dir);
        }
        if size > self.end {
            tracing::warn!(log = %state.path().join("outbox").join(NAME).display(),
                "an entry of the outbox log was cut short when it was written; nothing has relied on it");
            disk.truncate(self.file.as_fd(), self.end).map_err(failed("write"))?;
        }
        // Whoever has appended what was read may have died before it was durable. Now it is relied on.
        disk.sync_data(self.file.as_fd()).map_err(failed("write"))?;
        Ok(self)
    }

    /// Keeps the bytes of damaged places, and tells of them.
    fn report(&self, disk: &dyn Disk, state: &StateDir, damaged: &[Damaged]) -> Result<(), OutboxError> {
        let (aside, tmp) = (state.open_damaged()?, state.open_tmp()?);
        for place in damaged {
            let mut bytes = vec![0; usize::try_from((place.to - place.from).min(ASIDE)).unwrap_or_default()];
            let read = || {
                let count = own_file::read_at(self.file.as_fd(), &mut bytes, place.from)?;
                let name = own_file::aside_name("outbox", NAME);
                let bytes = bytes.get(..count).ok_or(Errno::IO)?;
                own_file::replace(disk, tmp.as_fd(), aside.as_fd(), &name, bytes).map(|()| name)
            };
            let mut read = read;
            let name = read().map_err(OutboxError::system(state, "set aside a part of"))?;
            let kept = state.path().join("damaged").join(name);
            tracing::error!(BatchId = place.frame.map(|frame| tracing::field::display(frame.batch)), kept = %kept.display(),
                from = place.from, to = place.to, "the outbox log is damaged; the place is set aside");
        }
        Ok(())
    }

    /// Takes in what was read.
    fn take(&mut self, state: &StateDir, scan: frame::Scan) -> Result<(), OutboxError> {
        for frame in scan.frames {
            self.note(state, frame)?;
        }
        for Damaged { frame, .. } in scan.damaged {
            match frame {
                Some(frame) if frame.kind == Kind::Ended => self.end_at(frame, String::new()),
                // An earlier report of the same batch still holds.
                Some(frame) if self.known(frame.batch) != Known::No => {}
                Some(frame) if frame.kind != Kind::Gap => self.wait(Frame { kind: Kind::Lost, ..frame }),
                _ => self.gap = Gap::Open,
            }
        }
        self.end = scan.end;
        Ok(())
    }

    fn note(&mut self, state: &StateDir, frame: Frame) -> Result<(), OutboxError> {
        match frame.kind {
            Kind::Receipt | Kind::Lost if self.ended.contains_key(&frame.batch) => self.dead += size(&frame),
            Kind::Receipt | Kind::Lost => self.wait(frame),
            Kind::Ended => {
                let body = frame.body(self.file.as_fd()).map_err(OutboxError::system(state, "read"))?;
                self.end_at(frame, String::from_utf8_lossy(&body.unwrap_or_default()).into_owned());
            }
            Kind::Gap => {
                let body = frame.body(self.file.as_fd()).map_err(OutboxError::system(state, "read"))?;
                self.gap = if body.is_some_and(|body| body == ASKED) { Gap::Asked } else { Gap::Open };
            }
        }
        Ok(())
    }

    fn wait(&mut self, frame: Frame) {
        let order = match self.slots.get(&frame.batch) {
            Some(before) => {
                self.dead += size(&before.frame);
                before.order
            }
            None => frame.at,
        };
        self.order.insert(order, frame.batch);
        self.slots.insert(frame.batch, Slot { order, frame });
    }

    fn end_at(&mut self, frame: Frame, history: String) {
        self.dead += size(&frame);
        if let Some(slot) = self.slots.remove(&frame.batch) {
            self.order.remove(&slot.order);
            self.dead += size(&slot.frame);
        }
        self.ended.insert(frame.batch, history);
    }

    /// What the log knows of a batch.
    pub(super) fn known(&self, batch: BatchId) -> Known {
        if self.ended.contains_key(&batch) {
            Known::Ended
        } else if self.slots.contains_key(&batch) {
            Known::Waits
        } else {
            Known::No
        }
    }

    /// Whether entries of unknown batches were lost.
    pub(super) fn has_gap(&self) -> bool {
        self.gap != Gap::No
    }

    /// Whether entries were lost, and the server has not been asked again for its open batches.
    pub(super) fn has_open_gap(&self) -> bool {
        self.gap == Gap::Open
    }

    /// The batches that wait, in the order in which they ended here.
    pub(super) fn waiting(&self) -> Vec<BatchId> {
        self.order.values().copied().collect()
    }

    /// The kind and the body of the entry that counts for a batch that waits.
    pub(super) fn find(&self, state: &StateDir, batch: BatchId) -> Result<Option<(Kind, Vec<u8>)>, OutboxError> {
        let Some(slot) = self.slots.get(&batch) else { return Ok(None) };
        let body = slot.frame.body(self.file.as_fd()).map_err(OutboxError::system(state, "read"))?;
        // It was whole when the log was read, unless it was lost by then.
        Ok(Some(body.map_or((Kind::Lost, Vec::new()), |body| (slot.frame.kind, body))))
    }

    /// Appends an entry, durably.
    pub(super) fn append(
        &mut self,
        disk: &dyn Disk,
        state: &StateDir,
        kind: Kind,
        batch: BatchId,
        body: &[u8],
    ) -> Result<(), OutboxError> {
        let head = frame::head(owner(state), self.end, kind, batch, body);
        let mut bytes = head;
        bytes.extend_from_slice(body);
        let file = self.file.as_fd();
        let written = disk::write_all_at(disk, file, &bytes, self.end).and_then(|()| disk.sync_data(file));
        if let Err(errno) = written {
            // What is left of it is cut off by the next one to read the log, if not now.
            let _ = disk.truncate(file, self.end);
            return Err(OutboxError::system(state, "write")(errno));
        }
        let scan = frame::scan(&self.file, owner(state), self.end).map_err(OutboxError::system(state, "read"))?;
        if scan.frames.len() != 1 {
            // It is not where it was written: the disk, or somebody else, has done something to the log.
            return Err(OutboxError::system(state, "read back what was written to")(Errno::IO));
        }
        self.take(state, scan)
    }

    /// Writes the log anew if much in it is not needed any more.
    pub(super) fn tidy(self, disk: &dyn Disk, state: &StateDir, dir: BorrowedFd<'_>) -> Result<Self, OutboxError> {
        let live = || self.slots.values().map(|slot| size(&slot.frame)).sum();
        let is_due = self.ended.len() >= ENDED || (self.dead >= DEAD && self.dead >= live());
        if is_due { self.compact(disk, state, dir) } else { Ok(self) }
    }

    /// Moves the ids of ended batches to the part `ended`, then writes the log anew without what is not needed.
    pub(super) fn compact(self, disk: &dyn Disk, state: &StateDir, dir: BorrowedFd<'_>) -> Result<Self, OutboxError> {
        let failed = |doing| OutboxError::system(state, doing);
        let mut histories: BTreeMap<&str, HashSet<BatchId>> = BTreeMap::new();
        for (batch, history) in &self.ended {
            histories.entry(history).or_default().insert(*batch);
        }
        for (history, batches) in histories {
            ended::add(disk, state, history, batches)?;
        }
        let tmp = state.open_tmp()?;
        let mut new = Temporary::make(disk, tmp.as_fd()).map_err(failed("write"))?;
        new.write(&start(state)).map_err(failed("write"))?;
        let mut at = START as u64;
        let mut put = |kind, batch, body: &[u8]| {
            new.write(&frame::head(owner(state), at, kind, batch, body))?;
            new.write(body)?;
            at += (frame::HEAD + body.len()) as u64;
            Ok::<_, Errno>(())
        };
        match self.gap {
            Gap::No => Ok(()),
            Gap::Open => put(Kind::Gap, NO_BATCH, b""),
            Gap::Asked => put(Kind::Gap, NO_BATCH, ASKED),
        }
        .map_err(failed("write"))?;
        for batch in self.waiting() {
            if let Some((kind, body)) = self.find(state, batch)? {
                put(kind, batch, &body).map_err(failed("write"))?;
            }
        }
        new.put_durably(dir, NAME).map_err(failed("write"))?;
        Self::read(disk, state, dir, None)?.ok_or_else(|| failed("read")(Errno::NOENT))
    }
}

const fn size(frame: &Frame) -> u64 {
    frame::HEAD as u64 + frame.length
}
