//! The gRPC protocol: generated types, and every conversion between them and the types of this crate.
//!
//! Incoming messages are checked here for what protobuf cannot say: a oneof that must be set, an enum
//! value that must be known, an id that must read as one.

mod anchor;
pub mod bytes;
mod edit;
mod event;
mod field;
pub mod fit;
mod hunks;
pub mod live;
pub mod method;
mod plan;
mod presence;
pub mod question;
mod quote;
mod record;
mod report;
mod search;
pub mod session;
mod token;
pub mod v1;

pub use event::{actor_kind, event_kind};
pub use field::{digest, id, millis, missing, optional_id, parse_time, rfc3339};
pub use record::{View, batch_state, event_message, file_ids};

/// The protocol's descriptors, for gRPC reflection: an encoded `google.protobuf.FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/aptix.v1.binpb");
