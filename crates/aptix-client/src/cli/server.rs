//! What the commands that talk to a server have in common: where it is, and how its refusals end them.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::time::Duration;

use aptix_model::batch::Batch;
use aptix_model::failure::{Failure, Visible};
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::path_style::PathStyle;
use aptix_model::reason::Reason;
use aptix_model::record::BatchRecord;
use aptix_model::report::{Report, Warning};
use aptix_model::state::BatchState;
use aptix_model::tools::result::Stored;
use tokio::time::Instant;

use crate::apply::Refusal;
use crate::connection::backoff::Backoff;
use crate::connection::{CallError, Connection, Server, ServerUrl};
use crate::present::view::{BatchView, Undoes};

use super::exit::Exit;
use super::output::{self, Form, interrupted, show};
use super::progress::{self, Doing};
use super::token::TokenArgs;

/// How long a lost server is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which server, and which workspace on it.
#[derive(clap::Args, Debug)]
pub(super) struct ServerArgs {
    /// Where the server listens: https://HOST:PORT, or http://HOST:PORT without TLS
    #[arg(long, value_name = "URL", env = "APTIX_SERVER")]
    pub(super) server: ServerUrl,
    /// The workspace
    #[arg(long, value_name = "ID", env = "APTIX_WORKSPACE")]
    pub(super) workspace: WorkspaceId,
    #[command(flatten)]
    pub(super) token: TokenArgs,
}

impl ServerArgs {
    pub(super) async fn connect(&self) -> Result<Connection, CallError> {
        Connection::open(&self.server(), &self.workspace).await
    }

    /// The server, and what proves to it who calls.
    pub(super) fn server(&self) -> Server {
        self.token.server(&self.server)
    }
}

/// Runs a command that talks to a server, until it ends or the user presses Ctrl-C.
pub(super) async fn run(form: Form, command: impl Future<Output = Result<Exit, CallError>>) -> anyhow::Result<Exit> {
    run_sending(form, &OnceCell::new(), command).await
}

/// As [`run`], for a command that puts a batch there as soon as the server has it.
pub(super) async fn run_sending(
    form: Form,
    sent: &OnceCell<BatchRecord>,
    command: impl Future<Output = Result<Exit, CallError>>,
) -> anyhow::Result<Exit> {
    let outcome = tokio::select! {
        outcome = progress::shown_while(command) => outcome,
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            let Some(record) = sent.get() else {
                return Ok(interrupted(form, "interrupted; what was sent to the server stays there"));
            };
            let message = format!("interrupted; the batch {} stays on the server", record.id);
            let failure = Failure::new(Reason::Interrupted, message).hint("see what became of it with `aptix show`");
            show_record(form, record, Err(&failure.into()), &[]);
            return Ok(Exit::Interrupted);
        }
    };
    Ok(outcome.unwrap_or_else(|error| show_refused(form, &Batch::default(), error)))
}

/// Prints why a call about a batch that is not stored was refused.
pub(super) fn show_refused(form: Form, batch: &Batch, error: CallError) -> Exit {
    let exit = match error.reason() {
        None
        | Some(
            Reason::DeadlineExceeded
            | Reason::Internal
            | Reason::OverLimit
            | Reason::ReadFailed
            | Reason::ResourceExhausted
            | Reason::Unavailable
            | Reason::WriteFailed,
        ) => Exit::Environment,
        Some(_) => Exit::Refused,
    };
    show(form, &BatchView::new(batch, Err(&error.into_failures().into())));
    exit
}

/// Prints a stored batch and what became of it, with the warnings about the document it was sent as.
pub(super) fn show_ended(form: Form, record: &BatchRecord, warnings: &[Warning]) -> Exit {
    match report_of(record) {
        Some(report) if !report.outcome.has_applied() => {
            show_record(form, record, Err(&report.failures.clone().into()), warnings)
        }
        report => show_record(form, record, Ok(report), warnings),
    }
}

/// Says what a batch waits for that a person has to approve at the server.
pub(super) fn say_if_held(batch: BatchId, state: BatchState) {
    if state == BatchState::PendingApproval {
        output::say(&format!(
            "a person has to approve the batch first: `aptix approve {batch}`, with the same --server and --workspace"
        ));
    }
}

