//! What became of a batch, in words: the JSON object, and text for people.

pub mod answer;
pub(crate) mod description;
pub(crate) mod diff;
pub mod file_answer;
pub(crate) mod id_prefix;
pub(crate) mod kept;
pub mod log;
pub mod past;
pub(crate) mod refused;
pub mod text;
pub(crate) mod untrusted;
mod utc;
pub mod view;
