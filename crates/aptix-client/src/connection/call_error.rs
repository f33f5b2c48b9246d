//! Why a call failed: the server is unreachable, or it refused with reasons of the catalogue.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::id::Revision;
use aptix_model::reason::{Detail, Reason};
use tokio_rustls::rustls::{Error as TlsError, InvalidMessage};
use tonic::{Code, Status};
use tonic_types::{FieldViolation, StatusExt};

use super::position::Position;
use super::server_url::ServerUrl;

/// What to do about a server that does not know a call.
const NO_SUCH_CALL: &str = "update the server, or run an aptix of the server's version";

/// What to do about a server that does not prove who it is.
const UNTRUSTED: &str =
    "see that the address names the server as its certificate does, and name its authority with --ca FILE";

/// What to do about a server that answers without TLS.
const NO_TLS: &str = "use http://HOST:PORT, or configure `[tls]` at the server";

/// What to do about a server that does not accept who this side is.
const UNACCEPTED: &str =
    "see that --client-certificate FILE is of an authority that the server trusts and has not expired";

/// What the text of an error begins with that is an alert of TLS.
const ALERT: &str = "received fatal alert: ";

/// Why a call gave no usable answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// The server cannot be reached, or gave no answer in time. Whether it acted is unknown.
    #[error("the server {server} is out of reach: {why}")]
    Unreachable {
        /// The server.
        server: String,
        /// The system's message.
        why: String,
        /// The least time to wait before the call is made again, if the server stated one.
        retry_after: Option<Duration>,
    },
    /// The server answered that it cannot do now what it was asked for. Whether it acted is unknown.
    #[error("the server {server} cannot do it now: {message}; {hint}")]
    Unavailable {
        /// The server.
        server: String,
        /// What is in the way.
        message: String,
        /// The finer word, if the server gave one.
        detail: Option<Detail>,
        /// What to do about it.
        hint: String,
        /// The least time to wait before the call is made again, if the server stated one.
        retry_after: Option<Duration>,
    },
    /// What listens there does not speak TLS. Nothing of the call was sent to it.
    #[error("the server {server} does not speak TLS there; {NO_TLS}")]
    NoTls {
        /// The server.
        server: String,
    },
    /// The server does not prove that it is the one that was asked for. Nothing was sent to it.
    #[error("the server {server} is not trusted: {why}; {UNTRUSTED}")]
    Untrusted {
        /// The server.
        server: String,
        /// What is wrong.
        why: String,
    },
    /// The server refuses the certificate of this side. The call did not reach it.
    #[error("the server {server} refuses the connection: {why}; {UNACCEPTED}")]
    Unaccepted {
        /// The server.
        server: String,
        /// The alert of TLS.
        why: String,
    },
    /// The server does not know the call: it is of another version, or a program that is no Aptix server.
    #[error("the server {server} does not know a call of aptix {}; {NO_SUCH_CALL}", env!("CARGO_PKG_VERSION"))]
    NoSuchCall {
        /// The server.
        server: String,
    },
    /// The server refused the call.
    #[error("{}", list(failures))]
    Refused {
        /// Everything that was wrong with the call, never empty.
        failures: Vec<Failure>,
        /// For COMPACTED: the position before the first event that is still kept.
        beginning: Option<Position>,
        /// The least time to wait before the call is made again, if the server stated one.
        retry_after: Option<Duration>,
    },
    /// The server's answer cannot be understood.
    #[error("the server's answer cannot be understood: {}", list(failures))]
    Answer {
        /// What is wrong with it, never empty.
        failures: Vec<Failure>,
    },
}

impl CallError {
    pub(super) fn unreachable(server: &ServerUrl, why: String) -> Self {
        Self::Unreachable { server: server.to_string(), why, retry_after: None }
    }

    /// The server refused a call for this reason, or would.
    pub(crate) fn refused(failure: Failure) -> Self {
        Self::Refused { failures: vec![failure], beginning: None, retry_after: None }
    }

