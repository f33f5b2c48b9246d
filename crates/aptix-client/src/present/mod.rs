//! What became of a batch, as text for people, and the batches that commands list and show.

pub(crate) mod description;
pub(crate) mod diff;
pub(crate) mod id_prefix;
pub(crate) mod kept;
pub mod log;
pub mod past;
pub(crate) mod refused;
pub mod text;
pub(crate) mod untrusted;
pub(crate) mod utc;
pub mod view;
