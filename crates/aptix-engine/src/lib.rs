//! What an edit does: validate a batch, plan it against the files it names, apply, and show the diff.
//!
//! Pure: no I/O, clock, randomness, threads or async. Values come in, values go out. The caller reads
//! the files that [`plan::reads`] names, and commits what [`plan::plan`] returns.

#![no_std]

extern crate alloc;

mod already;
mod checking;
pub mod content;
pub mod correct;
mod dialect;
mod diff;
pub mod digest;
pub mod express;
pub mod file_plan;
mod findings;
pub mod hunk;
pub mod plan;
mod planning;
pub mod preview;
pub mod readings;
mod shown;
pub mod text;
pub mod validate;
