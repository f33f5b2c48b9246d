//! The journal of a root: the file of one record, whose name is the stage of its commit.
//!
//! A record is durable before the commit point, renamed there, and removed when all is done.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::workspace::commit::journal_error::JournalError;
use crate::workspace::commit::record::{Record, Stage};
use crate::workspace::commit::record_file::{RecordError, decode, encode, owner};
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::roots::own_file::{self, Found, Owner, Temporary};
use crate::workspace::roots::state::{OwnError, StateDir};

/// The name of a record of earlier versions while it is being written: nothing else has happened yet.
const NEXT: &str = "next";
/// The name of the file that points to the journal of another root of the same batch.
const ELSEWHERE: &str = "elsewhere";

/// A commit that is not at its end.
pub(crate) struct Unfinished {
    pub(crate) stage: Stage,
    pub(crate) record: Record,
}

/// The journal of one root.
pub(crate) struct Journal<'a> {
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
    pub(crate) fn open(disk: &'a dyn Disk, state: &StateDir) -> Result<Self, JournalError> {
        Ok(Self { disk, dir: state.open_journal()?, state: state.clone() })
    }

    /// As [`Self::open`], where there is a journal; makes nothing.
    pub(crate) fn find(disk: &'a dyn Disk, state: &StateDir) -> Result<Option<Self>, JournalError> {
        let dir = state.find_journal()?;
        Ok(dir.map(|dir| Self { disk, dir, state: state.clone() }))
    }

    /// The state that the journal is a part of.
    pub(crate) const fn state(&self) -> &StateDir {
        &self.state
    }

    /// Where a record stands, to be told to a person.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.state.path().join("journal").join(name)
    }

    pub(crate) const fn disk(&self) -> &dyn Disk {
        self.disk
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// What it means that the system refuses to do something to the journal.
    pub(crate) fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> JournalError + use<> {
        let path = self.path("");
        move |errno| JournalError::System { doing, path: path.clone(), errno }
    }

    /// What it means that something of our own beside the journal cannot be read or written.
    pub(crate) fn failed_beside(&self, doing: &'static str) -> impl Fn(OwnError) -> JournalError + use<> {
        let failed = self.failed(doing);
        move |error| match error {
            OwnError::State(error) => JournalError::State(error),
            OwnError::System(errno) => failed(errno),
        }
    }

    /// The one record there is, if any. What cannot be read is never taken for nothing.
    pub(crate) fn read(&self) -> Result<Option<Unfinished>, JournalError> {
        for stage in Stage::ALL {
            let bytes = own_file::read_whole(self.dir(), stage.name()).map_err(self.failed("read"))?;
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
            return Ok(Some(Unfinished { stage, record }));
        }
        Ok(None)
    }

    /// Writes a record, in stage [`Stage::Staging`], for everybody but a power cut; it is durable once the file is.
    pub(crate) fn begin(&self, record: &Record, receipt: &[u8]) -> Result<OwnedFd, JournalError> {
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
    pub(crate) fn advance(&self, from: Stage, to: Stage) -> Result<(), JournalError> {
        self.mark(from, to)?;
        disk::sync_dir(self.disk, self.dir.as_fd()).map_err(self.failed("advance"))
    }

    /// Lets the record say how far the commit has come, for everybody but a power cut.
    pub(crate) fn mark(&self, from: Stage, to: Stage) -> Result<(), JournalError> {
        let dir = self.dir.as_fd();
        self.disk.rename(dir, from.name(), dir, to.name()).map_err(self.failed("advance"))
    }

    /// The receipt in the record of a commit; `None` where there is no record of this stage.
    pub(crate) fn receipt(&self, stage: Stage) -> Result<Option<Vec<u8>>, JournalError> {
        let Some(bytes) = own_file::read_whole(self.dir(), stage.name()).map_err(self.failed("read"))? else {
            return Ok(None);
        };
        let (_, receipt) = decode(&self.state, &bytes).map_err(|source| self.unusable(stage, source))?;
        Ok(Some(receipt.to_vec()))
    }

    /// That a record is there and cannot be acted on.
    pub(crate) fn unusable(&self, stage: Stage, source: RecordError) -> JournalError {
        JournalError::Record { path: self.path(stage.name()), source }
    }

    /// Removes the record of a stage, if it is there.
    pub(crate) fn remove(&self, stage: Stage) -> Result<(), JournalError> {
        disk::unlink_if_there(self.disk, self.dir.as_fd(), stage.name()).map_err(self.failed("end"))
    }

    /// Forgets a commit, whatever its stage.
    pub(crate) fn end(&self) -> Result<(), JournalError> {
        self.end_at(&Stage::ALL)
    }

    /// Forgets a commit in one of these stages.
    pub(crate) fn end_at(&self, stages: &[Stage]) -> Result<(), JournalError> {
        let names = stages.iter().map(|stage| stage.name()).chain([NEXT]);
        let present = names.filter(|name| !matches!(beneath::look_up(self.dir.as_fd(), name), Ok(None)));
        let mut ended = present.map(|name| disk::unlink_if_there(self.disk, self.dir.as_fd(), name));
        ended.try_for_each(|outcome| outcome).map_err(self.failed("end"))
    }

    /// Whether recovery could find a commit that has to be carried on.
    pub(crate) fn may_be_committed(&self) -> bool {
        !matches!(beneath::look_up(self.dir.as_fd(), Stage::Committed.name()), Ok(None))
    }

    /// Whether a record lies about that stands for nothing: unfinished, or cut short before its commit point.
    pub(crate) fn has_leftover(&self) -> bool {
        self.has_lost() || !matches!(beneath::look_up(self.dir.as_fd(), NEXT), Ok(None))
    }

    /// Whether there is a record of a commit that had begun to stage; where it cannot be read, a power cut took it.
    pub(crate) fn has_lost(&self) -> bool {
        !matches!(beneath::look_up(self.dir.as_fd(), Stage::Staging.name()), Ok(None))
    }

    /// Notes that the batch of this root is recorded in the journal of another.
    pub(crate) fn point_to(&self, primary: &StateDir) -> Result<(), JournalError> {
        use std::os::unix::ffi::OsStrExt;
        let owner = Owner { name: ELSEWHERE, ..owner(&self.state) };
        Ok(own_file::put(self.disk, self.dir(), owner, primary.path().as_os_str().as_bytes())?)
    }

    /// Where the batch of this root is recorded, if elsewhere.
    pub(crate) fn pointer(&self) -> Result<Option<StateDir>, JournalError> {
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
    pub(crate) fn drop_pointer(&self) -> Result<(), JournalError> {
        disk::unlink_if_there(self.disk, self.dir.as_fd(), ELSEWHERE).map_err(self.failed("end"))
    }
}
