//! What would become of a batch that is only validated: asked of the agent, while one that previews serves the workspace;
//! else what the cloud copies of its files say.

use std::collections::HashMap;
use std::time::Duration;

use aptix_model::batch::{Atomicity, Batch};
use aptix_model::documents::Dialect;
use aptix_model::documents::terms::in_terms_of;
use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::presence::QuestionKind;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::fit::failures as fitting;
use aptix_model::report::{Report, Warning};
use aptix_model::wire::question::Ask;
use aptix_model::wire::{v1, v1::answer, v1::question};
use tokio::time::Instant;

use super::agent_answer::wrong;
use super::report::bounded;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::early::EarlyFailure;
use crate::dispatcher::fit::fit;
use crate::dispatcher::refusal::Refusal;
use crate::ticket::Asker;

/// The report that the batch would have, from the agent; where none previews it, from the cloud copies of its files if it does
/// not fit them, else nothing. The agent cannot preview a batch whose content is nowhere stored (`is_whole` is false).
pub(super) async fn preview(
    dispatcher: &Dispatcher,
    asker: &Asker,
    workspace: &WorkspaceId,
    (batch, dialect, is_whole): (&Batch, Option<Dialect>, bool),
    patience: Duration,
) -> Result<Option<v1::Report>, Refusal> {
    let serving = dispatcher.serving(workspace).await?;
    if !is_whole || !serving.is_some_and(|serving| serving.presence.answers(QuestionKind::Preview)) {
        return early(dispatcher, workspace, (batch, dialect)).await;
    }
    let ask = Ask(question::Ask::Preview(batch.clone().into()));
    let answer = match dispatcher.ask(workspace, asker, ask, Instant::now() + patience).await {
        Err(Refusal::Denied(lost)) if is_silent(&lost) => {
            return Ok(None);
        }
        answer => answer?.0,
    };
    let answer::Answer::Preview(report) = answer else { return Err(wrong(workspace, "it is of another kind")) };
    let mut report = checked(batch, report).map_err(|failures| {
        let first = failures.first().map(ToString::to_string).unwrap_or_default();
        wrong(workspace, &first)
    })?;
    if let Some(dialect) = dialect {
        report.failures = in_terms_of(dialect, batch, report.failures);
    }
    Ok(Some(report.into()))
}

/// The failures of line patches that do not fit the cloud copies of their files, each with the copy that it names.
async fn early(
    dispatcher: &Dispatcher,
    workspace: &WorkspaceId,
    (batch, dialect): (&Batch, Option<Dialect>),
) -> Result<Option<v1::Report>, Refusal> {
    // What becomes of the other files is not known.
    if batch.atomicity == Atomicity::PerFile {
        return Ok(None);
    }
    let (mut failures, mut copies) = (Vec::new(), HashMap::new());
    for EarlyFailure { failure, copy } in dispatcher.compare(workspace, batch).await? {
        copies.insert(failure.file_index.and_then(|index| u32::try_from(index).ok()), copy);
        failures.push(failure);
    }
    if failures.is_empty() {
        return Ok(None);
    }
    if let Some(dialect) = dialect {
        failures = in_terms_of(dialect, batch, failures);
    }
    let mut failures: Vec<v1::Failure> = fitting(failures).into_iter().map(Into::into).collect();
    for failure in &mut failures {
        let Some(copy) = copies.get(&failure.file_index) else { continue };
        failure.current_source = v1::Source::Cloud.into();
        failure.current_time = copy.made.map(|(at, _)| at.into());
        failure.current_batch_id = copy.made.map(|(_, batch)| batch.to_string()).unwrap_or_default();
    }
    let warnings = vec![of_copies().into()];
    Ok(Some(v1::Report { outcome: v1::Outcome::Failed.into(), failures, warnings, ..v1::Report::default() }))
}

fn of_copies() -> Warning {
    let message = "no agent that previews serves the workspace: line patches were compared with the files as they were last reported";
    Warning { code: "CLOUD_COPY".to_owned(), message: message.to_owned(), line: None }
}

/// Whether no agent answered: that hinders no batch from being validated.
fn is_silent(failure: &Failure) -> bool {
    failure.reason == Reason::DeadlineExceeded || matches!(failure.detail, Some(Detail::AgentLost | Detail::NoAgent))
}

/// The report, if it is one of this batch.
fn checked(batch: &Batch, report: v1::Report) -> Result<Report, Vec<Failure>> {
    let report = Report::try_from(bounded(report)?)?;
    fit(batch, &report)?;
    Ok(report)
}
