//! The record of one commit: durable before anything is touched, renamed at the commit point, gone when all is done.
//!
//! A record is a sealed file of our own: a line of JSON and the receipt. How far the commit has come is its file's name.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use rustix::io::Errno;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::workspace::commit::record_bounds;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, errno};
use crate::workspace::keep::clipboards::{self, Taken};
use crate::workspace::keep::outbox::OutboxError;
use crate::workspace::keep::{history, outbox};
use crate::workspace::roots::own_file::{self, Damage, Found, Owner, Temporary};
use crate::workspace::roots::state::{OwnError, StateDir, StateError};

/// The first word of a record of earlier versions, with the version of its form.
const MAGIC: &str = "aptix-journal-6";
/// The name of a record of earlier versions while it is being written: nothing else has happened yet.
const NEXT: &str = "next";
/// What the record is called, however far its commit has come.
const RECORD: &str = "record";
/// The name of the file that points to the journal of another root of the same batch.
const ELSEWHERE: &str = "elsewhere";

/// How far a commit has come; the word is the record's file name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::workspace) enum Stage {
    /// New files are being put beside the old ones.
    Staging,
    /// The batch will be carried out, whatever happens.
    Committed,
    /// The batch failed half-way and is being taken back.
    Undoing,
    /// The batch is carried out; what it kept of the old files is being cleared away.
    Finishing,
}

impl Stage {
    const ALL: [Self; 4] = [Self::Staging, Self::Committed, Self::Undoing, Self::Finishing];

    pub(in crate::workspace) const fn name(self) -> &'static str {
        match self {
            Self::Staging => "staging",
            Self::Committed => "committed",
            Self::Undoing => "undoing",
            Self::Finishing => "finishing",
        }
    }
}

/// Everything that is needed to carry a commit out or to take it back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Record {
    /// In which time since a start of the system it was made.
    pub(in crate::workspace) boot: String,
    /// The roots of the workspace.
    pub(in crate::workspace) roots: Vec<RootMark>,
    /// What the batch leaves on the clipboards of its session, once it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::workspace) clipboards: Option<Taken>,
    /// Set by a mode that earlier versions had; such a record is refused, never acted on (`written_ahead.rs`).
    #[serde(default, skip_serializing)]
    pub(in crate::workspace) ahead: Option<u64>,
    /// What is needed to undo the batch is kept under this name, once it is carried out.
    pub(in crate::workspace) history: Option<String>,
    /// Whose receipt this becomes.
    pub(in crate::workspace) batch: Option<String>,
    /// Directories that did not exist, parents first.
    pub(in crate::workspace) dirs: Vec<NewDir>,
    /// Directories that are removed once the batch is carried out, if they are empty; parents first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::workspace) emptied: Vec<NewDir>,
    /// The files that change.
    pub(in crate::workspace) files: Vec<FileStep>,
}

/// By what a root is known again: its canonical path, and which directory it is, whatever its path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct RootMark {
    pub(in crate::workspace) path: OsString,
    pub(in crate::workspace) device: u64,
    pub(in crate::workspace) inode: u64,
}

/// A directory that the commit makes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct NewDir {
    pub(in crate::workspace) root: usize,
    pub(in crate::workspace) parent: String,
    pub(in crate::workspace) name: String,
}

/// One name that comes to mean something else. A file that moves is two of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct FileStep {
    pub(in crate::workspace) root: usize,
    pub(in crate::workspace) dir: String,
    pub(in crate::workspace) name: String,
    /// The name under which the new file is staged, and the old one is kept afterwards.
    pub(in crate::workspace) staged: String,
    /// The digest of the old bytes; absent when there is no old file.
    pub(in crate::workspace) before: Option<Hex>,
    /// The digest of the new bytes; absent when the file goes.
    pub(in crate::workspace) after: Option<Hex>,
    /// Whether the new file can be run, where that is not so of the old one.
    pub(in crate::workspace) executable: Option<bool>,
}

impl FileStep {
    /// The real path in the root.
    pub(in crate::workspace) fn real(&self) -> String {
        if self.dir.is_empty() { self.name.clone() } else { format!("{}/{}", self.dir, self.name) }
    }
}

