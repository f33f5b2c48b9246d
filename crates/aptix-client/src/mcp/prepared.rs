//! Calls that prepare edits, and those that apply them: planned on the file as it is, applied only to that file (WS-MOD).

use aptix_engine::preview::preview;
use aptix_model::batch::{Batch, FileEdit, FilePatch};
use aptix_model::documents::terms::Wording;
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::FilePatchId;
use aptix_model::id_block;
use aptix_model::limits::PLACES_BYTES;
use aptix_model::path_style::PathStyle;
use aptix_model::plan::Plan;
use aptix_model::reason::Reason;
use aptix_model::report::Report;
use aptix_model::tools::preview::Phase;
use aptix_model::tools::result::BatchResult;
use aptix_model::tools::result::tool_result::{DIFF_BYTES, PREPARE_AGAIN, ToolResult, of_batch, of_previewed, refused};
use aptix_model::tools::result::words::BatchWords;
use aptix_model::tools::tool::Form;

use super::author::{Author, in_words, mint};
use super::called::Called;
use super::hunks::{Hunks, Prepared};
use super::until::Until;
use crate::apply::{Refusal, look as plan_only};

/// Edits a file, without a prepared edit.
pub(super) fn edit(author: &Author, called: &Called, patch: FilePatch, wording: Wording, until: &Until) -> ToolResult {
    let batch = Batch { files: vec![patch], ..Batch::default() };
    let tried = author.apply(called, wording, (&batch, None), until, &mut |_| Ok(()));
    called.ended(&batch, &tried);
    of_batch(&tried.result(&batch))
}

/// Plans an edit and keeps the plan.
pub(super) fn prepare(author: &Author, called: &Called, patch: FilePatch, existing: Option<FilePatchId>) -> ToolResult {
    let batch = Batch { files: vec![patch], ..Batch::default() };
    called.traced.log(Event::Received(&batch));
    match plan(author, called, &batch, existing) {
        Ok(answer) => {
            called.traced.log(Event::Prepared(&batch));
            answer
        }
        Err(refusal) => {
            let refusal = author.for_model(refusal);
            called.traced.log(Event::Refused(Some(&batch), &refusal.failures));
            refused(Form::Plain, &refusal.failures)
        }
    }
}

fn plan(author: &Author, called: &Called, batch: &Batch, existing: Option<FilePatchId>) -> Result<ToolResult, Refusal> {
    let Some(FileEdit::AnchorEdit(edit)) = batch.files.first().map(|file| &file.edit) else {
        return Err(nothing_planned().into());
    };
    let policy = author.policy()?;
    policy.may_write()?;
    let caller = author.caller(called.number);
    // The id that the file patch has in the batch that will apply it.
    let id = id_block::of(mint(), batch).first().map(|ids| ids.file).ok_or_else(nothing_planned)?;
    let slot = Hunks::lock(&author.workspace)?.place(existing, caller, edit.place.kind(), id)?;
    let (plan, preview) = plan_only(&author.workspace, batch, &policy, |plan| {
        let file = plan.files.first()?;
        let preview = preview(edit, file, DIFF_BYTES)?;
        let diff_omitted = preview.diff.is_none();
        let report = Report { diff_omitted, ..Report::applied(vec![file.report(&file.content())]) };
        Some((Plan { report, places: vec![file.places(PLACES_BYTES)], evidence: Vec::new() }, preview))
    })
    .map_err(|refusal| in_words(refusal, Wording::File, batch))?
    .ok_or_else(nothing_planned)?;
    let phase = Phase::Planned { hunk: slot.hunk.id, expires: slot.hunk.expires };
    let shown = Report { diff: preview.diff.clone().unwrap_or_default(), ..plan.report.clone() };
    let words = BatchWords::of(batch, PathStyle::InRoot, None);
    let result = BatchResult { dry_run: true, ..BatchResult::new(words, Ok(Some(&shown))) };
    let answer = of_previewed(&result, Some(&preview), phase);
    Hunks::lock(&author.workspace)?.keep(slot, &Prepared { batch: batch.clone(), plan }, caller)?;
    Ok(answer)
}

/// Applies a plan to the file that it was made for.
pub(super) fn apply(author: &Author, called: &Called, id: FilePatchId, until: &Until) -> ToolResult {
    // Held until it is applied: no other call or process applies or replaces it meanwhile.
    let locked = Hunks::lock(&author.workspace);
    let taken = locked.and_then(|hunks| Ok((hunks.take(id, author.caller(called.number))?, hunks)));
    let (Prepared { batch, plan }, hunks) = match &taken {
        Ok((prepared, hunks)) => (prepared, hunks),
        Err(failure) => return called.refused(&author.for_model(failure.clone()).failures),
    };
    let called = &called.of_batch(id_block::batch_id(id.0));
    let mut seen = None;
    let mut tried = author.apply(called, Wording::File, (batch, Some(plan)), until, &mut |proposal| {
        let (file, edit) = proposal.plan.files.first().zip(batch.files.first()).ok_or_else(nothing_planned)?;
        if let FileEdit::AnchorEdit(edit) = &edit.edit {
            seen = preview(edit, file, DIFF_BYTES);
        }
        Ok(())
    });
    tried.outcome = tried.outcome.map_err(in_its_place);
    called.ended(batch, &tried);
    match (&tried.outcome, seen) {
        (Ok(_), Some(preview)) => {
            hunks.applied(id);
            of_previewed(&tried.result(batch), Some(&preview), Phase::Applied { hunk: id })
        }
        _ => of_batch(&tried.result(batch)),
    }
}

/// The refusal of a plan whose file changed, with the next step that this connection has.
fn in_its_place(mut refusal: Refusal) -> Refusal {
    for failure in refusal.failures.iter_mut().filter(|failure| failure.reason == Reason::FileChanged) {
        failure.hint = Some(PREPARE_AGAIN.to_owned());
    }
    refusal
}

fn nothing_planned() -> Failure {
    Failure::new(Reason::Internal, "the edit came to no plan")
        .hint("this is a defect of the program; nothing was changed")
}
