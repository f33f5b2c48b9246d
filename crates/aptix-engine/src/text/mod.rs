//! Text: logical lines of bytes, edits of them, and where old text stands in a file.

pub(crate) mod create_file;
pub mod edit;
pub(crate) mod find;
pub(crate) mod line_changes;
pub mod line_regex;
pub(crate) mod lines;
pub(crate) mod lookalike;
pub(crate) mod nearest;
pub(crate) mod nearest_text;
pub(crate) mod new_text;
pub(crate) mod splice;
pub(crate) mod whole_text;
