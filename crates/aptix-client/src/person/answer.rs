//! What a person answered, wherever they were asked.

use std::time::Duration;

use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;

/// Characters of a person's reason that reach the author.
const REASON_CHARS: usize = 2000;

/// A person's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    /// Whether to apply the batch; if not, the failures say why.
    pub(crate) verdict: Result<(), Vec<Failure>>,
    /// The files never to ask about again, by the positions of their patches.
    pub(crate) always: Vec<usize>,
    /// Where others are refused: the files that are right all the same, and that need not be asked about once more.
    pub(crate) agreed: Vec<usize>,
}

impl Answer {
    pub(crate) const fn yes(always: Vec<usize>) -> Self {
        Self { verdict: Ok(()), always, agreed: Vec::new() }
    }

    pub(crate) fn no(failure: Failure) -> Self {
        Self { verdict: Err(vec![failure]), always: Vec::new(), agreed: Vec::new() }
    }

    /// No one answered in time.
    pub(crate) fn too_late(waited: Duration) -> Self {
        let message = format!("a person has to agree, and no one answered within {} seconds", waited.as_secs());
        let hint = "send the batch again when a person can answer";
        Self::no(Failure::new(Reason::ApprovalRequired, message).hint(hint))
    }
}

/// That a person said no to something, and why.
pub(crate) fn refusal(what: &str, why: &str) -> Failure {
    let mut message = format!("a person looked at the {what} and said no");
    let why = why.trim();
    if !why.is_empty() {
        message.push_str(": ");
        message.extend(why.chars().take(REASON_CHARS));
    }
    let hint = "change what the reviewer asked for before resubmitting";
    Failure::new(Reason::Rejected, Visible(&message).to_string()).hint(hint)
}
