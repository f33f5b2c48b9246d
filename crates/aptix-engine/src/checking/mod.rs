//! What the checks that need no file share: the names of files, what is wrong, and regular expressions.

pub(crate) mod regexes;
pub(crate) mod targets;
pub(crate) mod violation;
