//! The record of one commit: everything that is needed to carry it out or to roll it back.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use aptix_engine::planning::clipboards::Clipboards;
use aptix_model::digest::Sha256Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::workspace::commit::change::Step;
use crate::workspace::commit::staged_name::staged_name;
use crate::workspace::read::place::Place;
use crate::workspace::roots::root::RootMark;
use crate::workspace::roots::workspace::Workspace;

/// How far a commit has come; the word is the record's file name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
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
    pub(crate) const ALL: [Self; 4] = [Self::Staging, Self::Committed, Self::Undoing, Self::Finishing];

    pub(crate) const fn name(self) -> &'static str {
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
pub(crate) struct Record {
    /// In which time since a start of the system it was made.
    pub(crate) boot: String,
    /// The roots of the workspace.
    pub(crate) roots: Vec<RootMark>,
    /// What the batch leaves on the clipboards of its session, once it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clipboards: Option<Taken>,
    /// Set by a mode that earlier versions had; such a record is refused, never acted on (`written_ahead.rs`).
    #[serde(default, skip_serializing)]
    pub(crate) ahead: Option<u64>,
    /// The batch that applies a prepared edit: that one is marked as applied, once it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prepared: Option<String>,
    /// What is needed to undo the batch is kept under this name, once it is carried out.
    pub(crate) history: Option<String>,
    /// Whose receipt this becomes.
    pub(crate) batch: Option<String>,
    /// Directories that did not exist, parents first.
    pub(crate) dirs: Vec<NewDir>,
    /// Directories that are removed once the batch is carried out, if they are empty; parents first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) emptied: Vec<NewDir>,
    /// The files that change.
    pub(crate) files: Vec<FileStep>,
}

impl Record {
    /// The record of these steps, with nothing besides. Chooses every name; touches nothing.
    pub(crate) fn draft(workspace: &Workspace, steps: &[Step<'_>]) -> Self {
        let path = |root| workspace.root(root).map_or(OsStr::new(""), |root| root.path().as_os_str());
        let files = steps.iter().map(|step| FileStep {
            root: step.place.root,
            dir: step.place.dir.clone(),
            name: step.place.name.clone(),
            staged: staged_name(path(step.place.root)),
            before: step.before.map(Hex),
            after: step.content.map(|content| Hex(content.digest)),
            executable: step.executable(),
        });
        Self {
            boot: workspace.disk().boot(),
            roots: workspace.roots().iter().map(|root| root.mark.clone()).collect(),
            clipboards: None,
            ahead: None,
            prepared: None,
            history: None,
            batch: None,
            dirs: missing_dirs(steps.iter().map(|step| step.place)),
            emptied: Vec::new(),
            files: files.collect(),
        }
    }
}

/// The directories that have to be made for files in these places, parents first.
pub(crate) fn missing_dirs<'p>(places: impl Iterator<Item = &'p Place>) -> Vec<NewDir> {
    let mut seen = BTreeSet::new();
    let mut dirs = Vec::new();
    for place in places {
        let names: Vec<&str> = place.dir.split('/').collect();
        for (depth, name) in names.iter().enumerate().skip(names.len().saturating_sub(place.missing)) {
            let (parent, name) = (names.split_at(depth).0.join("/"), (*name).to_owned());
            if seen.insert((place.root, parent.clone(), name.clone())) {
                dirs.push(NewDir { root: place.root, parent, name });
            }
        }
    }
    dirs
}

/// What a batch leaves on the clipboards of its session, once it is carried out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// The name of the session's file.
    pub(crate) session: String,
    /// Seconds since 1970, by which earlier versions expired clipboards.
    pub(crate) at: u64,
    /// The time of the age clock, by which clipboards expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) age: Option<u64>,
    /// The clipboards that have another text from then on.
    pub(crate) texts: Clipboards,
}

/// A directory that the commit makes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDir {
    pub(crate) root: usize,
    pub(crate) parent: String,
    pub(crate) name: String,
}

/// One name that gets another meaning. A file that moves is two of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileStep {
    pub(crate) root: usize,
    pub(crate) dir: String,
    pub(crate) name: String,
    /// The name under which the new file is staged, and the old one is kept afterwards.
    pub(crate) staged: String,
    /// The digest of the old bytes; absent when there is no old file.
    pub(crate) before: Option<Hex>,
    /// The digest of the new bytes; absent when the file is removed.
    pub(crate) after: Option<Hex>,
    /// Whether the new file can be run, where that is not so of the old one.
    pub(crate) executable: Option<bool>,
}

impl FileStep {
    /// The real path in the root.
    pub(crate) fn real(&self) -> String {
        if self.dir.is_empty() { self.name.clone() } else { format!("{}/{}", self.dir, self.name) }
    }
}

/// A digest as a record spells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hex(pub(crate) Sha256Digest);

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
