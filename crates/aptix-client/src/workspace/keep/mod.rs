//! What is kept of batches that have ended: for undoing them, for the server, for their session, for the agent.

pub(in crate::workspace) mod age;
mod batch_files;
#[doc(hidden)] // public for the tests that look at what is kept
pub mod clipboards;
pub(in crate::workspace) mod ending;
pub mod history;
#[doc(hidden)] // public for the tests that look at what is kept
pub mod notes;
#[doc(hidden)] // public for the tests that look at what is kept
pub mod outbox;
pub(crate) mod reported;
