//! The files of a workspace as they are on disk at this moment: read, described, listed, searched. Writes nothing and blocks.
//!
//! What a caller is shown is decided by the egress rule of the policy, file by file, before any of it is compared or counted.

mod active;
pub mod difference;
mod globs;
pub(crate) mod line_search;
pub mod list;
pub mod local_batch;
pub(crate) mod past_batch;
pub mod read;
pub(crate) mod scope;
pub mod search;
pub(crate) mod searchable;
mod unresolved;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

/// Whether the caller no longer waits: its time is over, or it has cancelled. Asked between files and within large ones.
pub type IsOver<'a> = &'a dyn Fn() -> bool;

/// The failure of a question whose caller no longer waits.
fn over() -> Failure {
    Failure::new(Reason::DeadlineExceeded, "the workstation did not answer in time")
        .hint("ask for fewer files, or for files below one directory; or allow more time")
}
