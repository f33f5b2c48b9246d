//! The review page: what waits for a person and what was done before, in a browser on this machine.
//!
//! [`Board`] holds the questions, whoever asks them; [`Page`] serves them, with the history of a workspace, to the one who has
//! its link.

mod board;
mod door;
mod listen;
mod past;
mod refusal;
mod routes;
mod view;

pub use self::board::Board;
pub(crate) use self::board::By;
pub use self::listen::Page;
#[cfg(feature = "cli")]
pub(crate) use self::listen::WHERE;
