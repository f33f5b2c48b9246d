//! The generated protocol, package `aptix.v1`.
#![expect(
    clippy::allow_attributes_without_reason,
    clippy::large_enum_variant,
    clippy::too_many_lines,
    reason = "generated"
)]

include!("generated/aptix.v1.rs");