/// A digest as a record spells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::workspace) struct Hex(pub(in crate::workspace) Sha256Digest);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// Why bytes are not a record that may be acted on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// Not a record, or one of another version.
    #[error("it is no record of this version")]
    Version,
    /// Cut short or altered.
    #[error("its checksum does not fit")]
    Checksum,
    /// Made for roots that this journal is not of.
    #[error("it is of other roots than the journal it stands in")]
    Foreign,
    /// Something else where the journal of another root should be named.
    #[error("it does not name the journal of another root")]
    Pointer,
    /// The right checksum over something that no commit leaves.
    #[error("it names what no batch may change: a path out of its root, a protected file or a name that is not ours")]
    Bounds,
    /// The right checksum over something else.
    #[error("it does not have the fields of a record")]
    Fields,
}

/// Whose a record is in a journal.
const fn owner(state: &StateDir) -> Owner<'_> {
    Owner { part: "journal", name: RECORD, state }
}

/// Puts a record and its receipt into bytes.
fn encode(state: &StateDir, record: &Record, receipt: &[u8]) -> Vec<u8> {
    // A record is strings and numbers: there is nothing in it that JSON could refuse.
    let mut body = serde_json::to_vec(record).unwrap_or_default();
    body.push(b'\n');
    body.extend_from_slice(receipt);
    own_file::seal(owner(state), &body)
}

/// Reads a record of a journal, and its receipt.
pub(in crate::workspace) fn decode<'b>(state: &StateDir, bytes: &'b [u8]) -> Result<(Record, &'b [u8]), RecordError> {
    let body = match own_file::unseal(owner(state), bytes) {
        Found::Sealed(body) => body,
        Found::Old(bytes) => unsealed(bytes)?,
        Found::Damaged(Damage::Owner) => return Err(RecordError::Foreign),
        Found::Damaged(Damage::Version) => return Err(RecordError::Version),
        Found::Damaged(Damage::Checksum | Damage::Content) => return Err(RecordError::Checksum),
    };
    let (json, receipt) = split_line(body).ok_or(RecordError::Fields)?;
    let record = serde_json::from_slice(json).map_err(|_| RecordError::Fields)?;
    if !record_bounds::holds(&record) {
        return Err(RecordError::Bounds);
    }
    Ok((record, receipt))
}

/// What a record of an earlier version holds: a line with a checksum is before it.
fn unsealed(bytes: &[u8]) -> Result<&[u8], RecordError> {
    let (head, body) = split_line(bytes).ok_or(RecordError::Version)?;
    let digest =
        std::str::from_utf8(head).ok().and_then(|head| head.strip_prefix(MAGIC)).ok_or(RecordError::Version)?;
    if digest.trim_start().parse() != Ok(aptix_engine::digest::sha256(body)) {
        return Err(RecordError::Checksum);
    }
    Ok(body)
}

pub(in crate::workspace) fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refuses.
    #[error("cannot {doing} the journal {}: {errno}", path.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// The journal's directory.
        path: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// What the server is owed cannot be kept.
    #[error(transparent)]
    Outbox(#[from] Box<OutboxError>),
    /// A record that is there and cannot be acted on.
    #[error("the record {} cannot be used: {source}", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        source: RecordError,
    },
}

impl JournalError {
    /// Tells it to the author of the edit.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::State(error) => error.failure(),
            Self::System { errno, doing: "read", .. } => {
                Failure { reason: Reason::NeedsOperator, ..errno::read_failure(*errno, self.to_string()) }
            }
            Self::System { errno, .. } => errno::write_failure(*errno, self.to_string()),
            Self::Outbox(error) => error.failure(),
            Self::Record { .. } => Failure::new(Reason::NeedsOperator, self.to_string()).hint(errno::OPERATOR),
        }
    }
}

/// The journal of one root.
pub(in crate::workspace) struct Journal<'a> {
    disk: &'a dyn Disk,
    dir: OwnedFd,
    state: StateDir,
}

impl fmt::Debug for Journal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<'a> Journal<'a> {
    pub(in crate::workspace) fn open(disk: &'a dyn Disk, state: &StateDir) -> Result<Self, JournalError> {
        Ok(Self { disk, dir: state.open_journal()?, state: state.clone() })
    }

    /// As [`Self::open`], where there is a journal; makes nothing.
    pub(in crate::workspace) fn find(disk: &'a dyn Disk, state: &StateDir) -> Result<Option<Self>, JournalError> {
        let dir = state.find_journal()?;
        Ok(dir.map(|dir| Self { disk, dir, state: state.clone() }))
    }

