//! The kinds of edit, one folder each. Its face is two functions: `check`, which needs no file, and `plan`, which lowers
//! the edit to a plan of its file or explains why it does not apply.

pub(crate) mod anchor_edit;
pub(crate) mod context_patch;
pub(crate) mod git_patch;
pub(crate) mod line_patch;
pub(crate) mod quote;
pub(crate) mod replacements;
pub(crate) mod search_patch;
pub(crate) mod whole_file;
