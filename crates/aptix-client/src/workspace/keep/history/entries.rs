//! The entries of the history on disk: which there are, what they are about, and the bytes that they keep.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::BufRead;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::str::FromStr;

use aptix_model::id::BatchId;
use aptix_model::id_block;
use aptix_model::record::UnixMillis;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::entry::{self, Head, Lack};
use super::past_file::{self, Kept, PastDir, PastFile};
use super::summary::Summary;
use crate::workspace::fs::{beneath, disk, errno};
use crate::workspace::roots::own_file::{self, Owner};
use crate::workspace::roots::state::{Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// How the name of the list ends in which earlier versions named copies of displaced writes.
pub(super) const LATE: &str = ".late";
/// Bytes of the longest first two lines that are read to tell what an entry is about.
const HEAD_BYTES: u64 = 64 << 20;

/// Names an entry. What came later has a greater name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct EntryId(pub(super) Uuid);

impl From<EntryId> for String {
    fn from(id: EntryId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for EntryId {
    type Error = uuid::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for EntryId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

impl EntryId {
    /// Before every entry.
    pub(crate) const START: Self = Self(Uuid::nil());

    /// When it was made, unless the clock was behind that of an entry before.
    pub(super) fn time(self) -> UnixMillis {
        let (seconds, nanos) = self.0.get_timestamp().map_or((0, 0), |stamp| stamp.to_unix());
        UnixMillis(seconds * 1000 + u64::from(nanos / 1_000_000))
    }
}

impl std::fmt::Display for EntryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What an entry is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Names it.
    pub id: EntryId,
    /// When the batch was carried out.
    pub time: UnixMillis,
    /// The name of the batch that a server, or the answer of a tool, gave it.
    pub batch: Option<String>,
    /// Which entry the batch took back, if it did.
    pub undoes: Option<String>,
    /// Whether that was an undo, so that this is a redo.
    pub is_redo: bool,
    /// What it was called, and how it was applied; entries of earlier versions do not have it.
    pub summary: Option<Summary>,
    /// The files it changed.
    pub files: Vec<PastFile>,
    /// Copies of displaced writes that an earlier version kept: real paths in their roots.
    pub kept: Vec<String>,
    pub(super) dirs: Vec<PastDir>,
    /// The state of the root that keeps it.
    state: StateDir,
}

impl Entry {
    /// The name of the state that keeps it.
    pub(super) fn keeper(&self) -> String {
        self.state.name().to_string()
    }

    /// Where it is kept.
    pub(crate) fn path(&self) -> PathBuf {
        self.state.part(Part::HISTORY).join(self.id.to_string())
    }

    /// The roots that it has files in, besides those of a workspace.
    #[must_use]
    pub fn other_roots(&self, workspace: &Workspace) -> BTreeSet<PathBuf> {
        self.files.iter().filter(|file| !is_open(workspace, file)).map(|file| file.root.clone()).collect()
    }

    /// Whether it has what it takes to undo the batch: what was too much to be kept has not.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        past_file::is_whole(&self.files)
    }

    /// Whether it took back a batch that is no undo.
    #[must_use]
    pub const fn is_undo(&self) -> bool {
        self.undoes.is_some() && !self.is_redo
    }

    /// What the batch was for, in its author's words.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        self.summary.as_ref()?.label.clone()
    }

    /// What a person calls it: the name that the server gave the batch, else its own.
    #[must_use]
    pub fn name(&self) -> String {
        self.batch.clone().unwrap_or_else(|| self.id.to_string())
    }

    /// The id under which the batch is reported to a server as one of the workstation: always the same, so that it is stored once
    /// however often it is reported.
    #[must_use]
    pub fn reported_id(&self) -> BatchId {
        let named = self.batch.as_deref().and_then(|name| name.parse::<aptix_model::id::Uuid>().ok());
        named.map_or_else(|| self.own_reported_id(), id_block::batch_id)
    }

    /// The id under which it is reported where the batch that it is about ended at the server without being applied.
    #[must_use]
    pub fn own_reported_id(&self) -> BatchId {
        id_block::batch_id(self.id.to_string().parse().unwrap_or_default())
    }
}

/// What a new batch takes back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reversal {
    /// The entry of the batch.
    pub of: EntryId,
    /// Whether that batch is an undo, so that the new one is a redo.
    pub is_redo: bool,
    /// The directories that the batch had made.
    pub(crate) dirs: Vec<PastDir>,
}

