//! The system's calls: the disk seam, opening beneath a directory, error numbers, the terminal.

pub(in crate::workspace) mod beneath;
pub mod disk;
pub mod errno;
pub(crate) mod terminal;
