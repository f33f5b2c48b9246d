//! The generated protocol, package `aptix.v1`.
#![expect(clippy::allow_attributes_without_reason, clippy::large_enum_variant, reason = "generated")]

include!("generated/aptix.v1.rs");
