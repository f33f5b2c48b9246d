//! How records are written as bytes, in whatever store: each begins with a version and a checksum, so that a damaged one is
//! found and is never taken for other data.

pub(in crate::store) mod batch_record;
pub(in crate::store) mod record;
pub(in crate::store) mod retention_record;
pub(in crate::store) mod session_record;
pub(in crate::store) mod token_record;
