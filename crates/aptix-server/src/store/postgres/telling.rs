//! Tells the other servers what changed, and hears what they tell, over connections of its own.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connections::Connector;
use super::database::{Database, READ};
use super::fault::Fault;
use super::hints::{Ear, Untold};
use crate::store::fleet::Hint;

/// How long after a connection broke the next one is made.
const AGAIN: Duration = Duration::from_millis(500);

/// How often a connection on which nothing is heard is asked for a sign of life, and how long that may take.
const ASK_AFTER: Duration = Duration::from_secs(15);

/// A commit that is not waited for: a hint may be lost.
const TELL: &str = "BEGIN; SET LOCAL synchronous_commit = off";

const NOTIFY: &str = "SELECT pg_notify('aptix_' || md5(current_schema()), hint) FROM unnest($1::text[]) AS t(hint)";

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
            let late = || Err(Fault::Unavailable("a notification took over 30 s".to_owned()));
            if let Err(fault) = timeout(READ, notify(database, &texts)).await.unwrap_or_else(|_| late()) {
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
    client.rows(NOTIFY, &[&texts]).await?;
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
    let (client, mut served) = connector.connection().await?;
    let heard = async {
        let listen = async {
            let channel: String = client.query_one(CHANNEL, &[]).await?.try_get(0)?;
            client.batch_execute(&format!("LISTEN \"{channel}\"")).await
        };
        in_time(listen).await?;
        ear.pass(Hint::Anything);
        while timeout(ASK_AFTER, &mut served).await.is_err() {
            in_time(client.batch_execute("SELECT")).await?;
        }
        Ok(())
    };
    let heard = heard.await;
    // One that is frozen would keep its connection open.
    served.abort();
    heard
}

async fn in_time<T>(asked: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Fault> {
    let late = |_| Fault::Unavailable("no sign of life came from PostgreSQL in time".to_owned());
    Ok(timeout(ASK_AFTER, asked).await.map_err(late)??)
}
