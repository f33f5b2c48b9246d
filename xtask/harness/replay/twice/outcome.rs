//! What came of an edit that was sent twice.

use aptix_model::failure::Failure;

/// What came of an edit, sent twice.
pub(super) enum Outcome {
    /// The dialect does not say it in this form.
    Unsaid(&'static str),
    /// The first time it did not do what it says.
    Wrong,
    /// The first time it was taken for a second time.
    TakenForSecond(Box<Failure>),
    /// The first time it was refused for another reason.
    Refused(Box<Failure>),
    /// The second time it was refused.
    Once(Box<Failure>),
    /// The second time it changed nothing.
    Same,
    /// The second time it changed the file again.
    Doubled,
}
