//! The names of objects.

use uuid::Uuid;

use crate::store::UploadId;

/// The object that has a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Object {
    pub(in super::super) upload: UploadId,
    pub(in super::super) index: i64,
    /// Sets it apart from those that other writes of the same chunk made.
    pub(in super::super) number: Uuid,
}
