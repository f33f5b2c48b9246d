//! The fields of JSON documents, and what every dialect refuses them for: absent and foreign fields, unknown words, roots.

use super::json::{Place, instead};
use crate::failure::Failure;
use crate::path::{PathError, WorkspacePath};
use crate::reason::{Detail, Reason};

/// Failures that are listed before the rest is only counted.
pub(super) const LISTED: usize = 100;

/// The fields of one object of a document; what is wrong with them goes to `failures`.
pub(super) struct Fields<'f> {
    /// The object.
    place: Place,
    failures: &'f mut Vec<Failure>,
}

impl<'f> Fields<'f> {
    pub(super) fn new(place: Place, failures: &'f mut Vec<Failure>) -> Self {
        Self { place, failures }
    }

    pub(super) fn refuse(&mut self, field: &str, failure: Failure) {
        self.failures.push(self.place.clone().field(field).put_on(failure));
    }

    /// The value of a field; one that is absent is refused.
    pub(super) fn require<T>(&mut self, field: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            let message = format!("'{field}' is required, found nothing or null");
            let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::Missing);
            self.refuse(field, failure.hint(format!("give '{field}' a value")));
        }
        value
    }

    /// Refuses a field that does not belong to `whole`; `instead` ends the hint to leave it out.
    pub(super) fn forbid(&mut self, field: &str, is_given: bool, whole: &str, instead: &str) {
        if is_given {
            let message = format!("'{field}' does not belong to {whole}");
            let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnexpectedField);
            self.refuse(field, failure.hint(format!("leave '{field}' out{instead}")));
        }
    }

    /// Refuses the value of a field that is none of the known words.
    pub(super) fn unknown(&mut self, field: &str, word: &str, known: &[&str], detail: Detail) {
        let shown: String = word.chars().take(40).collect();
        let message = format!("unknown {field} {shown:?}, expected one of {}", known.join(", "));
        self.refuse(field, Failure::new(Reason::InvalidRequest, message).detail(detail).hint(instead(word, known)));
    }
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

/// Refuses a `root` that is not the workspace itself: the caller chooses where a document is applied, never the document.
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
