//! What a refused call looks like on the wire: one code for each reason, the reason as `ErrorInfo`, and everything that
//! is wrong with the call's fields as `BadRequest`.

use std::collections::HashMap;
use std::time::Duration;

use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, QuotaViolation, StatusExt};

use crate::dispatcher::refusal::Refusal;
use crate::mint;

/// The domain of every reason.
const DOMAIN: &str = "aptix.dev";

/// Bytes of violations a status carries. It travels in headers, of which clients take 8 KiB: the message once encoded
/// for a header, and once more, with the violations, in Base64.
const VIOLATION_BYTES: usize = 2500;

/// Bytes of a message as a header carries it.
const MESSAGE_BYTES: usize = 1500;

/// Bytes of a violation's field, and of its description.
const FIELD_BYTES: usize = 300;
const DESCRIPTION_BYTES: usize = 1500;

/// Bytes of a key of the author in a description.
const KEY_BYTES: usize = 100;

/// How long a caller waits at least before it repeats a call that found no room.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Missing blobs that a status names.
const NAMED_BLOBS: usize = 16;

/// The status of a refused call.
pub(super) fn status(refusal: impl Into<Refusal>) -> Status {
    let refusal = refusal.into();
    let failures = refusal.failures();
    let Some(first) = failures.first() else { return Status::internal("the call was refused") };
    let code = match &refusal {
        Refusal::Invalid(_) => Code::InvalidArgument,
        _ => code(first.reason, first.detail),
    };
    with_code(code, failures, &refusal)
}

/// The status of a call that took too long.
pub(super) fn too_late(message: &str) -> Status {
    let failure = Failure::new(Reason::DeadlineExceeded, message).hint("ask what became of it, then call again");
    status(Refusal::denied(failure))
}

fn with_code(code: Code, failures: &[Failure], refusal: &Refusal) -> Status {
    let Some(first) = failures.first() else { return Status::new(code, "") };
    let (violations, omitted) = violations(failures);
    let mut metadata = HashMap::new();
    if let Some(detail) = first.detail {
        metadata.insert("detail".to_owned(), detail.code().to_owned());
    }
    let places = [("fileIndex", first.file_index), ("changeIndex", first.change_index)];
    metadata.extend(places.into_iter().filter_map(|(name, index)| Some((name.to_owned(), index?.to_string()))));
    for (name, key) in [("fileKey", &first.file_key), ("changeKey", &first.change_key)] {
        metadata.extend(key.iter().map(|key| (name.to_owned(), cut(key, KEY_BYTES, char::len_utf8))));
    }
    match refusal {
        Refusal::Compacted(_, oldest, before) => {
            metadata.insert("oldest".to_owned(), oldest.to_string());
            if let Some(Cursor { history, digest, .. }) = before.as_deref() {
                metadata.insert("history".to_owned(), history.to_string());
                metadata.insert("digest".to_owned(), digest.to_string());
            }
        }
        Refusal::BlobsMissing(_, missing) => {
            let named: Vec<_> = missing.iter().take(NAMED_BLOBS).map(ToString::to_string).collect();
            metadata.insert("missingBlobs".to_owned(), missing.len().to_string());
            metadata.insert("sha256".to_owned(), named.join(","));
        }
        Refusal::OverLimit(over) => {
            metadata.insert("limit".to_owned(), over.key().to_owned());
            metadata.insert("value".to_owned(), over.value.to_string());
        }
        Refusal::Invalid(_) | Refusal::Denied(_) => {}
    }
    if omitted > 0 {
        metadata.insert("omittedViolations".to_owned(), omitted.to_string());
    }
    let mut details = ErrorDetails::with_error_info(first.reason.code(), DOMAIN, metadata);
    if !violations.is_empty() {
        details.set_bad_request(violations);
    }
    if let Refusal::OverLimit(over) = refusal {
        let description = format!("{} is {}", over.key(), over.value);
        details.set_quota_failure([QuotaViolation::new(over.subject.to_string(), description)]);
        details.set_retry_info(Some(mint::spread(over.retry)));
    } else if passes_soon(first) {
        details.set_retry_info(Some(mint::spread(RETRY_AFTER)));
    }
    let message = match failures.len() {
        1 => sentence(first),
        count => format!("{count} things are wrong with the call, first: {}", sentence(first)),
    };
    Status::with_error_details(code, cut(&message, MESSAGE_BYTES, in_header), details)
}

