//! Directories opened for editing, and Aptix's own files about them: state directories, locks, policy files.

pub mod editor_socket;
#[cfg(feature = "cli")]
pub(crate) mod exposed;
pub mod lock;
pub(crate) mod own_file;
pub(crate) mod own_lines;
pub(crate) mod policy_file;
#[cfg(feature = "person")]
pub(crate) mod review_link;
pub mod root;
pub(crate) mod stamp;
pub mod state;
pub(crate) mod unfinished;
pub mod workspace;
