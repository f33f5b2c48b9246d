//! The outbox log: one file to which entries are appended.
//!
//! An entry is durable before anything relies on it; how many entries share a flush is not part of the form. What is no
//! longer needed goes when the log is rewritten (`compact`).

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use aptix_engine::digest::sha256;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Uuid};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::ended;
use super::error::OutboxError;
use super::frame::{self, Damaged, Kind};
use super::index::{ASKED, Gap, Index, Known};
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, reads};
use crate::workspace::roots::own_file::{self, Damage, Owner, Temporary};
use crate::workspace::roots::state::{Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// The file's name in the outbox.
const NAME: &str = "log";
/// How the log begins, whatever its version.
const FORM: &[u8] = b"aptix-outbox-";
/// How this version begins it.
const MAGIC: &[u8; 16] = b"aptix-outbox-1\n\0";
/// A magic, the owner, the digest of both.
const START: usize = 16 + 32 + 32;
/// Batches that have ended, from which on their ids move to the part `ended`.
const ENDED: usize = 4096;
/// Bytes of entries that are no longer needed, from which on the log is rewritten.
const DEAD: u64 = 4 << 20;
/// The batch of the entry of a gap.
pub(super) const NO_BATCH: BatchId = BatchId(Uuid::nil());
/// Bytes of a damaged place that are kept aside.
const ASIDE: u64 = 64 << 20;

/// The outbox logs as this process read them last, by state directory.
type Logs = HashMap<PathBuf, Open>;

/// A log as it was read last.
#[derive(Debug)]
struct Open {
    file: OwnedFd,
    /// Where the next entry goes.
    end: u64,
    index: Index,
}

impl Open {
    fn new(file: OwnedFd) -> Self {
        Self { file, end: START as u64, index: Index::default() }
    }

    fn take(&mut self, scan: frame::Scan) -> Result<(), Errno> {
        self.end = scan.end;
        self.index.take(&self.file, scan)
    }
}

/// The log of a state directory, while its lock is held.
pub(super) struct Log<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) state: &'a StateDir,
    /// The outbox.
    pub(super) dir: OwnedFd,
    /// Nothing while there is no log.
    open: Option<Open>,
}

/// Works on the log as it is now, under its lock.
pub(super) fn with_log<T>(
    workspace: &Workspace,
    state: &StateDir,
    work: impl FnOnce(&mut Log<'_>) -> Result<T, OutboxError>,
) -> Result<T, OutboxError> {
    workspace.with_cache(|logs: &mut Logs| {
        let _lock = state.lock_outbox()?;
        let mut log = Log { disk: workspace.disk(), state, dir: state.open(Part::OUTBOX)?, open: None };
        // What fails half-way is read anew by the next one.
        log.open = log.read(logs.remove(state.path()))?;
        let done = work(&mut log)?;
        logs.extend(log.open.map(|open| (state.path().to_owned(), open)));
        Ok(done)
    })
}

const fn owner(state: &StateDir) -> Owner<'_> {
    Owner { part: Part::OUTBOX, name: NAME, state }
}

/// Identifies a file.
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