/// Whether the same call may succeed in a moment. An agent that nobody has started may never come.
fn passes_soon(failure: &Failure) -> bool {
    match failure.reason {
        Reason::ResourceExhausted | Reason::WorkspaceBusy => true,
        Reason::Unavailable => failure.detail != Some(Detail::NoAgent),
        _ => false,
    }
}

/// As many violations as fit, and how many do not.
fn violations(failures: &[Failure]) -> (Vec<FieldViolation>, usize) {
    let of_fields = failures.iter().filter_map(|failure| Some((failure.field.as_ref()?, failure)));
    let mut bytes = 0;
    let mut violations = Vec::new();
    let mut omitted = 0;
    for (field, failure) in of_fields {
        let description = cut(&sentence(failure), DESCRIPTION_BYTES, char::len_utf8);
        let violation = FieldViolation::new(cut(field, FIELD_BYTES, char::len_utf8), description);
        bytes += violation.field.len() + violation.description.len();
        if bytes > VIOLATION_BYTES {
            omitted += 1;
        } else {
            violations.push(violation);
        }
    }
    (violations, omitted)
}

/// What is wrong, and what its author calls the part; the next step is a line of its own.
fn sentence(failure: &Failure) -> String {
    let detail = failure.detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
    let hint = failure.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    let keys = [("fileKey", &failure.file_key), ("changeKey", &failure.change_key)];
    let keys = keys
        .into_iter()
        .filter_map(|(name, key)| Some(format!(" ({name} {:?})", cut(key.as_ref()?, KEY_BYTES, char::len_utf8))));
    format!("{}{detail}: {}{}{hint}", failure.reason, failure.message, keys.collect::<String>())
}

/// As much of a text as takes so many bytes, each character counted by `bytes`.
fn cut(text: &str, most: usize, bytes: fn(char) -> usize) -> String {
    const CUT: &str = " ...";
    let mut taken = 0;
    let mut end = 0;
    for (index, character) in text.char_indices() {
        if taken <= most.saturating_sub(2 * CUT.len()) {
            end = index;
        }
        taken += bytes(character);
        if taken > most {
            return format!("{}{CUT}", text.split_at(end).0);
        }
    }
    text.to_owned()
}

/// Bytes that a character takes in a header: what may not stand there is written as %XX, byte by byte.
fn in_header(character: char) -> usize {
    let plain =
        character.is_ascii_graphic() && !matches!(character, '"' | '#' | '%' | '<' | '>' | '`' | '?' | '{' | '}');
    if plain { 1 } else { 3 * character.len_utf8() }
}

