//! Why a call gave no answer: the server is out of reach, or it refused, in the catalogue's words.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

use super::server_url::ServerUrl;

/// Why a call gave no answer that can be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The server cannot be reached, or gave no answer in time. Whether it acted is unknown.
    Unreachable {
        /// The server.
        server: String,
        /// What the system says.
        why: String,
    },
    /// The server refused: everything it said was wrong. Never empty.
    Refused {
        /// Everything that was wrong with the call.
        failures: Vec<Failure>,
        /// For COMPACTED: the first revision that is still kept.
        oldest: Option<u64>,
    },
    /// The server's answer cannot be understood. Never empty.
    Answer {
        /// What is wrong with it.
        failures: Vec<Failure>,
    },
}

impl CallError {
    pub(super) fn unreachable(server: &ServerUrl, error: &dyn Error) -> Self {
        Self::Unreachable { server: server.to_string(), why: innermost(error) }
    }

    pub(super) fn silent(server: &ServerUrl, waited: Duration) -> Self {
        let why = format!("no answer within {} seconds", waited.as_secs());
        Self::Unreachable { server: server.to_string(), why }
    }

    pub(super) fn answer(failures: impl Into<Vec<Failure>>) -> Self {
        Self::Answer { failures: failures.into() }
    }

    pub(super) fn from_status(server: &ServerUrl, status: &Status) -> Self {
        let details = status.get_error_details();
        let Some(info) = details.error_info() else { return Self::from_bare_status(server, status) };
        let detail = info.metadata.get("detail").and_then(|word| Detail::from_code(word));
        let whole = match Reason::from_code(&info.reason) {
            Some(Reason::Unavailable) => {
                let why = without_words(status.message()).2.to_owned();
                return Self::Unreachable { server: server.to_string(), why };
            }
            Some(reason) => Failure { detail, ..Failure::new(reason, without_words(status.message()).2) },
            None => Failure::new(Reason::Internal, format!("{}: {}", info.reason, status.message())),
        };
        let oldest = info.metadata.get("oldest").and_then(|revision| revision.parse().ok());
        let failures = violations(&details, &whole);
        Self::Refused { failures: if failures.is_empty() { vec![whole] } else { failures }, oldest }
    }

