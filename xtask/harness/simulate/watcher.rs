//! Watchers: each follows the events of a workspace over every connection that is lost, and checks their order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::watch_workspace_response::Message;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
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

/// What a watcher saw since it last began at the first event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) events: Vec<Seen>,
    /// How often the server named another history.
    pub(crate) restarts: usize,
    /// What must not be.
    pub(crate) wrong: Option<String>,
    cursor: Option<v1::Cursor>,
}

impl Log {
    pub(crate) fn newest(&self) -> u64 {
        self.events.last().map_or(0, |event| event.revision)
    }

    fn add(&mut self, event: v1::BatchEvent) {
        let (kind, state, newest) = (event.kind(), event.state(), self.newest());
        if event.revision != newest + 1 {
            self.blame(format!("the event of revision {} came after that of {newest}", event.revision));
        }
        let batch = event.batch.unwrap_or_default().batch_id;
        self.events.push(Seen { revision: event.revision, batch, kind, state });
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

/// Every event of a workspace, up to the first sign that there are no more.
pub(crate) async fn read(channel: &Channel, number: usize) -> Result<Log, Status> {
    let log = Mutex::default();
    match follow(channel, number, &log, true).await {
        Err(status) if status.code() != Code::NotFound => Err(status),
        _ => Ok(with(&log, |log| log.clone())),
    }
}

/// Reads events until the connection is lost or silent; with `once` until there are no more.
async fn follow(channel: &Channel, number: usize, log: &Mutex<Log>, once: bool) -> Result<(), Status> {
    let after = with(log, |log| log.cursor.clone());
    let request = v1::WatchWorkspaceRequest { workspace_id: workspace(number), after, ..Default::default() };
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

/// Begins at the first event again where the server has another history.
fn refused(log: &mut Log, status: &Status) {
    let Some(info) = status.get_details_error_info() else { return };
    let detail = info.metadata.get("detail").map(String::as_str);
    if info.reason == "HISTORY_CHANGED" || detail == Some("FUTURE_REVISION") {
        *log = Log { restarts: log.restarts + 1, wrong: log.wrong.take(), ..Log::default() };
    }
}
