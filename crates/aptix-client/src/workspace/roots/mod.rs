//! Directories opened for editing, and Aptix's own files about them: state directories, locks, policy files.

pub(in crate::workspace) mod own_file;
pub(crate) mod policy_file;
pub mod root;
pub mod state;
