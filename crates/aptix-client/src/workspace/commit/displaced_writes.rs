//! Displaced writes: what another process writes to a file after a batch has replaced or removed it.
//!
//! Such a process holds the old file open. A commit therefore moves the old file into the state directory instead of
//! removing it. Every command that opens the root compares it with what it held at the exchange (`sweep.rs`): a changed
//! file stays and is named, an unchanged one is removed after [`HELD_FOR`] or when all of them exceed [`HELD_BYTES`].

mod displaced_file;
pub(crate) mod displacer;
mod index;
pub mod list;
pub(crate) mod sweep;

use std::time::Duration;

/// How long a displaced file is held at most while it is unchanged.
pub const HELD_FOR: Duration = Duration::from_hours(24);
/// Bytes of unchanged displaced files of one root; beyond them the oldest are removed first.
pub const HELD_BYTES: u64 = 256 << 20;
/// How long a displaced file is held at least, however many bytes there are.
pub const HELD_AT_LEAST: Duration = Duration::from_mins(1);
