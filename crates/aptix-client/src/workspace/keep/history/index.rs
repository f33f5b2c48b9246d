//! The index of the history of a root: its entries in their order, how many bytes they take, and where else there are entries
//! about the root. Each change appends a line, so that it costs the same however many entries there are.
//!
//! It is derived: what decides about a file is always read from an entry. It is believed as long as its last line describes
//! the directory of the history as it is, and is made anew from the entries otherwise. A power cut may take any of it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::entries::{EntryId, ids};
use super::index_lines::{Broken, Bytes, Indexed, Line, Totals};
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, errno};
use crate::workspace::roots::own_file::Temporary;
use crate::workspace::roots::own_lines;
use crate::workspace::roots::stamp::Stamp;
use crate::workspace::roots::state::{OwnError, Part, StateDir, StateError};

/// The name of the index, with the version of its form.
const NAME: &str = "history-1";
/// Bytes of lines of removed entries from which on the index is written anew without them.
const REMOVED: u64 = 1 << 20;

/// The index of one history.
pub(super) struct Index {
    pub(super) state: StateDir,
    pub(super) dir: Arc<OwnedFd>,
    bytes: Bytes,
    /// Offset of the end of its last line.
    length: u64,
    pub(super) totals: Totals,
}

impl Index {
    /// The index of a history, made anew unless it is believed. The caller holds the lock.
    pub(super) fn current(disk: &dyn Disk, state: &StateDir) -> Result<Self, StateError> {
        let open = |place: &OwnedFd, name: &str| match beneath::look_up(place.as_fd(), name)? {
            Some(_) => disk.open_own(place.as_fd(), name).map(Some),
            None => Ok(None),
        };
        match Self::open(state, open) {
            Ok(Some(index)) => return Ok(index),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the index of the history cannot be used"),
        }
        Self::anew(disk, state)
    }

    /// The index of a history, if there is one that is believed. Writes nothing, and needs no lock.
    pub(super) fn find(state: &StateDir) -> Result<Option<Self>, StateError> {
        Self::open(state, |place, name| errno::optional(beneath::open_file(place.as_fd(), name)))
    }

    /// The index in the file that is opened, if its last line describes the directory of the history as it is.
    fn open(
        state: &StateDir,
        open: impl FnOnce(&OwnedFd, &str) -> Result<Option<OwnedFd>, Errno>,
    ) -> Result<Option<Self>, StateError> {
        let (Some(place), Some(dir)) = (state.find(Part::INDEX)?, state.find(Part::HISTORY)?) else { return Ok(None) };
        let failed = state.failed(Part::INDEX, "read");
        let Some(file) = open(&place, NAME).map_err(&failed)? else { return Ok(None) };
        let length = u64::try_from(rustix::fs::fstat(&file).map_err(&failed)?.st_size).unwrap_or_default();
        let bytes = Bytes::File(file);
        let totals = match bytes.backwards(state, length).next() {
            Some(Ok((_, line))) => line.totals,
            Some(Err(Broken::System(errno))) => return Err(failed(errno)),
            Some(Err(Broken::Disagrees)) | None => None,
        };
        let now = Stamp::of(&dir).map_err(&failed)?;
        let totals = totals.filter(|totals| totals.dir == now);
        let dir = Arc::new(dir);
        Ok(totals.map(|totals| Self { state: state.clone(), dir, bytes, length, totals }))
    }

    /// The index of the entries that there are. The caller holds the lock.
    pub(super) fn anew(disk: &dyn Disk, state: &StateDir) -> Result<Self, StateError> {
        let dir = state.open(Part::HISTORY)?;
        let failed = state.failed(Part::HISTORY, "read");
        let stamp = Stamp::of(&dir).map_err(&failed)?;
        let mut totals = Totals { bytes: 0, newest: None, oldest: 0, elsewhere: None, states: None, dir: stamp };
        let mut bytes = Vec::new();
        for id in ids(state, &dir)?.into_iter().rev() {
            let Some(stat) = beneath::look_up(dir.as_fd(), &id.to_string()).map_err(&failed)? else { continue };
            let size = u64::try_from(stat.st_size).unwrap_or_default();
            let entry = Some(Indexed { id, bytes: size, roots: None, about: None });
            bytes.extend(own_lines::encode(state, &Line { entry, totals: None }));
            (totals.bytes, totals.newest) = (totals.bytes + size, Some(id));
        }
        let (length, dir) = (bytes.len() as u64, Arc::new(dir));
        let mut index = Self { state: state.clone(), dir, bytes: Bytes::Memory(bytes), length, totals };
        // No entries are listed as fast as no lines are read.
        if index.totals.newest.is_some() {
            index.write_anew(disk);
        }
        Ok(index)
    }

    /// Writes a whole new file. Where that fails, this index serves all the same, and the next process makes it anew.
    fn write_anew(&mut self, disk: &dyn Disk) {
        let write = |index: &mut Self| {
            let Bytes::Memory(bytes) = &index.bytes else { return Ok(()) };
            let (place, tmp) = (index.state.open(Part::INDEX)?, index.state.open(Part::TMP)?);
            // Another process has restored or removed entries meanwhile.
            if Stamp::of(&index.dir)? != index.totals.dir {
                return Ok(());
            }
            let mut new = Temporary::make(disk, tmp.as_fd())?;
            new.write(bytes)?;
            new.put(place.as_fd(), NAME)?;
            index.bytes = Bytes::File(disk.open_own(place.as_fd(), NAME)?);
            Ok(index.append(disk, None)?)
        };
        if let Err(error) = write(self) {
            let error: OwnError = error;
            tracing::debug!(%error, "the index of the history is not written");
        }
    }