/// The one code for each reason.
const fn code(reason: Reason, detail: Option<Detail>) -> Code {
    match reason {
        Reason::InvalidRequest
        | Reason::PatchMalformed
        | Reason::PatchTruncated
        | Reason::PatchUnsupported
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
        Reason::AmbiguousId
        | Reason::AmbiguousPath
        | Reason::ApprovalRequired
        | Reason::Rejected
        | Reason::ShaMismatch
        | Reason::ExpectedMismatch
        | Reason::TextNotFound
        | Reason::TextNotUnique
        | Reason::MatchOverlap
        | Reason::MatchBudgetExceeded
        | Reason::ClipboardMissing
        | Reason::ReindentPrecondition
        | Reason::IndexMismatch
        | Reason::NoEditFound
        | Reason::SuspectContent
        | Reason::AuthorDeclined
        | Reason::NotExpressible
        | Reason::AlreadyApplied
        | Reason::WrongOwner
        | Reason::HunkExpired
        | Reason::FileExists
        | Reason::FileMissing
        | Reason::FileChanged
        | Reason::UnsavedBuffer
        | Reason::NotText
        | Reason::DirectoryCreateFailed
        | Reason::ReadFailed
        | Reason::WriteFailed
        | Reason::NeedsOperator
        | Reason::ResultFinal
        | Reason::InvalidState
        | Reason::HistoryChanged
        | Reason::BlobMissing => Code::FailedPrecondition,
        Reason::Unauthenticated => Code::Unauthenticated,
        Reason::PolicyDenied | Reason::PermissionDenied => Code::PermissionDenied,
        Reason::NotFound => Code::NotFound,
        Reason::RequestIdReused | Reason::AlreadyExists => Code::AlreadyExists,
        Reason::Compacted => Code::OutOfRange,
        Reason::ResourceExhausted | Reason::OverLimit => Code::ResourceExhausted,
        Reason::DeadlineExceeded => Code::DeadlineExceeded,
        Reason::WorkspaceBusy | Reason::Unavailable => Code::Unavailable,
        Reason::Unimplemented => Code::Unimplemented,
        Reason::Interrupted => Code::Cancelled,
        Reason::Internal => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use aptix_model::digest::Sha256Digest;

    use super::*;

    /// Bytes of the headers that a client receives.
    fn header_bytes(status: Status) -> usize {
        let answer = status.into_http::<()>();
        answer.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
    }

    #[test]
    fn a_thousand_violations_still_fit_into_a_header() {
        for text in ["x", "\u{6f22}", "\u{1f600}", "%", "\n", "a \u{e9}"] {
            for times in [1, 500, 5000] {
                let failure = Failure::new(Reason::LineRange, text.repeat(times)).hint(text.repeat(times));
                let failure = failure.field(format!("files[0].{}", text.repeat(times)));
                for count in [1, 2, 1000] {
                    let status = status(vec![failure.clone(); count]);
                    assert_eq!(status.code(), Code::InvalidArgument);
                    let details = status.get_error_details();
                    let info = details.error_info().unwrap();
                    let omitted: usize =
                        info.metadata.get("omittedViolations").map_or(0, |count| count.parse().unwrap());
                    let said = details.bad_request().unwrap().field_violations.len();
                    assert!(said > 0 && said + omitted == count);
                    let bytes = header_bytes(status);
                    assert!(bytes < 8192, "{bytes} bytes for {count} failures of {times} times {text:?}");
                }
            }
        }
    }

    #[test]
    fn what_will_pass_soon_says_when_to_call_again() {
        let agent_lost = Failure::new(Reason::Unavailable, "x").detail(Detail::AgentLost);
        for (failure, says) in [
            (agent_lost.clone(), true),
            (Failure::new(Reason::Unavailable, "x").detail(Detail::ShuttingDown), true),
            (Failure::new(Reason::WorkspaceBusy, "x"), true),
            (Failure::new(Reason::ResourceExhausted, "x"), true),
            (Failure::new(Reason::Unavailable, "x").detail(Detail::ReadOnly), true),
            (Failure::new(Reason::DeadlineExceeded, "x"), false),
            (agent_lost.detail(Detail::NoAgent), false),
        ] {
            let status = status(Refusal::denied(failure.clone()));
            assert_eq!(status.get_error_details().retry_info().is_some(), says, "{failure}");
        }
    }

    #[test]
    fn missing_blobs_are_named_as_far_as_they_fit_and_counted() {
        let failure = Failure::new(Reason::BlobMissing, "x".repeat(5000));
        let status = status(Refusal::BlobsMissing(Box::new(failure), vec![Sha256Digest::EMPTY; 10_000]));
        assert_eq!(status.code(), Code::FailedPrecondition);
        let details = status.get_error_details();
        let metadata = &details.error_info().unwrap().metadata;
        assert_eq!(metadata["missingBlobs"], "10000");
        assert!(metadata["sha256"].split(',').all(|named| named == Sha256Digest::EMPTY.to_string()));
        assert!(header_bytes(status) < 8192);
    }
}
