//! Watchers: each follows the events of a workspace over every connection that is lost, and checks their order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::watch_workspace_response::Message;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use aptix_server::store::Event;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::clock::pass;
use crate::stage::workspace;
use crate::workers::with;

/// Three heartbeats: after so long without a message a connection is given up.
const SILENCE: Duration = Duration::from_secs(15);
/// Until a watcher connects again.
const AGAIN: Duration = Duration::from_millis(500);

/// An event, as far as watchers compare it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) revision: u64,
    pub(crate) batch: String,
    pub(crate) kind: v1::EventKind,
    pub(crate) state: v1::BatchState,
}

impl Seen {
    /// An event as the store has it.
    pub(crate) fn stored(event: Event) -> Self {
        let (kind, state) = event.facts.map_or_else(Default::default, |facts| (facts.kind.into(), facts.state.into()));
        Self { revision: event.revision.0, batch: event.batch.to_string(), kind, state }
    }
}

/// What a watcher saw since it last began at the first event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) events: Vec<Seen>,
    /// How often the server named another history.
    pub(crate) restarts: usize,
    /// What must not be.
    pub(crate) wrong: Option<String>,
    /// Revisions whose events were no longer kept when it came for them: the first and the last one of each gap.
    pub(crate) gaps: Vec<(u64, u64)>,
    /// The revision behind which it goes on.
    position: u64,
    cursor: Option<v1::Cursor>,
}

impl Log {
    pub(crate) fn newest(&self) -> u64 {
        self.position
    }

    /// The server has no events before this one any more.
    fn compacted(&mut self, oldest: u64) {
        let first = self.position + 1;
        if oldest <= first {
            return self.blame(format!("revision {first} was refused, and events are kept from {oldest} on"));
        }
        self.gaps.push((first, oldest - 1));
        (self.position, self.cursor) = (oldest - 1, None);
    }

    fn add(&mut self, event: v1::BatchEvent) {
        let (kind, state, newest) = (event.kind(), event.state(), self.newest());
        if event.revision != newest + 1 {
            self.blame(format!("the event of revision {} came after that of {newest}", event.revision));
        }
        let batch = event.batch.unwrap_or_default().batch_id;
        self.events.push(Seen { revision: event.revision, batch, kind, state });
        self.position = event.revision;
        self.cursor = event.cursor;
    }

    fn blame(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }
}

/// Follows a workspace for as long as it is polled.
pub(crate) async fn watch(channel: Channel, number: usize, log: Arc<Mutex<Log>>) {
    loop {
        if let Err(status) = follow(&channel, number, &log, false).await {
            with(&log, |log| refused(log, &status));
        }
        pass(AGAIN).await;
    }
}

/// Every event of a workspace that is kept, up to the first sign that there are no more.
pub(crate) async fn read(channel: &Channel, number: usize) -> Result<Log, Status> {
    let log: Mutex<Log> = Mutex::default();
    loop {
        match follow(channel, number, &log, true).await {
            // It begins with the first event that is kept.
            Err(status) if with(&log, |log| log.gaps.is_empty()) && oldest(&status).is_some() => {
                with(&log, |log| refused(log, &status));
            }
            Err(status) if status.code() != Code::NotFound => return Err(status),
            _ => return Ok(with(&log, |log| log.clone())),
        }
    }
}

/// Reads events until the connection is lost or silent; with `once` until there are no more.
async fn follow(channel: &Channel, number: usize, log: &Mutex<Log>, once: bool) -> Result<(), Status> {
    let (after, position) = with(log, |log| (log.cursor.clone(), log.position));
    let after_revision = if after.is_some() { 0 } else { position };
    let workspace_id = workspace(number);
    let request = v1::WatchWorkspaceRequest { workspace_id, after, after_revision, ..Default::default() };
    let mut workspaces = WorkspaceServiceClient::new(channel.clone());
    let silent = |_| Status::deadline_exceeded("silence");
    let mut stream = timeout(SILENCE, workspaces.watch_workspace(request)).await.map_err(silent)??.into_inner();
    while let Some(message) = timeout(SILENCE, stream.message()).await.map_err(silent)?? {
        match message.message {
            Some(Message::Event(event)) => with(log, |log| log.add(event)),
            Some(Message::Heartbeat(heartbeat)) => {
                with(log, |log| {
                    if heartbeat.revision != log.newest() {
                        let newest = log.newest();
                        log.blame(format!("a heartbeat names revision {}, and {newest} came last", heartbeat.revision));
                    }
                });
                if once {
                    return Ok(());
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// The oldest event that is kept, where the next one is not.
fn oldest(status: &Status) -> Option<u64> {
    let info = status.get_details_error_info().filter(|info| info.reason == "COMPACTED")?;
    info.metadata.get("oldest")?.parse().ok()
}

/// Begins at the first event again where the server has another history, and passes over what it keeps no longer.
fn refused(log: &mut Log, status: &Status) {
    if let Some(oldest) = oldest(status) {
        return log.compacted(oldest);
    }
    let Some(info) = status.get_details_error_info() else { return };
    let detail = info.metadata.get("detail").map(String::as_str);
    if info.reason == "HISTORY_CHANGED" || detail == Some("FUTURE_REVISION") {
        *log = Log { restarts: log.restarts + 1, wrong: log.wrong.take(), ..Log::default() };
    }
}
