//! What became of a batch, in words: the JSON object, text for people, and the names that a dialect has for things.

pub mod answer;
pub(crate) mod description;
pub mod dialect_terms;
pub(crate) mod diff;
pub mod file_answer;
pub mod log;
pub mod text;
pub(crate) mod untrusted;
pub mod view;
