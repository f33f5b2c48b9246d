//! What an edit does: validate a batch, plan it against the files it names, apply, and show the diff.
//!
//! Pure: no I/O, clock, randomness, threads or async. Values come in, values go out. The caller reads
//! the files that [`plan::reads`] names, and commits what [`plan::plan`] returns.

#![no_std]

extern crate alloc;

mod already;
mod anchor_edit;
mod clipboards;
pub mod content;
mod context_patch;
pub mod correct;
mod create_file;
mod diff;
pub mod digest;
mod encoding;
pub mod express;
pub mod file_plan;
mod find;
mod findings;
mod generated;
mod git_patch;
pub mod hunk;
mod line_patch;
pub mod line_regex;
mod lookalike;
mod nearest;
mod nearest_text;
mod new_text;
mod other_version;
pub mod plan;
pub mod preview;
pub mod quote;
pub mod readings;
mod replacements;
mod search_patch;
mod shown;
mod splice;
mod text;
pub mod text_edit;
pub mod validate;
mod whole_text;
