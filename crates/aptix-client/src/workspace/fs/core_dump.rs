//! What the system keeps of this process when it crashes.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Too few bytes for a file. Of 0, Linux would still hand the memory to a program that collects dumps (`core(5)`), but not of 1.
const LIMIT: Option<u64> = Some(1);

/// Has the system keep no memory of this process: a token may be in it.
pub(crate) fn leave_none() {
    // One that refuses leaves the limit that the user set.
    let _ = setrlimit(Resource::Core, Rlimit { current: LIMIT, maximum: LIMIT });
}
