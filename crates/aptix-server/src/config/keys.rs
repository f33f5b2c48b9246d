//! The list of keys: everything that can be configured, and nothing else.

use std::ops::RangeInclusive;

use super::Config;
use super::field::{Field, flag, origins, plain, seconds, share, store, whole};

/// What the variables of the environment begin with that set keys.
pub(super) const PREFIX: &str = "APTIX_SERVER_";

/// When a changed value takes effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// When the server reads its configuration again, on SIGHUP.
    Reload,
    /// At the next start.
    Restart,
}

impl Change {
    /// The word of the reference page.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Restart => "restart",
        }
    }
}

/// A key of the configuration.
#[derive(Debug)]
pub struct Key {
    /// Its name in the file: a dot stands between a table and a key of it.
    pub name: &'static str,
    /// When a changed value takes effect.
    pub change: Change,
    /// Whether a table `[workspaces.ID]` may have it as well.
    pub is_per_workspace: bool,
    /// A variable of the environment that counts where nothing else sets the key.
    pub general: Option<&'static str>,
    /// What it means: a phrase in Markdown, which the reference page has.
    pub meaning: &'static str,
    /// The place of the configuration that it sets. The default is what is there before.
    pub(super) field: fn(&mut Config) -> Box<dyn Field + '_>,
}

impl Key {
    const fn new(
        name: &'static str,
        change: Change,
        field: fn(&mut Config) -> Box<dyn Field + '_>,
        meaning: &'static str,
    ) -> Self {
        Self { name, change, is_per_workspace: false, general: None, meaning, field }
    }

    /// A table `[workspaces.ID]` may have it as well. Its place has to be in [`super::WorkspaceConfig`].
    const fn per_workspace(self) -> Self {
        Self { is_per_workspace: true, ..self }
    }

    /// A variable of the environment counts where nothing else sets it.
    const fn or_else(self, variable: &'static str) -> Self {
        Self { general: Some(variable), ..self }
    }

    /// Its value in a configuration; `None` where it has none.
    #[must_use]
    pub fn value(&self, config: &Config) -> Option<serde_json::Value> {
        (self.field)(&mut config.clone()).value()
    }

    /// Which values it can have.
    #[must_use]
    pub fn expected(&self) -> String {
        (self.field)(&mut Config::default()).expected().into_owned()
    }

    /// Its row of the table in the reference page.
    #[must_use]
    pub fn row(&self) -> String {
        let default = match self.value(&Config::default()) {
            None => String::new(),
            Some(serde_json::Value::Number(number)) => number.as_u64().map_or_else(String::new, super::field::grouped),
            Some(serde_json::Value::String(text)) => format!("`{text}`"),
            Some(other) => format!("`{other}`"),
        };
        let Self { name, change, meaning, .. } = self;
        format!("| `{name}` | {} | {default} | {} | {meaning} |", self.expected(), change.word())
    }

    /// The variable of the environment that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.variable_suffix())
    }

    /// Its variable without what all of them begin with.
    pub(super) fn variable_suffix(&self) -> String {
        self.name.replace('.', "_").to_uppercase()
    }
}

use Change::{Reload, Restart};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;
const CENTURY: u64 = 100 * YEAR;
/// The most of what is counted.
const MANY: u64 = 1_000_000;
/// The most batches in a day.
const BATCHES: u64 = 1_000_000_000;
/// Bytes of messages: no fewer than one message may have, so that a call which is alone always passes.
const BYTES: RangeInclusive<u64> = 4 << 20..=1 << 40;
const BILLION: u64 = 1_000_000_000;
const PETABYTE: u64 = 1_000_000_000_000_000;
/// Stored bytes: no fewer than one large batch has.
const STORED: RangeInclusive<u64> = 1 << 20..=PETABYTE;

