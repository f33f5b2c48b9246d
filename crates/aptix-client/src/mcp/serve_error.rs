//! Why a connection cannot be served.

use rmcp::service::{ServerInitializeError, ServiceError};

use crate::workspace::open::OpenError;

/// Why serving the tools failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client did not begin as the protocol demands.
    #[error("the client did not begin as the protocol has it: {0}")]
    Hello(#[from] Box<ServerInitializeError>),
    /// It is not known which roots the client means.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// The workspace over the client's roots cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The task that serves panicked.
    #[error("serving broke off: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Why it is not known which roots a client means.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// The client announced that it names roots, and did not.
    #[error("the client has roots and did not name them in {0} s: name them with --root DIR")]
    Silent(u64),
    /// The client announced that it names roots, and answered with an error.
    #[error("the client has roots and did not name them: {0}; name them with --root DIR")]
    Refused(#[from] ServiceError),
    /// More than are served.
    #[error("the client has {0} roots, at most {1} are served: name them with --root DIR")]
    TooMany(usize, usize),
    /// What it named is no directory of this machine.
    #[error("the client's root {0:?} is no directory of this machine: name roots with --root DIR")]
    Elsewhere(String),
}
