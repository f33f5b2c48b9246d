//! Edits that models prepared and have not applied yet: kept across restarts, until they expire by the age clock (WS-MOD 4.1).
//!
//! Each is a sealed file, named by the batch that applies it. Processes read and replace it under `prepared.lock`, and hold that
//! lock while they apply it. The end of a commit marks it as applied before the record of the commit is removed; so after a
//! recovery the mark says whether the edit was written, wherever a process was killed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use aptix_engine::hunk::TTL_MILLIS;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::reason::{Detail, Reason};
use rustix::fs::FileType;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, errno, reads};
use crate::workspace::keep::age;
use crate::workspace::roots::lock::Lock;
use crate::workspace::roots::own_file::{self, Damage, Found, Owner, split_line};
use crate::workspace::roots::state::{Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// Edits that are kept for a root; those that expire first make room.
const MOST: usize = 256;
/// Bytes of their files.
const MOST_BYTES: u64 = 64 << 20;
/// For how long an expired edit is still reported as one.
const REPORTED: Duration = Duration::from_millis(TTL_MILLIS);
/// Bytes in which the first three lines of a file end.
const HEAD_BYTES: usize = 2 << 10;

/// What is known of a prepared edit beside its content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// The id by which it is applied.
    pub(crate) hunk: String,
    /// Who prepared it.
    pub(crate) owner: String,
    /// When it was first prepared, in milliseconds since 1970.
    pub(crate) created: u64,
    /// From when on it can no more be applied, in milliseconds of the age clock.
    pub(crate) until: u64,
    /// The same in milliseconds since 1970, as the connection shows it that prepared this version.
    pub(crate) expires: u64,
    /// How often it was replaced.
    pub(crate) version: u64,
    /// The connection that prepared this version, and the position of the call in it.
    pub(crate) call: (String, u64),
    /// Whether it was applied; nothing is kept of its content then.
    pub(crate) is_applied: bool,
}

/// A prepared edit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PreparedEdit {
    pub(crate) head: Head,
    /// The batch and its plan, in a form that the caller knows.
    pub(crate) content: Vec<u8>,
}

/// The prepared edits of a workspace, while no other thread or process applies or replaces one.
#[derive(Debug)]
pub(crate) struct PreparedEdits<'w> {
    workspace: &'w Workspace,
    _lock: Lock,
}

impl<'w> PreparedEdits<'w> {
    /// The edits of a workspace, under their lock ([`Workspace::lock_prepared`]).
    pub(crate) const fn under(workspace: &'w Workspace, lock: Lock) -> Self {
        Self { workspace, _lock: lock }
    }

    fn state(&self) -> &'w StateDir {
        self.workspace.primary().state()
    }

    /// What the age clock shows, in milliseconds. It is noted, so that no later process sees an earlier time.
    pub(crate) fn age(&self) -> Result<u64, StateError> {
        age::look(self.workspace.disk(), self.state())
    }

    /// The edit that a batch applies; `None` where none is kept.
    ///
    /// # Errors
    /// When its file is damaged. It is set aside then and named, and nothing of it is ever applied.
    pub(crate) fn read(&self, batch: BatchId) -> Result<Option<PreparedEdit>, Failure> {
        let state = self.state();
        let Some(dir) = state.find(Part::PREPARED).map_err(|error| error.failure())? else { return Ok(None) };
        let name = batch.to_string();
        match read(state, &dir, &name) {
            Ok(Ok(edit)) => Ok(edit),
            Ok(Err(damage)) => Err(self.damaged(&dir, &name, damage)),
            Err(errno) => Err(owner(state, &name).failed("read")(errno).failure()),
        }
    }

    /// Takes a file that is not believed out of the way; the refusal that names it.
    pub(crate) fn refuse(&self, batch: BatchId) -> Failure {
        let name = batch.to_string();
        match self.state().open(Part::PREPARED) {
            Ok(dir) => self.damaged(&dir, &name, Damage::Content),
            Err(error) => error.failure(),
        }
    }

    fn damaged(&self, dir: &OwnedFd, name: &str, damage: Damage) -> Failure {
        let aside = own_file::set_aside(self.workspace.disk(), dir.as_fd(), owner(self.state(), name), damage);
        let kept = match aside {
            Ok(kept) => kept,
            Err(error) => return error.failure(),
        };
        let message = format!(
            "the file of a prepared edit cannot be used: {damage}; it is set aside as {}, and nothing was written",
            kept.display()
        );
        Failure::new(Reason::NotFound, message)
            .hint("prepare the edit again without existing_hunk_id, and apply the id you get")
    }

    /// Keeps an edit durably, in the place of the one that the same batch applies; those that expire first make room.
    pub(crate) fn put(&self, batch: BatchId, edit: &PreparedEdit) -> Result<(), Failure> {
        let (disk, state, name) = (self.workspace.disk(), self.state(), batch.to_string());
        if edit.content.len() as u64 > MOST_BYTES {
            let message =
                format!("a prepared edit of {} bytes cannot be kept: at most {MOST_BYTES}", edit.content.len());
            return Err(Failure::new(Reason::TooLarge, message)
                .detail(Detail::File)
                .hint("send the edit in smaller parts, or with a tool that applies it at once"));
        }
        let put = || {
            put(disk, state, &name, edit)?;
            make_room(disk, state, Some(&name), age::now(disk, state)?)
        };
        put().map_err(|error| error.failure())
    }
}

