//! Prepared batches and their plans, between the wire and the model.

use super::field::{id, millis, missing, optional_id};
use super::v1;
use crate::failure::Failure;
use crate::plan::{Place, Plan, Planned};
use crate::preview::{BlanklineStyle, EditEvidence, Evidence};
use crate::record::Preparation;
use crate::report::{Outcome, Report};

/// How a batch was prepared whose edit is of this kind.
pub(super) fn message(preparation: &Preparation, kind: &str) -> v1::Preparation {
    v1::Preparation {
        owner: preparation.owner.to_string(),
        kind: kind.to_owned(),
        expire_time: Some(preparation.expires.into()),
        plan: preparation.plan.clone().map(Into::into),
        replaces: preparation.replaces.map(|id| id.to_string()).unwrap_or_default(),
    }
}

impl TryFrom<v1::Preparation> for Preparation {
    type Error = Vec<Failure>;

    /// The request that had the batch applied, and the id by which tools know its plan, are not on the wire.
    fn try_from(message: v1::Preparation) -> Result<Self, Vec<Failure>> {
        let expires = message.expire_time.as_ref().ok_or_else(|| missing("preparation.expireTime", "a time"))?;
        let plan = message.plan.map(Planned::try_from).transpose()?.map(|planned| match planned {
            Planned::Plan(plan) => Ok(plan),
            Planned::Refused(_) => Err(missing("preparation.plan.report", "the report of a batch that can be applied")),
        });
        Ok(Self {
            owner: id("preparation.owner", &message.owner)?,
            expires: millis(expires),
            plan: plan.transpose()?,
            replaces: optional_id("preparation.replaces", &message.replaces)?,
            hunk: None,
            freed: None,
        })
    }
}

impl From<Plan> for v1::Plan {
    fn from(plan: Plan) -> Self {
        let mut evidence = plan.evidence.into_iter();
        let files = plan.places.into_iter().map(|places| v1::PlannedFile {
            places: places.into_iter().map(Into::into).collect(),
            evidence: evidence.next().flatten().map(Into::into),
        });
        Self { report: Some(plan.report.into()), files: files.collect() }
    }
}

impl From<Planned> for v1::Plan {
    fn from(planned: Planned) -> Self {
        match planned {
            Planned::Plan(plan) => plan.into(),
            Planned::Refused(report) => Self { report: Some(report.into()), files: Vec::new() },
        }
    }
}

impl TryFrom<v1::Plan> for Planned {
    type Error = Vec<Failure>;

    fn try_from(message: v1::Plan) -> Result<Self, Vec<Failure>> {
        let report = message.report.ok_or_else(|| missing("plan.report", "the report that the batch would have"))?;
        let report = Report::try_from(report)?;
        if report.outcome != Outcome::Applied {
            return Ok(Self::Refused(report));
        }
        let file = |v1::PlannedFile { places, evidence }| {
            (places.into_iter().map(Into::into).collect(), evidence.map(Into::into))
        };
        let (places, evidence) = message.files.into_iter().map(file).unzip();
        Ok(Self::Plan(Plan { report, places, evidence }))
    }
}

impl From<EditEvidence> for v1::EditEvidence {
    fn from(shown: EditEvidence) -> Self {
        Self {
            old_lines: count(shown.old_lines),
            blank_lines: shown.blankline_style.map(|style| v1::BlankLines {
                file_above: style.file_above,
                content_leading: style.content_leading,
                content_trailing: style.content_trailing,
                file_below: style.file_below,
                has_above: style.has_above,
                has_below: style.has_below,
            }),
            style_warning: shown.style_warning.unwrap_or_default(),
            before: Some(shown.evidence.into()),
            after: Some(shown.apply_evidence.into()),
        }
    }
}

impl From<v1::EditEvidence> for EditEvidence {
    fn from(message: v1::EditEvidence) -> Self {
        Self {
            old_lines: message.old_lines as usize,
            blankline_style: message.blank_lines.map(|blank| BlanklineStyle {
                file_above: blank.file_above,
                content_leading: blank.content_leading,
                content_trailing: blank.content_trailing,
                file_below: blank.file_below,
                has_above: blank.has_above,
                has_below: blank.has_below,
            }),
            style_warning: Some(message.style_warning).filter(|warning| !warning.is_empty()),
            evidence: message.before.unwrap_or_default().into(),
            apply_evidence: message.after.unwrap_or_default().into(),
        }
    }
}

impl From<Evidence> for v1::ShownLines {
    fn from(Evidence { before, range, left_out, after }: Evidence) -> Self {
        let joined = |lines: Vec<String>| lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        Self { above: joined(before), range: joined(range), left_out: count(left_out), below: joined(after) }
    }
}

impl From<v1::ShownLines> for Evidence {
    fn from(message: v1::ShownLines) -> Self {
        let lines = |text: &str| text.split_terminator('\n').map(str::to_owned).collect();
        Self {
            before: lines(&message.above),
            range: lines(&message.range),
            left_out: message.left_out as usize,
            after: lines(&message.below),
        }
    }
}

fn count(lines: usize) -> u32 {
    u32::try_from(lines).unwrap_or(u32::MAX)
}

impl From<Place> for v1::Place {
    fn from(place: Place) -> Self {
        Self {
            start_line: place.start_line,
            above: place.above.into(),
            old: place.old.into(),
            new: place.new.into(),
            below: place.below.into(),
        }
    }
}

impl From<v1::Place> for Place {
    fn from(place: v1::Place) -> Self {
        Self {
            start_line: place.start_line,
            above: place.above.into(),
            old: place.old.into(),
            new: place.new.into(),
            below: place.below.into(),
        }
    }
}
