//! Signs of life for a client that asked for them: it does not give up a call that works, or that waits for a person.

use std::convert::Infallible;
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::time::{Instant, interval_at};

/// The time from one sign to the next.
const INTERVAL: Duration = Duration::from_secs(5);

/// Works, with signs of life if the client asked for them. Progress is the time that the call has taken, in seconds.
pub(super) async fn shown<T>(work: impl Future<Output = T>, context: &RequestContext<RoleServer>) -> T {
    let Some(token) = context.meta.get_progress_token() else { return work.await };
    tokio::select! {
        done = work => done,
        never = signs(token, &context.peer) => match never {},
    }
}

async fn signs(token: ProgressToken, client: &Peer<RoleServer>) -> Infallible {
    let began = Instant::now();
    let mut due = interval_at(began + INTERVAL, INTERVAL);
    loop {
        due.tick().await;
        let progress = ProgressNotificationParam::new(token.clone(), began.elapsed().as_secs_f64());
        // A client that is gone ends the call by itself.
        let _ = client.notify_progress(progress).await;
    }
}
