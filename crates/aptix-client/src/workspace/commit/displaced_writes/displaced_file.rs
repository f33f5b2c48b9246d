//! What the index says of one displaced file.

use aptix_model::digest::Sha256Digest;
use serde::{Deserialize, Serialize};

use crate::workspace::commit::record::Hex;
use crate::workspace::fs::since::Since;
use crate::workspace::read::file_stamp::FileStamp;

/// Bytes that a displaced file counts for at least, which bounds how many there are.
const LEAST_BYTES: u64 = 4096;

/// One displaced file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DisplacedFile {
    /// Its name in the directory of displaced files.
    pub(super) name: String,
    /// Real path in the root of the file that it was.
    pub(super) path: String,
    /// The directory in the root in which it still is, where it could not be moved.
    pub(super) beside: Option<String>,
    /// Real path in the root of a copy beside the file that the commit has kept itself; there is no other file then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) copy: Option<String>,
    /// The digest of what it held when it was displaced.
    pub(super) digest: Hex,
    /// What shows that it is unchanged; absent when only its bytes can.
    pub(super) stamp: Option<FileStamp>,
    /// When it was displaced.
    pub(super) since: Since,
    /// The entry of the history that tells of the batch.
    pub(super) entry: Option<String>,
    pub(super) size: u64,
    pub(super) standing: Standing,
}

/// What is known of a displaced file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Standing {
    /// It held what it was displaced with when it was last looked at.
    Held,
    /// Another process wrote to it.
    Changed,
    /// As [`Self::Changed`], and a result has named it.
    Named,
}

impl DisplacedFile {
    /// A file that is known by its name alone.
    pub(super) const fn found(name: String, path: String, digest: Sha256Digest, size: u64, since: Since) -> Self {
        let (beside, copy, stamp, entry, standing) = (None, None, None, None, Standing::Held);
        Self { name, path, beside, copy, digest: Hex(digest), stamp, since, entry, size, standing }
    }

    /// The bytes that it counts for.
    pub(super) fn counted(&self) -> u64 {
        self.size.max(LEAST_BYTES)
    }
}
