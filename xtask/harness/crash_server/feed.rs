//! Readers that resume where they were: nothing comes twice, nothing is left out.

use std::sync::Mutex;
use std::time::Instant;

use aptix_model::wire::v1;
use aptix_model::wire::v1::serve_response;
use aptix_model::wire::v1::watch_workspace_response::Message;
use tokio_util::bytes::Bytes;
use tonic::{Code, Status};

use crate::calls::{Calls, PATIENCE, in_time};
use crate::ledger::{About, Finding, Ledger, Reported};
use crate::workers::with;

/// How far a reader has come.
#[derive(Clone, Default)]
pub(crate) struct Position {
    revision: u64,
    cursor: Option<v1::Cursor>,
}

impl Position {
    /// Moves on by one event, which has to be the next one.
    fn advance(&mut self, workspace: &str, event: &v1::BatchEvent) -> Result<(), Finding> {
        let (last, next) = (self.revision, event.revision);
        if next != last + 1 {
            let what = format!("{workspace}: revision {next} was sent to a reader that had {last}");
            return Err(Finding::new(About::Feed, what));
        }
        (self.revision, self.cursor) = (next, event.cursor.clone());
        Ok(())
    }

    /// A heartbeat states that every event up to its revision was sent.
    fn confirm(&self, workspace: &str, heartbeat: &v1::Heartbeat) -> Result<(), Finding> {
        let (last, stated) = (self.revision, heartbeat.revision);
        if stated <= last {
            return Ok(());
        }
        let what = format!("{workspace}: a reader that had {last} was not sent what came up to revision {stated}");
        Err(Finding::new(About::Feed, what))
    }

    /// That of a reader who had everything up to a revision, and resumes at the beginning.
    pub(crate) const fn repeating(revision: u64) -> Self {
        Self { revision, cursor: None }
    }
}

/// Why a reader stopped: the server has gone, or it is wrong.
pub(crate) enum Stopped {
    Gone(Status),
    Wrong(Finding),
}

impl From<Finding> for Stopped {
    fn from(finding: Finding) -> Self {
        Self::Wrong(finding)
    }
}

/// What a call that was not answered shows: that a server is gone or full is no finding, any other refusal is one. A transport that was
/// cut off is an internal error without details; one with details is the server's own.
pub(crate) fn stopped(about: About, workspace: &str, status: Status) -> Stopped {
    match status.code() {
        Code::Internal if !status.details().is_empty() => {
            Stopped::Wrong(Finding::refusal(about, format!("{workspace}: a call failed: {status}")))
        }
        Code::Unavailable
        | Code::Unknown
        | Code::Cancelled
        | Code::Internal
        | Code::Aborted
        | Code::ResourceExhausted => Stopped::Gone(status),
        _ => Stopped::Wrong(Finding::refusal(about, format!("{workspace}: a call is refused: {status}"))),
    }
}

/// Reads the events of a workspace after a position, until the server has gone or a revision is reached.
pub(crate) async fn watch(
    calls: &Calls,
    ledger: &Mutex<Ledger>,
    workspace: &str,
    position: &mut Position,
    until: Option<u64>,
) -> Result<(), Stopped> {
    let request = v1::WatchWorkspaceRequest {
        workspace_id: workspace.to_owned(),
        after: position.cursor.clone(),
        ..Default::default()
    };
    read(calls, ledger, request, position, until).await
}

/// Reads events as a request asks for them.
pub(crate) async fn read(
    calls: &Calls,
    ledger: &Mutex<Ledger>,
    request: v1::WatchWorkspaceRequest,
    position: &mut Position,
    until: Option<u64>,
) -> Result<(), Stopped> {
    let workspace = request.workspace_id.clone();
    let mut stream = calls.watch(request).await.map_err(|status| stopped(About::Feed, &workspace, status))?;
    while until.is_none_or(|until| position.revision < until) {
        // A heartbeat comes at least every few seconds.
        let message = in_time(stream.message()).await.map_err(|status| stopped(About::Feed, &workspace, status))?;
        let Some(message) = message else { return Err(Stopped::Gone(Status::unavailable("the stream ended"))) };
        match message.message {
            Some(Message::Event(event)) => {
                position.advance(&workspace, &event)?;
                with(ledger, |ledger| ledger.workspaces.entry(workspace.clone()).or_default().observe(&event))?;
            }
            Some(Message::Heartbeat(heartbeat)) => position.confirm(&workspace, &heartbeat)?,
            None => {}
        }
    }
    Ok(())
}

/// An agent of this harness: reads its feed, and reports that each batch failed, by a message of its own.
#[derive(Default)]
pub(crate) struct Agent {
    pub(crate) position: Position,
    epoch: u64,
    secret: Bytes,
    /// The newest lease under which something was stored.
    proven: u64,
    /// Whether a lease may have been granted that it was not told of: until the server knows that nobody has it, it is refused.
    is_unsure: bool,
    /// Since when it is refused for that.
    refused: Option<Instant>,
    /// Whether several servers may be on the store: they grant no lease that they do not store.
    is_shared: bool,
}

/// The id that it has at each start.
pub(crate) const AGENT: &str = "reader";

impl Agent {
    /// An agent that was granted no lease yet.
    pub(crate) fn new(is_shared: bool) -> Self {
        Self { is_shared, ..Self::default() }
    }

    /// Whether an agent reports a lease with the epoch of the one before.
    pub(crate) fn reports_repeated_epoch(is_shared: bool) -> bool {
        let mut agent = Self::new(is_shared);
        let [first, second] = [1, 1].map(|epoch| agent.accept("w", v1::Lease { epoch, ..Default::default() }));
        first.is_ok() && second.is_err()
    }

