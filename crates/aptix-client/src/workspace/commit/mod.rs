//! Writes every file of a batch or none, whatever happens in between.

pub mod change;
pub mod displaced_writes;
pub(in crate::workspace) mod emptied;
pub(in crate::workspace) mod file_state;
pub mod journal;
pub(in crate::workspace) mod orphans;
pub mod publish;
pub(in crate::workspace) mod record_bounds;
pub mod recovery;
pub(in crate::workspace) mod staging;
pub mod transaction;
pub(in crate::workspace) mod written_ahead;
