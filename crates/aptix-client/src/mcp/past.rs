//! `undo`: takes back a batch that the history of the root keeps.

use aptix_model::events::event::Event;
use aptix_model::id::BatchId;
use aptix_model::id_block;
use aptix_model::reason::Reason;
use aptix_model::tools::past::LISTED;
use aptix_model::tools::result::BatchResult;
use aptix_model::tools::result::tool_result::{DIFF_BYTES, ToolResult, of_record};

use super::author::{Author, mint};
use super::called::Called;
use super::tried::Tried;
use super::until::Until;
use crate::apply::acting::Acting;
use crate::apply::proposal::Proposal;
use crate::apply::{ApplyOptions, Mode, Refusal};
use crate::tools::past_batches::elsewhere;
use crate::undo::{self, Undone};
use crate::workspace::keep::history::find::Wanted;

/// Takes a batch back, for this reason.
pub(super) fn undo(author: &Author, called: &Called, wanted: (BatchId, Option<&str>), until: &Until) -> ToolResult {
    let id = called.traced.trace.batch.unwrap_or_else(mint);
    match undone(author, called, wanted, (id, until)) {
        Ok(Undone { batch, mut report, reverts, name, .. }) => {
            author.places().name_in_report(&mut report);
            called.traced.log(Event::Undone(&batch, &reverts));
            let id = name.unwrap_or(id);
            let root = author.workspace.primary().name().to_owned();
            let tried = Tried { batch: id, ids: id_block::of(id, &batch), root, outcome: Ok(report) };
            of_record(&BatchResult { undoes: Some(reverts.into()), ..tried.result(&batch) })
        }
        Err(refusal) => called.refused(&author.for_model(in_reach(refusal)).failures),
    }
}

fn undone(
    author: &Author,
    called: &Called,
    (batch, reason): (BatchId, Option<&str>),
    (id, until): (BatchId, &Until),
) -> Result<Undone, Refusal> {
    let policy = author.policy()?;
    let (actor, person, mode) = (author.actor(), author.person(&called.consent), Mode::CommitNamed { batch: id });
    let acting = Acting { reason, person: Some(&person), ..Acting::of(&actor) };
    let options = ApplyOptions { diff_bytes: DIFF_BYTES, acting, ..ApplyOptions::new(&policy, mode) };
    let mut decide = |proposal: &Proposal<'_>| called.decide(id, proposal, &policy, until);
    let undone = undo::undo(&author.workspace, Wanted::Named(&batch.to_string()), options, &mut decide)?;
    // The call names the batch: sent again, it takes back no other one.
    if let Err(failure) = undo::acknowledge(&author.workspace) {
        tracing::warn!(%failure, "the note of an undo stays");
    }
    Ok(undone)
}

/// A refusal whose hints are about tools, where they were about commands.
fn in_reach(mut refusal: Refusal) -> Refusal {
    // What a person has to agree to says itself how they can.
    for failure in refusal.failures.iter_mut().filter(|failure| failure.reason != Reason::ApprovalRequired) {
        // Of a root that is not open: the path is one of this machine.
        if failure.path.as_ref().is_some_and(|path| path.starts_with('/')) {
            *failure = elsewhere("ask the user to take it back");
        }
        if failure.hint.as_ref().is_some_and(|hint| hint.contains("`aptix")) {
            failure.hint = Some(LISTED.to_owned());
        }
    }
    refusal
}