    /// The state that the journal is a part of.
    pub(in crate::workspace) const fn state(&self) -> &StateDir {
        &self.state
    }

    /// Where a record stands, to be told to a person.
    pub(in crate::workspace) fn path(&self, name: &str) -> PathBuf {
        self.state.path().join("journal").join(name)
    }

    pub(in crate::workspace) const fn disk(&self) -> &dyn Disk {
        self.disk
    }

    pub(in crate::workspace) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// What it means that the system refuses to do something to the journal.
    pub(in crate::workspace) fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> JournalError + use<> {
        let path = self.path("");
        move |errno| JournalError::System { doing, path: path.clone(), errno }
    }

    /// What it means that something of our own beside the journal cannot be read or written.
    pub(in crate::workspace) fn failed_beside(&self, doing: &'static str) -> impl Fn(OwnError) -> JournalError + use<> {
        let failed = self.failed(doing);
        move |error| match error {
            OwnError::State(error) => JournalError::State(error),
            OwnError::System(errno) => failed(errno),
        }
    }

    /// The one record there is, if any. What cannot be read is never taken for nothing.
    pub(in crate::workspace) fn read(&self) -> Result<Option<(Stage, Record)>, JournalError> {
        for stage in Stage::ALL {
            let bytes = own_file::read_whole(self.dir(), stage.name()).map_err(self.failed("read"))?;
            let Some(bytes) = bytes else { continue };
            let path = self.path(stage.name());
            let unusable = |source| JournalError::Record { path: path.clone(), source };
            let record = match decode(&self.state, &bytes) {
                Ok((record, _)) => record,
                // Until the commit point a record need not outlive a power cut, and nothing is published.
                Err(source) if stage == Stage::Staging && source != RecordError::Foreign => {
                    let error = unusable(source);
                    tracing::warn!(%error, "the record of a batch that was being staged is lost");
                    continue;
                }
                Err(source) => return Err(unusable(source)),
            };
            // A record that was copied here would be carried out in roots that nobody opened.
            if !record.roots.iter().any(|root| self.state.is_of(Path::new(&root.path))) {
                return Err(unusable(RecordError::Foreign));
            }
            return Ok(Some((stage, record)));
        }
        Ok(None)
    }

    /// Writes a record, in stage [`Stage::Staging`], for everybody but a power cut; it is durable once the file is.
    pub(in crate::workspace) fn begin(&self, record: &Record, receipt: &[u8]) -> Result<OwnedFd, JournalError> {
        let tmp = self.state.open_tmp()?;
        let bytes = encode(&self.state, record, receipt);
        let put = || {
            let mut new = Temporary::make(self.disk, tmp.as_fd())?;
            new.write(&bytes)?;
            new.put(self.dir(), Stage::Staging.name())
        };
        put().map_err(self.failed("write"))
    }

    /// Lets the record say how far the commit has come, durably.
    pub(in crate::workspace) fn advance(&self, from: Stage, to: Stage) -> Result<(), JournalError> {
        self.mark(from, to)?;
        disk::sync_dir(self.disk, self.dir.as_fd()).map_err(self.failed("advance"))
    }

    /// Lets the record say how far the commit has come, for everybody but a power cut.
    pub(in crate::workspace) fn mark(&self, from: Stage, to: Stage) -> Result<(), JournalError> {
        let dir = self.dir.as_fd();
        self.disk.rename(dir, from.name(), dir, to.name()).map_err(self.failed("advance"))
    }

    /// Ends a commit that was carried out: the clipboards get their texts, the outbox gets the receipt, and the record goes.
    /// Should a power cut bring the record back, it is ended again.
    pub(in crate::workspace) fn end_applied(&self, record: &Record, stage: Stage) -> Result<(), JournalError> {
        if let Some(taken) = &record.clipboards {
            clipboards::put(self.disk, &self.state, taken)?;
        }
        let dir = self.dir.as_fd();
        history::keep(self.disk, &self.state, record).map_err(self.failed_beside("keep a history beside"))?;
        if let Some(batch) = &record.batch {
            self.keep_receipt(batch, stage)?;
        }
        disk::unlink_if_there(self.disk, dir, stage.name()).map_err(self.failed("end"))
    }

