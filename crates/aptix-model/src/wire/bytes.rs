//! Batches and reports as bytes, for those who store them: protocol messages, so that what keeps the protocol readable
//! by older and newer versions keeps stored bytes readable too.

use prost::Message;

use super::v1;
use crate::batch::Batch;
use crate::plan::{Plan, Planned};
use crate::presence::Presence;
use crate::report::Report;

/// Why bytes are not what was kept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the bytes are not {kind}: {why}")]
pub struct BytesError {
    kind: &'static str,
    why: String,
}

/// A batch's content as bytes, without ids: the same for equal batches, different for any two others.
#[must_use]
pub fn batch_to_bytes(batch: &Batch) -> Vec<u8> {
    v1::Edit::from(batch.clone()).encode_to_vec()
}

/// The batch that these bytes were made of.
///
/// # Errors
/// When they were not made by [`batch_to_bytes`].
pub fn batch_from_bytes(bytes: &[u8]) -> Result<Batch, BytesError> {
    let error = |why| BytesError { kind: "a batch", why };
    let edit = v1::Edit::decode(bytes).map_err(|failure| error(failure.to_string()))?;
    Batch::try_from(edit).map_err(|failures| error(failures.iter().map(ToString::to_string).collect()))
}

/// A report as bytes.
#[must_use]
pub fn report_to_bytes(report: &Report) -> Vec<u8> {
    v1::Report::from(report.clone()).encode_to_vec()
}

/// The report that these bytes were made of.
///
/// # Errors
/// When they were not made by [`report_to_bytes`].
pub fn report_from_bytes(bytes: &[u8]) -> Result<Report, BytesError> {
    let error = |why| BytesError { kind: "a report", why };
    let report = v1::Report::decode(bytes).map_err(|failure| error(failure.to_string()))?;
    Report::try_from(report).map_err(|failures| error(failures.iter().map(ToString::to_string).collect()))
}

/// What an agent states of itself as bytes.
#[must_use]
pub fn presence_to_bytes(presence: Presence) -> Vec<u8> {
    v1::Hello::from(presence).encode_to_vec()
}

/// What an agent stated of itself.
///
/// # Errors
/// When they were not made by [`presence_to_bytes`].
pub fn presence_from_bytes(bytes: &[u8]) -> Result<Presence, BytesError> {
    let error = |why| BytesError { kind: "an agent's presence", why };
    let hello = v1::Hello::decode(bytes).map_err(|failure| error(failure.to_string()))?;
    Presence::try_from(hello).map_err(|failures| error(failures.iter().map(ToString::to_string).collect()))
}

/// A plan as bytes.
#[must_use]
pub fn plan_to_bytes(plan: &Plan) -> Vec<u8> {
    v1::Plan::from(plan.clone()).encode_to_vec()
}

/// The plan that these bytes were made of.
///
/// # Errors
/// When they were not made by [`plan_to_bytes`].
pub fn plan_from_bytes(bytes: &[u8]) -> Result<Plan, BytesError> {
    let error = |why| BytesError { kind: "a plan", why };
    let plan = v1::Plan::decode(bytes).map_err(|failure| error(failure.to_string()))?;
    match Planned::try_from(plan) {
        Ok(Planned::Plan(plan)) => Ok(plan),
        Ok(Planned::Refused(_)) => Err(error("its report is that of a refusal".to_owned())),
        Err(failures) => Err(error(failures.iter().map(ToString::to_string).collect())),
    }
}