impl Reversal {
    /// Takes back the batch of an entry.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        Self { of: entry.id, is_redo: entry.is_undo(), dirs: entry.dirs.clone() }
    }
}

fn is_open(workspace: &Workspace, file: &PastFile) -> bool {
    workspace.roots().iter().any(|root| root.path() == file.root)
}

/// Whether an entry has files in a root of the workspace.
pub(super) fn concerns(workspace: &Workspace, entry: &Entry) -> bool {
    entry.files.iter().any(|file| is_open(workspace, file))
}

/// Why the history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// This entry is there and cannot be used.
    #[error("the entry {} is damaged", .0.display())]
    Damaged(PathBuf),
    /// The entry of the batch of this name has not what it takes to undo it.
    #[error("what was in the files of batch {0} was too much to be kept (`bytes` of `[history]` in the policy file)")]
    NotKept(String),
}

/// The entries that there are, newest first.
pub(super) fn ids(state: &StateDir, dir: &OwnedFd) -> Result<Vec<EntryId>, StateError> {
    let names = disk::names(dir.as_fd()).map_err(state.failed(Part::HISTORY, "read"))?;
    let mut ids: Vec<EntryId> = names.iter().filter_map(|name| name.parse().ok()).collect();
    ids.sort_unstable_by_key(|id| Reverse(*id));
    Ok(ids)
}

/// What was carried out in any root of the workspace, newest first, whichever root keeps it. Entries that are damaged are
/// left out, and logged.
///
/// # Errors
/// When the history cannot be read.
pub fn list(workspace: &Workspace) -> Result<Vec<Entry>, HistoryError> {
    Ok(read(workspace)?.entries)
}

/// Entries that can be read, and where those are that cannot.
#[derive(Default)]
pub(super) struct Known {
    pub(super) entries: Vec<Entry>,
    pub(super) damaged: Vec<(EntryId, PathBuf)>,
}

/// The entries there are, newest first, and those of open roots that are damaged.
pub(super) fn read(workspace: &Workspace) -> Result<Known, HistoryError> {
    let primary = workspace.primary().state();
    let Known { mut entries, mut damaged } = read_in(primary)?;
    // A batch over several roots is kept with one of them, which need not be open.
    for state in primary.siblings()? {
        let is_open = workspace.roots().iter().any(|root| root.state().path() == state.path());
        match read_in(&state) {
            Ok(known) => {
                entries.extend(known.entries);
                damaged.extend(known.damaged.into_iter().filter(|_| is_open));
            }
            Err(error) => tracing::warn!(%error, "what was done together with another root is not known"),
        }
    }
    for (_, path) in &damaged {
        tracing::warn!(entry = %path.display(), "an entry of the history is damaged; its batch cannot be undone");
    }
    entries.retain(|entry| concerns(workspace, entry));
    entries.sort_by_key(|entry| Reverse(entry.id));
    Ok(Known { entries, damaged })
}

/// The entries that one history keeps, newest first.
pub(super) fn read_in(state: &StateDir) -> Result<Known, HistoryError> {
    let mut known = Known::default();
    let Some(dir) = state.find(Part::HISTORY)? else { return Ok(known) };
    let failed = state.failed(Part::HISTORY, "read");
    for id in ids(state, &dir)? {
        match read_head(state, &dir, id).map_err(&failed)? {
            Some(entry) => known.entries.push(entry),
            None => known.damaged.push((id, state.part(Part::HISTORY).join(id.to_string()))),
        }
    }
    Ok(known)
}

/// What the history of one root holds.
#[cfg(feature = "cli")]
#[derive(Debug)]
pub(crate) struct Survey {
    /// How many entries can be read.
    pub(crate) entries: usize,
    /// The entries that cannot be used.
    pub(crate) damaged: Vec<PathBuf>,
    /// When the newest batch was carried out, by the clock of that moment.
    pub(crate) newest: Option<UnixMillis>,
}

