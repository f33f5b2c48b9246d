//! One batch, from its arrival to its receipt in the outbox.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::Batch;
use aptix_model::batch_event::EventFacts;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::BatchRecord;
use aptix_telemetry::{BATCH, Kind, Span};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::attempt::{Applied, Outcome, Unfinished, attempt};
use super::error::AgentError;
use super::inbox::Work;
use super::quota::Begun;
use super::service::Session;
use super::{delivery, report};
use crate::apply::traced::Traced;
use crate::connection::backoff::Backoff;
use crate::connection::receipt::{self, Receipt};
use crate::policy::REFUSED_PER_MINUTE;
use crate::workspace::keep::outbox::error::OutboxError;
use crate::workspace::keep::outbox::{self, Owed, Pending};
use crate::workspace::roots::workspace::Workspace;

/// The waits while a failure that will pass keeps a batch from being decided.
const PASSING: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));

/// Applies or refuses a batch, and reports. A batch that already has a receipt is reported and not applied again; so is one
/// whose report the server acknowledged, which only a server that was set back requests again.
pub(super) async fn handle(session: &Session, work: Work) -> Result<(), Unfinished> {
    let traced = Traced::begin(match &work.content {
        Ok(record) => Trace::of(Via::Agent, record),
        Err(_) => session.trace(work.batch),
    });
    carry_out(session, work, &traced).instrument(traced.trace.span()).await
}

async fn carry_out(session: &Session, work: Work, traced: &Traced) -> Result<(), Unfinished> {
    let batch = work.batch;
    let busy = "the batch waits until the outbox can be read";
    // In this order: the report may be delivered between the two.
    if in_outbox(session, batch, busy, move |local| outbox::find(local, batch)).await?.is_some() {
        return Ok(delivery::deliver_late(session, batch).await?);
    }
    if in_outbox(session, batch, busy, move |local| outbox::is_done(local, batch)).await? {
        return Ok(delivery::deliver_again(session, batch).await?);
    }
    let begun = begin(session, traced, &work.withdrawn).await?;
    let record = match work.content {
        Ok(record) => record,
        Err(failures) => return refuse(session, (batch, None), traced, failures, begun).await,
    };
    let mut span = Span::below("apply", Kind::Consumer, record.sent.traceparent);
    span.note(BATCH, &batch.to_string());
    let trace = Trace { traceparent: span.context(), ..traced.trace.clone() };
    let traced = &Traced { trace, ..*traced };
    traced.log(Event::Received(&record.batch));
    match decide(session, (&record, work.step.as_ref()), traced, &work.withdrawn).await? {
        Ok(Applied { receipt, report }) => {
            drop(begun);
            traced.ended(Some(&record.batch), Ok(&report));
            Ok(delivery::deliver(session, Pending { batch, owed: Owed::Receipt(receipt) }).await?)
        }
        Err(failures) => {
            if let Some(failure) = failures.iter().find(|failure| failure.reason == Reason::NeedsOperator) {
                return Err(AgentError::NeedsOperator(Box::new(failure.clone())).into());
            }
            failures.first().iter().for_each(|failure| span.fail(failure.reason.code()));
            refuse(session, (batch, Some(&record.batch)), traced, failures, begun).await
        }
    }
}

/// Waits until a batch may be refused without exceeding the limit of refusals a minute.
async fn begin(session: &Session, traced: &Traced, withdrawn: &CancellationToken) -> Result<Begun, Unfinished> {
    let agent = &session.agent;
    let most: NonZeroU32 = agent
        .blocking(|agent| {
            // Where there is no policy to follow every batch is refused.
            let policy = agent.service.policy.read(&agent.local);
            policy.map_or(REFUSED_PER_MINUTE, |policy| policy.refused_per_minute)
        })
        .await?;
    tokio::select! {
        biased;
        begun = agent.quota.begin(most) => Ok(begun),
        () = withdrawn.cancelled() => Err(Unfinished::cancelled(session, traced)),
        () = agent.stop.cancelled() => Err(Unfinished::Interrupted),
    }
}

/// Attempts a batch, again as long as it fails for a reason that will pass.
async fn decide(
    session: &Session,
    (record, step): (&BatchRecord, Option<&EventFacts>),
    traced: &Traced,
    withdrawn: &CancellationToken,
) -> Result<Outcome, Unfinished> {
    let mut backoff = PASSING;
    loop {
        let outcome = attempt(session, (record, step), traced, withdrawn).await?;
        let failures = outcome.as_ref().err();
        let Some(failure) = failures.and_then(|failures| failures.iter().find(|failure| will_pass(failure))) else {
            return Ok(outcome);
        };
        tracing::warn!(BatchId = %record.id, %failure, "the batch is tried again");
        tokio::select! {
            () = tokio::time::sleep(backoff.wait()) => {}
            () = withdrawn.cancelled() => return Err(Unfinished::cancelled(session, traced)),
            () = session.agent.stop.cancelled() => return Err(Unfinished::Interrupted),
        }
    }
}

/// Whether a failure says nothing about the batch, only that this machine is busy.
fn will_pass(failure: &Failure) -> bool {
    matches!(
        (failure.reason, failure.detail),
        (Reason::WorkspaceBusy, _) | (Reason::ResourceExhausted, Some(Detail::Fds))
    )
}

/// Keeps the report of a batch that changed nothing, then delivers it. A batch whose report cannot be kept has to come again.
async fn refuse(
    session: &Session,
    (batch, content): (BatchId, Option<&Batch>),
    traced: &Traced,
    mut failures: Vec<Failure>,
    begun: Begun,
) -> Result<(), Unfinished> {
    begun.refused();
    let places = session.agent.blocking(|agent| agent.service.policy.private_places(&agent.local)).await?;
    places.name_in(&mut failures);
    let refused = session.receipt(batch, report::refusal(failures.clone()));
    let receipt: Arc<[u8]> = receipt::encode(Receipt { traceparent: traced.trace.traceparent, ..refused }).into();
    let busy = "the report of a batch waits until it can be kept: free some space on the disk of the state directory, or let the \
                agent open more files";
    let kept = Arc::clone(&receipt);
    in_outbox(session, batch, busy, move |local| outbox::put(local, batch, &kept)).await?;
    traced.ended(content, Err(&failures));
    Ok(delivery::deliver(session, Pending { batch, owed: Owed::Receipt(receipt.to_vec()) }).await?)
}

/// Uses the outbox, as soon as that is possible; logs `busy` once while the disk is full or too many files are open.
async fn in_outbox<T: Send + 'static>(
    session: &Session,
    batch: BatchId,
    busy: &str,
    step: impl Fn(&Workspace) -> Result<T, OutboxError> + Clone + Send + 'static,
) -> Result<T, Unfinished> {
    let (mut backoff, mut is_logged) = (PASSING, false);
    loop {
        let step = step.clone();
        match session.agent.blocking(move |agent| step(&agent.local)).await? {
            Ok(found) => return Ok(found),
            Err(error) if !error.will_pass() => return Err(error.into()),
            Err(error) if !is_logged => tracing::warn!(BatchId = %batch, %error, "{busy}"),
            Err(_) => {}
        }
        is_logged = true;
        tokio::select! {
            () = tokio::time::sleep(backoff.wait()) => {}
            () = session.agent.stop.cancelled() => return Err(Unfinished::Interrupted),
        }
    }
}
