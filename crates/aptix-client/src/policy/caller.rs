//! Who sends edits and asks for files, as policy distinguishes them.

/// Who sends edits and asks for files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// The user at their own shell: `aptix apply`, `aptix undo`.
    Shell,
    /// The server that an agent works for, and every author behind it.
    Server,
    /// A model that calls the tools of `aptix mcp`.
    Model,
}

impl Caller {
    /// The session that a caller means by an id. Callers share no sessions: what the user or a model may take up on a
    /// clipboard may be withheld from a server, which chooses its ids itself.
    pub(crate) fn session(self, id: &str) -> String {
        match self {
            // No argument of a command has a NUL byte.
            Self::Shell => id.to_owned(),
            Self::Server => format!("server\0{id}"),
            Self::Model => format!("model\0{id}"),
        }
    }
}
