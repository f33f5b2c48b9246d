//! A batch or a call as it is carried out here: what its log events name it by, and since when it has been here.

use std::time::Instant;

use aptix_model::batch::Batch;
use aptix_model::events::event::Event;
use aptix_model::events::trace::Trace;
use aptix_model::failure::Failure;
use aptix_model::report::Report;

/// A batch or a call that is being carried out.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    pub(crate) trace: Trace,
    pub(crate) began: Instant,
}

impl Traced {
    /// One that came now.
    pub(crate) fn begin(trace: Trace) -> Self {
        Self { trace, began: Instant::now() }
    }

    /// Logs an event.
    pub(crate) fn log(&self, event: Event<'_>) {
        self.trace.log(self.began.elapsed(), event);
    }

    /// Logs what became of a batch; it is absent if it could not be understood.
    pub(crate) fn ended(&self, batch: Option<&Batch>, outcome: Result<&Report, &[Failure]>) {
        match (batch, outcome) {
            (Some(batch), Ok(_)) if self.trace.is_dry_run => self.log(Event::Checked(batch)),
            (Some(batch), Ok(report)) => self.log(Event::Applied(batch, report)),
            (None, Ok(_)) => {}
            (batch, Err(failures)) => self.log(Event::Refused(batch, failures)),
        }
    }
}
