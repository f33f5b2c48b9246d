//! The space of the file system under a store.

/// The space of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes that this process may still use.
    pub free: u64,
    /// All bytes.
    pub size: u64,
}
