//! One line of a log: the one place where the fields of events have their names.

use alloc::string::String;
use core::time::Duration;

use super::trace::{TARGET, Trace, shown_if_given};
use crate::digest::Sha256Digest;

/// What a line says beside which batch or call it is about; what is absent is left out.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) event: &'static str,
    pub(super) tool: Option<&'static str>,
    pub(super) dry_run: Option<bool>,
    pub(super) files: Option<usize>,
    pub(super) changes: Option<usize>,
    pub(super) revision: Option<u64>,
    pub(super) state: Option<&'static str>,
    pub(super) subject: Option<Sha256Digest>,
    pub(super) reverts: Option<String>,
    pub(super) reason: Option<&'static str>,
    pub(super) doc_path: Option<String>,
    pub(super) count: Option<usize>,
    pub(super) causes: Option<String>,
    pub(super) path: Option<String>,
    pub(super) overwrite: Option<bool>,
    pub(super) success: Option<bool>,
    pub(super) error_code: Option<&'static str>,
    pub(super) size_bytes: Option<u64>,
    pub(super) hash: Option<Sha256Digest>,
}

/// Writes a line at a level, which tracing wants to know when it is compiled.
macro_rules! write_line {
    ($level:expr, $trace:ident, $elapsed:ident, $line:ident) => {
        tracing::event!(
            target: TARGET,
            $level,
            Event = $line.event,
            Via = $trace.via.word(),
            SessionId = shown_if_given($trace.origin.session_id.as_deref()),
            ConversationId = shown_if_given($trace.origin.conversation_id.as_deref()),
            TurnId = shown_if_given($trace.origin.turn_id.as_deref()),
            WorkspaceId = shown_if_given($trace.workspace.as_deref()),
            BatchId = $trace.batch.map(display),
            RequestId = shown_if_given($trace.request.as_deref()),
            ToolName = shown_if_given($line.tool.or($trace.tool.as_deref())),
            DryRun = $line.dry_run,
            DurationMs = millis($elapsed),
            Files = $line.files,
            Changes = $line.changes,
            Revision = $line.revision,
            State = $line.state,
            Subject = $line.subject.map(display),
            Reverts = $line.reverts,
            Reason = $line.reason,
            DocPath = $line.doc_path,
            Count = $line.count,
            Causes = $line.causes,
            Path = $line.path,
            Overwrite = $line.overwrite,
            Success = $line.success,
            ErrorCode = $line.error_code,
            SizeBytes = $line.size_bytes,
            Hash = $line.hash.map(display),
        )
    };
}

impl Line {
    /// A line of this event.
    pub(super) fn new(event: &'static str) -> Self {
        Self { event, ..Self::default() }
    }

    /// Writes the line: at level WARN if it says why something was refused.
    pub(super) fn write(self, trace: &Trace, elapsed: Duration) {
        if self.causes.is_some() {
            write_line!(tracing::Level::WARN, trace, elapsed, self);
        } else {
            write_line!(tracing::Level::INFO, trace, elapsed, self);
        }
    }
}

/// Milliseconds, to the microsecond.
fn millis(time: Duration) -> f64 {
    let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    f64::from(micros) / 1000.0
}
