//! What is kept of batches that have ended: for undoing them, for the server, for their session, for the agent.

pub(crate) mod age;
pub(crate) mod agreement;
#[doc(hidden)] // public for the tests that look at what is kept
pub mod clipboards;
pub(crate) mod ending;
pub mod history;
#[doc(hidden)] // public for the tests that look at what is kept
pub mod notes;
#[doc(hidden)] // public for the tests that look at what is kept
pub mod outbox;
pub(crate) mod prepared;
pub mod refused;
pub(crate) mod reported;
