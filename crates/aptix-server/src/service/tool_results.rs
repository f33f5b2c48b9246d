//! The results of calls that plan or write, rendered from stored batches in the form of their tools.

use std::borrow::Cow;

use aptix_model::batch::{Batch, FileEdit};
use aptix_model::documents::terms::{Wording, in_words_of};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, FilePatchId};
use aptix_model::preview::Preview;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::BatchRecord;
use aptix_model::report::{Report, Warning};
use aptix_model::state::BatchState;
use aptix_model::tools::preview::Phase;
use aptix_model::tools::result::tool_result::{
    self, DIFF_BYTES, PREPARE_AGAIN, ToolResult, of_batch, of_document, of_previewed, of_record,
};
use aptix_model::tools::result::words::BatchWords;
use aptix_model::tools::result::{BatchResult, Stored};
use aptix_model::tools::tool::Form;

use crate::dispatcher::path_style::Naming;
use crate::dispatcher::plan_name::PlanName;

/// The warning about a plan that was moved to where its place is now.
const REBASED: &str = "REBASED";

/// The result of a call, and the batch that it is about.
pub(super) struct Answered {
    pub(super) result: ToolResult,
    /// Absent where nothing was stored.
    pub(super) batch: Option<(BatchId, BatchState)>,
}

/// The result of a call of which nothing was stored.
pub(super) fn refused(form: Form, failures: &[Failure]) -> Answered {
    Answered { result: tool_result::refused(form, failures), batch: None }
}

/// The result of a batch that was refused before it was stored.
pub(super) fn refused_batch(form: Form, batch: &Batch, failures: &[Failure], naming: &Naming) -> Answered {
    let (paths, root) = naming;
    let words = BatchWords::of(batch, *paths, root.as_deref());
    Answered { result: of_document(form, &BatchResult::new(words, Err(failures)), &[]), batch: None }
}

/// A stored batch as its author is shown it.
pub(super) struct Shown<'a> {
    pub(super) record: &'a BatchRecord,
    pub(super) naming: &'a Naming,
    /// What refusals name the parts of the batch by.
    pub(super) wording: Wording,
    /// Whether an agent serves the workspace.
    pub(super) is_served: bool,
    /// Why it ended, if it ended without a report.
    pub(super) why: Option<String>,
}

