//! The journal of a root: the file of one record, whose name is the stage of its commit.
//!
//! A record is durable before the commit point, renamed there, and removed when all is done.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use rustix::io::Errno;

use crate::workspace::commit::file_state::is_gone;
use crate::workspace::commit::record::{Record, Stage};
use crate::workspace::commit::record_file::{RecordError, decode, encode, owner};
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::errno;
use crate::workspace::roots::own_file::{self, Found, Owner, Temporary};
use crate::workspace::roots::state::{OwnError, Part, StateDir, StateError};
use crate::workspace::roots::unfinished;

/// The name of a record of earlier versions while it is being written: nothing else has happened yet.
const NEXT: &str = "next";
/// The name of the file that points to the journal of another root of the same batch.
const ELSEWHERE: &str = "elsewhere";

/// Why the journal of a root cannot be used.
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
        /// The system's error number.
        errno: Errno,
    },
    /// What is kept of the batch when its record ends cannot be kept.
    #[error("{}", .0.message)]
    Ending(Box<Failure>),
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
    /// The failure that the author of the edit gets.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::State(error) => error.failure(),
            Self::System { errno, doing: "read", .. } => {
                Failure { reason: Reason::NeedsOperator, ..errno::read_failure(*errno, self.to_string()) }
            }
            Self::System { errno, .. } => errno::write_failure(*errno, self.to_string()),
            Self::Ending(failure) => Failure::clone(failure),
            Self::Record { .. } => Failure::new(Reason::NeedsOperator, self.to_string()).hint(errno::OPERATOR),
        }
    }
}

/// The journal of one root.
pub(crate) struct Journal<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) dir: OwnedFd,
    /// The state that the journal is a part of.
    pub(crate) state: StateDir,
}

impl<'a> Journal<'a> {
    pub(crate) fn open(disk: &'a dyn Disk, state: &StateDir) -> Result<Self, JournalError> {
        Ok(Self { disk, dir: state.open(Part::JOURNAL)?, state: state.clone() })
    }

    /// As [`Self::open`], where there is a journal; makes nothing.
    pub(crate) fn find(disk: &'a dyn Disk, state: &StateDir) -> Result<Option<Self>, JournalError> {
        let dir = state.find(Part::JOURNAL)?;
        Ok(dir.map(|dir| Self { disk, dir, state: state.clone() }))
    }

