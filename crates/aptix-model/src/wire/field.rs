//! Reads one field of an incoming message, or the changes of a file patch; what is wrong becomes a failure that names the
//! field.

use core::str::FromStr;

use prost_types::Timestamp;

use crate::digest::{DigestError, Sha256Digest};
use crate::failure::Failure;
use crate::id::{BatchId, ChangeId, IdError};
use crate::reason::{Detail, Reason};
use crate::record::UnixMillis;

/// protobuf's empty string is this crate's nothing.
pub(super) fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Refuses a message in which a field is not set.
#[must_use]
pub fn missing(field: &str, expected: &str) -> Failure {
    let message = format!("{field} is not set, expected {expected}");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::Missing).field(field)
}

pub(super) fn unexpected(field: &str, condition: &str) -> Failure {
    let message = format!("{field} is set, and is only read {condition}");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnexpectedField).field(field)
}

pub(super) fn unknown_enum(field: &str, value: i32) -> Failure {
    let message = format!("{field} has the value {value}, which this version does not know");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownEnum).field(field)
}

/// Reads a digest from the field of this name.
///
/// # Errors
/// INVALID_REQUEST (SHA_FORMAT), naming the field.
pub fn digest(field: &str, text: &str) -> Result<Sha256Digest, Failure> {
    text.parse().map_err(|error: DigestError| {
        let message = format!("{field}: {error}");
        Failure::new(Reason::InvalidRequest, message).detail(Detail::ShaFormat).field(field)
    })
}

/// Reads an id from the field of this name.
///
/// # Errors
/// INVALID_REQUEST (ID_FORMAT, or REQUEST_ID for a request id), naming the field.
pub fn id<T: FromStr<Err = IdError>>(field: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error: IdError| {
        let detail = if field == "requestId" { Detail::RequestId } else { Detail::IdFormat };
        Failure::new(Reason::InvalidRequest, format!("{error}")).detail(detail).field(field)
    })
}

/// Most failures of one message that are reported.
const FAILURES: usize = 1000;

/// Keeps a failure, unless there are too many: a message may have millions of wrong parts.
pub(super) fn note(failures: &mut Vec<Failure>, failure: Failure) {
    if failures.len() < FAILURES {
        failures.push(failure);
    }
}

/// Reads the changes of a file patch; whatever is wrong with one goes to `failures`. `read` gets the name of the
/// change's field.
pub(super) fn each<W, T>(
    file: usize,
    changes: Vec<W>,
    failures: &mut Vec<Failure>,
    read: impl Fn(&str, W) -> Result<T, Failure>,
) -> Vec<T> {
    each_below((file, 0), changes, failures, read)
}

/// Reads the changes of a part of a file patch that follow so many others.
pub(super) fn each_below<W, T>(
    (file, above): (usize, usize),
    changes: Vec<W>,
    failures: &mut Vec<Failure>,
    read: impl Fn(&str, W) -> Result<T, Failure>,
) -> Vec<T> {
    let changes = changes.into_iter().zip(above..).filter_map(|(change, position)| {
        let read = read(&format!("files[{file}].changes[{position}]"), change);
        read.map_err(|failure| note(failures, failure.change(position))).ok()
    });
    changes.collect()
}

/// Each change as a message, with its id, or an empty one where there are none.
pub(super) fn with_id<T, W>(changes: Vec<T>, ids: &[ChangeId], message: impl Fn(T, String) -> W) -> Vec<W> {
    let ids = ids.iter().map(|id| format!("{id}")).chain(core::iter::repeat(String::new()));
    changes.into_iter().zip(ids).map(|(change, id)| message(change, id)).collect()
}

/// Reads the id of a batch from a field that may be empty.
///
/// # Errors
/// INVALID_REQUEST (ID_FORMAT), naming the field.
pub fn optional_id(field: &str, text: &str) -> Result<Option<BatchId>, Failure> {
    if text.is_empty() { Ok(None) } else { id(field, text).map(Some) }
}

/// A time as milliseconds since 1970-01-01 UTC.
#[must_use]
pub fn millis(time: &Timestamp) -> UnixMillis {
    let (seconds, nanos) =
        (u64::try_from(time.seconds).unwrap_or_default(), u64::try_from(time.nanos).unwrap_or_default());
    UnixMillis(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000))
}

/// A time as RFC 3339 writes it, in UTC.
#[must_use]
pub fn rfc3339(time: UnixMillis) -> String {
    Timestamp::from(time).to_string()
}

/// Reads a time as RFC 3339 writes it; a date alone is its first moment in UTC. A time before 1970 is read as 1970.
#[must_use]
pub fn parse_time(text: &str) -> Option<UnixMillis> {
    text.parse::<Timestamp>().ok().as_ref().map(millis)
}