impl Shown<'_> {
    /// The result of a document's tool; `warnings` are those of the document.
    pub(super) fn document(&self, form: Form, warnings: &[Warning]) -> Answered {
        self.answered(|result| of_document(form, result, warnings))
    }

    /// The result of a call that applied a planned edit.
    pub(super) fn applied(&self, hunk: FilePatchId) -> Answered {
        let preview = self.record.report.as_ref().and_then(|report| self.preview(&trimmed(report)));
        self.answered(|result| {
            if result.is_success() {
                of_previewed(result, preview.as_ref(), Phase::Applied { hunk })
            } else {
                of_batch(result)
            }
        })
    }

    /// The result of a call that had another batch taken back.
    pub(super) fn undone(&self, of: BatchId) -> Answered {
        self.answered(|result| {
            let result = BatchResult { undoes: Some(of.to_string().into()), ..result.clone() };
            if result.is_success() { of_record(&result) } else { of_batch(&result) }
        })
    }

    /// The result of a call that planned an edit.
    pub(super) fn planned(&self) -> Answered {
        let stored = Some((self.record.id, self.record.state));
        self.with_plan()
            .unwrap_or_else(|| Answered { result: tool_result::refused(Form::Plain, &self.unusable()), batch: stored })
    }

    /// Why the plan cannot be applied: there is none, or it was used, replaced or ended before the call was repeated.
    fn unusable(&self) -> Vec<Failure> {
        match &self.record.report {
            Some(report) if !report.outcome.has_applied() => self.failures(),
            _ => {
                let name = self.record.hunk().map_or(PlanName::Batch(self.record.id), PlanName::Hunk);
                name.not_prepared(self.record).failures().to_vec()
            }
        }
    }

    /// The plan; `None` if the batch has none that can be applied.
    fn with_plan(&self) -> Option<Answered> {
        let preparation = self.record.preparation().filter(|_| self.record.state == BatchState::Prepared)?;
        let report = trimmed(&preparation.plan.as_ref()?.report);
        let preview = self.preview(&report);
        let hunk = self.record.hunk()?;
        let result = BatchResult { dry_run: true, ..self.result(Ok(Some(&report))) };
        let phase = Phase::Planned { hunk, expires: preparation.expires };
        Some(Answered {
            result: of_previewed(&result, preview.as_ref(), phase),
            batch: Some((self.record.id, self.record.state)),
        })
    }

    fn answered(&self, render: impl FnOnce(&BatchResult<'_>) -> ToolResult) -> Answered {
        let failures = self.failures();
        let report = self.record.report.as_ref().filter(|report| report.outcome.has_applied()).map(trimmed);
        let outcome = report.as_ref().map(Some).ok_or(failures.as_slice());
        Answered { result: render(&self.result(outcome)), batch: Some((self.record.id, self.record.state)) }
    }

    fn result<'a>(&'a self, outcome: Result<Option<&'a Report>, &'a [Failure]>) -> BatchResult<'a> {
        let (paths, root) = self.naming;
        let BatchRecord { id, state, ids, batch, .. } = self.record;
        BatchResult {
            stored: Some(Stored { id: *id, state: *state, ids: Cow::Borrowed(ids) }),
            ..BatchResult::new(BatchWords::of(batch, *paths, root.as_deref()), outcome)
        }
    }

    /// Why no file is as the batch describes it, or none is yet.
    fn failures(&self) -> Vec<Failure> {
        let BatchRecord { batch, report, state, .. } = self.record;
        match report {
            Some(report) => {
                let mut failures = in_words_of(self.wording, batch, report.failures.clone());
                if self.record.preparation().is_some() {
                    let stale = failures.iter_mut().filter(|failure| failure.reason == Reason::FileChanged);
                    stale.for_each(|failure| failure.hint = Some(PREPARE_AGAIN.to_owned()));
                }
                failures
            }
            None if state.is_open() => vec![self.pending()],
            None => vec![self.ended_unreported()],
        }
    }

    fn pending(&self) -> Failure {
        let (id, state) = (self.record.id, self.record.state);
        let waits = match (state, self.is_served) {
            (BatchState::PendingApproval, _) => "a reviewer has not agreed to it yet",
            (_, false) => "no agent serves the workspace at present",
            (_, true) => "the workstation has not reported yet",
        };
        let message = format!("batch {id} is stored and has not ended: {waits}");
        let hint = "do not send the edit again, it may still be applied; call again in the same way after a second to go on waiting";
        Failure::new(Reason::DeadlineExceeded, message).detail(Detail::Pending).hint(hint)
    }

    fn ended_unreported(&self) -> Failure {
        let (id, state) = (self.record.id, self.record.state);
        let why = self.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let hint = "read the files again, then send the edit as a new call if it is still wanted";
        Failure::new(Reason::InvalidState, format!("batch {id} is {state}, and was not applied{why}")).hint(hint)
    }

    /// The preview of the only edit, if it is one at an anchor whose place is known.
    fn preview(&self, report: &Report) -> Option<Preview> {
        let plan = self.record.preparation()?.plan.as_ref()?;
        let ([patch], [file]) = (self.record.batch.files.as_slice(), report.files.as_slice()) else { return None };
        let FileEdit::AnchorEdit(edit) = &patch.edit else { return None };
        let mut evidence = plan.evidence.first()?.clone()?;
        if file.warnings.iter().any(|warning| warning.code == REBASED) {
            // The lines around the place are others now.
            for around in [&mut evidence.evidence, &mut evidence.apply_evidence] {
                around.before.clear();
                around.after.clear();
            }
        }
        let diff = (!report.diff_omitted).then(|| report.diff.clone());
        Preview::of(edit.place.kind(), file, evidence, diff)
    }
}

/// A report with no more diff than a result carries.
fn trimmed(report: &Report) -> Report {
    if report.diff.len() <= DIFF_BYTES {
        return report.clone();
    }
    Report { diff: String::new(), diff_omitted: true, ..report.clone() }
}
