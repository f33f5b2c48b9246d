//! The register of the roots whose last batch may be unfinished, so that not every root ever used has to be opened to find a
//! batch that was left half-way in a directory which has another path now.
//!
//! It is the directory `unfinished` beside those of the roots: an empty file for each root, under the name of its state, made
//! before a batch stages anything. It stays when the batch ends, so that the next one has nothing to make: a command that opens
//! another root removes it once the record is gone. The register is believed as long as it says that every root was looked at
//! since the system was started, and no directory of a root was made or restored since; otherwise every root is looked at. So
//! none of it is flushed: what a power cut takes was written before the start.

use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, errno};
use crate::workspace::roots::own_file;
use crate::workspace::roots::own_lines;
use crate::workspace::roots::stamp::Stamp;
use crate::workspace::roots::state::{OwnError, StateDir, StateError};

/// The file that says since when the register is complete, with the version of its form.
const COMPLETE: &str = "complete-1";
/// An empty file that was made before it: a copy of the register has another one.
const MARK: &str = "mark";

/// What there was when every root was looked at.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Complete {
    /// The time since a start of the system.
    boot: String,
    /// The directory of the states of all roots.
    roots: Stamp,
    /// The file that marks this register.
    mark: Stamp,
}

/// Other roots that may have an unfinished batch.
pub(crate) struct Suspects {
    pub(crate) states: Vec<StateDir>,
    /// The directory of the states before it was listed, where these are all there are.
    listed: Option<Stamp>,
}

/// The roots besides this one that may have an unfinished batch: those of the register, or all where that is not believed.
/// Writes nothing.
pub(crate) fn suspects(disk: &dyn Disk, state: &StateDir) -> Result<Suspects, StateError> {
    let register = Register::of(state);
    let believed = register.as_ref().and_then(|register| register.believed(state, &disk.boot()).ok().flatten());
    if let Some(states) = believed {
        return Ok(Suspects { states: states.into_iter().filter(|other| other != state).collect(), listed: None });
    }
    let listed = register.and_then(|register| Stamp::of(&open(&register.roots).ok()??).ok());
    Ok(Suspects { states: state.siblings()?, listed })
}

/// Enters a root, unless it is entered; where the register is no directory it is never believed, and nothing has to be entered. The caller holds the
/// lock of the root.
pub(crate) fn enter(disk: &dyn Disk, state: &StateDir) -> Result<(), StateError> {
    let Some(register) = Register::of(state) else { return Ok(()) };
    let enter = || -> Result<(), Errno> {
        let (dir, name) = (register.made()?, state.name().to_string());
        match beneath::look_up(dir.as_fd(), &name)? {
            Some(_) => Ok(()),
            None => disk.create(dir.as_fd(), &name, Mode::RUSR | Mode::WUSR).map(drop),
        }
    };
    match enter() {
        Ok(()) | Err(Errno::EXIST | Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(errno) => Err(StateError::Part { doing: "write", path: register.path, errno }),
    }
}

/// Whether a root is entered.
pub(crate) fn is_entered(state: &StateDir) -> bool {
    let dir = Register::of(state).and_then(|register| register.found().ok()?);
    dir.is_some_and(|dir| matches!(beneath::look_up(dir.as_fd(), &state.name().to_string()), Ok(Some(_))))
}

/// Removes a root that has no unfinished batch. The caller holds the lock of the root.
pub(crate) fn leave(disk: &dyn Disk, state: &StateDir) {
    let left = || -> Result<(), Errno> {
        let Some(dir) = Register::of(state).map(|register| register.found()).transpose()?.flatten() else {
            return Ok(());
        };
        let name = state.name().to_string();
        match beneath::look_up(dir.as_fd(), &name)? {
            Some(_) => disk::unlink_if_there(disk, dir.as_fd(), &name),
            None => Ok(()),
        }
    };
    // It is looked at once more, and nothing is found.
    if let Err(errno) = left() {
        tracing::debug!(%errno, "a root stays in the register of unfinished batches");
    }
}

/// Notes that every root was looked at, if these are all; `unfinished` are those in which there is a batch, or may be one.
pub(crate) fn complete(disk: &dyn Disk, state: &StateDir, suspects: &Suspects, unfinished: &[StateDir]) {
    let (Some(register), Some(roots)) = (Register::of(state), suspects.listed) else { return };
    let write = || -> Result<(), OwnError> {
        let dir = register.made()?;
        for state in unfinished {
            enter(disk, state)?;
        }
        // Of two processes that do so at once neither, or the last, is believed; nor is one that stops on the way.
        let make = |name| {
            if beneath::look_up(dir.as_fd(), name)?.is_some() {
                disk::unlink_if_there(disk, dir.as_fd(), name)?;
            }
            disk.create(dir.as_fd(), name, Mode::RUSR | Mode::WUSR)
        };
        let complete = Complete { boot: disk.boot(), roots, mark: Stamp::of(&make(MARK)?)? };
        let line = own_lines::encode(&register.owner(), &complete);
        Ok(disk::write_all(disk, make(COMPLETE)?.as_fd(), &line)?)
    };
    if let Err(error) = write() {
        tracing::debug!(%error, "the register of unfinished batches is not written");
    }
}

/// Where the register is.
struct Register {
    path: PathBuf,
    /// The directory of the states of all roots.
    roots: PathBuf,
}

impl Register {
    fn of(state: &StateDir) -> Option<Self> {
        let roots = state.path().parent()?;
        Some(Self { path: roots.parent()?.join("unfinished"), roots: roots.to_owned() })
    }

    fn found(&self) -> Result<Option<OwnedFd>, Errno> {
        open(&self.path)
    }

    fn made(&self) -> Result<OwnedFd, Errno> {
        if let Some(found) = self.found()? {
            return Ok(found);
        }
        disk::private_dir(&self.path).map_err(|error| errno::of(&error))?;
        self.found()?.ok_or(Errno::NOENT)
    }

    /// The states that are entered; nothing where the register is not believed.
    fn believed(&self, state: &StateDir, boot: &str) -> Result<Option<Vec<StateDir>>, Errno> {
        let (Some(dir), Some(roots)) = (self.found()?, open(&self.roots)?) else { return Ok(None) };
        let Some(line) = own_file::read_whole(dir.as_fd(), COMPLETE)? else { return Ok(None) };
        let complete = line.strip_suffix(b"\n").and_then(|line| own_lines::decode::<Complete>(&self.owner(), line));
        let Some(complete) = complete else { return Ok(None) };
        let mark = errno::optional(beneath::open_file(dir.as_fd(), MARK))?;
        let mark = mark.map(|mark| Stamp::of(&mark)).transpose()?;
        // Where the start is not known, it may be another one.
        let is_same_start = !boot.is_empty() && complete.boot == boot;
        if !is_same_start || complete.roots != Stamp::of(&roots)? || Some(complete.mark) != mark {
            return Ok(None);
        }
        let names = disk::names(dir.as_fd())?;
        Ok(Some(names.iter().filter_map(|name| state.named(name)).collect()))
    }

    /// What its lines are sealed for.
    fn owner(&self) -> StateDir {
        StateDir::shared(&self.path)
    }
}

fn open(path: &Path) -> Result<Option<OwnedFd>, Errno> {
    match beneath::open_held(path) {
        Ok(held) => Ok(Some(held)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(errno::of(&error)),
    }
}
