//! What is kept of batches that have ended: for undoing them, for the server, for their session, for the agent.

pub(in crate::workspace) mod age;
mod batch_files;
pub mod clipboards;
pub(in crate::workspace) mod ending;
pub mod history;
pub mod notes;
pub mod outbox;
pub(crate) mod reported;
