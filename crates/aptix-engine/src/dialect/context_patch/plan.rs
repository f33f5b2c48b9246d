//! A context patch on a real file: chunks found in the file as it is, each below the one before, and made at once.

use alloc::vec::Vec;

use aptix_model::batch::ContextPatch;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::{ChangeReport, Normalization};

use super::spot::{Run, Spot, runs};
use super::{made, place};
use crate::already;
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::nearest::{line_change, old_text};
use crate::planning::draft::{Draft, finish, rename};
use crate::planning::observed::Observed;
use crate::planning::presence::{absent, check_presence, read_text};
use crate::planning::work::Work;
use crate::target::Base;
use crate::text::edit::TextEdit;
use crate::text::find::Needle;
use crate::text::line_changes::{self, LineChange, final_blank_line};
use crate::text::lines::Text;
use crate::text::outcome::change_report;

/// Plans the chunks of one file, and its move.
///
/// # Errors
/// Everything that keeps the patch from being applied.
pub(crate) fn plan<'a>(
    patch: &'a ContextPatch,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    if observed.content.is_none() && patch.chunks.is_empty() {
        return Err(absent("renamed").into());
    }
    let original = check_presence(Base::MustExist, observed)?.unwrap_or_else(|| Original::new(&[], None));
    let draft = if patch.chunks.is_empty() {
        FileAction::Edit(TextEdit::default()).into()
    } else {
        let text = read_text(&original, &work.settings.limits)?;
        made_once(patch, &text, work).map_err(|found| found.map(|failure| failure.current(original.digest(0))))?
    };
    let plan = finish(observed, Some(original), draft);
    if patch.move_to.is_some() { Ok(rename(plan, observed, work)?) } else { Ok(plan) }
}

/// What was done to the text so far.
struct Progress {
    runs: Vec<Run>,
    reports: Vec<ChangeReport>,
    /// Where the line starts below the chunk before.
    from: usize,
    /// Lines that came and went above it.
    added: usize,
    removed: usize,
}

/// The draft of all chunks, unless they could all be made once more in their own result.
fn made_once<'a>(patch: &ContextPatch, text: &Text<'_>, work: &mut Work<'_>) -> Result<Draft<'a>, Findings> {
    let (draft, first) = draft(patch, text, work)?;
    let FileAction::Edit(edit) = &draft.action else { return Ok(draft) };
    let Some(first) = first.filter(|_| edit.start().is_some()) else { return Ok(draft) };
    let refused = made::is_refused_twice(patch, &first, edit, text, work);
    if refused.map_err(|error| old_text::explain(&error, text, &Needle::lines([]), work))? {
        return Ok(draft);
    }
    let result = edit.apply(text.bytes());
    let Ok(after) = Text::new(&result) else { return Ok(draft) };
    let again = work.rehearse(|work| self::draft(patch, &after, work).map(|(draft, _)| draft.action));
    match again {
        Ok(FileAction::Edit(again)) if already::is_made_again(text.bytes(), &result, &again) => {
            Err(already::repeats(text, first.range.start).change(0).into())
        }
        _ => Ok(draft),
    }
}

/// The draft of all chunks, and the place of the first.
fn draft<'a, 'p>(
    patch: &'p ContextPatch,
    text: &Text<'_>,
    work: &mut Work<'_>,
) -> Result<(Draft<'a>, Option<Spot<'p>>), Findings> {
    let mut findings = Findings::default();
    let mut first = None;
    let (runs, reports) = (Vec::new(), Vec::with_capacity(patch.chunks.len()));
    let mut progress = Progress { runs, reports, from: text.start(), added: 0, removed: 0 };
    let mut below = patch.chunks.iter();
    for (index, chunk) in patch.chunks.iter().enumerate() {
        below.next();
        let found = place::locate(chunk, below.as_slice(), text, progress.from, work);
        let passed = found.and_then(|spot| {
            made::refuse(chunk, &spot, text, work)?;
            progress.pass(index, &spot, text, work)?;
            first.get_or_insert(spot);
            Ok(())
        });
        let Err(failure) = passed else { continue };
        // Where a chunk is not found, those below it may seem to occur at several places, or to be made already.
        let is_own = !matches!(failure.reason, Reason::TextNotUnique | Reason::AlreadyApplied);
        if findings.is_empty() || is_own {
            findings.add(|| failure.change(index));
        }
    }
    findings.check()?;
    let Progress { runs, mut reports, .. } = progress;
    let changes = runs.iter().enumerate();
    let mut changes: Vec<_> =
        changes.map(|(index, run)| LineChange::new(index, run.above, &run.old, &run.new)).collect();
    // Lines for the end of the file may be listed before others.
    changes.sort_by_key(LineChange::above);
    let lowered = line_changes::lower(text, &changes, work.settings.limits.line_bytes).map_err(|errors| {
        let mut findings = Findings::default();
        for (position, error) in &errors {
            let Some(change) = changes.get(*position) else { continue };
            let chunk = runs.get(change.index()).map_or(0, |run| run.chunk);
            findings.add(|| line_change::explain(error, text, change).change(chunk));
        }
        findings
    })?;
    let mut last = None;
    for (run, change) in runs.iter().zip(&lowered.changes) {
        let Some(report) = reports.get_mut(run.chunk) else { continue };
        if last.replace(run.chunk) != Some(run.chunk) {
            report.start_line = change.start_line;
        }
        report.end_line = change.end_line;
    }
    let normalized = Vec::from_iter(lowered.joins_last_line.then_some(Normalization::FileEofNewlineAdded));
    let warnings = Vec::from_iter(lowered.hides_blank_line.then(final_blank_line));
    let action = FileAction::Edit(lowered.edit.finished());
    Ok((Draft { action, normalized, warnings, changes: reports }, first))
}

impl Progress {
    /// Records the change of a chunk at its place, and continues below it.
    fn pass(&mut self, index: usize, spot: &Spot<'_>, text: &Text<'_>, work: &mut Work<'_>) -> Result<(), Failure> {
        let is_end = spot.range.start == text.bytes().len();
        let above = if is_end { text.lines() } else { text.lines_above(spot.range.start) };
        let runs = runs(index, above, spot, text)?;
        let new_lines = runs.iter().flat_map(|run| &run.new);
        work.take_room(new_lines.map(|line| line.len() + 2).fold(0, usize::saturating_add))?;
        let start = (above + self.added).saturating_sub(self.removed);
        self.reports.push(change_report(spot.tier, spot.candidates, start, 0));
        // Lines added at the end of the file leave everything above them to the chunks that follow.
        if !is_end {
            self.from = spot.range.end;
            self.added += runs.iter().map(|run| run.new.len()).sum::<usize>();
            self.removed += runs.iter().map(|run| run.old.len()).sum::<usize>();
        }
        self.runs.extend(runs);
        Ok(())
    }
}
