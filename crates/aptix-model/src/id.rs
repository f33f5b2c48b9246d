//! Who and what is meant. Ids are authoritative; an author's keys are labels and look nothing up.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

pub use uuid::Uuid;

/// Why a text is not an id of its kind.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind} is {rule}, found {} characters: {:?}", found.chars().count(), shorten(found))]
pub struct IdError {
    kind: &'static str,
    rule: &'static str,
    found: String,
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Ids minted by the server: `UUIDv7`, so that they sort by time of creation.
macro_rules! minted {
    ($($(#[$doc:meta])+ $name:ident = $kind:literal,)+) => { $(
        $(#[$doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let rule = "a UUID in hyphenated hex";
                let error = || IdError { kind: $kind, rule, found: text.to_owned() };
                if text.len() != 36 {
                    return Err(error());
                }
                Uuid::try_parse(text).map(Self).map_err(|_| error())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )+ };
}

minted! {
    /// Names a stored batch for ever.
    BatchId = "a batch id",
    /// Names one file patch of a stored batch.
    FilePatchId = "a file patch id",
    /// Names one change of a stored file patch.
    ChangeId = "a change id",
    /// Names the history of a store.
    HistoryId = "a history id",
}

/// Ids chosen by callers: printable text of bounded length.
macro_rules! chosen {
    ($($(#[$doc:meta])+ $name:ident = $kind:literal, $rule:literal, $max:literal, $allowed:expr;)+) => { $(
        $(#[$doc])+
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let allowed: fn(u8) -> bool = $allowed;
                if text.is_empty() || text.len() > $max || text.starts_with(['.', '-']) || !text.bytes().all(allowed) {
                    return Err(IdError { kind: $kind, rule: $rule, found: text.to_owned() });
                }
                Ok(Self(text.to_owned()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )+ };
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

chosen! {
    /// Names a workspace: one developer's folder, as the server knows it.
    WorkspaceId = "a workspace id", "1 to 64 of the characters A-Z a-z 0-9 . _ -, not beginning with . or -", 64, is_name_byte;
    /// Names an agent: one installation that serves workspaces.
    AgentId = "an agent id", "1 to 64 of the characters A-Z a-z 0-9 . _ -, not beginning with . or -", 64, is_name_byte;
    /// Names who prepares a batch, and alone may apply or replace it.
    OwnerId = "an owner", "1 to 128 visible ASCII characters, not beginning with . or -", 128, |byte| byte.is_ascii_graphic();
    /// Names the author's session; whose clipboards and history a batch belongs to.
    SessionId = "a session id", "1 to 128 visible ASCII characters, not beginning with . or -", 128, |byte| byte.is_ascii_graphic();
    /// Names a conversation in a session; for records and logs.
    ConversationId = "a conversation id", "1 to 128 visible ASCII characters, not beginning with . or -", 128, |byte| byte.is_ascii_graphic();
    /// Names a turn in a conversation; for records and logs.
    TurnId = "a turn id", "1 to 128 visible ASCII characters, not beginning with . or -", 128, |byte| byte.is_ascii_graphic();
    /// Names a token, in lists of tokens and in the record of what was done.
    TokenName = "a token's name", "1 to 64 of the characters A-Z a-z 0-9 . _ -, not beginning with . or -", 64, is_name_byte;
    /// Makes a submit idempotent: the same id never stores two batches.
    RequestId = "a request id", "1 to 128 visible ASCII characters, not beginning with . or -", 128, |byte| byte.is_ascii_graphic();
}

/// A workspace's counter of events: gapless, the first event has 1; 0 means "before the first".
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Revision(pub u64);

impl Revision {
    /// The one after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