    /// A connection that could not be opened.
    pub(super) fn from_transport(server: &ServerUrl, error: &tonic::transport::Error) -> Self {
        let why = innermost(error);
        match tls_error(error) {
            // An alert is what the server found wrong.
            Some(TlsError::AlertReceived(_)) => Self::Unaccepted { server: server.to_string(), why },
            Some(TlsError::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                Self::NoTls { server: server.to_string() }
            }
            Some(_) => Self::Untrusted { server: server.to_string(), why },
            None => Self::unreachable(server, why),
        }
    }

    pub(super) fn silent(server: &ServerUrl, waited: Duration) -> Self {
        Self::unreachable(server, format!("no answer within {} seconds", waited.as_secs()))
    }

    pub(super) fn from_status(server: &ServerUrl, status: &Status) -> Self {
        let details = status.get_error_details();
        let Some(info) = details.error_info() else { return Self::from_bare_status(server, status) };
        let retry_after = details.retry_info().and_then(|info| info.retry_delay);
        let detail = info.metadata.get("detail").and_then(|word| Detail::from_code(word));
        let (sentence, hint) = without_hint(status.message());
        let message = without_reason(sentence).2;
        let whole = match Reason::from_code(&info.reason) {
            Some(Reason::Unavailable) => {
                let (server, message) = (server.to_string(), message.to_owned());
                let hint = hint.unwrap_or_else(|| "try again later".to_owned());
                return Self::Unavailable { server, message, detail, hint, retry_after };
            }
            Some(Reason::Unimplemented) => return Self::NoSuchCall { server: server.to_string() },
            Some(reason) => Failure { detail, hint, ..Failure::new(reason, message) },
            None => Failure { hint, ..Failure::new(Reason::Internal, format!("{}: {sentence}", info.reason)) },
        };
        let beginning = beginning(&info.metadata);
        let violations = details.bad_request().map(|bad| bad.field_violations.as_slice()).unwrap_or_default();
        let mut failures: Vec<_> = violations.iter().map(|violation| violation_failure(violation, &whole)).collect();
        if failures.is_empty() {
            failures.push(whole);
        }
        Self::Refused { failures, beginning, retry_after }
    }

