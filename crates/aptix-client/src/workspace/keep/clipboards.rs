//! The clipboards of sessions: texts that one batch takes up and a later one puts down (REQ-PATCH-003).
//!
//! A session has one file, named by the digest of its id. It changes where the record of a batch ends, and nowhere else:
//! what is refused or only tried changes no clipboard. Left alone for a week by the age clock it counts for nothing,
//! and goes.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, UNIX_EPOCH};

use aptix_engine::digest::sha256;
use aptix_engine::planning::clipboards::Clipboards;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use rustix::io::Errno;

use crate::workspace::commit::record::Taken;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, errno, reads};
use crate::workspace::keep::age;
use crate::workspace::roots::own_file::{self, Found, Owner, split_line};
use crate::workspace::roots::state::{Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// How long a session that is left alone keeps its clipboards.
const LIFE: Duration = Duration::from_hours(7 * 24);
/// How old a file may be before a session that only pastes makes it anew.
const FRESH: Duration = Duration::from_hours(24);
/// Sessions of one root; the ones left alone for longest make room.
const SESSIONS: usize = 100;
/// Bytes of the clipboards of one session, names and texts.
const SESSION_BYTES: usize = 16 << 20;
/// What the first line of a file begins with; what the age clock showed follows.
const AGE: &[u8] = b"age ";
/// Bytes in which the first lines of a file end.
const HEAD_BYTES: usize = 512;

/// Why the clipboards of a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClipboardError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// They would be too many bytes to keep.
    #[error("the clipboards of the session would hold {0} bytes, and at most {SESSION_BYTES} are kept")]
    TooMuch(usize),
}

impl ClipboardError {
    /// The failure that the author of the edit gets.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::State(StateError::Part { errno, .. }) => errno::read_failure(*errno, self.to_string()),
            Self::State(error) => error.failure(),
            Self::TooMuch(_) => Failure::new(Reason::ResourceExhausted, self.to_string())
                .detail(Detail::Clipboard)
                .hint("use the names of clipboards that are no longer needed, or leave toClipboard out"),
        }
    }
}

/// The clipboards of a session; none where it has left them alone for too long.
///
/// # Errors
/// When the system refuses to read them.
pub fn read(workspace: &Workspace, session: &str) -> Result<Clipboards, ClipboardError> {
    let state = workspace.primary().state();
    let Some(dir) = state.find(Part::CLIPBOARDS)? else { return Ok(Clipboards::new()) };
    let name = file_name(session);
    let now = age::now(workspace.disk(), state)?;
    let (texts, age) = load(state, &dir, &name, now)?;
    if age.is_some_and(|age| age >= LIFE) {
        // What was reported as gone stays gone: the time by which it expired is noted.
        age::look(workspace.disk(), state)?;
    }
    Ok(texts)
}

/// What a batch that saw the clipboards `before` is to leave on them; nothing if it has nothing to do with any.
///
/// # Errors
/// When the session would have too much on them.
pub fn taken(
    workspace: &Workspace,
    session: &str,
    before: &Clipboards,
    texts: Clipboards,
) -> Result<Option<Taken>, ClipboardError> {
    if before.is_empty() && texts.is_empty() {
        return Ok(None);
    }
    let kept = before.iter().filter(|(name, _)| !texts.contains_key(*name));
    let found = kept.chain(&texts).map(|(name, text)| name.len() + text.len()).sum();
    if found > SESSION_BYTES {
        return Err(ClipboardError::TooMuch(found));
    }
    let at = workspace.disk().now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let age = age::now(workspace.disk(), workspace.primary().state())?;
    Ok(Some(Taken { session: file_name(session), at, age: Some(age), texts }))
}

