//! What was in the files that batches changed, kept so that a batch can be undone: one entry for each batch.
//!
//! An entry is a checksum line, a line of JSON and the compressed bytes. It is a draft until its batch is carried out;
//! that of a batch in mode `journal` is written ahead with it, and comes here when that is settled. Entries are kept for
//! some time and up to some size. A power cut may cost the newest ones of mode `flushed`, and never a file.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::BufRead;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use aptix_model::digest::Sha256Digest;
use aptix_model::record::UnixMillis;
use aptix_model::report::FileStatus;
use rustix::fs::{Dir, Mode};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::change::{Becomes, Change};
use super::disk::{self, Disk};
use super::journal::{self, Hex, Record};
use super::snapshot::Attributes;
use super::state::{StateDir, StateError};
use super::{OpenError, Workspace, beneath, staging};

/// The first word of every entry, with the version of its form.
const MAGIC: &str = "aptix-history-1";
/// How the name of an entry ends whose batch is not carried out yet.
const DRAFT: &str = ".draft";
/// How the name of the list ends of what was kept of late writes.
const LATE: &str = ".late";
/// Bytes of the longest first two lines that are read to tell what an entry is about.
const HEAD_BYTES: u64 = 64 << 20;

/// How much of the past is kept for undoing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// For how long.
    pub age: Duration,
    /// At most so many bytes on disk for one root.
    pub bytes: u64,
}

impl Retention {
    /// What holds unless somebody configures otherwise: thirty days, 256 MiB.
    pub const DEFAULT: Self = Self { age: Duration::from_secs(30 * 24 * 60 * 60), bytes: 256 << 20 };
}

impl Default for Retention {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Names an entry. Entries are in the order of their names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EntryId(Uuid);

impl EntryId {
    /// When the batch was carried out.
    #[must_use]
    pub fn time(self) -> UnixMillis {
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
    /// What the batch is called by whoever it came from: a server, or the answer of a tool.
    pub batch: Option<String>,
    /// Which entry the batch undid, if it did.
    pub undoes: Option<String>,
    /// The files it changed.
    pub files: Vec<PastFile>,
    /// Where that is kept which somebody wrote into old files after they were replaced: real paths in their roots.
    pub kept: Vec<String>,
    dirs: Vec<PastDir>,
    /// The state of the root that keeps it.
    state: StateDir,
}

impl Entry {
    fn roots(&self) -> BTreeSet<&Path> {
        self.files.iter().map(|file| file.root.as_path()).collect()
    }

    /// The roots that it has files in, besides those of a workspace.
    #[must_use]
    pub fn other_roots(&self, workspace: &Workspace) -> BTreeSet<PathBuf> {
        let is_open = |file: &&PastFile| workspace.roots().iter().any(|root| root.path() == file.root);
        self.files.iter().filter(|file| !is_open(file)).map(|file| file.root.clone()).collect()
    }

    /// What a person calls it: the name that the server gave the batch, else its own.
    #[must_use]
    pub fn name(&self) -> String {
        self.batch.clone().unwrap_or_else(|| self.id.to_string())
    }
}

/// A file that a batch changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastFile {
    /// The path of its root.
    pub root: PathBuf,
    /// Its path in the root.
    pub path: String,
    /// Where in the root it went, if it moved.
    pub moved_to: Option<String>,
    pub(crate) before: Option<PastBefore>,
    pub(crate) after: Option<PastAfter>,
}

impl PastFile {
    /// What the batch made of it.
    #[must_use]
    pub const fn status(&self) -> FileStatus {
        match (&self.before, &self.after, &self.moved_to) {
            (_, _, Some(_)) => FileStatus::Renamed,
            (None, ..) => FileStatus::Created,
            (Some(_), None, None) => FileStatus::Deleted,
            (Some(_), Some(_), None) => FileStatus::Modified,
        }
    }
}

/// A file as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PastBefore {
    digest: Hex,
    pub(crate) attributes: Attributes,
    /// How many bytes it takes, compressed; `None` if they were too many to be kept.
    packed: Option<usize>,
}

