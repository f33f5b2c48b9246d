//! What a refused call looks like on the wire: one code for each reason, the reason as `ErrorInfo`, and everything that
//! is wrong with the call's fields as `BadRequest`.

use std::collections::HashMap;

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

use crate::dispatcher::refusal::Refusal;

/// The domain of every reason.
const DOMAIN: &str = "aptix.dev";

/// Bytes of violations a status carries: it travels as a header, and clients limit those.
const VIOLATION_BYTES: usize = 4096;

/// Characters of one message.
const MESSAGE_CHARS: usize = 700;

/// The status of a refused call.
pub(super) fn status(refusal: impl Into<Refusal>) -> Status {
    let refusal = refusal.into();
    let failures = refusal.failures();
    let Some(first) = failures.first() else { return Status::internal("the call was refused") };
    let code = match refusal {
        Refusal::Invalid(_) => Code::InvalidArgument,
        Refusal::Denied(_) => code(first.reason, first.detail),
    };
    with_code(code, failures)
}

/// The status of a call that took too long.
pub(super) fn too_late(message: &str) -> Status {
    let failure = Failure::new(Reason::DeadlineExceeded, message).hint("ask what became of it, then call again");
    status(Refusal::denied(failure))
}

fn with_code(code: Code, failures: &[Failure]) -> Status {
    let Some(first) = failures.first() else { return Status::new(code, "") };
    let (violations, omitted) = violations(failures);
    let mut metadata = HashMap::new();
    if let Some(detail) = first.detail {
        metadata.insert("detail".to_owned(), detail.code().to_owned());
    }
    if omitted > 0 {
        metadata.insert("omittedViolations".to_owned(), omitted.to_string());
    }
    let mut details = ErrorDetails::with_error_info(first.reason.code(), DOMAIN, metadata);
    if !violations.is_empty() {
        details.set_bad_request(violations);
    }
    let message = match failures.len() {
        1 => sentence(first),
        count => format!("{count} things are wrong with the call, first: {}", sentence(first)),
    };
    Status::with_error_details(code, message, details)
}

/// As many violations as fit, and how many do not.
fn violations(failures: &[Failure]) -> (Vec<FieldViolation>, usize) {
    let of_fields = failures.iter().filter_map(|failure| Some((failure.field.as_ref()?, failure)));
    let mut bytes = 0;
    let mut violations = Vec::new();
    let mut omitted = 0;
    for (field, failure) in of_fields {
        let violation = FieldViolation::new(shorten(field), sentence(failure));
        bytes += violation.field.len() + violation.description.len();
        if bytes > VIOLATION_BYTES && !violations.is_empty() {
            omitted += 1;
        } else {
            violations.push(violation);
        }
    }
    (violations, omitted)
}

fn sentence(failure: &Failure) -> String {
    let detail = failure.detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
    let hint = failure.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    shorten(&format!("{}{detail}: {}{hint}", failure.reason, failure.message))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{} ...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The one code for each reason.
const fn code(reason: Reason, detail: Option<Detail>) -> Code {
    match reason {
        Reason::InvalidRequest
        | Reason::InvalidPath
        | Reason::TooLarge
        | Reason::LineRange
        | Reason::LineOverlap
        | Reason::LineOrder
        | Reason::HashFailed => Code::InvalidArgument,
        Reason::LeaseLost => match detail {
            Some(Detail::Superseded) => Code::Aborted,
            _ => Code::FailedPrecondition,
        },
        Reason::AmbiguousPath
        | Reason::ApprovalRequired
        | Reason::Rejected
        | Reason::ShaMismatch
        | Reason::ExpectedMismatch
        | Reason::AlreadyApplied
        | Reason::FileExists
        | Reason::FileMissing
        | Reason::FileChanged
        | Reason::NotText
        | Reason::DirectoryCreateFailed
        | Reason::ReadFailed
        | Reason::WriteFailed
        | Reason::NeedsOperator
        | Reason::ResultFinal
        | Reason::InvalidState
        | Reason::BlobMissing => Code::FailedPrecondition,
        Reason::PolicyDenied => Code::PermissionDenied,
        Reason::NotFound => Code::NotFound,
        Reason::RequestIdReused => Code::AlreadyExists,
        Reason::Compacted => Code::OutOfRange,
        Reason::ResourceExhausted => Code::ResourceExhausted,
        Reason::DeadlineExceeded => Code::DeadlineExceeded,
        Reason::WorkspaceBusy | Reason::Unavailable => Code::Unavailable,
        Reason::Internal => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_violations_still_fit_into_a_header() {
        let failure = Failure::new(Reason::LineRange, "x".repeat(5000)).field("files[0].changes[1].startLine");
        let status = status(vec![failure; 1000]);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.details().len() < 8192, "{} bytes", status.details().len());
        let details = status.get_error_details();
        let omitted: usize = details.error_info().unwrap().metadata["omittedViolations"].parse().unwrap();
        assert_eq!(details.bad_request().unwrap().field_violations.len() + omitted, 1000);
    }
}