/// Waits until a stored batch has ended, prints it and what became of it, with the warnings about the document it was sent as.
pub(super) async fn show_end(form: Form, server: &ServerArgs, stored: &BatchRecord, warnings: &[Warning]) -> Exit {
    say_if_held(stored.id, stored.state);
    let record = match wait_for_end(server, stored.id).await {
        Ok(record) => record,
        Err(error) => {
            show_record(form, stored, Err(&error.into_failures().into()), &[]);
            return Exit::Environment;
        }
    };
    match (show_ended(form, &record, warnings), record.state) {
        (Exit::Environment, _) => Exit::Environment,
        (_, BatchState::Applied) => Exit::Done,
        _ => Exit::Refused,
    }
}

/// What became of a stored batch or, of one that is prepared, what would.
pub(super) fn report_of(record: &BatchRecord) -> Option<&Report> {
    let planned = || record.preparation().filter(|_| record.state.is_open())?.plan.as_ref().map(|plan| &plan.report);
    record.report.as_ref().or_else(planned)
}

/// Prints a stored batch and an outcome, such as why nothing more is known about it.
pub(super) fn show_record(
    form: Form,
    record: &BatchRecord,
    outcome: Result<Option<&Report>, &Refusal>,
    warnings: &[Warning],
) -> Exit {
    output::print_head(form, &view_of(record, outcome));
    show(form, &BatchView { warnings, ..view_of(record, outcome) })
}

/// A stored batch and an outcome, as they are shown.
pub(super) fn view_of<'a>(record: &'a BatchRecord, outcome: Result<Option<&'a Report>, &'a Refusal>) -> BatchView<'a> {
    let stored = Some(Stored { id: record.id, state: record.state, ids: Cow::Borrowed(&record.ids) });
    let undoes = record.reverts().map(|id| Undoes { id: id.to_string().into(), label: None });
    BatchView { paths: paths_of(record), stored, undoes, ..BatchView::new(&record.batch, outcome) }
}

/// A server does not know how many roots an agent has, but in how many a batch changed files.
fn paths_of(record: &BatchRecord) -> PathStyle {
    let files = record.report.iter().flat_map(|report| &report.files);
    let roots: BTreeSet<_> = files.filter_map(|file| Some(file.doc_path.split_once('/')?.0)).collect();
    PathStyle::among(roots.len())
}

/// Waits until a batch has ended, over lost connections, and reads it.
///
/// # Errors
/// When the batch is gone, or the server was not heard of for a minute.
pub(super) async fn wait_for_end(server: &ServerArgs, batch: BatchId) -> Result<BatchRecord, CallError> {
    if let Ok(connection) = server.connect().await
        && let Ok(false) = connection.is_served().await
    {
        let workspace = &server.workspace;
        output::say(&format!(
            "nobody serves the workspace {workspace} now: the batch waits until `aptix agent --workspace {workspace}` does"
        ));
    }
    progress::begin(Doing::Waiting);
    let mut waiting = Waiting::new();
    loop {
        match follow(server, batch, &mut waiting).await {
            Err(error) => waiting.after(error).await?,
            Ok(record) if record.state.is_open() => {
                let why = "it stopped telling about the batch before the batch had ended".to_owned();
                waiting
                    .after(CallError::Unreachable { server: server.server.to_string(), why, retry_after: None })
                    .await?;
            }
            Ok(record) => return Ok(record),
        }
    }
}

async fn follow(server: &ServerArgs, batch: BatchId, waiting: &mut Waiting) -> Result<BatchRecord, CallError> {
    let connection = server.connect().await?;
    let mut states = connection.watch_batch(batch).await?;
    while states.next().await?.is_some_and(BatchState::is_open) {
        *waiting = Waiting::new();
    }
    connection.get(batch).await
}

/// Calls again while the server cannot be reached or cannot do what is asked, for a minute.
pub(super) async fn retry<T, F: Future<Output = Result<T, CallError>>>(
    mut call: impl FnMut() -> F,
) -> Result<T, CallError> {
    let mut waiting = Waiting::new();
    loop {
        match call().await {
            Err(error) => waiting.after(error).await?,
            Ok(answer) => return Ok(answer),
        }
    }
}

/// The patience with a server that cannot be reached, or cannot do what is asked.
struct Waiting {
    backoff: Backoff,
    until: Instant,
}

impl Waiting {
    fn new() -> Self {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
        Self { backoff, until: Instant::now() + PATIENCE }
    }

    /// Waits a little if that can help, else gives the error back.
    async fn after(&mut self, error: CallError) -> Result<(), CallError> {
        let wait = self.backoff.wait_after(&error);
        if !error.is_outage() || Instant::now() + wait > self.until {
            return Err(error);
        }
        output::say(&format!("waiting for the server: {}", Visible(&error.to_string())));
        tokio::time::sleep(wait).await;
        Ok(())
    }
}
