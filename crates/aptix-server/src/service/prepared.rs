//! Prepared batches: planned by the agent, stored with their plan, and let go ahead by their owner.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aptix_model::batch::{Atomicity, Batch, Origin};
use aptix_model::documents::Dialect;
use aptix_model::documents::terms::in_terms_of;
use aptix_model::events::event::Event;
use aptix_model::events::trace::Trace;
use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::{EVIDENCE_BYTES, PLACES_BYTES};
use aptix_model::plan::{Place, Plan, Planned};
use aptix_model::preview::EditEvidence;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchRecord, Sent};
use aptix_model::wire::question::Ask;
use aptix_model::wire::{self, fit, v1, v1::answer, v1::question};
use prost::Message;

use super::agent_answer::wrong;
use super::report::bounded;
use super::submitted::{Submitted, WARNINGS, check_size, edit_bytes};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::plan_name::PlanName;
use crate::dispatcher::prepared::{DEFAULT_LIFE, Freeing, Preparing};
use crate::dispatcher::refusal::Refusal;
use crate::ticket::Asker;

/// Plans a batch and stores it.
pub(super) async fn prepare(
    dispatcher: &Arc<Dispatcher>,
    (asker, patience): (&Asker, Duration),
    (request, sent): (v1::PrepareBatchRequest, Sent),
    (trace, began): (&Trace, Instant),
) -> Result<v1::PrepareBatchResponse, Refusal> {
    let (submitted, preparing) = read(dispatcher, request, sent)?;
    trace.log(began.elapsed(), Event::Received(&submitted.submission.batch));
    let (view, document) = (submitted.view, submitted.document.clone());
    let stored = keep(dispatcher, (asker, patience), (submitted, &preparing), began).await?;
    let (dialect, warnings) = document.map(|(dialect, found)| (dialect.name(), found)).unwrap_or_default();
    let v1::SubmitBatchResponse { batch, warnings, dialect, .. } = fit::submitted(v1::SubmitBatchResponse {
        batch: Some(fit::answer(view.message(stored))),
        warnings: warnings.into_iter().take(WARNINGS).map(Into::into).collect(),
        dialect: dialect.to_owned(),
        preview: None,
    });
    Ok(v1::PrepareBatchResponse { batch, warnings, dialect })
}

/// Plans a batch and stores it with its plan, or as ended if the plan was refused; unless it was stored before.
pub(super) async fn keep(
    dispatcher: &Arc<Dispatcher>,
    (asker, patience): (&Asker, Duration),
    (mut submitted, preparing): (Submitted, &Preparing),
    began: Instant,
) -> Result<BatchRecord, Refusal> {
    refuse_per_file(&submitted.submission.batch)?;
    let checked = dispatcher.check(&submitted.submission).await.map_err(|refusal| submitted.in_terms(refusal));
    let contents = submitted.detach_contents();
    if let Some(stored) = dispatcher.prepared_before(&submitted.submission, preparing).await? {
        return Ok(stored);
    }
    dispatcher.check_mode(&submitted.submission.workspace, &submitted.submission.origin).await?;
    checked?;
    dispatcher.check_replaced(&submitted.submission, preparing).await?;
    let asked = question(&submitted.submission.batch, &submitted.submission.origin)?;
    // The agent downloads them for the plan. If the plan is refused they are removed like every blob that no batch names.
    for (blob, bytes) in contents {
        dispatcher.keep_content(&asker.peer, &submitted.submission.workspace, blob, bytes).await?;
    }
    let planned = plan(dispatcher, (asker, patience), &submitted, asked).await?;
    check_room(&submitted.submission.batch, &planned)?;
    dispatcher.keep_prepared(submitted.submission, (preparing, planned), &asker.peer.quota, began).await
}

/// Refuses to prepare a batch that is applied file by file: its plan would bind files that may be refused.
fn refuse_per_file(batch: &Batch) -> Result<(), Failure> {
    if batch.atomicity == Atomicity::AllOrNothing {
        return Ok(());
    }
    let message = "a prepared batch is applied as it was planned or not at all, found atomicity ATOMICITY_PER_FILE";
    let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownFeature).field("atomicity");
    Err(failure.hint("submit the batch with SubmitBatch, or prepare one batch for each file"))
}

/// Decodes a request.
///
/// # Errors
/// Everything that is wrong with its shape.
fn read(
    dispatcher: &Dispatcher,
    request: v1::PrepareBatchRequest,
    sent: Sent,
) -> Result<(Submitted, Preparing), Refusal> {
    use v1::prepare_batch_request::Content as Prepared;
    use v1::submit_batch_request::Content as Submit;
    let preparing = preparing(&request);
    let content = request.content.map(|content| match content {
        Prepared::Edit(edit) => Submit::Edit(edit),
        Prepared::Document(document) => Submit::Document(document),
    });
    let submitted = Submitted::read(
        dispatcher,
        v1::SubmitBatchRequest {
            workspace_id: request.workspace_id,
            request_id: request.request_id,
            content,
            origin: request.origin,
            view: request.view,
            validate_only: false,
        },
        sent,
    );
    match (submitted, preparing) {
        (Ok(submitted), Ok(preparing)) => Ok((submitted, preparing)),
        (Ok(_), Err(failures)) => Err(failures.into()),
        (Err(Refusal::Invalid(mut found)), Err(failures)) => {
            found.extend(failures);
            Err(Refusal::Invalid(found))
        }
        (Err(refusal), _) => Err(refusal),
    }
}

