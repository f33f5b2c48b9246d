//! The steps of one file folded to one edit.

use aptix_model::failure::Failure;

use super::check::ValidStep;
use super::course::StepReport;
use super::{repeat, step};
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::planning::draft::{Draft, finish};
use crate::planning::observed::Observed;
use crate::planning::presence::{check_presence, read_text};
use crate::planning::work::Work;
use crate::target::Base;
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
    let complete = |(index, failure): (usize, Failure)| match &original {
        Some(original) => failure.change(index).current(original.digest(0)),
        None => failure.change(index),
    };
    let course = repeat::run(steps, &text, work).map_err(complete)?;
    repeat::refuse(steps, &text, &course, work).map_err(complete)?;
    let warnings = course.warnings;
    let result = Text::new(course.result.as_deref().unwrap_or(base.bytes)).map_err(|error| step::not_text(&error))?;
    let report = |place: &StepReport| {
        let (above, lines) = lines_of(&result, &place.range);
        change_report(place.tier, place.candidates, above, lines)
    };
    let changes = course.places.iter().map(report).collect();
    let draft = Draft { action: FileAction::Edit(course.edit), normalized: course.normalized, warnings, changes };
    Ok(finish(observed, original, draft))
}
