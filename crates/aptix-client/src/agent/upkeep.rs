//! What an agent does while there is nothing to do, connected or not.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::{Agent, blocking};

/// How often it looks whether there is nothing to do.
const PAUSE: Duration = Duration::from_secs(3);

/// Keeps the workspace in order for as long as it is let.
pub(super) async fn run(agent: Arc<Agent>) {
    let mut pauses = tokio::time::interval(PAUSE);
    pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pauses.tick().await;
        let (local, policies) = (Arc::clone(&agent.local), Arc::clone(&agent.service.policy));
        let rested = blocking(move || local.rest(|| Some(policies.read(&local).ok()?.retention))).await;
        match rested {
            Ok(Ok(())) => {}
            // What can wait is done after the next batch, or at the next start.
            Ok(Err(error)) => tracing::warn!(%error, "what can wait has to wait longer"),
            Err(error) => tracing::warn!(%error, "what can wait has to wait longer"),
        }
    }
}

/// What is left to be done when the agent ends.
pub(super) async fn end(agent: &Agent) {
    let local = Arc::clone(&agent.local);
    if let Err(error) = blocking(move || local.let_go()).await {
        tracing::warn!(%error, "what was written into replaced files is not known");
    }
}
