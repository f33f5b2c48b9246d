//! Which batch or call an event is about, and the span of the work on it.

use alloc::format;
use alloc::string::{String, ToString};

use crate::batch::Origin;
use crate::failure::Visible;
use crate::id::BatchId;
use crate::record::BatchRecord;
use crate::trace_parent::TraceParent;

/// The target that events and their spans have in filters: `APTIX_LOG=aptix::events=info`.
pub const TARGET: &str = "aptix::events";

/// Characters of an author's text that one field shows.
const SHOWN: usize = 1024;

/// Which program logs, and so which step of the way an event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// The server: stores, hands over, takes reports.
    Server,
    /// The agent: carries out what a server hands over.
    Agent,
    /// `aptix apply`: carries out a document.
    Apply,
    /// `aptix undo`: takes back a batch.
    Undo,
    /// `aptix mcp`: carries out tool calls.
    Mcp,
}

impl Via {
    /// The word in logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Agent => "agent",
            Self::Apply => "apply",
            Self::Undo => "undo",
            Self::Mcp => "mcp",
        }
    }

    /// Whether it writes files, so that the outcome of a batch is that of its files.
    pub(super) const fn executes(self) -> bool {
        !matches!(self, Self::Server)
    }
}

/// One batch, or one call, as every event about it names it. Texts are as their author wrote them.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Which program logs.
    pub via: Via,
    /// Whose turn it came from.
    pub origin: Origin,
    /// The workspace at the server; absent without a server.
    pub workspace: Option<String>,
    /// The batch; absent until it has an id.
    pub batch: Option<BatchId>,
    /// What it was submitted under, or the id of the call at `aptix mcp`; absent where calls have none.
    pub request: Option<String>,
    /// The tool that was called, or the method of the protocol.
    pub tool: Option<String>,
    /// Whether nothing is to be stored or written.
    pub is_dry_run: bool,
    /// The span that work on it belongs below, if it is followed.
    pub traceparent: Option<TraceParent>,
}

impl Trace {
    /// Of something of which nothing is known yet.
    #[must_use]
    pub fn new(via: Via) -> Self {
        Self {
            via,
            origin: Origin::default(),
            workspace: None,
            batch: None,
            request: None,
            tool: None,
            is_dry_run: false,
            traceparent: None,
        }
    }

    /// Of a stored batch.
    #[must_use]
    pub fn of(via: Via, record: &BatchRecord) -> Self {
        Self {
            origin: record.origin.clone(),
            workspace: Some(record.workspace.to_string()),
            batch: Some(record.id),
            request: Some(record.request_id.to_string()),
            traceparent: record.sent.traceparent,
            ..Self::new(via)
        }
    }

    /// A span for all the work on the batch or the call, at level DEBUG, with the same ids as its events.
    #[must_use]
    pub fn span(&self) -> tracing::Span {
        tracing::debug_span!(
            target: TARGET,
            "batch",
            Via = self.via.word(),
            SessionId = shown_if_given(self.origin.session_id.as_deref()),
            ConversationId = shown_if_given(self.origin.conversation_id.as_deref()),
            TurnId = shown_if_given(self.origin.turn_id.as_deref()),
            WorkspaceId = shown_if_given(self.workspace.as_deref()),
            BatchId = self.batch.map(tracing::field::display),
            RequestId = shown_if_given(self.request.as_deref()),
            ToolName = shown_if_given(self.tool.as_deref()),
        )
    }
}

/// An author's text as a log shows it: harmless and short.
#[must_use]
pub fn shown(text: &str) -> String {
    let head: String = text.chars().take(SHOWN).collect();
    let cut = if head.len() < text.len() { " ..." } else { "" };
    format!("{}{cut}", Visible(&head))
}

/// What an author may have left out, as a log shows it; empty text counts as left out.
pub(super) fn shown_if_given(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(shown)
}
