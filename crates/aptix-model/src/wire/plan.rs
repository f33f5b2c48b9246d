//! Prepared batches and their plans, between the wire and the model.

use super::field::{id, millis, missing, optional_id};
use super::v1;
use crate::failure::Failure;
use crate::plan::{Place, Plan, Planned};
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

    /// The request that had the batch applied is not on the wire.
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
            freed: None,
        })
    }
}

impl From<Plan> for v1::Plan {
    fn from(plan: Plan) -> Self {
        let files = plan
            .places
            .into_iter()
            .map(|places| v1::PlannedFile { places: places.into_iter().map(Into::into).collect() });
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
        let places = |file: v1::PlannedFile| file.places.into_iter().map(Into::into).collect();
        Ok(Self::Plan(Plan { report, places: message.files.into_iter().map(places).collect() }))
    }
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
