//! From a path in a batch to a place on disk, and what is there. Writes nothing.

pub(crate) mod git_dir;
pub(in crate::workspace) mod ignore_files;
pub(crate) mod ignored;
pub mod listing;
pub mod resolve;
pub mod snapshot;
pub(crate) mod walk;