/// Puts on the clipboards what a batch that is carried out leaves there. Doing it again does nothing. The caller holds
/// the lock of the root.
pub(crate) fn put(disk: &dyn Disk, state: &StateDir, taken: &Taken) -> Result<(), StateError> {
    // The name comes from a record; a file of any other name is not one of ours.
    if taken.session.parse::<Sha256Digest>().is_err() {
        return Ok(());
    }
    let dir = &state.open(Part::CLIPBOARDS)?;
    // An earlier version did not record the age.
    let now = taken.age.map_or_else(|| age::now(disk, state), Ok)?;
    let (before, age) = load(state, dir, &taken.session, now)?;
    let mut texts = before.clone();
    texts.extend(taken.texts.clone());
    if texts == before && age.is_none_or(|age| !(FRESH..LIFE).contains(&age)) {
        return Ok(());
    }
    // Clipboards are names and texts: there is nothing in them that JSON could refuse.
    let json = serde_json::to_vec(&texts).unwrap_or_default();
    let bytes = [AGE, format!("{now}\n").as_bytes(), &json].concat();
    let owner = owner(state, &taken.session);
    if let Some(Found::Damaged(damage)) = own_file::read(dir.as_fd(), owner).map_err(owner.failed("read"))? {
        own_file::set_aside(disk, dir.as_fd(), owner, damage)?;
    }
    own_file::put(disk, dir.as_fd(), owner, &bytes)?;
    if let Err(errno) = clear(disk, dir, &taken.session, now) {
        tracing::warn!(%errno, "clipboards that are no longer needed are kept until the next time");
    }
    Ok(())
}

/// Takes away what other sessions left alone for too long, and the oldest of what is too much.
fn clear(disk: &dyn Disk, dir: &OwnedFd, session: &str, now: u64) -> Result<(), Errno> {
    let mut sessions = Vec::new();
    for name in disk::names(dir.as_fd())? {
        if name != session
            && name.parse::<Sha256Digest>().is_ok()
            && let Some(age) = age(dir, &name, now)?
        {
            sessions.push((age, name));
        }
    }
    sessions.sort();
    let mut old = sessions.iter().enumerate().filter(|(index, (age, _))| *index + 1 >= SESSIONS || *age >= LIFE);
    old.try_for_each(|(_, (_, name))| disk::unlink_if_there(disk, dir.as_fd(), name))
}

const fn owner<'a>(state: &'a StateDir, name: &'a str) -> Owner<'a> {
    Owner { part: Part::CLIPBOARDS, name, state }
}

/// The clipboards in a file, none where they were left alone for too long, and for how long they were left alone.
fn load(state: &StateDir, dir: &OwnedFd, name: &str, now: u64) -> Result<(Clipboards, Option<Duration>), StateError> {
    let failed = || owner(state, name).failed("read the clipboards");
    let age = age(dir, name, now).map_err(failed())?;
    if age.is_none_or(|age| age >= LIFE) {
        return Ok((Clipboards::new(), age));
    }
    let damaged = |error: &dyn std::fmt::Display| {
        // They can be filled again; a session that can never be used again would help no one.
        tracing::warn!(%error, name, "the clipboards of a session cannot be read and count for nothing");
        Clipboards::new()
    };
    let texts = match own_file::read(dir.as_fd(), owner(state, name)).map_err(failed())? {
        None => return Ok((Clipboards::new(), None)),
        Some(Found::Sealed(bytes) | Found::Old(bytes)) => {
            let json = match split_line(&bytes) {
                Some((first, json)) if first.starts_with(AGE) => json,
                _ => &bytes,
            };
            serde_json::from_slice(json).unwrap_or_else(|error| damaged(&error))
        }
        Some(Found::Damaged(damage)) => damaged(&damage),
    };
    Ok((texts, age))
}

/// For how long a file was left alone; nothing where there is none. One that does not record when it was written is
/// older than the age clock.
fn age(dir: &OwnedFd, name: &str, now: u64) -> Result<Option<Duration>, Errno> {
    let Some(file) = errno::optional(beneath::open_file(dir.as_fd(), name))? else { return Ok(None) };
    let mut head = vec![0; HEAD_BYTES];
    let length = reads::read_at(file.as_fd(), &mut head, 0)?;
    head.truncate(length);
    let stated = head.split(|byte| *byte == b'\n').nth(2).and_then(|line| line.strip_prefix(AGE));
    let stated = stated.and_then(|stated| std::str::from_utf8(stated).ok()?.parse().ok());
    Ok(Some(age::between(stated.unwrap_or_default(), now)))
}

fn file_name(session: &str) -> String {
    sha256(session.as_bytes()).to_string()
}
