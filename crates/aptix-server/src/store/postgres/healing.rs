//! Tries writes again when one failed, until they are taken.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::database::Database;
use super::fault::Fault;
use super::health::State;

/// Takes new pages, which a full disk refuses, and gives them back.
const PROBE_ROOM: &str = "SAVEPOINT room; \
    INSERT INTO chunks (upload, index, size, bytes) VALUES (gen_random_uuid(), 0, 65536, decode(repeat('00', 65536), 'hex')); \
    ROLLBACK TO SAVEPOINT room";
/// Changes a row, which a standby refuses; its commit waits for a synchronous standby.
const PROBE_WRITE: &str = "UPDATE store_facts SET age = age";

/// How long after a failure it is tried again, and how long at most after another one.
const TRY_AFTER: Duration = Duration::from_millis(200);
const TRY_EVERY: Duration = Duration::from_secs(5);

/// A failure that follows sooner after the store took writes again is the former one: it is not tried more often than before.
const RELAPSE: Duration = Duration::from_secs(30);

/// Tries writes again when one failed, until the store is closed.
pub(super) async fn run(database: &Database, closing: CancellationToken) {
    let tend = async {
        let (mut wait, mut healed) = (TRY_AFTER, None::<Instant>);
        loop {
            database.health.until(|state| matches!(state, State::Failed(_))).await;
            if healed.is_none_or(|healed| healed.elapsed() > RELAPSE) {
                wait = TRY_AFTER;
            }
            heal(database, &mut wait).await;
            healed = Some(Instant::now());
        }
    };
    closing.run_until_cancelled::<_>(tend).await.unwrap_or(())
}

async fn heal(database: &Database, wait: &mut Duration) {
    let mut logged = String::new();
    loop {
        sleep(*wait).await;
        *wait = (*wait * 2).min(TRY_EVERY);
        match database.in_time(attempt(database)).await {
            Ok(()) => {
                database.health.heal();
                return;
            }
            Err(fault) => {
                let error = fault.into_error().to_string();
                if logged != error {
                    tracing::warn!(error, "the store takes no writes yet");
                    logged = error;
                }
            }
        }
    }
}

async fn attempt(database: &Database) -> Result<(), Fault> {
    let transaction = database.begin_probe().await?;
    transaction.client().object()?.batch_execute(PROBE_ROOM).await?;
    transaction.change(PROBE_WRITE, &[]).await?;
    transaction.commit().await
}
