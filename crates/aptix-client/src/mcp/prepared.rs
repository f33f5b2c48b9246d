//! Calls that prepare edits, and those that apply them: planned on the file as it is, applied only to that file (WS-MOD).

use aptix_engine::preview::preview;
use aptix_model::batch::{Batch, FileEdit, FilePatch};
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::FilePatchId;
use aptix_model::id_block;
use aptix_model::reason::Reason;
use aptix_model::report::{Outcome, Report};
use aptix_model::tools::preview::Phase;
use aptix_model::tools::tool::Form;

use super::answer::{DIFF_BYTES, ToolAnswer, of_applied, of_batch, of_plan, refused};
use super::author::{Author, in_words, mint};
use super::called::Called;
use super::hunks::{CallNumber, Pinned, Plan};
use super::until::Until;
use crate::apply::{Refusal, look as plan_only};

/// Replaces a whole file, without a prepared edit.
pub(super) fn overwrite(author: &Author, called: &Called, patch: FilePatch, until: &Until) -> ToolAnswer {
    let batch = Batch { files: vec![patch], ..Batch::default() };
    let tried = author.apply(&called.traced, None, &batch, until, &mut |_| Ok(()));
    called.ended(&batch, &tried);
    of_batch(&batch, &tried)
}

/// Plans an edit and keeps the plan.
pub(super) fn prepare(author: &Author, called: &Called, patch: FilePatch, existing: Option<FilePatchId>) -> ToolAnswer {
    let batch = Batch { files: vec![patch], ..Batch::default() };
    called.traced.log(Event::Received(&batch));
    match plan(author, called.number, &batch, existing) {
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

fn plan(
    author: &Author,
    number: CallNumber,
    batch: &Batch,
    existing: Option<FilePatchId>,
) -> Result<ToolAnswer, Refusal> {
    let Some(FileEdit::AnchorEdit(edit)) = batch.files.first().map(|file| &file.edit) else {
        return Err(nothing_planned().into());
    };
    let policy = author.policy()?;
    policy.may_write()?;
    let now = author.now();
    // The id that the file patch has in the batch that will apply it.
    let id = id_block::of(mint(), batch).first().map(|ids| ids.file).ok_or_else(nothing_planned)?;
    let slot = author.hunks().place(existing, author.member(), edit.place.kind(), id, now)?;
    let (report, preview) = plan_only(&author.workspace, batch, &policy, |plan| {
        let file = plan.files.first()?;
        let preview = preview(edit, file, DIFF_BYTES)?;
        let report = Report {
            outcome: Outcome::Applied,
            files: vec![file.report(&file.content())],
            failures: Vec::new(),
            warnings: Vec::new(),
            diff: preview.diff.clone().unwrap_or_default(),
            diff_omitted: preview.diff.is_none(),
        };
        Some((report, preview))
    })
    .map_err(|refusal| in_words(refusal, None, batch))?
    .ok_or_else(nothing_planned)?;
    let pinned = report.files.first().map(Pinned::of).ok_or_else(nothing_planned)?;
    let phase = Phase::Planned { hunk: slot.hunk.id, expires: slot.hunk.expires };
    let answer = of_plan(batch, &report, &preview, phase);
    let bytes = edit.content.len();
    author.hunks().keep(slot, Plan { batch: batch.clone(), pinned, bytes }, number, now)?;
    Ok(answer)
}

/// Applies a plan to the file that it was made for.
pub(super) fn apply(author: &Author, called: &Called, id: FilePatchId, until: &Until) -> ToolAnswer {
    let taken = author.hunks().take(id, author.member(), called.number, author.now());
    let plan = match &taken {
        Ok(plan) => plan.as_ref(),
        Err(failure) => return called.refused(std::slice::from_ref(failure)),
    };
    let called = &called.of_batch(id_block::batch_id(id.0));
    let mut seen = None;
    let mut tried = author.apply(&called.traced, None, &plan.batch, until, &mut |proposal| {
        let (file, edit) = proposal.plan.files.first().zip(plan.batch.files.first()).ok_or_else(nothing_planned)?;
        if Pinned::of(&file.report(&file.content())) != plan.pinned {
            return Err(changed_since(plan, id));
        }
        if let FileEdit::AnchorEdit(edit) = &edit.edit {
            seen = preview(edit, file, DIFF_BYTES);
        }
        Ok(())
    });
    tried.outcome = tried.outcome.map_err(|refusal| stale(refusal, plan, id));
    called.ended(&plan.batch, &tried);
    match (&tried.outcome, seen) {
        (Ok(_), Some(preview)) => {
            author.hunks().applied(id);
            of_applied(&plan.batch, &tried, &preview, id)
        }
        _ => of_batch(&plan.batch, &tried),
    }
}

/// Reports that the file changed, if a refusal shows another digest than the edit was planned for.
fn stale(refusal: Refusal, plan: &Plan, id: FilePatchId) -> Refusal {
    let is_other = |failure: &Failure| failure.current_sha256.is_some_and(|now| plan.pinned.before != Some(now));
    if refusal.failures.iter().any(is_other) { changed_since(plan, id).into() } else { refusal }
}

fn changed_since(plan: &Plan, id: FilePatchId) -> Failure {
    let message = format!("the file is not as it was when the edit {id} was prepared, and nothing was written");
    let path = plan.batch.files.first().map(|file| file.target.as_str().to_owned());
    let failure = Failure::new(Reason::FileChanged, message)
        .hint("prepare the edit again, with existing_hunk_id to take this one's place, look at it, then apply it");
    Failure { path, ..failure }
}

fn nothing_planned() -> Failure {
    Failure::new(Reason::Internal, "the edit came to no plan")
        .hint("this is a defect of the program; nothing was changed")
}
