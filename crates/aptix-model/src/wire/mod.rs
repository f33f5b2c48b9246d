//! The gRPC protocol: generated types, and every conversion between them and the types of this crate.
//!
//! Incoming messages are checked here for what protobuf cannot say: a oneof that must be set, an enum
//! value that must be known, an id that must read as one.

mod anchor;
pub mod bytes;
mod cursor;
mod edit;
mod hunks;
mod quote;
mod record;
mod report;
mod search;

use std::string::String;

use crate::digest::Sha256Digest;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

pub use record::{event_message, file_ids, listed_message};

/// The generated protocol, package `aptix.v1`.
#[expect(clippy::allow_attributes_without_reason, clippy::large_enum_variant, reason = "generated")]
pub mod v1 {
    include!("generated/aptix.v1.rs");
}

/// The protocol's descriptors, for gRPC reflection: an encoded `google.protobuf.FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/aptix.v1.binpb");

/// A batch as bytes: the same ones for batches that say the same, others for any that does not.
#[must_use]
pub fn canonical_bytes(batch: &crate::batch::Batch) -> std::vec::Vec<u8> {
    prost::Message::encode_to_vec(&v1::Edit::from(batch.clone()))
}

/// protobuf's empty string is this crate's nothing.
fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn missing(field: &str, expected: &str) -> Failure {
    let message = std::format!("{field} is not set, expected {expected}");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::Missing).field(field)
}

fn unexpected(field: &str, condition: &str) -> Failure {
    let message = std::format!("{field} is set, and is only read {condition}");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnexpectedField).field(field)
}

fn unknown_enum(field: &str, value: i32) -> Failure {
    let message = std::format!("{field} has the value {value}, which this version does not know");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownEnum).field(field)
}

/// Reads a digest from the field of this name.
///
/// # Errors
/// INVALID_REQUEST (SHA_FORMAT), naming the field.
pub fn digest(field: &str, text: &str) -> Result<Sha256Digest, Failure> {
    text.parse().map_err(|error: crate::digest::DigestError| {
        let message = std::format!("{field}: {error}");
        Failure::new(Reason::InvalidRequest, message).detail(Detail::ShaFormat).field(field)
    })
}

/// Reads an id from the field of this name.
///
/// # Errors
/// INVALID_REQUEST (ID_FORMAT, or REQUEST_ID for a request id), naming the field.
pub fn id<T: core::str::FromStr<Err = crate::id::IdError>>(field: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error: crate::id::IdError| {
        let detail = if field == "requestId" { Detail::RequestId } else { Detail::IdFormat };
        Failure::new(Reason::InvalidRequest, std::format!("{error}")).detail(detail).field(field)
    })
}
