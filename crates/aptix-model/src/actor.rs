//! Who did something to a batch.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;

use crate::words::words;

words! {
    /// What an actor is.
    ActorKind, word, from_word {
        /// A caller of the server that submits or withdraws batches.
        Author = "AUTHOR",
        /// The workstation's agent.
        Agent = "AGENT",
        /// A person.
        Person = "PERSON",
        /// The server itself.
        Server = "SERVER",
    }
}

/// Who did something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// What they are.
    pub kind: ActorKind,
    /// Their name, if it is known.
    pub name: Option<String>,
}

impl Actor {
    /// An actor without a known name.
    #[must_use]
    pub const fn unnamed(kind: ActorKind) -> Self {
        Self { kind, name: None }
    }

    /// The actor with the name of the token beside its own, if it called with one.
    #[must_use]
    pub fn signed(self, token: Option<&str>) -> Self {
        let name = match (self.name, token) {
            (Some(name), Some(token)) => Some(format!("{name} ({token})")),
            (None, Some(token)) => Some(token.to_owned()),
            (name, None) => name,
        };
        Self { name, ..self }
    }
}
