//! From a path in a batch to a place on disk, and what is there. Writes nothing.

pub mod attributes;
pub(in crate::workspace) mod file_stamp;
pub(in crate::workspace) mod git_dir;
pub(in crate::workspace) mod ignore_files;
pub(crate) mod ignored;
pub mod listing;
pub(crate) mod made_git_dir;
pub mod place;
pub(in crate::workspace) mod regular;
pub mod resolve;
pub mod resolve_error;
pub mod snapshot;
pub(crate) mod walk;