/// A file as it was left: what it has in common with the file before, at both ends, is not kept twice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PastAfter {
    digest: Hex,
    /// Whether it came to be run, or not to.
    pub(crate) executable: Option<bool>,
    head: usize,
    tail: usize,
    packed: Option<usize>,
}

/// A directory that the batch made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PastDir {
    /// The path of its root.
    root: PathBuf,
    parent: String,
    name: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    batch: Option<String>,
    undoes: Option<String>,
    files: Vec<PastFile>,
    /// Parents first.
    #[serde(default)]
    dirs: Vec<PastDir>,
}

/// The bytes of a file before and after a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Images {
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) after: Option<Vec<u8>>,
}

/// Why the history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refuses.
    #[error("cannot {doing} {}: {errno}", path.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// The directory or file.
        path: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// What was written ahead cannot be settled.
    #[error(transparent)]
    Settle(#[from] Box<OpenError>),
    /// An entry that is there and cannot be used.
    #[error("the entry {} is damaged", path.display())]
    Damaged {
        /// The entry.
        path: PathBuf,
    },
    /// What was in a file is not there any more.
    #[error("what was in {file:?} was too much to be kept")]
    NotKept {
        /// The file's path.
        file: String,
    },
}

/// An entry that is being made.
pub(super) struct Draft {
    pub(super) id: String,
    pub(super) bytes: Vec<u8>,
}

