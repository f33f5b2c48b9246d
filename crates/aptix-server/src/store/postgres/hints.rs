//! What servers tell each other of what changed: by NOTIFY, which may be lost, and which no write waits for.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_model::id::{BatchId, WorkspaceId};
use tokio::sync::{broadcast, mpsc};

use crate::mint;
use crate::store::fleet::{Hint, Hints, InUse, ServerId, Used};

/// Hints that wait to be told; what comes then is told as one that says nothing.
const WAITING: usize = 4096;

/// Hints that a slow receiver may be behind.
const HEARD: usize = 4096;

/// Bytes of one notification; PostgreSQL takes fewer than 8,000.
const BYTES: usize = 7900;

/// What one server hears of the others.
pub(super) struct Ear {
    /// How this server begins what it tells.
    pub(super) me: String,
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

    pub(super) fn pass(&self, hint: Hint) {
        // Nobody may listen.
        let _ = self.heard.send(hint);
    }
}

/// A hint as one line; what cannot be read says that something changed.
fn read(line: &str) -> Hint {
    let parsed = match line.split_once(' ') {
        Some((USED, used)) => read_used(used).map(Hint::Used),
        Some((workspace, batch)) => workspace.parse().ok().zip(batch.parse().ok()).map(|(w, b)| Hint::Event(w, b)),
        None if line == TOKENS => Some(Hint::Tokens),
        None => line.parse().ok().map(Hint::Workspace),
    };
    parsed.unwrap_or(Hint::Anything)
}

fn read_used(words: &str) -> Option<Used> {
    let mut words = words.split(' ');
    let (server, subject) = (ServerId(words.next()?.parse().ok()?), words.next()?.to_owned());
    let mut number = || words.next()?.parse::<u64>().ok();
    let held = InUse { streams: number()?, bytes: number()?, questions: number()? };
    Some(Used { server, subject, held, calls: number()?, batches: number()? })
}

/// No workspace has such a name.
const TOKENS: &str = "!tokens";
const USED: &str = "!used";
const ANYTHING: &str = "!anything";

fn write(hint: &Hint) -> String {
    match hint {
        Hint::Event(workspace, batch) => format!("{workspace} {batch}"),
        Hint::Workspace(workspace) => workspace.to_string(),
        Hint::Tokens => TOKENS.to_owned(),
        Hint::Used(Used { server, subject, held: InUse { streams, bytes, questions }, calls, batches }) => {
            format!("{USED} {} {subject} {streams} {bytes} {questions} {calls} {batches}", server.0)
        }
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
    pub(super) async fn next(&mut self, me: &str) -> Vec<String> {
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
