//! The kinds of edit, one folder each: what can be said without the file, what becomes of the file, and its refusals.

pub(crate) mod anchor_edit;
pub(crate) mod context_patch;
pub(crate) mod git_patch;
pub(crate) mod line_patch;
pub(crate) mod quote;
pub(crate) mod replacements;
pub(crate) mod search_patch;
