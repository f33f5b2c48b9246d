//! Text: logical lines of bytes, edits of them, where old text occurs in a file, and new text in the form of its place.

pub mod edit;
pub mod facts;
pub(crate) mod find;
pub mod line_changes;
pub mod line_regex;
pub(crate) mod lines;
pub(crate) mod new_text;
pub(crate) mod outcome;
pub mod portion;
pub(crate) mod whole_text;
