//! One span: a piece of work in a trace, from its beginning until it is dropped.

use aptix_model::trace_parent::TraceParent;

#[cfg(feature = "otel")]
use crate::export::{self, Recorded};
use crate::kind::Kind;

/// A piece of work in a trace. It ends when it is dropped.
#[derive(Debug)]
#[must_use = "a span ends when it is dropped"]
pub struct Span {
    context: Option<TraceParent>,
    #[cfg(feature = "otel")]
    recorded: Option<Recorded>,
}

impl Span {
    /// Begins a span below another one, or a trace if there is no other.
    pub fn begin(name: &'static str, kind: Kind, parent: Option<TraceParent>) -> Self {
        #[cfg(feature = "otel")]
        if let Some((recorded, context)) = export::record(name, kind, parent) {
            return Self { context: Some(context), recorded: Some(recorded) };
        }
        let _ = (name, kind);
        Self::passing(parent)
    }

    /// Begins a span below another one. Without that nothing is recorded.
    pub fn below(name: &'static str, kind: Kind, parent: Option<TraceParent>) -> Self {
        if parent.is_some() { Self::begin(name, kind, parent) } else { Self::passing(None) }
    }

    /// Records nothing, and passes the trace on.
    const fn passing(context: Option<TraceParent>) -> Self {
        Self {
            context,
            #[cfg(feature = "otel")]
            recorded: None,
        }
    }

    /// The place in the trace of what this work causes; `None` if it belongs to no trace.
    #[must_use]
    pub const fn context(&self) -> Option<TraceParent> {
        self.context
    }

    /// Notes an id or a word about the work, and never content.
    pub fn note(&mut self, key: &'static str, value: &str) {
        #[cfg(feature = "otel")]
        if let Some(recorded) = &mut self.recorded {
            recorded.note(key, value);
        }
        let _ = (key, value);
    }

    /// Notes that the work failed, and the catalogued word for why.
    pub fn fail(&mut self, reason: &'static str) {
        #[cfg(feature = "otel")]
        if let Some(recorded) = &mut self.recorded {
            recorded.fail(reason);
        }
        let _ = reason;
    }
}