fn preparing(request: &v1::PrepareBatchRequest) -> Result<Preparing, Vec<Failure>> {
    let mut failures = Vec::new();
    let owner = wire::id("owner", &request.owner).map_err(|failure| failures.push(failure));
    let replaces = wire::optional_id("existingBatchId", &request.existing_batch_id);
    let replaces = replaces.map_err(|failure| failures.push(failure));
    let life = match request.time_to_live.map(Duration::try_from) {
        None => Some(DEFAULT_LIFE),
        Some(given) => given.ok().filter(|life| life.as_millis() > 0),
    };
    if life.is_none() {
        let message = "timeToLive is not a time of at least a millisecond";
        failures.push(Failure::new(Reason::InvalidRequest, message).detail(Detail::Number).field("timeToLive"));
    }
    match (owner, replaces, life) {
        (Ok(owner), Ok(replaces), Some(life)) => Ok(Preparing { owner, life, replaces, hunk: None }),
        _ => Err(failures),
    }
}

/// What the agent is asked; content that was uploaded as a blob it downloads.
///
/// # Errors
/// When a message cannot carry the edit.
fn question(batch: &Batch, origin: &Origin) -> Result<Ask, Failure> {
    let (edit, origin) = (Some(batch.clone().into()), Some(origin.clone().into()));
    let ask = Ask(question::Ask::Prepare(v1::PrepareQuestion { edit, origin }));
    if ask.size() <= fit::ROOM {
        return Ok(ask);
    }
    let message = format!("the batch takes {} bytes, a question to the agent carries {}", ask.size(), fit::ROOM);
    Err(Failure::new(Reason::TooLarge, message).detail(Detail::Document).field("edit").hint("split the batch"))
}

/// Has the agent plan a batch.
async fn plan(
    dispatcher: &Dispatcher,
    (asker, patience): (&Asker, Duration),
    submitted: &Submitted,
    ask: Ask,
) -> Result<Planned, Refusal> {
    let (workspace, batch) = (&submitted.submission.workspace, &submitted.submission.batch);
    let deadline = tokio::time::Instant::now() + patience;
    let answer = dispatcher.ask(workspace, asker, ask, deadline).await?.0;
    let answer::Answer::Prepare(plan) = answer else { return Err(wrong(workspace, "it is of another kind")) };
    let dialect = submitted.document.as_ref().map(|(dialect, _)| *dialect);
    checked(workspace, (batch, dialect), plan)
}

/// The plan, if it is one of this batch.
fn checked(
    workspace: &WorkspaceId,
    (batch, dialect): (&Batch, Option<Dialect>),
    mut plan: v1::Plan,
) -> Result<Planned, Refusal> {
    let misfit = |failures: Vec<Failure>| {
        let first = failures.first().map(ToString::to_string).unwrap_or_default();
        wrong(workspace, &first)
    };
    plan.report = plan.report.map(bounded).transpose().map_err(misfit)?;
    match Planned::try_from(plan).map_err(misfit)? {
        Planned::Plan(plan) => {
            crate::dispatcher::fit::fit(batch, &plan.report).map_err(misfit)?;
            check_places(workspace, batch, &plan)?;
            Ok(Planned::Plan(plan))
        }
        Planned::Refused(mut report) => {
            if let Some(dialect) = dialect {
                report.failures = in_terms_of(dialect, batch, report.failures);
            }
            Ok(Planned::Refused(report))
        }
    }
}

fn check_places(workspace: &WorkspaceId, batch: &Batch, plan: &Plan) -> Result<(), Refusal> {
    if plan.places.len() != batch.files.len() {
        let (found, expected) = (plan.places.len(), batch.files.len());
        return Err(wrong(workspace, &format!("the plan has places of {found} files, the batch has {expected}")));
    }
    let bytes: usize = plan.places.iter().flatten().map(Place::size).sum();
    if bytes > PLACES_BYTES {
        return Err(wrong(workspace, &format!("the places have {bytes} bytes, expected at most {PLACES_BYTES}")));
    }
    let bytes: usize = plan.evidence.iter().flatten().map(EditEvidence::size).sum();
    if bytes > EVIDENCE_BYTES {
        return Err(wrong(workspace, &format!("the evidence has {bytes} bytes, expected at most {EVIDENCE_BYTES}")));
    }
    Ok(())
}

/// Refuses a batch whose content does not fit into one message together with what binds it.
fn check_room(batch: &Batch, planned: &Planned) -> Result<(), Failure> {
    let bound = match planned {
        Planned::Refused(_) => 0,
        Planned::Plan(plan) => {
            let mut files = plan.report.files.clone();
            files.iter_mut().for_each(|file| file.warnings.clear());
            let report = aptix_model::report::Report::applied(files);
            v1::Plan::from(Plan { report, places: Vec::new(), evidence: Vec::new() }).encoded_len()
        }
    };
    check_size(edit_bytes(batch).saturating_add(bound), batch)
}

/// Lets a prepared batch be applied.
pub(super) async fn apply(
    dispatcher: &Arc<Dispatcher>,
    (request, sent): (&v1::ApplyPreparedRequest, Sent),
) -> Result<BatchRecord, Refusal> {
    let workspace = wire::id("workspaceId", &request.workspace_id)?;
    let batch = wire::id("batchId", &request.batch_id)?;
    let owner = wire::id("owner", &request.owner)?;
    let by = Freeing { owner, request: wire::id("requestId", &request.request_id)?, token: sent.by };
    dispatcher.free(workspace, batch, (PlanName::Batch(batch), by)).await
}
