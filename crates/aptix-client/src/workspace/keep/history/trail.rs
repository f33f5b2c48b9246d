//! The batches that touched a file or folder, newest first; also those that touched a file under a name it had before a batch
//! renamed it. The indexes show which entries these may be, so that no other entry is read.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::PathBuf;

use aptix_model::path::WorkspacePath;

use super::entries::{Entry, HistoryError, list, read_head};
use super::index::{Index, may_concern, names};
use super::index_lines::{About, Broken, Indexed};
use super::newest;
use crate::workspace::roots::root::Root;
use crate::workspace::roots::state::Part;
use crate::workspace::roots::workspace::Workspace;

/// The names of a file or folder, as they are known from the newest batch to an older one.
#[derive(Clone, Debug)]
pub(crate) struct Trail {
    root: PathBuf,
    /// The path in the root; `None` for the whole root.
    path: Option<WorkspacePath>,
    /// Paths that files had before batches renamed them to where the trail leads.
    earlier: HashSet<String>,
}

impl Trail {
    /// Begins at the newest batch, with the path of a file or folder in a root; without one, with all of the root.
    pub(crate) fn new(root: &Root, path: Option<WorkspacePath>) -> Self {
        Self { root: root.path().to_owned(), path, earlier: HashSet::new() }
    }

    /// Whether it leads, or has led, to a path in a root.
    pub(crate) fn leads_to(&self, root: &Root, path: &str) -> bool {
        root.path() == self.root && self.is_at(path)
    }

    fn is_at(&self, path: &str) -> bool {
        let is_within = |top: &WorkspacePath| {
            path.strip_prefix(top.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.earlier.contains(path) || self.path.as_ref().is_none_or(is_within)
    }

    /// Whether the entry that comes next has to be read: a batch that took another one back shows whether that is in effect.
    fn needs(&self, entry: &Indexed) -> bool {
        let needs = |about: &About| about.is_reversal || about.paths.iter().any(|path| self.is_at(path));
        entry.about.as_ref().is_none_or(needs)
    }

    /// Goes on to the batch that comes next: whether it touched what the trail is of.
    fn passes(&mut self, entry: &Entry) -> bool {
        let here = entry.files.iter().filter(|file| file.root == self.root);
        let names = |to: &Option<String>| to.as_ref().is_some_and(|to| self.is_at(to));
        let touched: Vec<_> = here.filter(|file| self.is_at(&file.path) || names(&file.moved_to)).collect();
        let renamed = touched.iter().filter(|file| file.moved_to.is_some());
        self.earlier.extend(renamed.map(|file| file.path.clone()));
        !touched.is_empty()
    }
}

/// Batches that were looked for, newest first.
#[derive(Default)]
pub(crate) struct Touched {
    /// These, and what took batches back since the oldest of them: they show which of them are in effect.
    pub(crate) read: Vec<Entry>,
    /// For each of those, whether it is one that was looked for.
    is_meant: Vec<bool>,
    /// How many those are.
    count: usize,
}

impl Touched {
    /// All of these, whatever they touched.
    pub(crate) fn all(entries: Vec<Entry>) -> Self {
        Self { is_meant: vec![true; entries.len()], count: entries.len(), read: entries }
    }

    /// Those that were looked for.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.read.iter().zip(&self.is_meant).filter(|(_, is_meant)| **is_meant).map(|(entry, _)| entry)
    }

    fn add(&mut self, trail: &mut Trail, entry: Entry) {
        let is_meant = trail.passes(&entry);
        self.count += usize::from(is_meant);
        self.is_meant.push(is_meant);
        self.read.push(entry);
    }
}

/// At most so many batches that touched what a trail is of, newest first, whichever roots keep them. Entries that are damaged are
/// left out.
///
/// # Errors
/// When the history cannot be read.
pub(crate) fn touched(workspace: &Workspace, trail: &Trail, most: usize) -> Result<Touched, HistoryError> {
    // What has no state has no index, and a look leaves none.
    if workspace.roots().iter().all(|root| root.state().exists())
        && let Ok(touched) = by_indexes(workspace, trail.clone(), most)
            .inspect_err(|error| tracing::debug!(%error, "the history is read without its index"))
    {
        return Ok(touched);
    }
    let (mut touched, mut trail) = (Touched::default(), trail.clone());
    for entry in list(workspace)? {
        if touched.count < most {
            touched.add(&mut trail, entry);
        }
    }
    Ok(touched)
}

fn by_indexes(workspace: &Workspace, mut trail: Trail, most: usize) -> Result<Touched, HistoryError> {
    let _locks = workspace.lock()?;
    let indexes = newest::indexes(workspace)?;
    let open = names(workspace.roots().iter().map(Root::state));
    let mut lines: Vec<(Indexed, &Index)> = Vec::new();
    for index in &indexes {
        for entry in index.newest_first() {
            let entry = entry.map_err(|broken| index.state.failed(Part::INDEX, "read")(broken.errno()))?;
            if may_concern(&entry, &open) {
                lines.push((entry, index));
            }
        }
    }
    lines.sort_by_key(|(entry, _)| Reverse(entry.id));
    let mut touched = Touched::default();
    for (indexed, index) in lines {
        if touched.count >= most {
            break;
        }
        if !trail.needs(&indexed) {
            continue;
        }
        let failed = index.state.failed(Part::HISTORY, "read");
        match read_head(&index.state, &index.dir, indexed.id).map_err(&failed)? {
            Some(entry) => touched.add(&mut trail, entry),
            // Damaged, or not there: the entries themselves show which.
            None => return Err(failed(Broken::Disagrees.errno()).into()),
        }
    }
    Ok(touched)
}
