//! Forgets the oldest entries: what is too old by the age clock, and what is too much together with all that came later.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::draft;
use super::entries::{EntryId, LATE, ids, read_head, read_words};
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::keep::age;
use crate::workspace::roots::state::{Part, StateError};
use crate::workspace::roots::workspace::Workspace;

/// How often the age of the history is looked at.
const LOOK: Duration = Duration::from_hours(1);

/// How much of the past is kept for undoing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// For how long.
    pub age: Duration,
    /// At most so many bytes on disk for one root.
    pub bytes: u64,
}

impl Retention {
    /// The default: thirty days, 256 MiB.
    pub const DEFAULT: Self = Self { age: Duration::from_hours(30 * 24), bytes: 256 << 20 };
}

impl Default for Retention {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How many bytes the history takes, and the uptime when it was looked at.
#[derive(Clone, Copy)]
struct Size {
    bytes: u64,
    looked: Duration,
}

/// Whether the history was not looked at for long.
pub(crate) fn is_due(workspace: &Workspace) -> bool {
    size(workspace).is_none()
}

/// The size of the history, if it was looked at not long ago.
fn size(workspace: &Workspace) -> Option<Size> {
    let size = workspace.with_cache(|size: &mut Option<Size>| *size);
    let is_recent = |looked| workspace.disk().uptime().checked_sub(looked).is_some_and(|ago| ago < LOOK);
    size.filter(|size| is_recent(size.looked))
}

/// Forgets the oldest of what was kept for undoing, once it is too much with so many bytes more. The caller holds the lock.
pub(crate) fn bound(workspace: &Workspace, added: u64, retention: Retention) {
    match size(workspace).map(|size| Size { bytes: size.bytes + added, ..size }) {
        Some(size) if size.bytes <= retention.bytes => workspace.with_cache(|known| *known = Some(size)),
        _ => look(workspace, retention),
    }
    draft::confirm_newest(workspace);
}

/// Forgets what is too old or too much. The caller holds the lock.
pub(crate) fn look(workspace: &Workspace, retention: Retention) {
    let pruned = prune(workspace, retention);
    let pruned = pruned.inspect_err(|error| tracing::warn!(%error, "what was kept for undoing is not bounded"));
    let size = pruned.ok().map(|bytes| Size { bytes, looked: workspace.disk().uptime() });
    workspace.with_cache(|known| *known = size);
}

/// Forgets the oldest entries. What came last and was too much by itself stays known. Tells how many bytes the others take.
/// The caller holds the lock.
fn prune(workspace: &Workspace, retention: Retention) -> Result<u64, StateError> {
    let state = workspace.primary().state();
    let dir = state.open(Part::HISTORY)?;
    let failed = state.failed(Part::HISTORY, "clear");
    let now = age::look(workspace.disk(), state)?;
    let entries = ids(state, &dir)?;
    let young = entries.len() - old(workspace.disk(), &dir, &entries, now, retention.age).map_err(&failed)?;
    let (mut kept, mut is_over) = (0, false);
    for (index, id) in entries.into_iter().enumerate() {
        let name = id.to_string();
        let Some(stat) = beneath::look_up(dir.as_fd(), &name).map_err(&failed)? else { continue };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let is_word = || Ok(index == 0 && read_head(state, &dir, id)?.is_some_and(|entry| !entry.is_whole()));
        is_over |= index >= young || (kept + size > retention.bytes && !is_word().map_err(&failed)?);
        if is_over {
            for name in [format!("{name}{LATE}"), name] {
                disk::unlink_if_there(workspace.disk(), dir.as_fd(), &name).map_err(&failed)?;
            }
        } else {
            kept += size;
        }
    }
    Ok(kept)
}

/// How many of the entries, which are in order and the newest first, are too old. What came before one that is too old is
/// so too, and what came after one that is not is not; a damaged entry shows neither.
fn old(disk: &dyn Disk, dir: &OwnedFd, entries: &[EntryId], now: u64, limit: Duration) -> Result<usize, Errno> {
    let mut old = 0;
    for (index, id) in entries.iter().rev().enumerate() {
        let Some(head) = read_words(dir, *id)? else { continue };
        // An earlier version did not say the age: it counts from the first look on, and the wall clock has to agree.
        let is_old = age::between(head.age.unwrap_or_default(), now) > limit
            && (head.age.is_some() || is_old_by_wall(disk, dir, *id, limit)?);
        if !is_old {
            break;
        }
        old = index + 1;
    }
    Ok(old)
}

fn is_old_by_wall(disk: &dyn Disk, dir: &OwnedFd, id: EntryId, limit: Duration) -> Result<bool, Errno> {
    let now = disk.now();
    let written = |stat: Stat| UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or_default());
    let written = beneath::look_up(dir.as_fd(), &id.to_string())?.map_or(now, written);
    // A name that is ahead of the clock shows nothing.
    let named = Some(UNIX_EPOCH + Duration::from_millis(id.time().0)).filter(|named| *named <= now);
    let made = named.map_or(written, |named| named.max(written));
    Ok(now.duration_since(made).is_ok_and(|ago| ago > limit))
}
