//! What a span is to the others of its trace.

/// Which side of a call or of a message a span is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// None: work within one process.
    Internal,
    /// Makes a call.
    Client,
    /// Answers a call.
    Server,
    /// Sends a message that is handled later.
    Producer,
    /// Handles a message.
    Consumer,
}
