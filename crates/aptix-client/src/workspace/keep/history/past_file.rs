//! A file that a batch changed, as its entry in the history describes it.

use std::path::{Path, PathBuf};

use aptix_model::digest::Sha256Digest;
use aptix_model::path::fold;
use aptix_model::path_style::PathStyle;
use aptix_model::report::FileStatus;
use serde::{Deserialize, Serialize};

use super::passages::Passages;
use crate::workspace::commit::record::Hex;
use crate::workspace::read::attributes::Attributes;
use crate::workspace::roots::workspace::Workspace;

/// A file that a batch changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastFile {
    /// The path of its root.
    #[serde(with = "any_path")]
    pub root: PathBuf,
    /// Its path in the root.
    pub path: String,
    /// Where in the root it went, if it moved.
    pub moved_to: Option<String>,
    pub(crate) before: Option<PastBefore>,
    pub(crate) after: Option<PastAfter>,
}

impl PastFile {
    /// What the batch made of it.
    #[must_use]
    pub const fn status(&self) -> FileStatus {
        match (&self.before, &self.after, &self.moved_to) {
            (_, _, Some(_)) => FileStatus::Renamed,
            (None, ..) => FileStatus::Created,
            (Some(_), None, None) => FileStatus::Deleted,
            (Some(_), Some(_), None) => FileStatus::Modified,
        }
    }

    /// A path in the file's root as reports have it, and its lower-case key: see [`names_in`].
    pub(crate) fn names(&self, workspace: &Workspace, path: &str) -> (String, String) {
        names_in(workspace, &self.root, path)
    }

    /// Where in the root the batch left it.
    pub(crate) fn left_at(&self) -> &str {
        self.moved_to.as_deref().unwrap_or(&self.path)
    }

    /// Whether the batch moved this file to where another one was.
    pub(crate) fn moves_to(&self, other: &Self) -> bool {
        self.root == other.root && self.moved_to.as_deref() == Some(&other.path)
    }

    /// SHA-256 of the bytes before the batch; `None` where there was no file.
    pub(crate) fn digest_before(&self) -> Option<Sha256Digest> {
        self.before.as_ref().map(|before| before.digest.0)
    }

    /// SHA-256 of the bytes that the batch left; `None` where it left no file.
    pub(crate) fn digest_after(&self) -> Option<Sha256Digest> {
        self.after.as_ref().map(|after| after.digest.0)
    }
}

/// A path in a root as reports have it, and its lower-case key. In a root that is not open the path is absolute, so that the file
/// is taken for none of an open root, and the key is empty.
pub(crate) fn names_in(workspace: &Workspace, root: &Path, path: &str) -> (String, String) {
    let Some(open) = workspace.roots().iter().find(|open| open.path() == root) else {
        return (root.join(path).display().to_string(), String::new());
    };
    let doc_path = format!("{}/{}", open.name(), fold(path));
    (PathStyle::among(workspace.roots().len()).name(path, &doc_path).into_owned(), doc_path)
}

/// A file as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PastBefore {
    pub(super) digest: Hex,
    pub(crate) attributes: Attributes,
    /// How many bytes it takes, compressed; `None` if the entry would have been too large with them.
    pub(super) packed: Option<usize>,
}

/// A file as it was left: what it has in common with the file before is not kept twice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PastAfter {
    pub(super) digest: Hex,
    /// Whether it came to be run, or not to.
    pub(crate) executable: Option<bool>,
    /// Whether the replacements are kept that make it of the file before; else what is between the bytes that both have in
    /// common at their ends.
    #[serde(default, rename = "edits", skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_edits: bool,
    /// Whether passages are kept, of both files, and of the file before nothing else.
    #[serde(default, rename = "passages", skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_passages: bool,
    /// Bytes in common at the beginning, and at the end.
    pub(super) head: usize,
    pub(super) tail: usize,
    /// How many bytes it takes, compressed; `None` if the entry would have been too large with them.
    pub(super) packed: Option<usize>,
}

/// A directory that the batch made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PastDir {
    /// The path of its root.
    #[serde(with = "any_path")]
    pub(crate) root: PathBuf,
    pub(crate) parent: String,
    pub(crate) name: String,
}

/// Whether an entry of these files has what it takes to undo the batch.
pub(super) fn is_whole(files: &[PastFile]) -> bool {
    let is_kept = |file: &PastFile| {
        file.before.as_ref().is_none_or(|before| before.packed.is_some())
            && file.after.as_ref().is_none_or(|after| after.packed.is_some())
    };
    files.iter().all(is_kept)
}

/// Paths in JSON, whatever bytes they have: text where they are text.
mod any_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum AnyPath {
        Text(PathBuf),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_seq(path.as_os_str().as_bytes()),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(match AnyPath::deserialize(deserializer)? {
            AnyPath::Text(path) => path,
            AnyPath::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

/// What an entry keeps of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    /// All of it.
    Images(Images),
    /// What the batch changed, of a file that is there before and after.
    Passages(Passages),
}

impl Kept {
    /// Bytes of the file before the batch, if there was one and all of it is kept.
    pub(crate) fn size_before(&self) -> Option<usize> {
        match self {
            Self::Images(images) => images.before.as_ref().map(Vec::len),
            Self::Passages(_) => None,
        }
    }

    /// Bytes of the file as the batch left it, if it left one.
    pub(crate) fn size_after(&self) -> Option<usize> {
        match self {
            Self::Images(images) => images.after.as_ref().map(Vec::len),
            Self::Passages(passages) => Some(passages.size_after()),
        }
    }
}

/// The bytes of a file before and after a batch, as far as there was a file and they are known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Images {
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) after: Option<Vec<u8>>,
}
