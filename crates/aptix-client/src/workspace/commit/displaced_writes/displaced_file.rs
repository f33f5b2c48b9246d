//! One displaced file: its entry in the index, and its name, which holds the digest of what it held and its old name.

use aptix_model::digest::Sha256Digest;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::workspace::commit::record::{FileStep, Hex};
use crate::workspace::fs::since::Since;
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::regular;

/// Bytes that a displaced file counts for at least, which bounds how many there are.
const LEAST_BYTES: u64 = 4096;
/// Bytes of the longest name that file systems take.
const NAME_BYTES: usize = 255;
/// How the name of a displaced file ends that stays in the directory of its file.
const BESIDE: &str = ".aptix-displaced";

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
    /// The batch's entry in the history.
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
    /// A file of which only the name and the stat are known.
    pub(super) fn found(name: String, path: String, digest: Sha256Digest, stat: &Stat, since: Since) -> Self {
        let (beside, copy, stamp, entry, standing) = (None, None, None, None, Standing::Held);
        let size = regular::stated_size(stat);
        Self { name, path, beside, copy, digest: Hex(digest), stamp, since, entry, size, standing }
    }

    /// The bytes that it counts for.
    pub(super) fn counted(&self) -> u64 {
        self.size.max(LEAST_BYTES)
    }
}

/// The name of a displaced file: what no other has, the digest of what it held, and the name of the file, cut if need be.
pub(super) fn name_of(file: &FileStep, digest: Sha256Digest) -> String {
    let unique = file.staged.trim_matches('.').split('.').next().unwrap_or_default();
    let mark = format!("{unique}.{digest}-");
    let room = NAME_BYTES.saturating_sub(mark.len());
    format!("{mark}{}", file.name.split_at(file.name.floor_char_boundary(room)).0)
}

/// The name of a displaced file that stays in the directory of its file.
pub(super) fn beside(name: &str) -> String {
    let unique = name.split('.').next().unwrap_or_default();
    format!(".{unique}{BESIDE}")
}

/// The digest in the name of a displaced file, and what the file was called.
pub(super) fn parse_name(name: &str) -> Option<(Sha256Digest, &str)> {
    let (digest, name) = name.split_once('.')?.1.split_once('-')?;
    Some((digest.parse().ok()?, name))
}
