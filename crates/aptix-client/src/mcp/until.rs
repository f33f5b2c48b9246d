//! For how long the client waits for a call.

use std::time::{Duration, Instant};

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio_util::sync::CancellationToken;

/// How long a call may take before it writes anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The end of a call: its deadline, or its cancellation.
#[derive(Clone, Debug)]
pub(super) struct Until {
    deadline: Instant,
    cancelled: CancellationToken,
}

impl Until {
    /// A call that begins now, unless the client cancels it.
    pub(super) fn from_now(cancelled: CancellationToken) -> Self {
        Self { deadline: Instant::now() + PATIENCE, cancelled }
    }

    /// The same call once a person has answered: the time that they took is not its own.
    pub(super) fn again(&self) -> Self {
        Self::from_now(self.cancelled.clone())
    }

    /// Completes when the client cancels the call.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Whether the client does not wait any more.
    pub(super) fn is_over(&self) -> bool {
        self.cancelled.is_cancelled() || Instant::now() >= self.deadline
    }

    /// Completes when the client does not wait any more.
    pub(super) async fn over(&self) {
        tokio::select! {
            () = self.cancelled.cancelled() => {}
            () = tokio::time::sleep_until(self.deadline.into()) => {}
        }
    }

    /// The refusal of a call that ended before it wrote anything.
    pub(super) fn failure(&self) -> Failure {
        if self.cancelled.is_cancelled() {
            Failure::new(Reason::InvalidState, "the call was cancelled before it wrote anything")
        } else {
            let message = format!("the call took longer than {} seconds, and wrote nothing", PATIENCE.as_secs());
            Failure::new(Reason::DeadlineExceeded, message).hint("send it again, or split it")
        }
    }
}