    /// Serves a workspace until the server has gone.
    pub(crate) async fn serve(
        &mut self,
        calls: &Calls,
        ledger: &Mutex<Ledger>,
        workspace: &str,
    ) -> Result<(), Stopped> {
        let hello = v1::Hello {
            workspace_id: workspace.to_owned(),
            agent_id: AGENT.to_owned(),
            cursor: self.position.cursor.clone(),
            lease_secret: self.secret.clone(),
            roots: vec!["app".to_owned()],
            ..Default::default()
        };
        let gone = |status| stopped(About::Feed, workspace, status);
        let mut stream = self.begin(calls, hello).await.map_err(gone)?;
        while let Some(message) = in_time(stream.message()).await.map_err(gone)? {
            match message.message {
                Some(serve_response::Message::Lease(lease)) => {
                    self.accept(workspace, lease)?;
                    for (request, reported) in owed(ledger, workspace) {
                        self.report(calls, ledger, workspace, &request, reported).await?;
                    }
                }
                Some(serve_response::Message::Event(event)) => self.handle(calls, ledger, workspace, &event).await?,
                Some(serve_response::Message::Heartbeat(heartbeat)) => self.position.confirm(workspace, &heartbeat)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Asks for the lease. One that this agent may have been granted without being told is refused until the server that granted it has
    /// given it back.
    async fn begin(&mut self, calls: &Calls, hello: v1::Hello) -> Result<tonic::Streaming<v1::ServeResponse>, Status> {
        let was_unsure = std::mem::replace(&mut self.is_unsure, true);
        match calls.serve(hello).await {
            Err(status) if was_unsure && status.message().contains("LEASE_HELD") => {
                let is_late = self.refused.get_or_insert_with(Instant::now).elapsed() > PATIENCE;
                Err(if is_late { status } else { Status::unavailable(status.message()) })
            }
            begun => begun,
        }
    }

    /// Epochs go up, also over restarts. Only a server that has its store for itself may grant an epoch again: one that
    /// it granted while the store took no writes.
    fn accept(&mut self, workspace: &str, lease: v1::Lease) -> Result<(), Finding> {
        let is_repeated = lease.epoch == self.epoch && (self.is_shared || lease.epoch == self.proven);
        if is_repeated || lease.epoch < self.epoch {
            let what = format!("{workspace}: lease {} was granted after lease {}", lease.epoch, self.epoch);
            return Err(Finding::new(About::Feed, what));
        }
        (self.epoch, self.secret) = (lease.epoch, lease.secret);
        (self.is_unsure, self.refused) = (false, None);
        Ok(())
    }

    async fn handle(
        &mut self,
        calls: &Calls,
        ledger: &Mutex<Ledger>,
        workspace: &str,
        event: &v1::BatchEvent,
    ) -> Result<(), Stopped> {
        self.position.advance(workspace, event)?;
        with(ledger, |ledger| ledger.workspaces.entry(workspace.to_owned()).or_default().observe(event))?;
        let batch = event.batch.clone().unwrap_or_default();
        if event.kind() != v1::EventKind::Submitted || batch.state() != v1::BatchState::Approved {
            return Ok(());
        }
        let failure = v1::Failure {
            reason: "FILE_MISSING".to_owned(),
            message: format!("no file for {}", batch.request_id),
            ..Default::default()
        };
        let report = v1::Report { outcome: v1::Outcome::Failed.into(), failures: vec![failure], ..Default::default() };
        let mut is_first = false;
        let reported = with(ledger, |ledger| {
            let sent = ledger.workspaces.get_mut(workspace)?.sent.get_mut(&batch.request_id)?;
            is_first = sent.report.is_none();
            Some(
                sent.report
                    .get_or_insert(Reported { batch: batch.batch_id.clone(), report, is_acknowledged: false })
                    .clone(),
            )
        });
        let Some(reported) = reported else {
            let what = format!("{workspace}: batch {} was never submitted", batch.request_id);
            return Err(Finding::new(About::Batch, what).into());
        };
        self.report(calls, ledger, workspace, &batch.request_id, reported).await?;
        if is_first {
            self.proven = self.epoch;
        }
        Ok(())
    }

    async fn report(
        &self,
        calls: &Calls,
        ledger: &Mutex<Ledger>,
        workspace: &str,
        request_id: &str,
        reported: Reported,
    ) -> Result<(), Stopped> {
        let request = v1::ReportBatchRequest {
            workspace_id: workspace.to_owned(),
            batch_id: reported.batch,
            lease_epoch: self.epoch,
            report: Some(reported.report),
            lease_secret: self.secret.clone(),
            decided_by: None,
            ..Default::default()
        };
        calls.report(request).await.map_err(|status| stopped(About::Report, workspace, status))?;
        with(ledger, |ledger| {
            let sent = ledger.workspaces.get_mut(workspace).and_then(|all| all.sent.get_mut(request_id));
            if let Some(sent) = sent {
                sent.is_checked = false;
                sent.report.iter_mut().for_each(|reported| reported.is_acknowledged = true);
            }
        });
        Ok(())
    }
}

/// Reports that were sent and not acknowledged, by the request id of their batch.
fn owed(ledger: &Mutex<Ledger>, workspace: &str) -> Vec<(String, Reported)> {
    with(ledger, |ledger| {
        let sent = ledger.workspaces.get(workspace).into_iter().flat_map(|workspace| &workspace.sent);
        let reported = sent.filter_map(|(request, sent)| Some((request.clone(), sent.report.clone()?)));
        reported.filter(|(_, reported)| !reported.is_acknowledged).collect()
    })
}
