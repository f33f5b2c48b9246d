//! The record of one commit: everything that is needed to carry it out or to roll it back.

use aptix_model::digest::Sha256Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::workspace::commit::taken::Taken;
use crate::workspace::roots::root_mark::RootMark;

/// How far a commit has come; the word is the record's file name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::workspace) enum Stage {
    /// New files are being put beside the old ones.
    Staging,
    /// The batch will be carried out, whatever happens.
    Committed,
    /// The batch failed half-way and is being taken back.
    Undoing,
    /// The batch is carried out; what it kept of the old files is being cleared away.
    Finishing,
}

impl Stage {
    pub(in crate::workspace) const ALL: [Self; 4] = [Self::Staging, Self::Committed, Self::Undoing, Self::Finishing];

    pub(in crate::workspace) const fn name(self) -> &'static str {
        match self {
            Self::Staging => "staging",
            Self::Committed => "committed",
            Self::Undoing => "undoing",
            Self::Finishing => "finishing",
        }
    }
}

/// Everything that is needed to carry a commit out or to take it back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Record {
    /// In which time since a start of the system it was made.
    pub(in crate::workspace) boot: String,
    /// The roots of the workspace.
    pub(in crate::workspace) roots: Vec<RootMark>,
    /// What the batch leaves on the clipboards of its session, once it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::workspace) clipboards: Option<Taken>,
    /// Set by a mode that earlier versions had; such a record is refused, never acted on (`written_ahead.rs`).
    #[serde(default, skip_serializing)]
    pub(in crate::workspace) ahead: Option<u64>,
    /// What is needed to undo the batch is kept under this name, once it is carried out.
    pub(in crate::workspace) history: Option<String>,
    /// Whose receipt this becomes.
    pub(in crate::workspace) batch: Option<String>,
    /// Directories that did not exist, parents first.
    pub(in crate::workspace) dirs: Vec<NewDir>,
    /// Directories that are removed once the batch is carried out, if they are empty; parents first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::workspace) emptied: Vec<NewDir>,
    /// The files that change.
    pub(in crate::workspace) files: Vec<FileStep>,
}

/// A directory that the commit makes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct NewDir {
    pub(in crate::workspace) root: usize,
    pub(in crate::workspace) parent: String,
    pub(in crate::workspace) name: String,
}

/// One name that comes to mean something else. A file that moves is two of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct FileStep {
    pub(in crate::workspace) root: usize,
    pub(in crate::workspace) dir: String,
    pub(in crate::workspace) name: String,
    /// The name under which the new file is staged, and the old one is kept afterwards.
    pub(in crate::workspace) staged: String,
    /// The digest of the old bytes; absent when there is no old file.
    pub(in crate::workspace) before: Option<Hex>,
    /// The digest of the new bytes; absent when the file goes.
    pub(in crate::workspace) after: Option<Hex>,
    /// Whether the new file can be run, where that is not so of the old one.
    pub(in crate::workspace) executable: Option<bool>,
}

impl FileStep {
    /// The real path in the root.
    pub(in crate::workspace) fn real(&self) -> String {
        if self.dir.is_empty() { self.name.clone() } else { format!("{}/{}", self.dir, self.name) }
    }
}

/// A digest as a record spells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::workspace) struct Hex(pub(in crate::workspace) Sha256Digest);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(serde::de::Error::custom)
    }
}
