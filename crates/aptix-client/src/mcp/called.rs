//! One call of a tool, and what is logged of it.

use aptix_model::batch::Batch;
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::tools::result::tool_result::{ToolResult, refused};
use aptix_model::tools::tool::{Effect, Tool};

use super::hunks::CallNumber;
use super::tried::Tried;
use crate::apply::traced::Traced;

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) tool: &'static Tool,
    /// Position of the call among all messages of the connection.
    pub(super) number: CallNumber,
    pub(super) traced: Traced,
}

impl Called {
    /// Refuses the call, before there is a batch.
    pub(super) fn refused(&self, failures: &[Failure]) -> ToolResult {
        self.traced.log(match self.tool.effect {
            Effect::Reads => Event::CallRefused(failures),
            Effect::Prepares | Effect::Writes => Event::Refused(None, failures),
        });
        refused(self.tool.form, failures)
    }

    /// The same call, whose batch has had its id since an earlier call.
    pub(super) fn of_batch(&self, batch: BatchId) -> Self {
        let mut called = self.clone();
        called.traced.trace.batch = Some(batch);
        called
    }

    /// Logs what became of the batch of the call.
    pub(super) fn ended(&self, batch: &Batch, tried: &Tried) {
        let outcome = tried.outcome.as_ref();
        self.traced.ended(Some(batch), outcome.map_err(|refusal| refusal.failures.as_slice()));
    }
}
