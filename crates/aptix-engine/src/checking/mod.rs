//! What every dialect is checked with: the place that is looked at, what can be wrong there, paths, regular expressions.

pub(crate) mod regexes;
pub(crate) mod site;
pub(crate) mod targets;
pub(crate) mod violation;
