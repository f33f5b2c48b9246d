//! Directories opened for editing, and Aptix's own files about them: state directories, locks, policy files.

mod cache;
pub mod lock;
pub(in crate::workspace) mod own_file;
pub(crate) mod policy_file;
pub mod root;
pub(in crate::workspace) mod root_mark;
pub mod state;
pub mod workspace;