impl Log<'_> {
    /// That the system refuses to do something with the outbox.
    pub(super) fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> StateError + use<> {
        self.state.failed(Part::OUTBOX, doing)
    }

    /// What the log knows of a batch.
    pub(super) fn known(&self, batch: BatchId) -> Known {
        self.open.as_ref().map_or(Known::No, |open| open.index.known(batch))
    }

    /// Whether the server has acknowledged the report of a batch.
    pub(super) fn has_ended(&self, batch: BatchId) -> Result<bool, OutboxError> {
        match self.known(batch) {
            Known::Ended => Ok(true),
            Known::Waits => Ok(false),
            Known::No => ended::contains(self.disk, self.state, batch),
        }
    }

    /// The batches that wait, in the order in which they ended here.
    pub(super) fn waiting(&self) -> Vec<BatchId> {
        self.open.as_ref().map(|open| open.index.waiting()).unwrap_or_default()
    }

    /// The kind and the body of the entry that counts for a batch that waits.
    pub(super) fn find(&self, batch: BatchId) -> Result<Option<(Kind, Vec<u8>)>, OutboxError> {
        let Some(open) = &self.open else { return Ok(None) };
        Ok(open.index.find(&open.file, batch).map_err(self.failed("read"))?)
    }

    /// Whether entries of unknown batches were lost.
    pub(super) fn gap(&self) -> Gap {
        self.open.as_ref().map_or(Gap::No, |open| open.index.gap)
    }

    /// Appends an entry, durably; makes the log if there is none yet.
    pub(super) fn append(&mut self, kind: Kind, batch: BatchId, body: &[u8]) -> Result<(), OutboxError> {
        let mut open = self.open.take().map_or_else(|| self.make(), Ok)?;
        self.append_to(&mut open, kind, batch, body)?;
        self.open = Some(open);
        Ok(())
    }

    /// Rewrites the log if much in it is no longer needed.
    pub(super) fn tidy(&mut self) -> Result<(), OutboxError> {
        let is_due = |open: &mut Open| open.index.ended.len() >= ENDED || open.index.is_mostly_dead(DEAD);
        if let Some(open) = self.open.take_if(is_due) {
            self.open = self.compact(open)?;
        }
        Ok(())
    }

    /// The log as it is now, if there is one; `known` is what this process read before.
    fn read(&self, known: Option<Open>) -> Result<Option<Open>, OutboxError> {
        let failed = self.failed("read");
        let dir = self.dir.as_fd();
        let Some(stat) = beneath::look_up(dir, NAME).map_err(&failed)? else { return Ok(None) };
        if let Some(open) = known {
            let own = rustix::fs::fstat(&open.file).map_err(&failed)?;
            if identity(&own) == identity(&stat) {
                return self.catch_up(open);
            }
        }
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return self.replaced(Damage::Content).map(Some);
        }
        let file = self.disk.open_own(dir, NAME).map_err(&failed)?;
        // The process that gave it this name may have died before the name was durable.
        disk::sync_dir(self.disk, dir).map_err(&failed)?;
        let mut found = vec![0; START];
        let count = reads::read_at(file.as_fd(), &mut found, 0).map_err(&failed)?;
        let mut open = Open::new(file);
        if count == START && found == self.start() {
            return self.catch_up(open);
        }
        // The beginning holds nothing that the entries do not repeat.
        let scan = frame::scan(&open.file, self.owner_digest(), START as u64).map_err(&failed)?;
        let path = self.state.part(Part::OUTBOX).join(NAME);
        if scan.frames.is_empty() {
            return match found.starts_with(FORM) && !found.starts_with(MAGIC) {
                true => Err(OutboxError::Version(path)),
                false => self.replaced(Damage::Checksum).map(Some),
            };
        }
        tracing::error!(log = %path.display(), "the beginning of the outbox log is damaged; its entries are not, and are kept");
        open.take(scan).map_err(&failed)?;
        self.compact(open)
    }

    /// A new log in the place of one that cannot be used, which is set aside.
    fn replaced(&self, damage: Damage) -> Result<Open, OutboxError> {
        let kept = own_file::set_aside(self.disk, self.dir.as_fd(), owner(self.state), damage)?;
        let mut open = self.make()?;
        self.append_to(&mut open, Kind::Gap, NO_BATCH, kept.as_os_str().as_encoded_bytes())?;
        Ok(open)
    }

    /// Makes an empty log.
    fn make(&self) -> Result<Open, OutboxError> {
        let tmp = self.state.open(Part::TMP)?;
        let made = own_file::replace(self.disk, tmp.as_fd(), self.dir.as_fd(), NAME, &self.start());
        let file = made.and_then(|()| self.disk.open_own(self.dir.as_fd(), NAME));
        Ok(Open::new(file.map_err(self.failed("write"))?))
    }

    /// How a log begins.
    fn start(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(self.owner_digest().as_bytes());
        let digest = sha256(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    fn owner_digest(&self) -> Sha256Digest {
        sha256(owner(self.state).to_string().as_bytes())
    }

    /// Reads what other processes have appended, cuts off what was never whole, and sets aside what is damaged.
    fn catch_up(&self, mut open: Open) -> Result<Option<Open>, OutboxError> {
        let size = rustix::fs::fstat(&open.file).map_err(self.failed("read"))?.st_size;
        let size = u64::try_from(size).unwrap_or_default();
        if size == open.end {
            return Ok(Some(open));
        }
        if size < open.end {
            // Another process has cut it off: what was read before does not hold any more.
            return self.read(None)?.map_or_else(|| self.make(), Ok).map(Some);
        }
        let scan = frame::scan(&open.file, self.owner_digest(), open.end).map_err(self.failed("read"))?;
        let is_damaged = !scan.damaged.is_empty();
        for place in &scan.damaged {
            self.report(&open.file, place)?;
        }
        open.take(scan).map_err(self.failed("read"))?;
        if is_damaged {
            return self.compact(open);
        }
        if size > open.end {
            tracing::warn!(log = %self.state.part(Part::OUTBOX).join(NAME).display(),
                "an entry of the outbox log was cut short when it was written; nothing has relied on it");
            self.disk.truncate(open.file.as_fd(), open.end).map_err(self.failed("write"))?;
        }
        // The process that appended what was read may have died before it was durable. From now on it is relied on.
        self.disk.sync_data(open.file.as_fd()).map_err(self.failed("write"))?;
        Ok(Some(open))
    }

    /// Keeps the bytes of a damaged place, and logs it.
    fn report(&self, file: &OwnedFd, place: &Damaged) -> Result<(), OutboxError> {
        let mut bytes = vec![0; usize::try_from((place.to - place.from).min(ASIDE)).unwrap_or_default()];
        let count = reads::read_at(file.as_fd(), &mut bytes, place.from).map_err(self.failed("read"))?;
        bytes.truncate(count);
        let kept = own_file::keep_aside(self.disk, self.state, (Part::OUTBOX, NAME), &bytes)?;
        tracing::error!(BatchId = place.frame.map(|frame| tracing::field::display(frame.batch)), kept = %kept.display(),
            from = place.from, to = place.to, "the outbox log is damaged; the place is set aside");
        Ok(())
    }

    fn append_to(&self, open: &mut Open, kind: Kind, batch: BatchId, body: &[u8]) -> Result<(), OutboxError> {
        let mut bytes = frame::head(self.owner_digest(), open.end, kind, batch, body);
        bytes.extend_from_slice(body);
        let file = open.file.as_fd();
        let written = disk::write_all_at(self.disk, file, &bytes, open.end).and_then(|()| self.disk.sync_data(file));
        if let Err(errno) = written {
            // What is left of it is cut off by the next one to read the log, if not now.
            let _ = self.disk.truncate(file, open.end);
            return Err(self.failed("write")(errno).into());
        }
        let scan = frame::scan(&open.file, self.owner_digest(), open.end).map_err(self.failed("read"))?;
        if scan.frames.len() != 1 {
            // It is not where it was written: the disk, or another process, has done something to the log.
            return Err(self.failed("read back what was written to")(Errno::IO).into());
        }
        Ok(open.take(scan).map_err(self.failed("read"))?)
    }

    /// Moves the ids of ended batches to the part `ended`, then rewrites the log without what is not needed.
    fn compact(&self, open: Open) -> Result<Option<Open>, OutboxError> {
        let mut histories: BTreeMap<&str, Vec<BatchId>> = BTreeMap::new();
        for (batch, history) in &open.index.ended {
            histories.entry(history).or_default().push(*batch);
        }
        for (history, batches) in histories {
            ended::add(self.disk, self.state, history, batches)?;
        }
        let failed = self.failed("write");
        let tmp = self.state.open(Part::TMP)?;
        let mut new = Temporary::make(self.disk, tmp.as_fd()).map_err(&failed)?;
        new.write(&self.start()).map_err(&failed)?;
        let mut at = START as u64;
        let mut put = |kind, batch, body: &[u8]| {
            new.write(&frame::head(self.owner_digest(), at, kind, batch, body))?;
            new.write(body)?;
            at += (frame::HEAD + body.len()) as u64;
            Ok::<_, Errno>(())
        };
        match open.index.gap {
            Gap::No => Ok(()),
            Gap::Open => put(Kind::Gap, NO_BATCH, b""),
            Gap::Asked => put(Kind::Gap, NO_BATCH, ASKED),
        }
        .map_err(&failed)?;
        for batch in open.index.waiting() {
            if let Some((kind, body)) = open.index.find(&open.file, batch).map_err(self.failed("read"))? {
                put(kind, batch, &body).map_err(&failed)?;
            }
        }
        new.put_durably(self.dir.as_fd(), NAME).map_err(&failed)?;
        self.read(None)?.map_or_else(|| Err(self.failed("read")(Errno::NOENT).into()), |open| Ok(Some(open)))
    }
}
