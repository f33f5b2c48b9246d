//! The limits and times that the server holds itself and its callers to, and what an operator may change while it runs.

use std::time::Duration;

use tokio::sync::watch;

use crate::caller::Share;
use crate::dispatcher::Settings;
use crate::dispatcher::approvals::{Approvals, CurrentApprovals};
use crate::fleet::FleetOptions;
use crate::quota::{CurrentRules, QuotaRules};
use crate::retention::CurrentRetention;
use crate::web_origins::WebOrigins;

/// What the server holds itself and its callers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What the dispatcher is held to.
    pub dispatch: Settings,
    /// Calls that are worked on at one time: from when their message has come whole until their answer is made.
    pub calls: Share,
    /// Until a call's answer must have begun.
    pub call_deadline: Duration,
    /// Between two pieces of a call's message.
    pub request_idle: Duration,
    /// Calls that go on until one side ends them, such as streams of events.
    pub long_lived: Share,
    /// An answer of which nothing is taken for this long is cut off, and a while later its connection.
    pub slow_after: Duration,
    /// A connection or an incomplete message that makes no progress for this long gives way when there are too many.
    pub patience: Duration,
    /// Between two messages of an upload.
    pub upload_idle: Duration,
    /// For a whole upload.
    pub upload_total: Duration,
    /// How long a blob is kept that no batch and no file names.
    pub blob_retention: Duration,
    /// How often what workspaces keep no longer is removed.
    pub retention_interval: Duration,
    /// Connections at one time.
    pub connections: Share,
    /// HTTP/2 streams of one connection.
    pub connection_streams: u32,
    /// Bytes of a call's headers.
    pub header_bytes: u32,
    /// After this long without a word a connection is asked for a sign of life.
    pub keepalive_interval: Duration,
    /// Without a sign of life for this long a connection is closed.
    pub keepalive_timeout: Duration,
    /// A connection of this age is asked to go.
    pub connection_age: Duration,
    /// And this long afterwards it is closed.
    pub connection_age_grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dispatch: Settings::default(),
            calls: Share::of(128),
            call_deadline: Duration::from_secs(30),
            request_idle: Duration::from_secs(10),
            long_lived: Share { connection: 64, ..Share::of(20_000) },
            slow_after: Duration::from_secs(30),
            patience: Duration::from_secs(1),
            upload_idle: Duration::from_secs(30),
            upload_total: Duration::from_secs(300),
            blob_retention: Duration::from_secs(24 * 3600),
            retention_interval: Duration::from_secs(600),
            connections: Share { connection: 1, ..Share::of(20_000) },
            connection_streams: 512,
            header_bytes: 16 << 10,
            keepalive_interval: Duration::from_secs(15),
            keepalive_timeout: Duration::from_secs(15),
            connection_age: Duration::from_secs(6 * 3600),
            connection_age_grace: Duration::from_secs(300),
        }
    }
}

/// What is configured beside the options. All but the origins and the fleet may change while the server runs.
#[derive(Clone, Debug)]
pub struct Changeable {
    /// Which batches a person has to approve.
    pub approvals: CurrentApprovals,
    /// What tokens and workspaces may use.
    pub quotas: CurrentRules,
    /// What workspaces keep.
    pub retention: CurrentRetention,
    /// Pages of which origins may call.
    pub origins: WebOrigins,
    /// How the server lives beside others on its store.
    pub fleet: FleetOptions,
}

/// The limits of tokens and workspaces stay the usual ones.
impl From<Approvals> for Changeable {
    fn from(approvals: Approvals) -> Self {
        (approvals, QuotaRules::default()).into()
    }
}

/// The limits of tokens and workspaces stay the usual ones.
impl From<watch::Receiver<Approvals>> for Changeable {
    fn from(approvals: watch::Receiver<Approvals>) -> Self {
        (approvals, QuotaRules::default()).into()
    }
}

/// Workspaces keep everything.
impl<A: Into<CurrentApprovals>, Q: Into<CurrentRules>> From<(A, Q)> for Changeable {
    fn from((approvals, quotas): (A, Q)) -> Self {
        Self {
            approvals: approvals.into(),
            quotas: quotas.into(),
            retention: CurrentRetention::default(),
            origins: WebOrigins::default(),
            fleet: FleetOptions::default(),
        }
    }
}
