//! What the holder of a token, and all callers of a workspace together, may use of the server: calls a second, open streams,
//! bytes of messages in flight, questions to an agent, batches a day, and stored bytes. A call over a limit is refused, before its message is decoded
//! where that is possible, with the limit, its value and the time after which the call may succeed.

mod account;
mod accounts;
pub mod used;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::reason::Reason;
use tokio::sync::watch;

use crate::metrics;

pub use self::account::{Held, Reserved};
pub use self::accounts::{CallQuota, Quotas, Storing};

/// How long a caller waits before it repeats a call that found all of something in use.
const IN_USE: Duration = Duration::from_secs(1);

/// How long a caller waits before it repeats a call that a workspace has no room for: retention runs at intervals of minutes.
const RETENTION: Duration = Duration::from_secs(60);

/// What one token, or one workspace, may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Calls a second, on average; one second's calls may come at once.
    pub calls_per_second: u64,
    /// Streams of events and connections of agents that are open at one time.
    pub streams: u64,
    /// Bytes of messages of calls that have begun to arrive and are not answered; an upload counts as one chunk.
    pub bytes_in_flight: u64,
    /// Calls that wait for an agent at one time.
    pub questions: u64,
    /// Batches that are stored in a day, on average; one day's may come at once. Counted anew from each start of the server.
    pub batches_per_day: u64,
    /// Bytes that a workspace stores; `None` is no limit. A token has no such limit: what is stored belongs to its workspace.
    pub stored_bytes: Option<u64>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            calls_per_second: 10_000,
            streams: 10_000,
            bytes_in_flight: 256 << 20,
            questions: 2048,
            batches_per_day: 10_000_000,
            stored_bytes: None,
        }
    }
}

/// The limits of all tokens and workspaces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QuotaRules {
    /// For each token.
    pub token: Allowance,
    /// For each workspace that has no entry of its own.
    pub workspace: Allowance,
    /// For these workspaces.
    pub workspaces: BTreeMap<WorkspaceId, Allowance>,
}

impl QuotaRules {
    fn of(&self, subject: &Subject) -> Allowance {
        match subject {
            Subject::Token(_) => self.token,
            Subject::Workspace(workspace) => self.workspaces.get(workspace).copied().unwrap_or(self.workspace),
        }
    }
}

/// The limits of now: the configuration may be read again.
#[derive(Clone, Debug)]
pub struct CurrentRules(watch::Receiver<QuotaRules>);

impl From<watch::Receiver<QuotaRules>> for CurrentRules {
    fn from(current: watch::Receiver<QuotaRules>) -> Self {
        Self(current)
    }
}

/// They stay as they are.
impl From<QuotaRules> for CurrentRules {
    fn from(fixed: QuotaRules) -> Self {
        Self(watch::channel(fixed).1)
    }
}

/// Whose use is counted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Subject {
    /// The holder of a token, over all connections.
    Token(TokenName),
    /// All callers that name a workspace.
    Workspace(WorkspaceId),
}

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(out, "token:{name}"),
            Self::Workspace(workspace) => write!(out, "workspace:{workspace}"),
        }
    }
}

/// What is limited.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// Calls a second.
    CallsPerSecond,
    /// Open streams.
    Streams,
    /// Bytes of messages in flight.
    BytesInFlight,
    /// Questions to an agent.
    Questions,
    /// Batches a day.
    BatchesPerDay,
    /// Stored bytes of a workspace.
    StoredBytes,
}

impl Limit {
    /// The key of the configuration that sets it for such a subject.
    #[must_use]
    pub const fn key(self, subject: &Subject) -> &'static str {
        match (self, subject) {
            (Self::CallsPerSecond, Subject::Token(_)) => "calls_per_second_per_token",
            (Self::CallsPerSecond, Subject::Workspace(_)) => "calls_per_second_per_workspace",
            (Self::Streams, Subject::Token(_)) => "streams_per_token",
            (Self::Streams, Subject::Workspace(_)) => "streams_per_workspace",
            (Self::BytesInFlight, Subject::Token(_)) => "bytes_in_flight_per_token",
            (Self::BytesInFlight, Subject::Workspace(_)) => "bytes_in_flight_per_workspace",
            (Self::Questions, Subject::Token(_)) => "questions_per_token",
            (Self::Questions, Subject::Workspace(_)) => "questions_per_workspace",
            (Self::BatchesPerDay, Subject::Token(_)) => "batches_per_day_per_token",
            (Self::BatchesPerDay, Subject::Workspace(_)) => "batches_per_day_per_workspace",
            (Self::StoredBytes, _) => "stored_bytes_per_workspace",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::CallsPerSecond => "calls a second",
            Self::Streams => "open streams",
            Self::BytesInFlight => "bytes of messages in flight",
            Self::Questions => "questions to an agent",
            Self::BatchesPerDay => "batches a day",
            Self::StoredBytes => "stored bytes",
        }
    }
}

/// A call that a limit of its token or workspace refuses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverLimit {
    /// What is told about it.
    pub failure: Failure,
    /// Whose limit it is.
    pub subject: Subject,
    /// Which limit.
    pub limit: Limit,
    /// The limit's value.
    pub value: u64,
    /// After this long the same call may succeed.
    pub retry: Duration,
}

impl OverLimit {
    fn new(subject: &Subject, limit: Limit, value: u64, retry: Duration) -> Box<Self> {
        let message = format!("{} has a limit of {value} {}, and has reached it", holder(subject), limit.words());
        let hint = match limit {
            Limit::CallsPerSecond => "call less often: wait as long as RetryInfo says, then call again",
            Limit::BatchesPerDay => "wait as long as RetryInfo says, or ask the operator for a higher limit",
            Limit::Streams | Limit::BytesInFlight | Limit::Questions => {
                "end some of the calls that are under way, or wait as long as RetryInfo says, then call again"
            }
            Limit::StoredBytes => {
                "wait until retention removes content of batches that ended; the newest content of each file stays: ask the operator \
                 for a shorter retention or a higher limit"
            }
        };
        let failure = Failure::new(Reason::OverLimit, message).hint(hint);
        Box::new(Self { failure, subject: subject.clone(), limit, value, retry })
    }

    /// Refuses `more` bytes in a workspace that stores `used`, those on their way among them.
    fn stored(subject: &Subject, (used, more): (u64, u64), value: u64) -> Box<Self> {
        let mut over = Self::new(subject, Limit::StoredBytes, value, RETENTION);
        let holder = holder(subject);
        over.failure.message =
            format!("{holder} stores {used} bytes, and {more} more would exceed its limit of {value} stored bytes");
        over
    }

    /// Counts and logs that a call is refused.
    pub(crate) fn note(&self) {
        metrics::quota_refused(self.key());
        tracing::debug!(subject = %self.subject, limit = self.key(), value = self.value, "a call is over a limit");
    }

    /// The key of the configuration that sets the limit.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        self.limit.key(&self.subject)
    }
}

/// Reads what [`Subject`]'s `Display` writes.
impl FromStr for Subject {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.split_once(':') {
            Some(("token", name)) => name.parse().map(Self::Token).map_err(drop),
            Some(("workspace", name)) => name.parse().map(Self::Workspace).map_err(drop),
            _ => Err(()),
        }
    }
}

fn holder(subject: &Subject) -> String {
    match subject {
        Subject::Token(name) => format!("token {name}"),
        Subject::Workspace(workspace) => format!("workspace {workspace}"),
    }
}
