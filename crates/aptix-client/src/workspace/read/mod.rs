//! From a path in a batch to a place on disk, and what is there. Writes nothing.

pub mod attributes;
pub(crate) mod file_stamp;
pub(crate) mod git_dir;
pub(crate) mod ignore_files;
pub(crate) mod ignored;
pub mod listing;
pub(crate) mod open_file;
pub mod place;
pub(crate) mod regular;
pub mod resolve;
pub mod resolve_error;
pub mod snapshot;
pub(crate) mod walk;