/// Every key. A key below another one may have a default that follows from it.
pub static KEYS: &[Key] = &[
    Key::new("listen", Restart, |c| plain(&mut c.listen), "where callers connect; port 0 lets the system choose"),
    Key::new(
        "data_dir",
        Restart,
        |c| plain(&mut c.data_dir),
        "directory for everything the server keeps, relative to the one it is started in",
    ),
    Key::new(
        "store",
        Restart,
        |c| store(&mut c.store),
        "where batches are kept: in `data_dir`, or in a [PostgreSQL](#postgresql) database, which leaves only a socket there",
    ),
    Key::new(
        "blobs",
        Restart,
        |c| plain(&mut c.blobs),
        "[bucket](#blobs-in-a-bucket) that has the bytes of blobs; without it they are in the database, or in the bucket that it was used with before",
    ),
    Key::new(
        "disk_reserve_bytes",
        Restart,
        |c| whole(&mut c.options.dispatch.disk_reserve, 0..=PETABYTE),
        "bytes of the disk that [stay free](#disk-space), at most a twentieth of it: new batches and blobs are refused before",
    ),
    Key::new(
        "insecure_no_auth",
        Restart,
        |c| flag(&mut c.insecure_no_auth),
        "whether `listen` may be an address that other machines reach although no token was made",
    ),
    Key::new(
        "fleet.address",
        Restart,
        |c| plain(&mut c.fleet.address),
        "where [other servers](#several-servers) on the same database reach this one; without it where it listens, unless that is every address of the machine",
    ),
    Key::new(
        "fleet.ca",
        Restart,
        |c| plain(&mut c.fleet.ca),
        "authorities of the other servers' certificates, in PEM; without it those of the system",
    ),
    Key::new(
        "tls.certificate",
        Restart,
        |c| plain(&mut c.tls.certificate),
        "the server's certificate for [TLS](#tls); the file's content is loaded again when it changes",
    ),
    Key::new("tls.key", Restart, |c| plain(&mut c.tls.key), "its private key; likewise"),
    Key::new(
        "tls.client_ca",
        Restart,
        |c| plain(&mut c.tls.client_ca),
        "the authorities of [client certificates](#client-certificates); likewise",
    ),
    Key::new(
        "web.origins",
        Restart,
        |c| origins(&mut c.web_origins),
        "pages that may call [from a browser](#calls-from-a-browser), such as `[\"https://review.example\"]`; without it none",
    ),
    Key::new("log", Reload, |c| plain(&mut c.log), "what is [logged](logs.md), to stderr").or_else("APTIX_LOG"),
    Key::new("log_format", Restart, |c| plain(&mut c.log_format), "how it is logged").or_else("APTIX_LOG_FORMAT"),
    Key::new(
        "heartbeat_seconds",
        Restart,
        |c| seconds(&mut c.options.dispatch.heartbeat, 1..=HOUR),
        "seconds between two heartbeats of a feed",
    ),
    Key::new("connections", Restart, |c| share(&mut c.options.connections), "connections at one time"),
    Key::new(
        "connections_per_caller",
        Restart,
        |c| whole(&mut c.options.connections.caller, 1..=MANY),
        "of these, those of one caller",
    ),
    Key::new("calls", Restart, |c| share(&mut c.options.calls), "calls that are worked on at one time"),
    Key::new(
        "calls_per_caller",
        Restart,
        |c| whole(&mut c.options.calls.caller, 1..=MANY),
        "of these, those of one caller",
    ),
    Key::new(
        "calls_per_connection",
        Restart,
        |c| whole(&mut c.options.calls.connection, 1..=MANY),
        "of these, those of one connection",
    ),
    Key::new("streams", Restart, |c| whole(&mut c.options.dispatch.streams, 1..=MANY), "event streams at one time"),
    Key::new(
        "streams_per_caller",
        Restart,
        |c| whole(&mut c.options.long_lived.caller, 1..=MANY),
        "event streams, uploads and other calls without an end, of one caller",
    ),
    Key::new(
        "streams_per_connection",
        Restart,
        |c| whole(&mut c.options.long_lived.connection, 1..=MANY),
        "of these, those of one connection",
    ),
    Key::new("transfers", Restart, |c| share(&mut c.options.dispatch.transfers), "uploads and downloads at one time"),
    Key::new(
        "transfers_per_caller",
        Restart,
        |c| whole(&mut c.options.dispatch.transfers.caller, 1..=MANY),
        "of these, those of one caller",
    ),
    Key::new(
        "transfers_per_connection",
        Restart,
        |c| whole(&mut c.options.dispatch.transfers.connection, 1..=MANY),
        "of these, those of one connection",
    ),
    Key::new(
        "request_idle_seconds",
        Restart,
        |c| seconds(&mut c.options.request_idle, 1..=HOUR),
        "seconds without a byte after which a call whose message is incomplete is ended",
    ),
    Key::new(
        "upload_idle_seconds",
        Restart,
        |c| seconds(&mut c.options.upload_idle, 1..=HOUR),
        "seconds without a message after which an upload is ended",
    ),
    Key::new(
        "upload_seconds",
        Restart,
        |c| seconds(&mut c.options.upload_total, 1..=DAY),
        "seconds that an upload may take",
    ),
    Key::new(
        "slow_seconds",
        Restart,
        |c| seconds(&mut c.options.slow_after, 1..=HOUR),
        "seconds that a receiver may take nothing of an answer before the answer is ended",
    ),
    Key::new(
        "patience_seconds",
        Restart,
        |c| seconds(&mut c.options.patience, 1..=HOUR),
        "seconds without progress after which a connection, an upload or an incomplete message makes room when there are too many",
    ),
    Key::new(
        "blob_retention_seconds",
        Restart,
        |c| seconds(&mut c.options.blob_retention, 60..=YEAR),
        "seconds that a blob is kept which no batch and no file names, and what came of an upload that was cut off",
    ),
    Key::new(
        "calls_per_second_per_token",
        Reload,
        |c| whole(&mut c.quota_per_token.calls_per_second, 1..=MANY),
        "calls a second of one [token](#limits-of-tokens-and-workspaces), of which one second's may come at once",
    ),
    Key::new(
        "calls_per_second_per_workspace",
        Reload,
        |c| whole(&mut c.usual.quota.calls_per_second, 1..=MANY),
        "likewise those of all callers that name one workspace",
    )
    .per_workspace(),
    Key::new(
        "streams_per_token",
        Reload,
        |c| whole(&mut c.quota_per_token.streams, 1..=MANY),
        "streams of events and connections of agents of one token at one time",
    ),
    Key::new(
        "streams_per_workspace",
        Reload,
        |c| whole(&mut c.usual.quota.streams, 1..=MANY),
        "likewise those of one workspace",
    )
    .per_workspace(),
    Key::new(
        "bytes_in_flight_per_token",
        Reload,
        |c| whole(&mut c.quota_per_token.bytes_in_flight, BYTES),
        "bytes of the messages of one token's calls, from when one begins to arrive until its call is answered; an upload counts as 1 MiB",
    ),
    Key::new(
        "bytes_in_flight_per_workspace",
        Reload,
        |c| whole(&mut c.usual.quota.bytes_in_flight, BYTES),
        "likewise for one workspace, from when a message has come whole",
    )
    .per_workspace(),
    Key::new(
        "questions_per_token",
        Reload,
        |c| whole(&mut c.quota_per_token.questions, 1..=MANY),
        "calls of one token that wait for an agent at one time",
    ),
    Key::new(
        "questions_per_workspace",
        Reload,
        |c| whole(&mut c.usual.quota.questions, 1..=MANY),
        "likewise those about one workspace",
    )
    .per_workspace(),
    Key::new(
        "batches_per_day_per_token",
        Reload,
        |c| whole(&mut c.quota_per_token.batches_per_day, 1..=BATCHES),
        "batches of one token that are stored in a day, of which one day's may come at once; counted anew from each start",
    ),
    Key::new(
        "batches_per_day_per_workspace",
        Reload,
        |c| whole(&mut c.usual.quota.batches_per_day, 1..=BATCHES),
        "likewise those of one workspace",
    )
    .per_workspace(),
    Key::new(
        "stored_bytes_per_workspace",
        Reload,
        |c| whole(&mut c.usual.quota.stored_bytes, STORED),
        "bytes of batches, blobs and unfinished uploads that a workspace [stores](#stored-bytes); without it no limit",
    )
    .per_workspace(),
    Key::new(
        "metrics",
        Restart,
        |c| plain(&mut c.metrics),
        "where Prometheus scrapes [metrics](metrics.md), such as `127.0.0.1:9464`; without it nowhere",
    ),
    Key::new(
        "metrics_beyond_loopback",
        Restart,
        |c| flag(&mut c.metrics_beyond_loopback),
        "whether `metrics` may be an address that other machines reach: no token is asked for there",
    ),
    Key::new(
        "approval",
        Reload,
        |c| plain(&mut c.usual.approval),
        "which batches a person has to [approve](#approval-by-a-person) before their agent gets them",
    )
    .per_workspace(),
    Key::new(
        "retention.content_seconds",
        Reload,
        |c| whole(&mut c.usual.retention.content_age, 1..=CENTURY),
        "seconds that the content of a batch is [kept](#retention) after its last event; without it for ever",
    )
    .per_workspace(),
    Key::new(
        "retention.content_batches",
        Reload,
        |c| whole(&mut c.usual.retention.content_batches, 0..=BILLION),
        "newest batches that keep their content; without it all",
    )
    .per_workspace(),
    Key::new(
        "retention.content_bytes",
        Reload,
        |c| whole(&mut c.usual.retention.content_bytes, 0..=PETABYTE),
        "bytes of content that are kept, of the newest batches; without it all",
    )
    .per_workspace(),
    Key::new(
        "retention.record_seconds",
        Reload,
        |c| whole(&mut c.usual.retention.record_age, 1..=CENTURY),
        "seconds that the record and the events of a batch are kept; without it for ever",
    )
    .per_workspace(),
    Key::new(
        "retention.record_events",
        Reload,
        |c| whole(&mut c.usual.retention.record_events, 1..=BILLION),
        "newest events that are kept, with the records of their batches; without it all",
    )
    .per_workspace(),
    Key::new(
        "retention.record_least_seconds",
        Reload,
        |c| seconds(&mut c.usual.retention.record_least, 0..=CENTURY),
        "seconds that records and events are kept at least, whatever `retention.record_events` says",
    )
    .per_workspace(),
    Key::new(
        "retention.interval_seconds",
        Restart,
        |c| seconds(&mut c.options.retention_interval, 1..=DAY),
        "seconds between two rounds that remove what workspaces keep no longer",
    ),
];