    /// A status without the catalogue's words comes from the transport, or from the gRPC library on either side.
    fn from_bare_status(server: &ServerUrl, status: &Status) -> Self {
        let lost = status.source().is_some() && matches!(status.code(), Code::Unknown | Code::Internal);
        let passing = matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled);
        if lost || passing {
            let why = match status.source() {
                Some(source) => innermost(source),
                None => status.message().to_owned(),
            };
            return Self::Unreachable { server: server.to_string(), why };
        }
        let reason = match status.code() {
            Code::InvalidArgument => Reason::InvalidRequest,
            Code::NotFound => Reason::NotFound,
            Code::OutOfRange => Reason::TooLarge,
            Code::ResourceExhausted => Reason::ResourceExhausted,
            Code::PermissionDenied | Code::Unauthenticated => Reason::PolicyDenied,
            Code::FailedPrecondition | Code::Aborted => Reason::InvalidState,
            _ => Reason::Internal,
        };
        let failure = Failure::new(reason, format!("{}: {}", status.code().description(), status.message()));
        Self::Refused { failures: vec![failure], oldest: None }
    }

    /// The first reason the server gave, if it gave one.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { failures, .. } => failures.first().map(|failure| failure.reason),
            Self::Unreachable { .. } | Self::Answer { .. } => None,
        }
    }

    /// Whether the same call may pass later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { .. } => {
                matches!(self.reason(), Some(Reason::ResourceExhausted | Reason::Internal | Reason::LeaseLost))
            }
            Self::Answer { .. } => false,
        }
    }

    /// The error as what a report or `--json` carries.
    #[must_use]
    pub fn into_failures(self) -> Vec<Failure> {
        match self {
            Self::Unreachable { .. } => vec![
                Failure::new(Reason::Unavailable, self.to_string()).hint("see that the server runs, then try again"),
            ],
            Self::Refused { failures, .. } | Self::Answer { failures } => failures,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures = match self {
            Self::Unreachable { server, why } => return write!(f, "the server {server} is out of reach: {why}"),
            Self::Refused { failures, .. } => failures,
            Self::Answer { failures } => {
                f.write_str("the server's answer cannot be understood: ")?;
                failures
            }
        };
        for (index, failure) in failures.iter().enumerate() {
            write!(f, "{}{failure}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl Error for CallError {}

/// One failure for each violation the server listed.
fn violations(details: &ErrorDetails, whole: &Failure) -> Vec<Failure> {
    let listed = details.bad_request().map(|bad| bad.field_violations.as_slice()).unwrap_or_default();
    listed.iter().map(|violation| violation_failure(violation, whole)).collect()
}

/// A violation that does not begin with the catalogue's words shares the whole call's.
fn violation_failure(violation: &FieldViolation, whole: &Failure) -> Failure {
    let (reason, detail, message) = match without_words(&violation.description) {
        (Some(reason), detail, message) => (reason, detail, message),
        (None, _, message) => (whole.reason, whole.detail, message),
    };
    let (file_index, change_index) = positions(&violation.field);
    Failure {
        detail,
        field: Some(violation.field.clone()).filter(|field| !field.is_empty()),
        file_index,
        change_index,
        ..Failure::new(reason, message)
    }
}

/// Takes the catalogue's words from the front of a sentence: `REASON (DETAIL): what is wrong`.
fn without_words(sentence: &str) -> (Option<Reason>, Option<Detail>, &str) {
    let Some((words, rest)) = sentence.split_once(": ") else { return (None, None, sentence) };
    let (reason, detail) = words.split_once(' ').unwrap_or((words, ""));
    match Reason::from_code(reason) {
        Some(reason) => (Some(reason), Detail::from_code(detail.trim_matches(['(', ')'])), rest),
        None => (None, None, sentence),
    }
}

/// The positions in `files[1].changes[2].startLine`.
fn positions(field: &str) -> (Option<usize>, Option<usize>) {
    let position = |list: &str| {
        let (_, rest) = field.split_once(list)?;
        rest.split_once(']')?.0.parse().ok()
    };
    (position("files["), position("changes["))
}

/// What went wrong at the bottom; the layers above only say that something did.
fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn server() -> ServerUrl {
        "http://127.0.0.1:1".parse().unwrap()
    }

    #[test]
    fn the_catalogues_words_survive_the_wire() {
        let mut details = ErrorDetails::with_error_info("INVALID_REQUEST", "aptix.dev", HashMap::new());
        details.add_bad_request_violation("files[0].changes[1].startLine", "LINE_RANGE (ZERO): lines count from 1");
        details.add_bad_request_violation("files[1].docPath", "has a '..' component");
        let status = Status::with_error_details(Code::InvalidArgument, "2 violations", details);
        let failures = CallError::from_status(&server(), &status).into_failures();
        assert_eq!(failures.len(), 2);
        let [first, second] = [&failures[0], &failures[1]];
        assert_eq!((first.reason, first.detail), (Reason::LineRange, Some(Detail::Zero)));
        assert_eq!(
            (first.message.as_str(), first.file_index, first.change_index),
            ("lines count from 1", Some(0), Some(1))
        );
        assert_eq!(second.reason, Reason::InvalidRequest);
        assert_eq!((second.file_index, second.change_index), (Some(1), None));
        assert_eq!(second.message, "has a '..' component");
    }

    #[test]
    fn a_word_that_is_not_known_yet_is_kept_in_the_message() {
        let details = ErrorDetails::with_error_info("NEWER_WORD", "aptix.dev", HashMap::new());
        let status = Status::with_error_details(Code::FailedPrecondition, "no", details);
        let error = CallError::from_status(&server(), &status);
        assert_eq!(error.reason(), Some(Reason::Internal));
        assert!(error.to_string().contains("NEWER_WORD: no"), "{error}");
    }

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        let bare = |code| CallError::from_status(&server(), &Status::new(code, "x"));
        for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Cancelled, Code::ResourceExhausted] {
            assert!(bare(code).is_passing(), "{code:?}");
        }
        for code in [Code::InvalidArgument, Code::NotFound, Code::OutOfRange, Code::PermissionDenied] {
            assert!(!bare(code).is_passing(), "{code:?}");
        }
    }
}
