//! The steps of one file folded to one edit, unless they would be made once more if they were sent twice.

use aptix_model::failure::Failure;
use aptix_model::report::Tier;

use super::check::{StepPlace, ValidStep};
use super::sequence::{First, Sequence, StepReport};
use super::step;
use crate::already::{self, Copy};
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::nearest::old_text;
use crate::planning::draft::{Draft, finish};
use crate::planning::observed::Observed;
use crate::planning::presence::{check_presence, read_text, with_current};
use crate::planning::work::Work;
use crate::target::Base;
use crate::text::edit::slice;
use crate::text::find::{self, Needle};
use crate::text::lines::Text;
use crate::text::outcome::{change_report, lines_of};

/// Plans the steps of one file.
///
/// # Errors
/// Why the first step that cannot be made cannot be made; what the steps below would meet is then not known.
pub(crate) fn plan<'a>(
    precondition: Base,
    steps: &[ValidStep<'a>],
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let original = check_presence(precondition, observed)?;
    let nothing = Original::new(&[], None);
    let base = original.as_ref().unwrap_or(&nothing);
    let text = read_text(base, &work.settings.limits)?;
    let complete = |(index, failure): (usize, Failure)| with_current(failure.change(index), original.as_ref());
    let sequence = run(steps, &text, work).map_err(complete)?;
    refuse(steps, &text, &sequence, work).map_err(complete)?;
    let warnings = sequence.warnings;
    let result = Text::new(sequence.result.as_deref().unwrap_or(base.bytes)).map_err(|error| step::not_text(&error))?;
    let report = |place: &StepReport| {
        let (above, lines) = lines_of(&result, &place.range);
        change_report(place.tier, place.candidates, above, lines)
    };
    let changes = sequence.places.iter().map(report).collect();
    let draft = Draft { action: FileAction::Edit(sequence.edit), normalized: sequence.normalized, warnings, changes };
    Ok(finish(observed, original, draft))
}

/// Makes the steps one after the other, unless they would make a file and made this one.
///
/// # Errors
/// The first step that cannot be made, and why.
fn run<'t, 's>(
    steps: &[ValidStep<'s>],
    base: &'t Text<'t>,
    work: &mut Work<'_>,
) -> Result<Sequence<'t, 's>, (usize, Failure)> {
    refuse_created(steps, base, work).map_err(|failure| (0, failure))?;
    step::run(steps, base, work)
}

/// Refuses steps that would make a file, and that made this one.
fn refuse_created(steps: &[ValidStep<'_>], base: &Text<'_>, work: &mut Work<'_>) -> Result<(), Failure> {
    let creates = steps.len() > 1 && steps.first().is_some_and(|step| step.find.is_empty());
    let Some(nothing) = Text::new(&[]).ok().filter(|_| creates && base.lines() > 0) else { return Ok(()) };
    let made = work.rehearse(|work| step::run(steps, &nothing, work).map(|made| made.result));
    let range = base.start()..base.bytes().len();
    match made {
        Ok(Some(made)) if made == slice(base.bytes(), range.clone()) => Err(already::applied(base, &Copy::made(range))),
        _ => Ok(()),
    }
}

/// Refuses steps that could all be made once more in their own result.
fn refuse(
    steps: &[ValidStep<'_>],
    text: &Text<'_>,
    sequence: &Sequence<'_, '_>,
    work: &mut Work<'_>,
) -> Result<(), (usize, Failure)> {
    let (Some(result), Some(step), Some(place)) = (&sequence.result, steps.first(), sequence.places.first()) else {
        return Ok(());
    };
    let is_alone = steps.len() == 1;
    if step.find.is_empty() && ((is_alone && !text.is_unterminated()) || text.lines() == 0) {
        return Ok(());
    }
    let is_left = |first: &First| is_alone || slice(result, place.range.clone()) == first.left;
    let is_open_end = already::is_open_end(text, &sequence.edit);
    let first = sequence.first.as_ref().filter(|first| !is_open_end && !sequence.is_choice && is_left(first));
    let all_show = !is_open_end && is_alone && step.place == StepPlace::All && place.tier <= Tier::Eol;
    // A step below could have inserted text into what is found again.
    if is_alone && first.is_some_and(|first| first.is_found_again) {
        return Ok(());
    }
    let needle = step.old_side();
    if first.is_some_and(|first| first.shows)
        || (all_show && !already::adds_nothing(needle.as_lines(), Needle::text(step.replace).as_lines()))
    {
        // Only beside what was changed can the old text occur again.
        let beside = already::neighbourhood(text, &sequence.edit, needle.as_lines().len());
        let again = find::occurs_in(&beside, &needle, work.settings.recovers, &mut work.budget);
        if !again.map_err(|error| (0, old_text::explain(&error, text, &needle, work)))? {
            return Ok(());
        }
    }
    let Ok(after) = Text::new(result) else { return Ok(()) };
    let after = after.come_from(text);
    let again = work.rehearse(|work| run(steps, &after, work).map(|again| again.edit));
    match again {
        Ok(edit) if already::is_made_again(text.bytes(), result, &edit) => {
            let at = sequence.edit.start().unwrap_or_default();
            Err((0, already::repeats(text, at)))
        }
        _ => Ok(()),
    }
}
