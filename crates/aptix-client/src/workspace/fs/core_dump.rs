//! What the system keeps of this process when it crashes.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Has the system write no memory of this process to a file: a token may be in it.
pub(crate) fn leave_none() {
    // One that refuses leaves the limit that the user set.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}
