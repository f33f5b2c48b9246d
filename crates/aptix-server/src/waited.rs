//! Counts what a call waits for: turns of other callers (`turns.rs`), and groups of writes (`store/embedded/committer.rs`).
//!
//! A call that waited is reported by one `debug` event when it ends. Nothing is counted while that event is off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tonic::codegen::http::Uri;

use crate::caller::ConnectionId;

/// The most that one call waited for at one time; reported when the last handle on it is dropped.
#[derive(Debug)]
pub(crate) struct Waited {
    connection: ConnectionId,
    method: Uri,
    turns: AtomicU64,
    groups: AtomicU64,
}

impl Waited {
    /// Begins to count for a call, if the event is on.
    pub(crate) fn begin(connection: ConnectionId, method: &Uri) -> Option<Arc<Self>> {
        let counts =
            || Self { connection, method: method.clone(), turns: AtomicU64::new(0), groups: AtomicU64::new(0) };
        tracing::enabled!(tracing::Level::DEBUG).then(|| Arc::new(counts()))
    }

    /// Notes that so many turns of other callers began while the call waited for one of its own.
    pub(crate) fn for_turns(&self, turns: u64) {
        self.turns.fetch_max(turns, Ordering::Relaxed);
    }

    /// Notes that so many groups ended while one of its writes waited for its own group to begin.
    pub(crate) fn for_groups(&self, groups: u64) {
        self.groups.fetch_max(groups, Ordering::Relaxed);
    }
}

impl Drop for Waited {
    fn drop(&mut self) {
        let (turns, groups) = (*self.turns.get_mut(), *self.groups.get_mut());
        if turns > 0 || groups > 0 {
            let (connection, method) = (self.connection.0, self.method.path());
            tracing::debug!(connection, method, waitedTurns = turns, waitedGroups = groups, "call waited");
        }
    }
}
