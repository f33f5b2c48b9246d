//! Limits of retention that contradict each other: a record says what became of content, so it has to be kept for as long.

use aptix_model::id::WorkspaceId;

use super::entry::Origin;
use super::fault::Fault;
use crate::store::retention::Limits;

const CONTENT_SECONDS: &str = "retention.content_seconds";
const CONTENT_BATCHES: &str = "retention.content_batches";
const RECORD_SECONDS: &str = "retention.record_seconds";
const RECORD_EVENTS: &str = "retention.record_events";
const RECORD_LEAST: &str = "retention.record_least_seconds";

/// The first contradiction between the limits of a workspace, or between those of all others. `origin` answers where a key of that name
/// is set.
pub(super) fn contradiction(
    limits: &Limits,
    workspace: Option<&WorkspaceId>,
    origin: impl Fn(&str) -> Option<Origin>,
) -> Option<Fault> {
    let seconds = |age: Option<std::time::Duration>| age.map(|age| age.as_secs());
    // Each of the first is at least the second. A batch has at least one event.
    let pairs = [
        (RECORD_SECONDS, seconds(limits.record_age), CONTENT_SECONDS, seconds(limits.content_age)),
        (RECORD_SECONDS, seconds(limits.record_age), RECORD_LEAST, Some(limits.record_least.as_secs())),
        (RECORD_EVENTS, limits.record_events, CONTENT_BATCHES, limits.content_batches),
    ];
    let (key, found, other, least) = pairs.into_iter().find_map(|(key, found, other, least)| match (found, least) {
        (Some(found), Some(least)) if found < least => Some((key, found, other, least)),
        _ => None,
    })?;
    let own = |key: &str| workspace.map(|workspace| format!("workspaces.\"{workspace}\".{key}"));
    // The fault is at the key that is too small, or at the other one where only that belongs to the workspace.
    let names = [own(key), own(other), Some(key.to_owned())];
    let origin = names.iter().flatten().find_map(|name| origin(name)).unwrap_or(Origin::Default);
    let name = match workspace {
        Some(workspace) => format!("workspaces.\"{workspace}\".{key}"),
        None => key.to_owned(),
    };
    Some(Fault::Contradiction { origin, name, found, other, least })
}
