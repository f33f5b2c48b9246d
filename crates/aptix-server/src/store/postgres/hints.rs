//! What servers tell each other of what changed: by NOTIFY, which may be lost, and which no write waits for.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_model::id::{BatchId, WorkspaceId};
use tokio::sync::{broadcast, mpsc};

use crate::mint;
use crate::quota::used::{InUse, Used};
use crate::store::fleet::{Hint, Hints, UsedByOthers};

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
    /// Apart, so that they crowd out no hint.
    used: broadcast::Sender<Used>,
}

impl Ear {
    pub(super) fn new() -> Self {
        Self {
            me: mint::uuid().simple().to_string(),
            heard: broadcast::Sender::new(HEARD),
            used: broadcast::Sender::new(HEARD),
        }
    }

    pub(super) fn listen(&self) -> Hints {
        self.heard.subscribe()
    }

    pub(super) fn listen_to_uses(&self) -> UsedByOthers {
        self.used.subscribe()
    }

    /// Takes a notification, unless this server sent it.
    pub(super) fn hear(&self, text: &str) {
        let mut words = text.split('\n');
        if words.next() == Some(&self.me) {
            return;
        }
        for word in words {
            match word.strip_prefix(USED).map(read_used) {
                // Nobody may listen.
                Some(used) => drop(used.map(|used| self.used.send(used))),
                None => self.pass(read(word)),
            }
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
        Some((workspace, batch)) => workspace.parse().ok().zip(batch.parse().ok()).map(|(w, b)| Hint::Event(w, b)),
        None if line == TOKENS => Some(Hint::Tokens),
        None => line.parse().ok().map(Hint::Workspace),
    };
    parsed.unwrap_or(Hint::Anything)
}

fn read_used(words: &str) -> Option<Used> {
    let mut words = words.split(' ');
    let (server, subject) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let mut number = || words.next()?.parse::<u64>().ok();
    let now = InUse { calls: number()?, streams: number()?, bytes: number()?, questions: number()? };
    Some(Used { server, subject, now, batches: number()? })
}

/// No workspace has such a name.
const TOKENS: &str = "!tokens";
const USED: &str = "!used ";
const ANYTHING: &str = "!anything";

fn write(hint: &Hint) -> String {
    match hint {
        Hint::Event(workspace, batch) => format!("{workspace} {batch}"),
        Hint::Workspace(workspace) => workspace.to_string(),
        Hint::Tokens => TOKENS.to_owned(),
        Hint::Anything => ANYTHING.to_owned(),
    }
}

fn write_used(used: &Used) -> String {
    let Used { server, subject, now: InUse { calls, streams, bytes, questions }, batches } = used;
    format!("{USED}{server} {subject} {calls} {streams} {bytes} {questions} {batches}")
}

/// Where what changed is told.
pub(super) struct Mouth {
    waiting: mpsc::Sender<Hint>,
    used: mpsc::Sender<Used>,
    /// Whether some could not wait.
    lost: Arc<AtomicBool>,
}

impl Mouth {
    pub(super) fn new() -> (Self, Untold) {
        let ((waiting, untold), (used, untold_uses)) = (mpsc::channel(WAITING), mpsc::channel(WAITING));
        let lost = Arc::new(AtomicBool::new(false));
        (Self { waiting, used, lost: Arc::clone(&lost) }, Untold { waiting: untold, used: untold_uses, lost })
    }

    pub(super) fn tell(&self, hint: Hint) {
        if self.waiting.try_send(hint).is_err() {
            self.lost.store(true, Ordering::SeqCst);
        }
    }

    pub(super) fn tell_used(&self, used: Used) {
        // What has no room is told again in a while.
        let _ = self.used.try_send(used);
    }

    pub(super) fn event(&self, workspace: &WorkspaceId, batch: BatchId) {
        self.tell(Hint::Event(workspace.clone(), batch));
    }
}

/// What was not told yet.
pub(super) struct Untold {
    waiting: mpsc::Receiver<Hint>,
    used: mpsc::Receiver<Used>,
    lost: Arc<AtomicBool>,
}

impl Untold {
    /// What waits, as notifications; nothing once no more can come.
    pub(super) async fn next(&mut self, me: &str) -> Vec<String> {
        let (mut lines, mut told) = (Vec::new(), HashSet::new());
        tokio::select! {
            hint = self.waiting.recv() => match hint {
                Some(hint) => lines.push(write(&hint)),
                None => return Vec::new(),
            },
            Some(used) = self.used.recv() => lines.push(write_used(&used)),
        }
        lines.extend(std::iter::from_fn(|| self.waiting.try_recv().ok()).map(|hint| write(&hint)));
        if self.lost.swap(false, Ordering::SeqCst) {
            lines = vec![ANYTHING.to_owned()];
        }
        lines.retain(|line| told.insert(line.clone()));
        // Of one subject the last one counts, and may be as an earlier one.
        lines.extend(std::iter::from_fn(|| self.used.try_recv().ok()).map(|used| write_used(&used)));
        let (mut texts, mut text) = (Vec::new(), me.to_owned());
        for line in lines {
            if text.len() + line.len() >= BYTES {
                texts.push(std::mem::replace(&mut text, me.to_owned()));
            }
            text.push('\n');
            text.push_str(&line);
        }
        texts.push(text);
        texts
    }
}
