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
mod edit;
mod editor;
pub mod guide;
mod insert;
pub mod list_directory;
pub mod look;
mod overwrite;
pub mod past;
mod patch;
mod planning;
pub mod preview;
mod range_edit;
pub mod read_file;
pub mod result;
pub mod ripgrep;
pub mod roots;
mod schema;
pub mod shape;
pub mod skipped;
mod texts;
pub mod tool;
mod whole_files;
mod write_patch;
