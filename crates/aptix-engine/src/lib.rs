//! What an edit does: validate a batch, plan it against the files it names, apply, and show the diff.
//!
//! Pure: no I/O, clock, randomness, threads or async. The caller reads the files that [`plan::reads`] names, and commits
//! what [`plan::plan`] returns. `ARCHITECTURE.md` lists the modules; each uses only modules below it.

#![no_std]

extern crate alloc;

mod already;
mod checking;
mod content;
pub mod correct;
mod dialect;
pub mod diff;
pub mod digest;
pub mod express;
pub mod file_plan;
mod findings;
mod generated;
mod git_id;
pub mod hunk;
mod nearest;
mod places;
pub mod plan;
pub mod planning;
pub mod preview;
pub mod readings;
mod shown;
pub mod target;
pub mod text;
pub mod valid;
pub mod validate;
