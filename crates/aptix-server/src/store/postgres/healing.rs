//! Tries writes again when one failed, until they are taken.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::database::Database;
use super::fault::Fault;
use super::health::State;

/// Changes a row, which a standby and a full disk refuse.
const PROBE: &str = "UPDATE store_facts SET age = age";

/// How long after a failure it is tried again, and how long at most after another one.
const TRY_AFTER: Duration = Duration::from_millis(200);
const TRY_EVERY: Duration = Duration::from_secs(5);

/// Tries writes again when one failed, until the store is closed.
pub(super) async fn run(database: &Database, closing: CancellationToken) {
    let tend = async {
        loop {
            database.health.until(|state| matches!(state, State::Failed(_))).await;
            heal(database).await;
        }
    };
    closing.run_until_cancelled::<_>(tend).await.unwrap_or(())
}

async fn heal(database: &Database) {
    let (mut wait, mut logged) = (TRY_AFTER, String::new());
    loop {
        sleep(wait).await;
        wait = (wait * 2).min(TRY_EVERY);
        match attempt(database).await {
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
    let transaction = database.begin().await?;
    transaction.change(PROBE, &[]).await?;
    transaction.commit().await
}
