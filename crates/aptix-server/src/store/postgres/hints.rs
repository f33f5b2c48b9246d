//! Tells the other servers what changed, and hears what they tell: by NOTIFY, which may be lost, and which no write waits for.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aptix_model::id::{BatchId, WorkspaceId};
use tokio::sync::{broadcast, mpsc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::connections::Connector;
use super::database::Database;
use super::fault::Fault;
use crate::mint;
use crate::store::fleet::{Hint, Hints};

/// Hints that wait to be told; what comes then is told as one that says nothing.
const WAITING: usize = 4096;

/// Hints that a slow receiver may be behind.
const HEARD: usize = 4096;

/// Bytes of one notification; PostgreSQL takes fewer than 8,000.
const BYTES: usize = 7900;

/// How long after a connection broke the next one is made.
const AGAIN: Duration = Duration::from_millis(500);

/// A commit that is not waited for: a hint may be lost.
const TELL: &str = "BEGIN; SET LOCAL synchronous_commit = off";

/// What servers listen to. A schema has a channel of its own.
pub(super) const CHANNEL: &str = "SELECT 'aptix_' || md5(current_schema())";

/// What one server hears of the others.
pub(super) struct Ear {
    /// How this server begins what it tells.
    me: String,
    heard: broadcast::Sender<Hint>,
}

impl Ear {
    pub(super) fn new() -> Self {
        Self { me: mint::uuid().simple().to_string(), heard: broadcast::Sender::new(HEARD) }
    }

    pub(super) fn listen(&self) -> Hints {
        self.heard.subscribe()
    }

    /// Takes a notification, unless this server sent it.
    pub(super) fn hear(&self, text: &str) {
        let mut words = text.split('\n');
        if words.next() == Some(&self.me) {
            return;
        }
        for word in words {
            self.pass(read(word));
        }
    }

    fn pass(&self, hint: Hint) {
        // Nobody may listen.
        let _ = self.heard.send(hint);
    }
}

/// A hint as one line; what cannot be read says that something changed.
fn read(line: &str) -> Hint {
    let parsed = match line.split_once(' ') {
        Some((workspace, batch)) => workspace.parse().ok().zip(batch.parse().ok()).map(|(w, b)| Hint::Event(w, b)),
        None if line == TOKENS => Some(Hint::Tokens),
        None => line.parse().ok().map(Hint::Workspace),
    };
    parsed.unwrap_or(Hint::Anything)
}

/// No workspace has such a name.
const TOKENS: &str = "!tokens";
const ANYTHING: &str = "!anything";

fn write(hint: &Hint) -> String {
    match hint {
        Hint::Event(workspace, batch) => format!("{workspace} {batch}"),
        Hint::Workspace(workspace) => workspace.to_string(),
        Hint::Tokens => TOKENS.to_owned(),
        Hint::Anything => ANYTHING.to_owned(),
    }
}

/// Where what changed is told.
pub(super) struct Mouth {
    waiting: mpsc::Sender<Hint>,
    /// Whether some could not wait.
    lost: Arc<AtomicBool>,
}

impl Mouth {
    pub(super) fn new() -> (Self, Untold) {
        let (waiting, untold) = mpsc::channel(WAITING);
        let lost = Arc::new(AtomicBool::new(false));
        (Self { waiting, lost: Arc::clone(&lost) }, Untold { waiting: untold, lost })
    }

    pub(super) fn tell(&self, hint: Hint) {
        if self.waiting.try_send(hint).is_err() {
            self.lost.store(true, Ordering::SeqCst);
        }
    }

    pub(super) fn event(&self, workspace: &WorkspaceId, batch: BatchId) {
        self.tell(Hint::Event(workspace.clone(), batch));
    }
}

/// What was not told yet.
pub(super) struct Untold {
    waiting: mpsc::Receiver<Hint>,
    lost: Arc<AtomicBool>,
}

impl Untold {
    /// What waits, as notifications; nothing once no more can come.
    async fn next(&mut self, me: &str) -> Vec<String> {
        let Some(first) = self.waiting.recv().await else { return Vec::new() };
        let (mut told, mut texts, mut text) = (HashSet::new(), Vec::new(), me.to_owned());
        let mut next = Some(first);
        while let Some(hint) = next {
            let line = write(&hint);
            if text.len() + line.len() >= BYTES {
                texts.push(std::mem::replace(&mut text, me.to_owned()));
            }
            if !told.contains(&line) {
                // Writing to a string does not fail.
                let _ = write!(text, "\n{line}");
                told.insert(line);
            }
            next = self.waiting.try_recv().ok();
        }
        if self.lost.swap(false, Ordering::SeqCst) {
            texts.clear();
            text = format!("{me}\n{ANYTHING}");
        }
        texts.push(text);
        texts
    }
}

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