impl Draft {
    /// How many bytes it takes.
    pub(super) fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Puts together what is needed to undo changes. Touches nothing.
pub(super) fn draft(
    workspace: &Workspace,
    changes: &[Change<'_>],
    batch: Option<String>,
    undoes: Option<EntryId>,
    retention: Retention,
) -> Draft {
    let mut blob = Vec::new();
    let mut left = retention.bytes;
    let mut pack = |bytes: &[u8]| {
        left = left.checked_sub(bytes.len() as u64)?;
        let packed = lz4_flex::compress_prepend_size(bytes);
        blob.extend_from_slice(&packed);
        Some(packed.len())
    };
    let root = |index| workspace.root(index).map_or_else(PathBuf::new, |root| root.path().to_owned());
    let files = changes.iter().map(|change| {
        let (content, moved_to) = match change.becomes {
            Becomes::Content(content) => (Some(content), None),
            Becomes::Moved(to, content) => (Some(content), Some(to.path.to_string())),
            Becomes::Nothing => (None, None),
        };
        let old = change.original.map_or(&[][..], |original| original.bytes.as_slice());
        let before = change.original.zip(change.before).map(|(original, digest)| PastBefore {
            digest: Hex(digest),
            attributes: original.attributes.clone(),
            packed: pack(&original.bytes),
        });
        let after = content.map(|content| {
            let new = content.bytes.bytes();
            let (head, tail) = common_ends(old, &new);
            PastAfter {
                digest: Hex(content.digest),
                executable: change.flips(),
                head,
                tail,
                packed: pack(new.get(head..new.len() - tail).unwrap_or_default()),
            }
        });
        PastFile { root: root(change.place.root), path: change.place.path.to_string(), moved_to, before, after }
    });
    let dirs = staging::missing_dirs(changes.iter().flat_map(Change::places)).into_iter();
    let dirs = dirs.map(|dir| PastDir { root: root(dir.root), parent: dir.parent, name: dir.name });
    let head = Head { batch, undoes: undoes.map(|id| id.to_string()), files: files.collect(), dirs: dirs.collect() };
    // An entry is strings and numbers: there is nothing in it that JSON could refuse.
    let mut body = serde_json::to_vec(&head).unwrap_or_default();
    body.push(b'\n');
    body.append(&mut blob);
    let mut bytes = format!("{MAGIC} {}\n", aptix_engine::digest::sha256(&body)).into_bytes();
    bytes.append(&mut body);
    Draft { id: disk::entry_name().to_string(), bytes }
}

/// How many bytes two texts have in common at their beginnings, and, after those, at their ends.
fn common_ends(old: &[u8], new: &[u8]) -> (usize, usize) {
    /// As many bytes are compared at once.
    const STRIDE: usize = 64;
    let strides = old.chunks_exact(STRIDE).zip(new.chunks_exact(STRIDE));
    let head = STRIDE * strides.take_while(|(old, new)| old == new).count();
    let same = |(old, new): &(&u8, &u8)| old == new;
    let head = head + old.iter().skip(head).zip(new.iter().skip(head)).take_while(same).count();
    let (old, new) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let strides = old.rchunks_exact(STRIDE).zip(new.rchunks_exact(STRIDE));
    let tail = STRIDE * strides.take_while(|(old, new)| old == new).count();
    (head, tail + old.iter().rev().skip(tail).zip(new.iter().rev().skip(tail)).take_while(same).count())
}

/// Writes a draft, for everybody but a power cut.
pub(super) fn write(disk: &dyn Disk, state: &StateDir, draft: &Draft) -> Result<(), Errno> {
    let dir = state.open_history().map_err(|_| Errno::IO)?;
    let file = disk.create(dir.as_fd(), &format!("{}{DRAFT}", draft.id), Mode::RUSR | Mode::WUSR)?;
    disk::write_all(disk, file.as_fd(), &draft.bytes)
}

/// Makes a draft the entry of a batch that is carried out.
pub(super) fn keep(disk: &dyn Disk, state: &StateDir, record: &Record) -> Result<(), Errno> {
    let Some(id) = &record.history else { return Ok(()) };
    let dir = state.open_history().map_err(|_| Errno::IO)?;
    match disk.rename(dir.as_fd(), &format!("{id}{DRAFT}"), dir.as_fd(), id) {
        // It is done already, or a power cut took the draft.
        Err(Errno::NOENT) => Ok(()),
        outcome => outcome,
    }
}

/// Makes what was written ahead the entry of its batch, for everybody but a power cut. Doing it again does nothing.
pub(super) fn keep_written(disk: &dyn Disk, state: &StateDir, record: &Record, bytes: &[u8]) -> Result<(), Errno> {
    let Some(id) = &record.history else { return Ok(()) };
    let dir = state.open_history().map_err(|_| Errno::IO)?;
    if beneath::look_up(dir.as_fd(), id)?.is_some() {
        return Ok(());
    }
    // Somebody may have died while writing it.
    disk::unlink_if_there(disk, dir.as_fd(), &format!("{id}{DRAFT}"))?;
    write(disk, state, &Draft { id: id.clone(), bytes: bytes.to_vec() })?;
    keep(disk, state, record)
}

/// Forgets the entry of a batch that is not carried out.
pub(super) fn discard(disk: &dyn Disk, state: &StateDir, record: &Record) -> Result<(), Errno> {
    let Some(id) = &record.history else { return Ok(()) };
    let dir = state.open_history().map_err(|_| Errno::IO)?;
    disk::unlink_if_there(disk, dir.as_fd(), &format!("{id}{DRAFT}"))?;
    disk::unlink_if_there(disk, dir.as_fd(), id)
}

/// Forgets every draft. The caller knows that none is of a batch that may still be carried out.
pub(super) fn discard_drafts(disk: &dyn Disk, state: &StateDir) -> Result<(), Errno> {
    let Some(dir) = state.find_history().map_err(|_| Errno::IO)? else { return Ok(()) };
    for entry in Dir::new(disk::open_readable(dir.as_fd())?)? {
        let entry = entry?;
        if let Some(draft) = entry.file_name().to_str().ok().filter(|name| name.ends_with(DRAFT)) {
            disk::unlink_if_there(disk, dir.as_fd(), draft)?;
        }
    }
    Ok(())
}

/// Forgets what is too old, and the oldest entries where all of them take too much; tells how much the others take.
pub(super) fn prune(workspace: &Workspace, retention: Retention) -> Result<u64, HistoryError> {
    let state = workspace.primary().state();
    let (path, dir) = (state.path().join("history"), state.open_history()?);
    let system = |errno| HistoryError::System { doing: "clear", path: path.clone(), errno };
    let Retention { age, bytes } = retention;
    let mut entries = ids(&dir).map_err(system)?;
    let now = workspace.disk().now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or_default();
    // A clock that was set back keeps nothing longer than what came after it.
    let newest = entries.iter().max().map_or(0, |id| id.time().0).max(now);
    let oldest = newest.saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    entries.sort_by(|a, b| b.cmp(a));
    let mut kept = 0;
    for id in entries {
        let name = id.to_string();
        let Some(stat) = beneath::look_up(dir.as_fd(), &name).map_err(system)? else { continue };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if id.time().0 < oldest || kept + size > bytes {
            for name in [format!("{name}{LATE}"), name] {
                disk::unlink_if_there(workspace.disk(), dir.as_fd(), &name).map_err(system)?;
            }
        } else {
            kept += size;
        }
    }
    Ok(kept)
}

fn ids(dir: &OwnedFd) -> Result<Vec<EntryId>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::new(disk::open_readable(dir.as_fd())?)? {
        let entry = entry?;
        found.extend(entry.file_name().to_str().ok().and_then(|name| Uuid::try_parse(name).ok()).map(EntryId));
    }
    Ok(found)
}

/// What was carried out in any root of the workspace, newest first, whichever root keeps it. Entries that are damaged are
/// left out, and logged.
///
/// # Errors
/// When the history cannot be read.
pub fn list(workspace: &Workspace) -> Result<Vec<Entry>, HistoryError> {
    if workspace.ahead_end().is_some() {
        workspace.settle().map_err(Box::new)?;
    }
    let primary = workspace.primary().state();
    let mut entries = list_in(primary)?;
    // A batch over several roots is kept with one of them, which need not be open.
    for state in primary.siblings()? {
        match list_in(&state) {
            Ok(found) => entries.extend(found),
            Err(error) => tracing::warn!(%error, "what was done together with another root is not known"),
        }
    }
    entries.retain(|entry| entry.other_roots(workspace).len() < entry.roots().len());
    entries.sort_by_key(|entry| Reverse(entry.id));
    Ok(entries)
}

fn list_in(state: &StateDir) -> Result<Vec<Entry>, HistoryError> {
    let Some(dir) = state.find_history()? else { return Ok(Vec::new()) };
    let path = state.path().join("history");
    let system = |errno| HistoryError::System { doing: "read", path: path.clone(), errno };
    let mut entries = Vec::new();
    for id in ids(&dir).map_err(system)? {
        match read_head(state, &dir, id).map_err(system)? {
            Some(entry) => entries.push(entry),
            None => tracing::warn!(entry = %id, "an entry of the history is damaged; its batch cannot be undone"),
        }
    }
    Ok(entries)
}

/// What was kept of late writes to the files of an entry. A list that cannot be read tells of nothing.
fn kept_late(dir: &OwnedFd, id: &str) -> Result<Vec<String>, Errno> {
    let list = journal::read_whole(dir, &format!("{id}{LATE}"))?;
    Ok(list.and_then(|list| serde_json::from_slice(&list).ok()).unwrap_or_default())
}

/// Notes in an entry that what somebody wrote into one of its old files is kept under a name.
pub(super) fn note_kept(workspace: &Workspace, id: &str, kept: String) -> Result<(), HistoryError> {
    let _locks = workspace.lock()?;
    let state = workspace.primary().state();
    let dir = state.open_history()?;
    let note = || {
        let mut list = kept_late(&dir, id)?;
        list.push(kept);
        // A list of strings: there is nothing in it that JSON could refuse.
        let bytes = serde_json::to_vec(&list).unwrap_or_default();
        journal::put_durably(workspace.disk(), &dir, &format!("{id}{LATE}"), &bytes)
    };
    note().map_err(|errno| HistoryError::System { doing: "write", path: state.path().join("history"), errno })
}

/// Removes the directories that the batch of an entry made, as far as they are empty.
///
/// # Errors
/// When another process holds the workspace for long, or the system refuses.
pub(crate) fn remove_made(workspace: &Workspace, entry: &Entry) -> Result<(), HistoryError> {
    let _locks = workspace.lock()?;
    for made in entry.dirs.iter().rev() {
        let Some(root) = workspace.roots().iter().find(|root| root.path() == made.root) else { continue };
        let removed = beneath::open_dir(root.dir(), &made.parent)
            .and_then(|parent| workspace.disk().remove_dir(parent.as_fd(), &made.name));
        match removed {
            // Somebody uses it, has taken it away, or has put something else in its place.
            Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {
            }
            Err(errno) => {
                let path = root.path().join(&made.parent).join(&made.name);
                return Err(HistoryError::System { doing: "remove the directory", path, errno });
            }
        }
    }
    Ok(())
}

/// Reads what an entry is about, and not the bytes it keeps.
fn read_head(state: &StateDir, dir: &OwnedFd, id: EntryId) -> Result<Option<Entry>, Errno> {
    let file = match beneath::open_file(dir.as_fd(), &id.to_string()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let mut lines = std::io::BufReader::new(std::io::Read::take(std::fs::File::from(file), HEAD_BYTES)).split(b'\n');
    let mut line = || lines.next().transpose().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let is_entry = line()?.is_some_and(|head| head.starts_with(MAGIC.as_bytes()));
    let Some(json) = line()?.filter(|_| is_entry) else { return Ok(None) };
    let head: Option<Head> = serde_json::from_slice(&json).ok();
    let kept = kept_late(dir, &id.to_string())?;
    let state = state.clone();
    Ok(head.map(|Head { batch, undoes, files, dirs }| Entry { id, batch, undoes, files, kept, dirs, state }))
}

/// Reads the bytes that an entry keeps, in the order of its files.
///
/// # Errors
/// When the entry cannot be read, is damaged, or does not have all that is needed to undo the batch.
pub(crate) fn images(entry: &Entry) -> Result<Vec<Images>, HistoryError> {
    let state = &entry.state;
    let path = state.path().join("history").join(entry.id.to_string());
    let read = journal::read_whole(&state.open_history()?, &entry.id.to_string());
    let bytes = read.map_err(|errno| HistoryError::System { doing: "read", path: path.clone(), errno })?;
    let damaged = || HistoryError::Damaged { path: path.clone() };
    let bytes = bytes.ok_or_else(damaged)?;
    let mut blob = checked(&bytes).ok_or_else(damaged)?;
    let mut found = Vec::new();
    for file in &entry.files {
        let not_kept = || HistoryError::NotKept { file: file.path.clone() };
        let before = match &file.before {
            Some(kept) => Some(unpack(&mut blob, kept.packed.ok_or_else(not_kept)?).ok_or_else(damaged)?),
            None => None,
        };
        let after = match &file.after {
            Some(kept) => {
                let new = unpack(&mut blob, kept.packed.ok_or_else(not_kept)?).ok_or_else(damaged)?;
                let old = before.as_deref().unwrap_or_default();
                let tail = old.len().checked_sub(kept.tail).and_then(|start| old.get(start..)).ok_or_else(damaged)?;
                Some([old.get(..kept.head).ok_or_else(damaged)?, &new, tail].concat())
            }
            None => None,
        };
        let fits = |bytes: &Option<Vec<u8>>, digest: Option<Sha256Digest>| {
            bytes.as_deref().map(aptix_engine::digest::sha256) == digest
        };
        if !fits(&before, file.before.as_ref().map(|kept| kept.digest.0))
            || !fits(&after, file.after.as_ref().map(|kept| kept.digest.0))
        {
            return Err(damaged());
        }
        found.push(Images { before, after });
    }
    Ok(found)
}

/// The compressed bytes of an entry whose checksum fits.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (head, body) = journal::split_line(bytes)?;
    let stated = std::str::from_utf8(head).ok()?.strip_prefix(MAGIC)?.trim_start();
    if stated.parse() != Ok(aptix_engine::digest::sha256(body)) {
        return None;
    }
    journal::split_line(body).map(|(_, blob)| blob)
}

fn unpack(blob: &mut &[u8], length: usize) -> Option<Vec<u8>> {
    let (packed, rest) = blob.split_at_checked(length)?;
    *blob = rest;
    lz4_flex::decompress_size_prepended(packed).ok()
}
