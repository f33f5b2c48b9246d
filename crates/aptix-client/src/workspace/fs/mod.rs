//! The system's calls: the disk seam, opening beneath a directory, error numbers, clocks, the terminal.

pub(in crate::workspace) mod beneath;
pub(in crate::workspace) mod dir_cache;
pub mod disk;
pub mod errno;
pub(in crate::workspace) mod since;
pub(crate) mod terminal;
