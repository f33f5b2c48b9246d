//! What is kept of files that batches have changed, and for how long.

pub(super) mod age;
pub mod displaced_writes;