    /// Takes the directory as it is now for the one that the index describes.
    fn confirm(&mut self) -> Result<(), Errno> {
        self.totals.dir = Stamp::of(&self.dir)?;
        Ok(())
    }

    /// Adds a line with the totals, and with an entry if there is one.
    fn append(&mut self, disk: &dyn Disk, entry: Option<Indexed>) -> Result<(), Errno> {
        let line = own_lines::encode(&self.state, &Line { entry, totals: Some(self.totals.clone()) });
        self.bytes.append(disk, &line, self.length)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Adds an entry that has come into the directory. This index was current until then.
    pub(super) fn add(&mut self, disk: &dyn Disk, entry: Indexed) -> Result<(), OwnError> {
        (self.totals.bytes, self.totals.newest) = (self.totals.bytes + entry.bytes, Some(entry.id));
        if let Bytes::Memory(_) = self.bytes {
            return forget(disk, &self.state);
        }
        self.confirm()?;
        Ok(self.append(disk, Some(entry))?)
    }

    /// Notes that the entries of the lines before an offset were removed, and how many bytes the others have.
    pub(super) fn remove(&mut self, disk: &dyn Disk, (oldest, bytes): (u64, u64)) -> Result<(), Errno> {
        (self.totals.oldest, self.totals.bytes) = (oldest, bytes);
        self.confirm()?;
        self.append(disk, None)?;
        if oldest > REMOVED && oldest > self.length / 2 {
            self.bytes = Bytes::Memory(self.bytes.range(oldest, self.length)?);
            (self.length, self.totals.oldest) = (self.length - oldest, 0);
            self.write_anew(disk);
        }
        Ok(())
    }

    /// Notes which other histories may have entries about this root, among these states: durably, because the entries of those are not this
    /// history's, and nothing else would show that the note is missing.
    pub(super) fn link(
        &mut self,
        disk: &dyn Disk,
        elsewhere: Vec<String>,
        states: Option<Stamp>,
    ) -> Result<(), OwnError> {
        self.write_anew(disk);
        (self.totals.elsewhere, self.totals.states) = (Some(elsewhere), states);
        self.append(disk, None)?;
        match &self.bytes {
            Bytes::File(file) => Ok(disk.sync_data(file.as_fd())?),
            // A file that could not be read does not have the note.
            Bytes::Memory(_) => forget(disk, &self.state),
        }
    }

    /// The newest entry that was ever added, as far as is known.
    pub(super) fn newest(&self) -> Option<EntryId> {
        self.totals.newest
    }

    /// Its entries, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = Result<Indexed, Broken>> + '_ {
        let oldest = self.totals.oldest;
        let lines = self.bytes.backwards(&self.state, self.length);
        let kept = lines.take_while(move |line| line.as_ref().map_or(true, |(at, _)| *at >= oldest));
        kept.filter_map(|line| line.map(|(_, line)| line.entry).transpose())
    }

    /// Its entries, oldest first, each with the offset of the end of its line.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = Result<(u64, Indexed), Broken>> + '_ {
        let lines = self.bytes.forwards(&self.state, self.totals.oldest);
        lines.filter_map(|line| line.map(|(end, line)| Some((end, line.entry?))).transpose())
    }
}

/// Forgets the index of a history: the next process that needs it makes it anew. What has its name and is no file is never
/// believed.
pub(super) fn forget(disk: &dyn Disk, state: &StateDir) -> Result<(), OwnError> {
    let unlink = || -> Result<(), OwnError> {
        let Some(place) = state.find(Part::INDEX)? else { return Ok(()) };
        Ok(disk::unlink_if_there(disk, place.as_fd(), NAME)?)
    };
    unlink().or_else(|error| match error.errno() {
        Errno::ISDIR | Errno::NOTDIR => Ok(()),
        _ => Err(error),
    })
}

/// Changes something in the directory of a history that is no entry. The caller holds the lock.
pub(super) fn around<T>(
    disk: &dyn Disk,
    state: &StateDir,
    change: impl FnOnce() -> Result<T, StateError>,
) -> Result<T, StateError> {
    let index = Index::current(disk, state);
    let changed = change()?;
    // What is not noted shows in the directory.
    if let Ok(mut index) = index
        && let Err(error) = index.confirm().and_then(|()| index.append(disk, None))
    {
        tracing::debug!(%error, "the index of the history is not written");
    }
    Ok(changed)
}

/// The names of the states of roots, in order.
pub(super) fn names<'s>(states: impl Iterator<Item = &'s StateDir>) -> Vec<String> {
    let names: std::collections::BTreeSet<_> = states.map(|state| state.name().to_string()).collect();
    names.into_iter().collect()
}

/// Whether an entry may have files in one of these roots.
pub(super) fn may_concern(entry: &Indexed, roots: &[String]) -> bool {
    entry.roots.as_ref().is_none_or(|named| named.iter().any(|name| roots.contains(name)))
}

impl Indexed {
    /// This entry with the size that it has in its directory; `None` where there is none.
    pub(super) fn look(self, dir: &OwnedFd) -> Result<Option<Self>, Errno> {
        let stat = beneath::look_up(dir.as_fd(), &self.id.to_string())?;
        Ok(stat.map(|stat| Self { bytes: u64::try_from(stat.st_size).unwrap_or_default(), ..self }))
    }
}
