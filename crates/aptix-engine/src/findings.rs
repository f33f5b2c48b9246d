//! Failures as they are found: all of them, as long as a reader could want to read them; and how defects and warnings are
//! reported.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::Warning;

use crate::shown::counted;

/// How many failures are listed; the rest is counted.
const LISTED: usize = 100;

/// The failure for a defect of the engine.
pub(crate) fn defect(message: impl Into<String>) -> Failure {
    Failure::new(Reason::Internal, message).hint("nothing was changed; report this")
}

/// The failure for a defect of the program that calls the engine.
pub(crate) fn defect_of_caller(message: impl Into<String>) -> Failure {
    let hint = "this is a defect of the program that applies the batch; nothing was changed";
    Failure::new(Reason::Internal, message).hint(hint)
}

/// A warning that is about no line of the author's document.
pub(crate) fn warning(code: &str, message: impl Into<String>) -> Warning {
    Warning { code: code.to_string(), message: message.into(), line: None }
}

/// What was found wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    listed: Vec<Failure>,
    unlisted: usize,
}

impl Findings {
    /// Adds a failure, which is only made while there is room for it.
    pub(crate) fn add(&mut self, failure: impl FnOnce() -> Failure) {
        if self.listed.len() >= LISTED {
            self.unlisted += 1;
        } else {
            self.listed.push(failure());
        }
    }

    /// Whether nothing was found wrong.
    pub(crate) const fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Takes over what was found elsewhere, each failure completed by `complete`.
    pub(crate) fn absorb(&mut self, other: Self, complete: impl Fn(Failure) -> Failure) {
        self.unlisted += other.unlisted;
        other.listed.into_iter().for_each(|failure| self.add(|| complete(failure)));
    }

    /// Sorts what is listed by this key; failures with the same key keep their order.
    pub(crate) fn sort_by_key<K: Ord>(&mut self, key: impl FnMut(&Failure) -> K) {
        self.listed.sort_by_key(key);
    }

    /// The same, each failure completed by `complete`.
    pub(crate) fn map(self, complete: impl Fn(Failure) -> Failure) -> Self {
        Self { listed: self.listed.into_iter().map(complete).collect(), ..self }
    }

    /// The failures; the last one then says how many more there are.
    pub(crate) fn into_failures(mut self) -> Vec<Failure> {
        if self.unlisted > 0 {
            let are = if self.unlisted == 1 { "is" } else { "are" };
            let message = format!("{} {are} not listed", counted(self.unlisted, "more failure"));
            let reason = self.listed.last().map_or(Reason::Internal, |failure| failure.reason);
            self.listed.push(Failure::new(reason, message).hint("correct the listed ones first"));
        }
        self.listed
    }

    /// Whether nothing was found wrong.
    ///
    /// # Errors
    /// What was found wrong.
    pub(crate) fn check(self) -> Result<(), Self> {
        if self.listed.is_empty() { Ok(()) } else { Err(self) }
    }

    /// A value, if nothing was found wrong.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Vec<Failure>> {
        if self.listed.is_empty() { Ok(value) } else { Err(self.into_failures()) }
    }
}

impl From<Failure> for Findings {
    fn from(failure: Failure) -> Self {
        Self { listed: vec![failure], unlisted: 0 }
    }
}