    /// The path of a file of the journal, for messages.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.state.part(Part::JOURNAL).join(name)
    }

    /// The error of an operation on the journal.
    pub(crate) fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> JournalError + use<> {
        let path = self.path("");
        move |errno| JournalError::System { doing, path: path.clone(), errno }
    }

    /// The error of an operation on something of our own beside the journal.
    pub(crate) fn failed_beside(&self, doing: &'static str) -> impl Fn(OwnError) -> JournalError + use<> {
        let failed = self.failed(doing);
        move |error| match error {
            OwnError::State(error) => JournalError::State(error),
            OwnError::System(errno) => failed(errno),
        }
    }

    /// Whether the journal has no file at all: then nothing was left half-way.
    pub(crate) fn is_empty(&self) -> Result<bool, JournalError> {
        Ok(disk::names(self.dir.as_fd()).map_err(self.failed("read"))?.is_empty())
    }

    /// The one record that there is, if any, and the stage of its commit. A record that cannot be read is an error, not absence.
    pub(crate) fn read(&self) -> Result<Option<(Stage, Record)>, JournalError> {
        for stage in Stage::ALL {
            let bytes = own_file::read_whole(self.dir.as_fd(), stage.name()).map_err(self.failed("read"))?;
            let Some(bytes) = bytes else { continue };
            let record = match decode(&self.state, &bytes) {
                Ok((record, _)) => record,
                // Until the commit point a record need not outlive a power cut, and nothing is published.
                Err(source) if stage == Stage::Staging && source != RecordError::Foreign => {
                    let error = self.unusable(stage, source);
                    tracing::warn!(%error, "the record of a batch that was being staged is lost");
                    continue;
                }
                Err(source) => return Err(self.unusable(stage, source)),
            };
            // A record that was copied here would be carried out in roots that nobody opened.
            if !record.roots.iter().any(|root| self.state.is_of(Path::new(&root.path))) {
                return Err(self.unusable(stage, RecordError::Foreign));
            }
            return Ok(Some((stage, record)));
        }
        Ok(None)
    }

    /// Writes a record, in stage [`Stage::Staging`], visible to other processes; it is durable once the file is.
    pub(crate) fn begin(&self, record: &Record, receipt: &[u8]) -> Result<OwnedFd, JournalError> {
        let tmp = self.state.open(Part::TMP)?;
        let bytes = encode(&self.state, record, receipt);
        let put = || {
            let mut new = Temporary::make(self.disk, tmp.as_fd())?;
            new.write(&bytes)?;
            new.put(self.dir.as_fd(), Stage::Staging.name())
        };
        put().map_err(self.failed("write"))
    }

    /// Changes the stage of the record, durably.
    pub(crate) fn advance(&self, from: Stage, to: Stage) -> Result<(), JournalError> {
        self.mark(from, to)?;
        disk::sync_dir(self.disk, self.dir.as_fd()).map_err(self.failed("advance"))
    }

    /// Changes the stage of the record; a power cut may revert that.
    pub(crate) fn mark(&self, from: Stage, to: Stage) -> Result<(), JournalError> {
        let dir = self.dir.as_fd();
        self.disk.rename(dir, from.name(), dir, to.name()).map_err(self.failed("advance"))
    }

    /// The receipt in the record of a commit; `None` where there is no record of this stage.
    pub(crate) fn receipt(&self, stage: Stage) -> Result<Option<Vec<u8>>, JournalError> {
        let bytes = own_file::read_whole(self.dir.as_fd(), stage.name()).map_err(self.failed("read"))?;
        let receipt = bytes.map(|bytes| decode(&self.state, &bytes).map(|(_, receipt)| receipt.to_vec()));
        receipt.transpose().map_err(|source| self.unusable(stage, source))
    }

    /// The error of a record that is there and cannot be acted on.
    pub(crate) fn unusable(&self, stage: Stage, source: RecordError) -> JournalError {
        JournalError::Record { path: self.path(stage.name()), source }
    }

    /// Removes the record of a stage, if it is there.
    pub(crate) fn remove(&self, stage: Stage) -> Result<(), JournalError> {
        disk::unlink_if_there(self.disk, self.dir.as_fd(), stage.name()).map_err(self.failed("end"))
    }

    /// Removes the records of these stages, and one that was never whole.
    pub(crate) fn end(&self, stages: &[Stage]) -> Result<(), JournalError> {
        let names = stages.iter().map(|stage| stage.name()).chain([NEXT]);
        let mut present = names.filter(|name| !is_gone(&self.dir, name));
        let ended = present.try_for_each(|name| disk::unlink_if_there(self.disk, self.dir.as_fd(), name));
        ended.map_err(self.failed("end"))
    }

    /// Whether there is a record of a stage, or what cannot be looked at and may be one.
    pub(crate) fn may_be_in(&self, stage: Stage) -> bool {
        !is_gone(&self.dir, stage.name())
    }

    /// Takes the root out of the register of unfinished batches, unless it has a record. The caller holds the lock of the root.
    pub(crate) fn leave(&self) {
        if !Stage::ALL.iter().any(|stage| self.may_be_in(*stage)) {
            unfinished::leave(self.disk, &self.state);
        }
    }

    /// Notes that the batch of this root is recorded in the journal of another.
    pub(crate) fn point_to(&self, primary: &StateDir) -> Result<(), JournalError> {
        let owner = Owner { name: ELSEWHERE, ..owner(&self.state) };
        Ok(own_file::put(self.disk, self.dir.as_fd(), owner, primary.path().as_os_str().as_bytes())?)
    }

    /// Where the batch of this root is recorded, if elsewhere.
    pub(crate) fn pointer(&self) -> Result<Option<StateDir>, JournalError> {
        let unusable = || JournalError::Record { path: self.path(ELSEWHERE), source: RecordError::Pointer };
        let owner = Owner { name: ELSEWHERE, ..owner(&self.state) };
        let bytes = match own_file::read(self.dir.as_fd(), owner).map_err(self.failed("read"))? {
            None => return Ok(None),
            Some(Found::Sealed(bytes) | Found::Old(bytes)) => bytes,
            Some(Found::Damaged(_)) => return Err(unusable()),
        };
        let named = PathBuf::from(OsString::from_vec(bytes));
        let found = self.state.siblings()?.into_iter().find(|state| state.path() == named);
        found.ok_or_else(unusable).map(Some)
    }

    /// Forgets the note that the batch is recorded elsewhere.
    pub(crate) fn drop_pointer(&self) -> Result<(), JournalError> {
        disk::unlink_if_there(self.disk, self.dir.as_fd(), ELSEWHERE).map_err(self.failed("end"))
    }
}
