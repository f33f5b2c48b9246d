//! What JSON documents of every dialect are refused for alike: fields that are missing, roots that are not there.

use crate::failure::Failure;
use crate::path::{PathError, WorkspacePath};
use crate::reason::{Detail, Reason};
use crate::report::Warning;

/// Failures that are listed before the rest is only counted.
const LISTED: usize = 100;

/// Refuses a document without a field that it needs.
pub(super) fn required(field: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("'{field}' is required, found nothing or null"))
        .detail(Detail::Missing)
        .hint(format!("give '{field}' a value"))
}

/// A text that is not empty: providers that require every field send an empty one for a field without a value.
pub(crate) fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// The first failures, and how many more there are.
pub(super) fn listed(mut failures: Vec<Failure>) -> Vec<Failure> {
    let more = failures.len().saturating_sub(LISTED);
    failures.truncate(LISTED);
    if more > 0 {
        failures.push(Failure::new(Reason::InvalidRequest, format!("{more} more violations are not listed")));
    }
    failures
}

/// Refuses a `root` that is not the workspace itself: whoever applies a document chooses where, never the document.
pub(super) fn check_root(root: Option<&str>) -> Result<(), Failure> {
    let Some(root) = root.filter(|root| !matches!(*root, "" | "." | "./")) else { return Ok(()) };
    let shown: String = root.chars().take(100).collect();
    let message = format!("'root' is absent or \".\", found {shown:?}");
    let failure = match WorkspacePath::new(root) {
        Err(error) if error != PathError::Empty => Failure::new(Reason::InvalidPath, message).detail(error.detail()),
        _ => Failure::new(Reason::InvalidRequest, message).detail(Detail::Root),
    };
    Err(failure.field("root").hint("leave 'root' out, and give each path from the workspace's root down"))
}

/// Warns of ids in a request: the server mints them.
pub(super) fn id_ignored(field: &str) -> Warning {
    Warning {
        code: "ID_IGNORED".into(),
        message: format!("{field} is given by the server; the one in the document has no effect"),
        line: None,
    }
}
