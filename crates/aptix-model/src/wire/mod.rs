//! The gRPC protocol: generated types, and every conversion between them and the types of this crate.

/// The generated protocol, package `aptix.v1`.
#[expect(clippy::allow_attributes_without_reason, clippy::large_enum_variant, reason = "generated")]
pub mod v1 {
    include!("generated/aptix.v1.rs");
}

/// The protocol's descriptors, for gRPC reflection: an encoded `google.protobuf.FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/aptix.v1.binpb");
