//! The age clock of a root: what is kept for a while expires by it, and by no clock that can be set.
//!
//! Within one time since a start of the system it runs with the uptime. From one such time to the next the wall clock counts,
//! for at most a day. A clock that was lost goes on where the newest entry of the history was made: nothing expires early.

use std::os::fd::AsFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::workspace::fs::disk::Disk;
use crate::workspace::fs::since::Since;
use crate::workspace::keep::history::entries;
use crate::workspace::roots::own_file::{self, Found, Owner, Temporary};
use crate::workspace::roots::state::{Part, StateDir, StateError};

/// What counts at most of the time during which the system was not up, from one look to the next.
const MOST_BETWEEN_BOOTS: u64 = 24 * 60 * 60 * 1000;
/// A look that is nearer than this to the one before, in the same time since a start, need not be noted.
const NEAR: u64 = 60 * 60 * 1000;

/// What a look showed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    /// Milliseconds.
    age: u64,
    at: Since,
}

impl Look {
    /// The next look.
    fn next(&self, at: Since) -> Self {
        let by_wall = || at.unix.saturating_sub(self.at.unix).min(MOST_BETWEEN_BOOTS);
        let passed = self.at.up_until(&at).unwrap_or_else(by_wall);
        Self { age: self.age.saturating_add(passed), at }
    }
}

/// What the clock shows, in milliseconds. Writes nothing.
pub(crate) fn now(disk: &dyn Disk, state: &StateDir) -> Result<u64, StateError> {
    Ok(looks(disk, state)?.1.age)
}

/// What the clock shows, in milliseconds. Where the time up to now could not be counted later, the look is noted, without a
/// flush: a power cut that takes it loses time, and so lets things live longer.
pub(crate) fn look(disk: &dyn Disk, state: &StateDir) -> Result<u64, StateError> {
    let (earlier, now) = looks(disk, state)?;
    // A near one in the same time since a start: the time since can be counted without this look.
    if earlier.and_then(|earlier| earlier.at.up_until(&now.at)).is_none_or(|passed| passed >= NEAR)
        && let Err(error) = note(disk, state, &now)
    {
        tracing::warn!(%error, "the age clock is not written; what is kept for a while is kept longer");
    }
    Ok(now.age)
}

/// How long it was from one time of the clock to another.
pub(crate) const fn between(made: u64, now: u64) -> Duration {
    Duration::from_millis(now.saturating_sub(made))
}

/// The look that was noted last, and the one of now.
fn looks(disk: &dyn Disk, state: &StateDir) -> Result<(Option<Look>, Look), StateError> {
    let (earlier, at) = (read(state)?, Since::now(disk));
    let now = match &earlier {
        Some(earlier) => earlier.next(at),
        None => Look { age: entries::newest_age(state)?.unwrap_or_default(), at },
    };
    Ok((earlier, now))
}

const fn owner(state: &StateDir) -> Owner<'_> {
    Owner { part: Part::AGE, name: "clock", state }
}

fn read(state: &StateDir) -> Result<Option<Look>, StateError> {
    let Some(dir) = state.find(Part::AGE)? else { return Ok(None) };
    let look = match own_file::read(dir.as_fd(), owner(state)).map_err(owner(state).failed("read"))? {
        Some(Found::Sealed(look)) => serde_json::from_slice(&look).ok(),
        Some(Found::Old(_) | Found::Damaged(_)) => None,
        None => return Ok(None),
    };
    if look.is_none() {
        // A power cut can do that: it is not flushed.
        tracing::warn!("the age clock is damaged and begins anew; what is kept for a while is kept longer");
    }
    Ok(look)
}

fn note(disk: &dyn Disk, state: &StateDir, look: &Look) -> Result<(), StateError> {
    let (dir, tmp) = (state.open(Part::AGE)?, state.open(Part::TMP)?);
    // Numbers and the name of a boot: there is nothing in it that JSON could refuse.
    let body = serde_json::to_vec(look).unwrap_or_default();
    let put = || {
        let mut new = Temporary::make(disk, tmp.as_fd())?;
        new.write(&own_file::seal(owner(state), &body))?;
        new.put(dir.as_fd(), owner(state).name).map(drop)
    };
    put().map_err(owner(state).failed("write"))
}
