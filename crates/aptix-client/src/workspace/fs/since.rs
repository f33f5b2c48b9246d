//! When something happened, by the clocks of the disk: comparable across processes and boots.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::workspace::fs::disk::Disk;

/// When something happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Since {
    /// Names the time since a start of the system.
    pub(crate) boot: String,
    /// Milliseconds since that start.
    pub(crate) up: u64,
    /// Milliseconds since 1970.
    pub(crate) unix: u64,
}

impl Since {
    /// Now.
    pub(crate) fn now(disk: &dyn Disk) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let unix = disk.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { boot: disk.boot(), up: millis(disk.uptime()), unix: millis(unix) }
    }

    /// Milliseconds until a later time by the uptime; nothing where the system was started in between.
    pub(crate) fn up_until(&self, later: &Self) -> Option<u64> {
        later.up.checked_sub(self.up).filter(|_| later.boot == self.boot)
    }

    /// How long ago it was. Within one time since a start of the system no clock that can be set is asked.
    pub(crate) fn age(&self, disk: &dyn Disk) -> Duration {
        let now = Self::now(disk);
        // A clock that was set back shows nothing; no process of that time lives.
        let by_wall = || now.unix.checked_sub(self.unix).unwrap_or(u64::MAX);
        Duration::from_millis(self.up_until(&now).unwrap_or_else(by_wall))
    }
}
