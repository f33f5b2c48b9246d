//! What became of a batch, in words: for people, as the JSON object, and by the names that a dialect has for things.

pub(crate) mod answer;
pub(crate) mod description;
pub(crate) mod dialect_terms;
pub(crate) mod diff;
pub(crate) mod untrusted;
