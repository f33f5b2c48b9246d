//! The tools that models call: one catalogue with names, descriptions, schemas of arguments and answers, and how arguments
//! become calls (TUL-002, TUL-004 4 and 7.1, REQ-PATCH, WS-MOD). Each provider's shape of it is [`shape`].
//!
//! A tool is one file with its `TOOL`, and a line in [`catalogue`].

mod answer;
mod append;
mod apply;
mod arguments;
mod block_replace;
pub mod catalogue;
pub mod create_file;
mod insert;
pub mod look;
mod overwrite;
mod patch;
mod planning;
pub mod preview;
mod range_edit;
pub mod read_file;
pub mod ripgrep;
mod schema;
pub mod shape;
pub mod tool;
mod write_patch;
