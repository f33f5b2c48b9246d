//! The table of all metrics: their names, kinds, labels and meanings. `docs/reference/metrics.md` has a row for each.

/// What the values of a metric are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A number that only grows while the process runs.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// Observations, counted in buckets with these upper bounds.
    Histogram(&'static [f64]),
}

impl Kind {
    /// Its word in the exposition format.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// What is known of a metric before it has a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Description {
    /// Its name, which ends in its unit.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it means, in one sentence.
    pub help: &'static str,
}

/// Seconds from a memory access to the longest call.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Numbers of things that are done together.
const SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

macro_rules! metrics {
    ($($metric:ident = $name:literal, $kind:expr, [$($label:literal),*], $help:literal;)*) => {
        /// A metric.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Metric {
            $(#[doc = $help] $metric,)*
        }

        impl Metric {
            /// All metrics, each at the index of its discriminant.
            pub const ALL: &'static [Self] = &[$(Self::$metric),*];

            /// What is known of it.
            #[must_use]
            pub const fn description(self) -> Description {
                match self {
                    $(Self::$metric => {
                        Description { name: $name, kind: $kind, labels: &[$($label),*], help: $help }
                    })*
                }
            }
        }
    };
}

metrics! {
    Build = "aptix_build_info", Kind::Gauge, ["version"], "1, with the server's version.";
    Started = "aptix_start_time_seconds", Kind::Gauge, [], "When the process started, in seconds since 1970.";
    Calls = "aptix_calls_total", Kind::Counter, ["method", "code"],
        "Calls that have ended, by method and gRPC code; those whose callers went are CANCELLED, or DEADLINE_EXCEEDED once their own time was up.";
    CallSeconds = "aptix_call_seconds", Kind::Histogram(SECONDS), ["method"],
        "Seconds from a call's headers until the last byte of its answer was handed to the transport, without streams of events.";
    CallsInFlight = "aptix_calls_in_flight", Kind::Gauge, ["method"], "Calls and streams that have not ended.";
    ReceivedBytes = "aptix_call_received_bytes_total", Kind::Counter, ["method"], "Bytes of messages that callers sent.";
    SentBytes = "aptix_call_sent_bytes_total", Kind::Counter, ["method"], "Bytes of messages that callers were sent.";
    Refusals = "aptix_refused_calls_total", Kind::Counter, ["reason"],
        "Refused calls by the reason in their ErrorInfo; those without one that this version knows are OTHER.";
    FailedHandshakes = "aptix_failed_handshakes_total", Kind::Counter, ["cause"], "TLS handshakes that failed, by cause.";
    QuotaRefusals = "aptix_quota_refusals_total", Kind::Counter, ["limit"], "Calls that a quota refused, by the limit.";
    BatchSteps = "aptix_batch_steps_total", Kind::Counter, ["state"], "Times that a batch came into a state.";
    OpenBatches = "aptix_open_batches", Kind::Gauge, [], "Batches that have not ended, as of the last survey.";
    WaitingBatches = "aptix_waiting_batches", Kind::Gauge, [],
        "Of these, batches that expire unless their owner lets them be applied or a person approves them.";
    Workspaces = "aptix_workspaces", Kind::Gauge, [], "Workspaces, as of the last survey.";
    Agents = "aptix_agents_connected", Kind::Gauge, [], "Agents that serve a workspace.";
    FeedLag = "aptix_feed_lag_seconds", Kind::Histogram(SECONDS), [],
        "Seconds from an event's time until it was handed to the agent's connection; with the time that no agent was connected.";
    StoreHealthy = "aptix_store_healthy", Kind::Gauge, [], "1 while the store takes writes, otherwise 0.";
    StoreQueue = "aptix_store_queue", Kind::Gauge, [], "Writes that waited when the last group was taken.";
    GroupWrites = "aptix_store_group_writes", Kind::Histogram(SIZES), [], "Writes that shared one flush.";
    FlushSeconds = "aptix_store_flush_seconds", Kind::Histogram(SECONDS), [],
        "Seconds that a group took to be written and flushed.";
    Compactions = "aptix_store_compactions_total", Kind::Counter, [], "Compactions of the store that have ended.";
    CompactionsActive = "aptix_store_compactions_active", Kind::Gauge, [], "Compactions of the store under way.";
    CompactionSeconds = "aptix_store_compaction_seconds_total", Kind::Counter, [], "Seconds that compactions took.";
    Journals = "aptix_store_journals", Kind::Gauge, [], "Journal files of the store.";
    SweepSeconds = "aptix_sweep_seconds", Kind::Histogram(SECONDS), [], "Seconds that a sweep of unnamed blobs took.";
    SweptBlobs = "aptix_swept_blobs_total", Kind::Counter, [], "Unnamed blobs that were removed.";
    RetentionRemoved = "aptix_retention_removed_total", Kind::Counter, ["kind"],
        "Records that retention removed, by their kind.";
    BackupTime = "aptix_last_backup_timestamp_seconds", Kind::Gauge, [],
        "When the last backup by this process ended, in seconds since 1970; absent until there is one.";
    CertificateExpiry = "aptix_tls_certificate_expiry_timestamp_seconds", Kind::Gauge, [],
        "When the server's certificate expires, in seconds since 1970; absent without TLS.";
    DiskFree = "aptix_disk_free_bytes", Kind::Gauge, [], "Bytes of the data directory's file system that the server may use.";
    DiskSize = "aptix_disk_size_bytes", Kind::Gauge, [], "Bytes of the data directory's file system.";
}