    /// A status without a reason comes from the transport, or from the gRPC library on either side.
    fn from_bare_status(server: &ServerUrl, status: &Status) -> Self {
        let why = status.source().map_or_else(|| status.message().to_owned(), innermost);
        // The server's alert comes after the handshake has ended on this side, and HTTP/2 keeps only the text of the error.
        if why.starts_with(ALERT) {
            return Self::Unaccepted { server: server.to_string(), why };
        }
        let lost = status.source().is_some() && matches!(status.code(), Code::Unknown | Code::Internal);
        let passing = matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled);
        if lost || passing {
            return Self::unreachable(server, why);
        }
        let reason = match status.code() {
            Code::Unimplemented => return Self::NoSuchCall { server: server.to_string() },
            Code::InvalidArgument => Reason::InvalidRequest,
            Code::NotFound => Reason::NotFound,
            Code::OutOfRange => Reason::TooLarge,
            Code::ResourceExhausted => Reason::ResourceExhausted,
            Code::PermissionDenied => Reason::PermissionDenied,
            Code::Unauthenticated => Reason::Unauthenticated,
            Code::FailedPrecondition | Code::Aborted => Reason::InvalidState,
            _ => Reason::Internal,
        };
        let failure = Failure::new(reason, format!("{}: {}", status.code().description(), status.message()));
        Self::refused(failure)
    }

    /// The first reason the server gave, if it gave one.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { failures, .. } => failures.first().map(|failure| failure.reason),
            Self::Unavailable { .. } => Some(Reason::Unavailable),
            Self::Unreachable { .. }
            | Self::NoTls { .. }
            | Self::Untrusted { .. }
            | Self::Unaccepted { .. }
            | Self::NoSuchCall { .. }
            | Self::Answer { .. } => None,
        }
    }

    /// The least time to wait before the call is made again, if the server stated one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unreachable { retry_after, .. }
            | Self::Unavailable { retry_after, .. }
            | Self::Refused { retry_after, .. } => *retry_after,
            Self::NoTls { .. }
            | Self::Untrusted { .. }
            | Self::Unaccepted { .. }
            | Self::NoSuchCall { .. }
            | Self::Answer { .. } => None,
        }
    }

    /// Whether the server was not reached, or answered that it cannot do the call now.
    #[must_use]
    pub(crate) const fn is_outage(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Unavailable { .. })
    }

    /// Whether the same call may succeed later. A server that does not know the call may be updated, one without TLS may be given it,
    /// and either side may get another certificate.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Unavailable { .. }
                | Self::NoTls { .. }
                | Self::Untrusted { .. }
                | Self::Unaccepted { .. }
                | Self::NoSuchCall { .. }
        ) || matches!(
            self.reason(),
            Some(
                Reason::ResourceExhausted
                    | Reason::OverLimit
                    | Reason::DeadlineExceeded
                    | Reason::Internal
                    | Reason::LeaseLost
            )
        )
    }

    /// The error as what a report or `--json` carries.
    #[must_use]
    pub fn into_failures(self) -> Vec<Failure> {
        match self {
            Self::Unreachable { .. } => vec![
                Failure::new(Reason::Unavailable, self.to_string()).hint("see that the server runs, then try again"),
            ],
            Self::Unavailable { server, message, detail, hint, .. } => {
                let message = format!("the server {server} cannot do it now: {message}");
                vec![Failure { detail, ..Failure::new(Reason::Unavailable, message).hint(hint) }]
            }
            Self::NoTls { server } => {
                let message = format!("the server {server} does not speak TLS there");
                vec![Failure::new(Reason::Unavailable, message).hint(NO_TLS)]
            }
            Self::Untrusted { server, why } => {
                let message = format!("the server {server} is not trusted: {why}");
                vec![Failure::new(Reason::Unavailable, message).hint(UNTRUSTED)]
            }
            Self::Unaccepted { server, why } => {
                let message = format!("the server {server} refuses the connection: {why}");
                vec![Failure::new(Reason::Unavailable, message).hint(UNACCEPTED)]
            }
            Self::NoSuchCall { server } => {
                let message =
                    format!("the server {server} does not know a call of aptix {}", env!("CARGO_PKG_VERSION"));
                vec![Failure::new(Reason::Unavailable, message).hint(NO_SUCH_CALL)]
            }
            Self::Refused { failures, .. } | Self::Answer { failures } => failures,
        }
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        vec![failure].into()
    }
}

impl From<Vec<Failure>> for CallError {
    fn from(failures: Vec<Failure>) -> Self {
        Self::Answer { failures }
    }
}

/// The position before the first event that is still kept, as the details of COMPACTED have it.
fn beginning(metadata: &HashMap<String, String>) -> Option<Position> {
    let oldest: u64 = metadata.get("oldest")?.parse().ok()?;
    let revision = Revision(oldest.saturating_sub(1));
    let cursor = || {
        let (history, digest) = (metadata.get("history")?.parse().ok()?, metadata.get("digest")?.parse().ok()?);
        Some(Cursor { history, revision, digest })
    };
    Some(cursor().map_or(Position::Revision(revision), Position::Cursor))
}

