//! The limits of this process. That of open files is raised as far as it goes, and shared out between the store and the
//! connections; nothing is left of a crash.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::metrics;

/// Open files of the store: journals, tables being read, written and merged.
const STORE: usize = 1000;

/// The least that the store works with.
const STORE_LEAST: usize = 24;

/// Connections whose handshake failed and whose client reads why.
pub(crate) const PARTINGS: usize = 4;

/// Everything else: standard streams, the runtime, the listener, connections that wait for room or end; and the listener for metrics
/// with its connections.
const OTHERS: usize = 22 + PARTINGS + 1 + metrics::scrape::CONNECTIONS;

/// The least number of connections that a server is worth starting for.
const CONNECTIONS_LEAST: usize = 8;

/// How the open files are shared out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The limit.
    pub limit: u64,
    /// Table files that the store keeps open.
    pub store_files: usize,
    /// Connections at one time.
    pub connections: usize,
}

/// The limit leaves too little.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "failed to reserve open files: the limit is {limit}, expected at least {}; hint: raise it with `ulimit -n`",
    STORE_LEAST + OTHERS + CONNECTIONS_LEAST
)]
pub struct TooFewDescriptors {
    /// The limit.
    limit: u64,
}

/// Too few bytes for a core dump. Of 0, Linux would still hand the memory to a program that collects dumps, but not of 1.
const CORE_DUMP_BYTES: Option<u64> = Some(1);

/// Has the system keep no memory of this process when it crashes: tokens and keys are in it.
pub fn leave_no_core_dump() {
    // A system that refuses leaves the limit that the operator set.
    let _ = setrlimit(Resource::Core, Rlimit { current: CORE_DUMP_BYTES, maximum: CORE_DUMP_BYTES });
}

/// Raises the soft limit of open files to the hard one and shares it out; `connections` are wanted.
///
/// # Errors
/// When the limit is too low for a store and a few connections.
pub fn reserve(connections: usize) -> Result<Budget, TooFewDescriptors> {
    let found = getrlimit(Resource::Nofile);
    // An absent limit is none.
    let raised = Rlimit { current: found.maximum, maximum: found.maximum };
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files stays as it is");
            found.current
        }
    };
    share_out(limit.unwrap_or(u64::MAX), connections)
}

fn share_out(limit: u64, wanted: usize) -> Result<Budget, TooFewDescriptors> {
    let all = usize::try_from(limit).unwrap_or(usize::MAX);
    let store = (all / 3).clamp(STORE_LEAST, STORE);
    let left = all.saturating_sub(store + OTHERS);
    if left < CONNECTIONS_LEAST {
        return Err(TooFewDescriptors { limit });
    }
    let connections = wanted.min(left);
    if connections < wanted {
        tracing::warn!(
            limit,
            wanted,
            connections,
            "the limit of open files allows fewer connections: raise `ulimit -n`"
        );
    }
    // Half of the store's share is for what it opens beside tables that it reads.
    Ok(Budget { limit, store_files: store / 2, connections })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_has_its_share_whatever_is_wanted() {
        for limit in [63, 64, 256, 1024, 4096, 1 << 20, u64::MAX] {
            let budget = share_out(limit, 20_000).unwrap();
            let used = budget.connections + 2 * budget.store_files + OTHERS;
            assert!(used as u64 <= limit && budget.store_files >= STORE_LEAST / 2, "{limit}: {budget:?}");
            assert!(budget.connections >= CONNECTIONS_LEAST && budget.connections <= 20_000);
        }
        assert_eq!(share_out(1 << 20, 20_000).unwrap().connections, 20_000);
        assert_eq!(share_out(62, 20_000), Err(TooFewDescriptors { limit: 62 }));
    }
}
