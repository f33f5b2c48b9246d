//! Which entries of the local history are batches of the workstation itself, and which are those of a server.

use std::collections::VecDeque;

use aptix_model::batch_event::EventFacts;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::path::DocPath;

use super::service::{Agent, Refusals};
use crate::connection::receipt;
use crate::live::IsOver;
use crate::live::past_batch::{PastBatch, past_batch, paths};
use crate::policy::choices::ReportLocal;
use crate::workspace::keep::history::entries::Entry;
use crate::workspace::keep::history::newest;
use crate::workspace::keep::history::since::Marks;
use crate::workspace::keep::outbox::error::OutboxError;
use crate::workspace::keep::outbox::{self, Owed, Pending};

/// A batch of the workstation itself.
#[derive(Debug)]
pub(super) struct PastEntry {
    /// Its name.
    pub(super) id: BatchId,
    /// The batch that it took back.
    pub(super) reverts: Option<Reverted>,
    /// Who carried it out and why, if the history knows.
    pub(super) by: Option<EventFacts>,
    /// What the server may know of it.
    pub(super) batch: PastBatch,
}

/// The batch that another one took back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reverted {
    /// Its name.
    pub(super) id: BatchId,
    /// The name under which it was reported if `id` ended at the server without being applied.
    pub(super) unapplied: BatchId,
}

/// What is to be done about the next entries.
pub(super) enum Next {
    /// This one is reported, as this batch.
    Report(Box<Entry>, Box<PastEntry>),
    /// The report of a batch that came before the next entry is not delivered, or nothing may leave the machine now. These are
    /// the files of the entries that wait.
    Waits(Vec<DocPath>),
    /// There is none.
    None,
}

/// Takes entries off the front, up to the first that is to be reported or has to wait; marks those that are not for the server.
///
/// # Errors
/// The connection is dead, or the agent stops.
pub(super) fn next(
    agent: &Agent,
    entries: &mut VecDeque<Entry>,
    marks: &mut Marks,
    refusals: &Refusals,
    is_over: IsOver<'_>,
) -> Result<Next, Failure> {
    // Without a policy that can be followed nothing leaves the machine.
    let Ok(policy) = agent.service.policy.read(&agent.local) else { return Ok(Next::Waits(Vec::new())) };
    let waits = |entry: &Entry, rest: &VecDeque<Entry>| {
        let all = std::iter::once(entry).chain(rest).flat_map(|entry| paths(&agent.local, entry));
        Ok(Next::Waits(all.collect()))
    };
    while let Some(entry) = entries.pop_front() {
        match owner(agent, &entry, refusals) {
            Ok(owner @ (Owner::Workstation | Owner::Unapplied)) if policy.report_local == ReportLocal::On => {
                if let Some(batch) = past_batch(&agent.local, &policy, &entry, is_over)? {
                    let undone = entry.undoes.as_deref().and_then(|undone| newest::named(&agent.local, undone));
                    let reverts =
                        undone.map(|undone| Reverted { id: undone.reported_id(), unapplied: undone.own_reported_id() });
                    // At the server the name of an unapplied batch is that of the batch which ended there.
                    let id = if owner == Owner::Unapplied { entry.own_reported_id() } else { entry.reported_id() };
                    let by = entry.summary.as_ref().and_then(|summary| summary.steps().pop());
                    let past = PastEntry { id, reverts, by, batch };
                    return Ok(Next::Report(Box::new(entry), Box::new(past)));
                }
            }
            Ok(Owner::Workstation | Owner::Unapplied | Owner::Server) => {}
            Ok(Owner::Waiting) => return waits(&entry, entries),
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read, batches of this workstation wait");
                return waits(&entry, entries);
            }
        }
        marks.pass(&entry);
    }
    Ok(Next::None)
}

/// Whose batch an entry is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The workstation's own.
    Workstation,
    /// A server's, which ended there without being applied: that it was applied here is reported as the workstation's own.
    Unapplied,
    /// A server's, whose report is delivered or does not wait for this server.
    Server,
    /// A server's, whose report waits.
    Waiting,
}

fn owner(agent: &Agent, entry: &Entry, refusals: &Refusals) -> Result<Owner, OutboxError> {
    let Some(batch) = entry.batch.as_deref().and_then(|name| name.parse().ok()) else { return Ok(Owner::Workstation) };
    if refusals.unapplied.contains_key(&batch) {
        return Ok(Owner::Unapplied);
    }
    // In this order: a report that waits may be delivered meanwhile, and never waits again.
    if !outbox::waiting(&agent.local)?.contains(&batch) {
        return Ok(if outbox::is_done(&agent.local, batch)? { Owner::Server } else { Owner::Workstation });
    }
    let is_of_another = match outbox::find(&agent.local, batch)? {
        Some(Pending { owed: Owed::Receipt(bytes), .. }) => {
            receipt::decode(&bytes).is_ok_and(|receipt| receipt.workspace != agent.service.workspace)
        }
        Some(Pending { owed: Owed::Lost, .. }) => false,
        // Delivered meanwhile.
        None => true,
    };
    Ok(if is_of_another || refusals.wrong.contains(&batch) { Owner::Server } else { Owner::Waiting })
}
