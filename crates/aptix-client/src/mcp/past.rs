//! `history`, `get_patch_change` and `undo`: the batches that the history of the root keeps.

use std::borrow::Cow;

use aptix_engine::target::ValidTarget;
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::id_block;
use aptix_model::path::WorkspacePath;
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::reason::Reason;
use aptix_model::report::{FileStatus, Withheld};
use aptix_model::tools::past::{Batches, PastBatch, PastFile};
use aptix_model::tools::result::tool_result::{DIFF_BYTES, ToolResult, of_record};
use aptix_model::tools::result::{BatchResult, Stored};

use super::author::{Author, mint};
use super::called::Called;
use super::tried::Tried;
use super::until::Until;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::{ApplyOptions, Mode, Refusal};
use crate::policy::Policy;
use crate::policy::disclosure::{Disclosure, Inside};
use crate::present::id_prefix::IdPrefix;
use crate::present::kept::find;
use crate::present::log::{Query, Row, log};
use crate::present::past::{Past, past};
use crate::present::view::{BatchView, Subject};
use crate::undo::{self, Undone};
use crate::workspace::keep::history::entries::{self, Entry};
use crate::workspace::keep::history::find::Wanted;
use crate::workspace::keep::history::past_file::{self, Kept};
use crate::workspace::read::listing::Listings;
use crate::workspace::read::resolve::resolve_to_read;

/// What to do about a batch that is not known, or not to be undone.
const LISTED: &str = "history lists the batches that are known, with their ids";

/// Lists the newest batches.
///
/// # Errors
/// When the history cannot be read.
pub(super) fn history(author: &Author, most: usize, path: Option<&str>) -> Result<Batches, Failure> {
    let log = log(&author.workspace, Query { most: Some(most), path, ..Query::default() })?;
    Ok(Batches { success: true, batches: log.batches.into_iter().map(row).collect() })
}

fn row(row: Row) -> PastBatch {
    // A file of another root has no key, and a path of this machine.
    let files = row.files.into_iter().filter(|file| file.doc_path.is_some());
    let files = files.map(|file| PastFile { path: file.path, status: file.status, renamed_to: file.renamed_to });
    PastBatch {
        batch_id: row.batch_id,
        batch_label: row.batch_label,
        applied_unix_ms: row.applied_unix_ms,
        files: files.collect(),
        undoes: row.undoes,
        undone_by: row.undone_by,
        can_be_undone: row.can_be_undone,
    }
}

/// Shows a batch, or a part of one, unless a file of it is one that `read_file` does not show.
pub(super) fn show(author: &Author, called: &Called, id: &str) -> ToolResult {
    match author.policy().and_then(|policy| kept(author, &policy, id)) {
        Ok(past) => {
            let root = Some(author.workspace.primary().name());
            let stored = Stored { id: past.id, state: past.report.outcome.into(), ids: Cow::Borrowed(&past.ids) };
            let (subject, begins) = (Subject::Kept(&past.summary), past.begins);
            let view = BatchView {
                root,
                stored: Some(stored),
                is_record: true,
                begins,
                ..BatchView::of(subject, Ok(Some(&past.report)))
            };
            of_record(&view.result())
        }
        Err(failure) => called.refused(&author.for_model(failure).failures),
    }
}

fn kept(author: &Author, policy: &Policy, id: &str) -> Result<Past, Failure> {
    let id: IdPrefix = id.parse().map_err(|_| Failure::new(Reason::InvalidRequest, "the id is none").hint(LISTED))?;
    let (entry, named) = find(&author.workspace, &id, LISTED)?;
    let mut past = past(&author.workspace, &entry).named(named);
    check(author, policy, &entry, &past)?;
    if past.report.diff.len() > DIFF_BYTES {
        past.report.diff.clear();
        past.report.diff_omitted = true;
    }
    author.places().name_in_report(&mut past.report);
    Ok(past)
}

/// Refuses to show files that the model may not read, as they are and as they were before and after, and those of other roots.
fn check(author: &Author, policy: &Policy, entry: &Entry, past: &Past) -> Result<(), Failure> {
    let mut disclosure = Disclosure::new(&author.workspace, policy);
    let mut listings = Listings::default();
    let kept = entries::kept(entry).unwrap_or_default();
    for shown in &past.report.files {
        let is_shown = |file: &past_file::PastFile| file.names(&author.workspace, &file.path).0 == shown.path;
        let known = entry.files.iter().position(is_shown);
        if shown.doc_path.is_empty() || (known.is_none() && shown.status != FileStatus::Unchanged) {
            let hint = "ask for the parts of the batch that are in this one, by their ids, or ask the user";
            return Err(elsewhere(hint));
        }
        // A file of which passages are kept never began as a private key does.
        let heads = match known.and_then(|index| kept.get(index)) {
            Some(Kept::Images(images)) => [images.before.as_deref(), images.after.as_deref()],
            Some(Kept::Passages(_)) | None => [None, None],
        };
        let heads: Vec<_> =
            heads.into_iter().flatten().map(|head| head.get(..KEY_HEAD_BYTES).unwrap_or(head)).collect();
        for path in [Some(&shown.path), shown.renamed_to.as_ref()].into_iter().flatten() {
            let target = WorkspacePath::new(path).map(ValidTarget::Path);
            let place = target.ok().and_then(|to| resolve_to_read(&author.workspace, &mut listings, &to).ok());
            let mut why = |head| match &place {
                Some(place) => disclosure.withheld(place, Inside { names: 1, head }),
                None => Some(Withheld::Unknown),
            };
            if let Some(why) = heads.iter().copied().chain([&[][..]]).find_map(&mut why) {
                return Err(Failure { path: Some(path.clone()), ..disclosure.not_read(why) });
            }
        }
    }
    Ok(())
}

fn elsewhere(hint: &str) -> Failure {
    let message = "the batch has files in a directory that is not served to this connection";
    Failure::new(Reason::PolicyDenied, message).hint(hint)
}

/// Takes a batch back.
pub(super) fn undo(author: &Author, called: &Called, batch: BatchId, until: &Until) -> ToolResult {
    let id = called.traced.trace.batch.unwrap_or_else(mint);
    match undone(author, batch, id, until) {
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

fn undone(author: &Author, batch: BatchId, id: BatchId, until: &Until) -> Result<Undone, Refusal> {
    let policy = author.policy()?;
    let options =
        ApplyOptions { diff_bytes: DIFF_BYTES, ..ApplyOptions::new(&policy, Mode::CommitNamed { batch: id }) };
    let mut decide = |proposal: &Proposal<'_>| {
        let unanswered = proposal.unanswered();
        if !unanswered.is_empty() {
            Decision::Refuse(unanswered)
        } else if until.is_over() {
            Decision::Refuse(vec![until.failure()])
        } else {
            Decision::Apply
        }
    };
    let undone = undo::undo(&author.workspace, Wanted::Named(&batch.to_string()), options, &mut decide)?;
    // The call names the batch: sent again, it takes back no other one.
    if let Err(failure) = undo::acknowledge(&author.workspace) {
        tracing::warn!(%failure, "the note of an undo stays");
    }
    Ok(undone)
}

/// A refusal whose hints are about tools, where they were about commands.
fn in_reach(mut refusal: Refusal) -> Refusal {
    for failure in &mut refusal.failures {
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
