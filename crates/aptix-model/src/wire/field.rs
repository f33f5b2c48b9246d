//! Reads one field of an incoming message; what is wrong with it becomes a failure that names the field.

use core::str::FromStr;

use crate::digest::{DigestError, Sha256Digest};
use crate::failure::Failure;
use crate::id::IdError;
use crate::reason::{Detail, Reason};

/// protobuf's empty string is this crate's nothing.
pub(super) fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

pub(super) fn missing(field: &str, expected: &str) -> Failure {
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
