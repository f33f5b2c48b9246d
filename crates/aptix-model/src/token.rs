//! Tokens: who may call a server, and for what. The secret that its holder sends is not part of it: see the server.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use crate::id::{TokenName, WorkspaceId};
use crate::record::UnixMillis;
use crate::words::words;

words! {
    /// What the holder of a token may do.
    Role, word, from_word {
        /// Sends edits, calls tools, and reads.
        Orchestrator = "orchestrator",
        /// Serves a workspace.
        Agent = "agent",
        /// Approves, rejects and reverts batches, and reads.
        Reviewer = "reviewer",
        /// Reads.
        Reader = "reader",
        /// Makes and revokes tokens and creates workspaces; reads no batch and no file.
        Operator = "operator",
    }
}

/// The workspaces that a token is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All of them, also those that are created later.
    All,
    /// This one.
    One(WorkspaceId),
}

impl Scope {
    /// Whether the token is for this workspace.
    #[must_use]
    pub fn has(&self, workspace: &WorkspaceId) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == workspace,
        }
    }
}

/// A token, without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// Says in records of batches who decided about them; no two tokens ever have one name.
    pub name: TokenName,
    /// What its holder may do.
    pub role: Role,
    /// The workspaces that it is for.
    pub scope: Scope,
    /// When it was made.
    pub created: UnixMillis,
    /// When it expires.
    pub expires: Option<UnixMillis>,
    /// How and when it ended.
    pub ended: Option<Ended>,
    /// The name of a certificate that proves who its holder is, in the place of a secret.
    pub certificate: Option<CertificateName>,
}

/// Bytes of the name of a certificate.
const NAME_BYTES: usize = 1024;

/// One name of the subject of a certificate: `dns:NAME`, `uri:URI` or `email:ADDRESS`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CertificateName {
    kind: NameKind,
    value: String,
}

words! {
    /// What kind of name a certificate has.
    NameKind, word, from_word {
        /// The name of a host, without regard to case.
        Dns = "dns",
        /// A URI, such as a SPIFFE id.
        Uri = "uri",
        /// An address of electronic mail.
        Email = "email",
    }
}

/// Why a text is no name of a certificate.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "expected dns:NAME, uri:URI or email:ADDRESS of 1 to {NAME_BYTES} visible ASCII characters, without `*` in the name of a host"
)]
pub struct CertificateNameError;

impl FromStr for CertificateName {
    type Err = CertificateNameError;

    fn from_str(text: &str) -> Result<Self, CertificateNameError> {
        let (kind, value) = text.split_once(':').ok_or(CertificateNameError)?;
        let kind = NameKind::from_word(kind).ok_or(CertificateNameError)?;
        let is_name =
            !value.is_empty() && value.len() <= NAME_BYTES && value.bytes().all(|byte| byte.is_ascii_graphic());
        let is_host = kind == NameKind::Dns;
        if !is_name || (is_host && value.contains('*')) {
            return Err(CertificateNameError);
        }
        Ok(Self { kind, value: if is_host { value.to_ascii_lowercase() } else { value.to_owned() } })
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.value)
    }
}

impl Token {
    /// Whether it is of use at this time.
    #[must_use]
    pub fn is_good(&self, now: UnixMillis) -> bool {
        self.ended.is_none() && self.expires.is_none_or(|expires| now < expires)
    }
}

/// The end of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// When it ended.
    pub at: UnixMillis,
    /// How it ended.
    pub how: Ending,
}

words! {
    /// How a token ended.
    Ending, word, from_word {
        /// An operator revoked it.
        Revoked = "REVOKED",
        /// Its time was over.
        Expired = "EXPIRED",
    }
}
