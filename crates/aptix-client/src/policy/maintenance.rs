//! What a process that serves a workspace does while there is nothing to do.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::MissedTickBehavior;

use crate::policy::files::PolicyFiles;
use crate::workspace::roots::workspace::Workspace;

/// How often it looks whether there is nothing to do.
const PAUSE: Duration = Duration::from_secs(3);

/// Keeps the workspace in order for as long as it is let.
pub(crate) async fn run(workspace: Arc<Workspace>, policies: Arc<PolicyFiles>) {
    let mut pauses = tokio::time::interval(PAUSE);
    pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pauses.tick().await;
        let (workspace, policies) = (Arc::clone(&workspace), Arc::clone(&policies));
        let rest = move || workspace.maintain(|| Some(policies.read(&workspace).ok()?.retention));
        match spawn_blocking(rest).await {
            Ok(Ok(())) => {}
            // What can wait is done after the next batch, or at the next start.
            Ok(Err(error)) => tracing::warn!(%error, "what can wait has to wait longer"),
            Err(error) => tracing::warn!(%error, "what can wait has to wait longer"),
        }
    }
}
