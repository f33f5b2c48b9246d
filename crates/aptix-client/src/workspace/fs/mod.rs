//! The system's calls: the disk, opening beneath a directory, error numbers, clocks, the terminal.

pub(crate) mod beneath;
pub(crate) mod core_dump;
pub(crate) mod dir_cache;
pub mod disk;
pub mod errno;
pub(crate) mod reads;
pub(crate) mod shell_word;
pub(crate) mod since;
pub(crate) mod terminal;
#[cfg(feature = "cli")]
pub(crate) mod volume;