fn list(failures: &[Failure]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The failure of one field. A description that does not begin with a reason shares the whole call's.
fn violation_failure(violation: &FieldViolation, whole: &Failure) -> Failure {
    let (sentence, hint) = without_hint(&violation.description);
    let (reason, detail, message) = without_reason(sentence);
    let (reason, detail) = reason.map_or((whole.reason, whole.detail), |reason| (reason, detail));
    let (file_index, change_index) = positions(&violation.field);
    Failure {
        detail,
        hint,
        field: Some(violation.field.clone()).filter(|field| !field.is_empty()),
        file_index,
        change_index,
        ..Failure::new(reason, message)
    }
}

/// What is wrong, and the next step, which is a line of its own.
fn without_hint(text: &str) -> (&str, Option<String>) {
    text.split_once("\nhint: ").map_or((text, None), |(sentence, hint)| (sentence, Some(hint.to_owned())))
}

/// Splits `REASON (DETAIL): what is wrong`; without a known reason the whole sentence is the message.
fn without_reason(sentence: &str) -> (Option<Reason>, Option<Detail>, &str) {
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

/// The error of TLS that caused another one, if one did.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e TlsError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An error of I/O does not name the one that it wraps as its source, but the source of that.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

/// The message of the root cause; the layers above it only say that something failed.
pub(super) fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;

    fn server() -> ServerUrl {
        "http://127.0.0.1:1".parse().unwrap()
    }

    #[test]
    fn reasons_survive_the_wire() {
        let mut details = ErrorDetails::with_error_info("INVALID_REQUEST", "aptix.dev", HashMap::new());
        details.add_bad_request_violation(
            "files[0].changes[1].startLine",
            "LINE_RANGE (ZERO): lines count from 1\nhint: begin with 1",
        );
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
        assert_eq!((first.hint.as_deref(), second.hint.as_deref()), (Some("begin with 1"), None));
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

    /// A server that answers is not out of reach: its reason and its hint are shown, and the call may be made again.
    #[test]
    fn what_a_server_cannot_do_now_is_told_in_its_words() {
        let metadata = HashMap::from([("detail".to_owned(), "NO_AGENT".to_owned())]);
        let mut details = ErrorDetails::with_error_info("UNAVAILABLE", "aptix.dev", metadata);
        details.set_retry_info(Some(Duration::from_secs(2)));
        let message = "UNAVAILABLE (NO_AGENT): no agent serves the workspace demo\nhint: start `aptix agent`";
        let error = CallError::from_status(&server(), &Status::with_error_details(Code::Unavailable, message, details));
        assert!(error.is_passing() && error.is_outage());
        assert_eq!((error.reason(), error.retry_after()), (Some(Reason::Unavailable), Some(Duration::from_secs(2))));
        let sentence = "the server http://127.0.0.1:1 cannot do it now: no agent serves the workspace demo";
        assert_eq!(error.to_string(), format!("{sentence}; start `aptix agent`"));
        let failures = error.into_failures();
        assert_eq!(failures.len(), 1);
        assert_eq!((failures[0].reason, failures[0].detail), (Reason::Unavailable, Some(Detail::NoAgent)));
        assert_eq!(
            (failures[0].message.as_str(), failures[0].hint.as_deref()),
            (sentence, Some("start `aptix agent`"))
        );

        // Without a reason the status is of the transport.
        let lost = CallError::from_status(&server(), &Status::unavailable("the connection is gone"));
        assert!(lost.is_passing() && lost.is_outage() && lost.reason().is_none());
        let failures = lost.into_failures();
        assert!(failures[0].message.contains("is out of reach: the connection is gone"), "{failures:?}");
        assert_eq!(failures[0].hint.as_deref(), Some("see that the server runs, then try again"));
    }

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        let bare = |code| CallError::from_status(&server(), &Status::new(code, "x"));
        for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Cancelled, Code::ResourceExhausted] {
            assert!(bare(code).is_passing(), "{code:?}");
        }
        assert!(bare(Code::Unimplemented).is_passing());
        for code in [Code::InvalidArgument, Code::NotFound, Code::OutOfRange, Code::PermissionDenied] {
            assert!(!bare(code).is_passing(), "{code:?}");
        }
    }
}
