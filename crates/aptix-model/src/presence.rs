//! What an agent states of itself when it connects to a server: version, roots, approval mode, and what it can do.

use alloc::string::String;
use alloc::vec::Vec;

/// Most roots of one workspace.
pub const ROOTS: usize = 64;

/// Most features that an agent names.
pub const FEATURES: usize = 64;

/// Most bytes of a version or of a feature's name.
pub const NAME_BYTES: usize = 64;

/// Most bytes of a root's name.
pub const ROOT_NAME_BYTES: usize = 255;

/// How a connected agent serves its workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Presence {
    /// The agent's version, such as `0.3.0`; empty if it states none.
    pub version: String,
    /// The names of the workspace's roots, each once.
    pub roots: Vec<String>,
    /// When the agent asks its user; absent if it does not say.
    pub mode: Option<ApprovalMode>,
    /// What it can do beyond the first version of the protocol.
    pub features: Vec<String>,
}

/// When an agent asks its user before it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApprovalMode {
    /// Before every batch.
    Ask,
    /// Only where its policy requires it.
    Auto,
    /// Never: it refuses every batch.
    Never,
}

/// What a server asks of an agent. An agent names in [`Presence::features`] the kinds that it answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QuestionKind {
    /// The content of files.
    Read,
    /// What files are, without their content.
    Stat,
    /// Names below a directory.
    List,
    /// Lines that match.
    Search,
    /// What would become of a batch.
    Preview,
    /// The plan of a batch that is being prepared.
    Prepare,
    /// The answer of a tool that reads.
    Tool,
    /// Which files absolute paths lead to.
    Paths,
}

impl QuestionKind {
    /// The name of the feature.
    #[must_use]
    pub const fn feature(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Stat => "stat",
            Self::List => "list",
            Self::Search => "search",
            Self::Preview => "preview",
            Self::Prepare => "prepare",
            Self::Tool => "call_tool",
            Self::Paths => "resolve_paths",
        }
    }
}

impl Presence {
    /// Whether the agent answers questions of this kind.
    #[must_use]
    pub fn answers(&self, kind: QuestionKind) -> bool {
        self.features.iter().any(|feature| feature == kind.feature())
    }
}