impl PreparedEdits<'_> {
    /// Marks an edit as applied whose file was as planned already, so that nothing was committed.
    pub(crate) fn applied(&self, batch: BatchId) -> Result<(), StateError> {
        applied(self.workspace.disk(), self.state(), &batch.to_string())
    }
}

/// Marks the edit that a batch applies as applied, durably, and drops its content. Does nothing where none is kept or it is marked.
/// The caller holds the commit lock.
pub(crate) fn applied(disk: &dyn Disk, state: &StateDir, batch: &str) -> Result<(), StateError> {
    // The name comes from a record; a file of any other name is not one of ours.
    let Some(dir) = state.find(Part::PREPARED)?.filter(|_| batch.parse::<BatchId>().is_ok()) else { return Ok(()) };
    match read(state, &dir, batch).map_err(owner(state, batch).failed("read"))? {
        Ok(Some(PreparedEdit { head, .. })) if !head.is_applied => {
            let marked = PreparedEdit { head: Head { is_applied: true, ..head }, content: Vec::new() };
            put(disk, state, batch, &marked)
        }
        // What is damaged is never applied.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// When the edit that a batch applies was first prepared, in milliseconds since 1970; `None` where none can be read.
pub(crate) fn created(workspace: &Workspace, batch: BatchId) -> Option<u64> {
    let state = workspace.primary().state();
    let edit = read(state, &state.find(Part::PREPARED).ok()??, &batch.to_string()).ok()?.ok()??;
    Some(edit.head.created)
}

/// Removes what expired long ago. The caller holds the commit lock.
pub(crate) fn sweep(disk: &dyn Disk, state: &StateDir) -> Result<(), StateError> {
    make_room(disk, state, None, age::now(disk, state)?)
}

const fn owner<'a>(state: &'a StateDir, name: &'a str) -> Owner<'a> {
    Owner { part: Part::PREPARED, name, state }
}

fn put(disk: &dyn Disk, state: &StateDir, name: &str, edit: &PreparedEdit) -> Result<(), StateError> {
    // Words and numbers: there is nothing in it that JSON could refuse.
    let mut body = serde_json::to_vec(&edit.head).unwrap_or_default();
    body.push(b'\n');
    body.extend_from_slice(&edit.content);
    own_file::put(disk, state.open(Part::PREPARED)?.as_fd(), owner(state, name), &body)
}

type Read = Result<Option<PreparedEdit>, Damage>;

fn read(state: &StateDir, dir: &OwnedFd, name: &str) -> Result<Read, Errno> {
    let Some(stat) = beneath::look_up(dir.as_fd(), name)? else { return Ok(Ok(None)) };
    let is_too_long = u64::try_from(stat.st_size).is_ok_and(|size| size > MOST_BYTES + HEAD_BYTES as u64);
    if is_too_long {
        return Ok(Err(Damage::Content));
    }
    Ok(match own_file::read(dir.as_fd(), owner(state, name))? {
        None => Ok(None),
        Some(Found::Sealed(body)) => decoded(&body).map(Some).ok_or(Damage::Content),
        Some(Found::Old(_)) => Err(Damage::Version),
        Some(Found::Damaged(damage)) => Err(damage),
    })
}

fn decoded(body: &[u8]) -> Option<PreparedEdit> {
    let (head, content) = split_line(body)?;
    Some(PreparedEdit { head: serde_json::from_slice(head).ok()?, content: content.to_vec() })
}

/// Removes what expired long ago, then what expires first, until the others and the one to be kept have room. What cannot be read
/// is passed over.
fn make_room(disk: &dyn Disk, state: &StateDir, keep: Option<&str>, now: u64) -> Result<(), StateError> {
    let Some(dir) = state.find(Part::PREPARED)? else { return Ok(()) };
    let cleared = || {
        let (mut others, mut count, mut bytes) = (Vec::new(), 0, 0);
        for name in disk::names(dir.as_fd())?.into_iter().filter(|name| name.parse::<BatchId>().is_ok()) {
            let (until, size) = match until_and_size(dir.as_fd(), &name) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(errno) => {
                    tracing::warn!(%errno, name, "what is in the place of a prepared edit cannot be read, and stays");
                    continue;
                }
            };
            if keep == Some(&name) {
                (count, bytes) = (count + 1, bytes + size);
            } else {
                others.push((until, name, size));
            }
        }
        others.sort_unstable_by(|one, other| other.cmp(one));
        for (until, name, size) in others {
            let is_over = age::between(until, now) >= REPORTED;
            if is_over || count >= MOST || bytes + size > MOST_BYTES {
                disk::unlink_if_there(disk, dir.as_fd(), &name)?;
            } else {
                (count, bytes) = (count + 1, bytes + size);
            }
        }
        Ok(())
    };
    cleared().map_err(state.failed(Part::PREPARED, "clear"))
}

/// When an edit expires, and the size of its file; one whose text is damaged expired long ago. `None` where there is no file.
fn until_and_size(dir: BorrowedFd<'_>, name: &str) -> Result<Option<(u64, u64)>, Errno> {
    let Some(stat) = beneath::look_up(dir, name)? else { return Ok(None) };
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    let Some(file) = errno::optional(beneath::open_file(dir, name))? else { return Ok(None) };
    let mut head = vec![0; HEAD_BYTES];
    let length = reads::read_at(file.as_fd(), &mut head, 0)?;
    head.truncate(length);
    let head = head.split(|byte| *byte == b'\n').nth(2).and_then(|line| serde_json::from_slice::<Head>(line).ok());
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    Ok(Some((head.map_or(0, |head| head.until), size)))
}
