//! Forgets the oldest entries: what is too old by the age clock, and what is too much together with all that came later.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::draft::Added;
use super::entries::{EntryId, LATE, read_head, read_words};
use super::entry::Head;
use super::index::Index;
use super::index_lines::Broken;
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::keep::{age, refused};
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

/// The uptime when the age of the history was looked at.
struct Looked(Duration);

/// Whether the age of the history was not looked at for long.
pub(crate) fn is_due(workspace: &Workspace) -> bool {
    let looked = workspace.with_cache(|looked: &mut Option<Looked>| looked.as_ref().map(|looked| looked.0));
    let is_recent = |looked| workspace.disk().uptime().checked_sub(looked).is_some_and(|ago| ago < LOOK);
    !looked.is_some_and(is_recent)
}

/// Forgets the oldest of what was kept for undoing, if it is too much, or was not looked at for long. The caller holds the
/// lock.
pub(crate) fn bound(workspace: &Workspace, retention: Retention) {
    let state = workspace.primary().state();
    let added = workspace.with_cache(Option::<Added>::take).filter(|Added(index)| index.state == *state);
    let is_too_much = || {
        let index = added.map_or_else(|| Index::current(workspace.disk(), state), |Added(index)| Ok(index));
        index.map_or(true, |index| index.totals.bytes > retention.bytes)
    };
    if is_due(workspace) || is_too_much() {
        look(workspace, retention);
    }
}

/// Forgets what is too old or too much. The caller holds the lock.
pub(crate) fn look(workspace: &Workspace, retention: Retention) {
    let looked = match prune(workspace, retention) {
        Ok(()) => Some(Looked(workspace.disk().uptime())),
        Err(error) => {
            tracing::warn!(%error, "what was kept for undoing is not bounded");
            None
        }
    };
    workspace.with_cache(|known| *known = looked);
}

/// Forgets the oldest entries. The caller holds the lock.
fn prune(workspace: &Workspace, retention: Retention) -> Result<(), StateError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    let failed = state.failed(Part::HISTORY, "clear");
    let now = age::look(disk, state)?;
    let mut index = Index::current(disk, state)?;
    let expired = match expired(disk, &index, now, retention) {
        Err(Broken::Disagrees) => {
            index = Index::anew(disk, state)?;
            expired(disk, &index, now, retention)
        }
        expired => expired,
    };
    let Expired { entries, oldest, bytes } = expired.map_err(|broken| failed(broken.errno()))?;
    if entries.is_empty() {
        return Ok(());
    }
    for name in entries.iter().map(EntryId::to_string) {
        for name in [format!("{name}{LATE}"), name] {
            disk::unlink_if_there(disk, index.dir.as_fd(), &name).map_err(&failed)?;
        }
    }
    index.remove(disk, (oldest, bytes)).map_err(&failed)?;
    // Where entries have become too old, refused batches may have, too.
    refused::sweep(disk, state, (retention.age, retention.bytes))
}

/// The entries that are too old or too much.
struct Expired {
    entries: Vec<EntryId>,
    /// Offset in the index of the first line after theirs.
    oldest: u64,
    /// Bytes of the entries that stay.
    bytes: u64,
}

/// The oldest entries: those that are too old, and as many as are too much together with all that came later. What came last
/// and was too much by itself stays known. What came before an entry that is too old is so too, and what came after one that
/// is not is not; a damaged entry shows neither.
fn expired(disk: &dyn Disk, index: &Index, now: u64, retention: Retention) -> Result<Expired, Broken> {
    let mut expired = Expired { entries: Vec::new(), oldest: index.totals.oldest, bytes: index.totals.bytes };
    let (mut doubtful, mut rest) = (Vec::new(), index.totals.bytes);
    for entry in index.oldest_first() {
        let (end, entry) = entry?;
        let id = entry.id;
        let is_word = || {
            let head = read_head(&index.state, &index.dir, id)?;
            Ok::<_, Errno>(index.newest() == Some(id) && head.is_some_and(|entry| !entry.is_whole()))
        };
        let is_over = rest > retention.bytes && !is_word()?;
        let is_old = match read_words(&index.dir, id)? {
            _ if is_over => Some(true),
            Some(head) => Some(is_old(disk, &index.dir, (id, &head), now, retention.age)?),
            None if beneath::look_up(index.dir.as_fd(), &id.to_string())?.is_none() => return Err(Broken::Disagrees),
            None => None,
        };
        rest = rest.checked_sub(entry.bytes).ok_or(Broken::Disagrees)?;
        doubtful.push(id);
        match is_old {
            Some(true) => {
                expired.entries.append(&mut doubtful);
                (expired.oldest, expired.bytes) = (end, rest);
            }
            Some(false) => break,
            None => {}
        }
    }
    Ok(expired)
}

/// Whether an entry is too old. An earlier version did not say the age: it counts from the first look on, and the wall clock
/// has to agree.
fn is_old(
    disk: &dyn Disk,
    dir: &OwnedFd,
    (id, head): (EntryId, &Head),
    now: u64,
    limit: Duration,
) -> Result<bool, Errno> {
    let is_old = age::between(head.age.unwrap_or_default(), now) > limit;
    Ok(is_old && (head.age.is_some() || is_old_by_wall(disk, dir, id, limit)?))
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
