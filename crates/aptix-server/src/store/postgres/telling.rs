//! Tells the other servers what changed, and hears what they tell, over connections of its own.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::connections::Connector;
use super::database::Database;
use super::fault::Fault;
use super::hints::{Ear, Untold};
use crate::store::fleet::Hint;

/// How long after a connection broke the next one is made.
const AGAIN: Duration = Duration::from_millis(500);

/// A commit that is not waited for: a hint may be lost.
const TELL: &str = "BEGIN; SET LOCAL synchronous_commit = off";

/// What servers listen to. A schema has a channel of its own.
const CHANNEL: &str = "SELECT 'aptix_' || md5(current_schema())";

/// Tells the others what changed, until the store is closed.
pub(super) async fn tell(database: &Database, mut untold: Untold, closing: CancellationToken) {
    let telling = async {
        loop {
            let texts = untold.next(&database.ear.me).await;
            if texts.is_empty() {
                return;
            }
            // While no other server lives nobody listens; one that has just begun to looks by itself.
            if !database.has_company.load(Ordering::Relaxed) {
                continue;
            }
            if let Err(fault) = notify(database, &texts).await {
                tracing::debug!(?fault, "the other servers were not told of a change; they look at intervals");
            }
        }
    };
    closing.run_until_cancelled(telling).await;
}

async fn notify(database: &Database, texts: &[String]) -> Result<(), Fault> {
    let mut client = database.client().await?;
    client.set_idle(false);
    client.object()?.batch_execute(TELL).await?;
    for text in texts {
        let sql = "SELECT pg_notify('aptix_' || md5(current_schema()), $1)";
        client.rows(sql, &[text]).await?;
    }
    client.object()?.batch_execute("COMMIT").await?;
    client.set_idle(true);
    Ok(())
}

/// Hears what the others tell, until the store is closed. Each time that a connection was made something may have been missed.
pub(super) async fn hear(connector: &Connector, ear: &Ear, closing: CancellationToken) {
    let hearing = async {
        loop {
            if let Err(fault) = hear_once(connector, ear).await {
                tracing::debug!(
                    ?fault,
                    "nothing is heard of the other servers; what they change is looked for at intervals"
                );
            }
            sleep(AGAIN).await;
        }
    };
    closing.run_until_cancelled::<_>(hearing).await.unwrap_or(())
}

async fn hear_once(connector: &Connector, ear: &Ear) -> Result<(), Fault> {
    let (client, served) = connector.connection().await?;
    let channel: String = client.query_one(CHANNEL, &[]).await?.try_get(0)?;
    client.batch_execute(&format!("LISTEN \"{channel}\"")).await?;
    ear.pass(Hint::Anything);
    // The client keeps the connection open.
    let _ = served.await;
    drop(client);
    Ok(())
}
