//! What is kept of files that batches have changed.

pub mod displaced_writes;