/// Surveys the entries that one history keeps.
///
/// # Errors
/// When the directory or an entry cannot be read.
#[cfg(feature = "cli")]
pub(crate) fn survey(state: &StateDir) -> Result<Survey, HistoryError> {
    let Known { entries, damaged } = read_in(state)?;
    let newest = entries.iter().map(|entry| entry.time).max_by_key(|time| time.0);
    Ok(Survey { entries: entries.len(), damaged: damaged.into_iter().map(|(_, path)| path).collect(), newest })
}

/// The copies of displaced writes that an earlier version kept for an entry. A list that cannot be read names none.
fn kept_late(state: &StateDir, dir: &OwnedFd, id: &str) -> Result<Vec<String>, Errno> {
    let name = format!("{id}{LATE}");
    let list = match own_file::read(dir.as_fd(), Owner { part: Part::HISTORY, name: &name, state })? {
        Some(own_file::Found::Sealed(list) | own_file::Found::Old(list)) => serde_json::from_slice(&list).ok(),
        Some(own_file::Found::Damaged(_)) => None,
        None => return Ok(Vec::new()),
    };
    Ok(list.unwrap_or_else(|| {
        tracing::warn!(name, "a list of what was kept beside files is damaged and counts for nothing");
        Vec::new()
    }))
}

/// Reads what an entry is about, and not the bytes it keeps.
pub(super) fn read_head(state: &StateDir, dir: &OwnedFd, id: EntryId) -> Result<Option<Entry>, Errno> {
    let Some(head) = read_words(dir, id)? else { return Ok(None) };
    let Head { batch, undoes, is_redo, time, summary, files, dirs, .. } = head;
    let time = time.map_or_else(|| id.time(), UnixMillis);
    let (kept, state) = (kept_late(state, dir, &id.to_string())?, state.clone());
    Ok(Some(Entry { id, time, batch, undoes, is_redo, summary, files, kept, dirs, state }))
}

/// Reads the first two lines of an entry; nothing if they are damaged.
pub(super) fn read_words(dir: &OwnedFd, id: EntryId) -> Result<Option<Head>, Errno> {
    let Some(file) = errno::optional(beneath::open_file(dir.as_fd(), &id.to_string()))? else { return Ok(None) };
    let lines = std::io::BufReader::new(std::io::Read::take(std::fs::File::from(file), HEAD_BYTES)).split(b'\n');
    let lines = lines.take(2).collect::<Result<Vec<_>, _>>();
    let lines = lines.map_err(|error| errno::of(&error))?;
    let is_its_own = |head: &Head| head.id.as_ref().is_none_or(|named| *named == id.to_string());
    Ok(entry::decode_head(&lines).filter(is_its_own))
}

/// What the age clock showed when the newest entry was made that records it.
pub(crate) fn newest_age(state: &StateDir) -> Result<Option<u64>, StateError> {
    let Some(dir) = state.find(Part::HISTORY)? else { return Ok(None) };
    let failed = state.failed(Part::HISTORY, "read");
    for id in ids(state, &dir)? {
        if let Some(age) = read_words(&dir, id).map_err(&failed)?.and_then(|head| head.age) {
            return Ok(Some(age));
        }
    }
    Ok(None)
}

/// Reads what an entry keeps of its files, in their order.
///
/// # Errors
/// When the entry cannot be read, is damaged, or does not have all that is needed to undo the batch.
pub(crate) fn kept(entry: &Entry) -> Result<Vec<Kept>, HistoryError> {
    let state = &entry.state;
    let path = entry.path();
    let read = own_file::read_whole(state.open(Part::HISTORY)?.as_fd(), &entry.id.to_string());
    let bytes = read.map_err(|errno| StateError::Part { doing: "read", path: path.clone(), errno })?;
    let decoded = bytes.ok_or(Lack::Damaged).and_then(|bytes| entry::decode(&bytes, &entry.files));
    decoded.map_err(|lack| match lack {
        Lack::Damaged => HistoryError::Damaged(path),
        Lack::TooMuch => HistoryError::NotKept(entry.name()),
    })
}