    /// Lets the outbox have the receipt that a record holds, durably, before the record goes.
    fn keep_receipt(&self, batch: &str, stage: Stage) -> Result<(), JournalError> {
        let unusable = |source| JournalError::Record { path: self.path(stage.name()), source };
        let Some(bytes) = own_file::read_whole(self.dir(), stage.name()).map_err(self.failed("read"))? else {
            return Ok(());
        };
        let (_, receipt) = decode(&self.state, &bytes).map_err(unusable)?;
        let batch = batch.parse().map_err(|_| unusable(RecordError::Fields))?;
        Ok(outbox::keep(self.disk, &self.state, batch, receipt)?)
    }

    /// Forgets what was kept for a commit that is not carried out.
    pub(in crate::workspace) fn discard(&self, record: &Record) -> Result<(), JournalError> {
        history::discard(self.disk, &self.state, record).map_err(self.failed_beside("clear a history beside"))?;
        outbox::contents::discard(self.disk, &self.state, record.batch.as_deref())
    }

    /// Forgets a commit, whatever its stage.
    pub(in crate::workspace) fn end(&self) -> Result<(), JournalError> {
        self.end_at(&Stage::ALL)
    }

    /// Forgets a commit in one of these stages.
    pub(in crate::workspace) fn end_at(&self, stages: &[Stage]) -> Result<(), JournalError> {
        let names = stages.iter().map(|stage| stage.name()).chain([NEXT]);
        let present = names.filter(|name| !matches!(beneath::look_up(self.dir.as_fd(), name), Ok(None)));
        let mut ended = present.map(|name| disk::unlink_if_there(self.disk, self.dir.as_fd(), name));
        ended.try_for_each(|outcome| outcome).map_err(self.failed("end"))
    }

    /// Whether recovery could find a commit that has to be carried on.
    pub(in crate::workspace) fn may_be_committed(&self) -> bool {
        !matches!(beneath::look_up(self.dir.as_fd(), Stage::Committed.name()), Ok(None))
    }

    /// Whether a record lies about that stands for nothing: unfinished, or cut short before its commit point.
    pub(in crate::workspace) fn has_leftover(&self) -> bool {
        self.has_lost() || !matches!(beneath::look_up(self.dir.as_fd(), NEXT), Ok(None))
    }

    /// Whether there is a record of a commit that had begun to stage; where it cannot be read, a power cut took it.
    pub(in crate::workspace) fn has_lost(&self) -> bool {
        !matches!(beneath::look_up(self.dir.as_fd(), Stage::Staging.name()), Ok(None))
    }

    /// Notes that the batch of this root is recorded in the journal of another.
    pub(in crate::workspace) fn point_to(&self, primary: &StateDir) -> Result<(), JournalError> {
        use std::os::unix::ffi::OsStrExt;
        let owner = Owner { name: ELSEWHERE, ..owner(&self.state) };
        Ok(own_file::put(self.disk, self.dir(), owner, primary.path().as_os_str().as_bytes())?)
    }

    /// Where the batch of this root is recorded, if elsewhere.
    pub(in crate::workspace) fn pointer(&self) -> Result<Option<StateDir>, JournalError> {
        use std::os::unix::ffi::OsStringExt;
        let unusable = || JournalError::Record { path: self.path(ELSEWHERE), source: RecordError::Pointer };
        let owner = Owner { name: ELSEWHERE, ..owner(&self.state) };
        let bytes = match own_file::read(self.dir(), owner).map_err(self.failed("read"))? {
            None => return Ok(None),
            Some(Found::Sealed(bytes) | Found::Old(bytes)) => bytes,
            Some(Found::Damaged(_)) => return Err(unusable()),
        };
        let named = PathBuf::from(OsString::from_vec(bytes));
        let found = self.state.siblings().map_err(JournalError::State)?.into_iter().find(|state| state.path() == named);
        found.ok_or_else(unusable).map(Some)
    }

    /// Forgets the note that the batch is recorded elsewhere.
    pub(in crate::workspace) fn drop_pointer(&self) -> Result<(), JournalError> {
        disk::unlink_if_there(self.disk, self.dir.as_fd(), ELSEWHERE).map_err(self.failed("end"))
    }
}

impl From<OutboxError> for JournalError {
    fn from(error: OutboxError) -> Self {
        Self::Outbox(Box::new(error))
    }
}
