//! Drafts the record of a commit: decides every name, touches nothing.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use crate::workspace::commit::change::Step;
use crate::workspace::commit::record::{FileStep, Hex, NewDir, Record};
use crate::workspace::commit::staged_name;
use crate::workspace::read::place::Place;
use crate::workspace::roots::workspace::Workspace;

/// What a commit of these changes will consist of. Decides every name; touches nothing.
pub(crate) fn draft(workspace: &Workspace, steps: &[Step<'_>]) -> Record {
    let dirs = missing_dirs(steps.iter().map(|step| step.place));
    let path = |root| workspace.root(root).map_or(OsStr::new(""), |root| root.path().as_os_str());
    let files = steps.iter().map(|step| FileStep {
        root: step.place.root,
        dir: step.place.dir.clone(),
        name: step.place.name.clone(),
        staged: staged_name::staged_name(path(step.place.root)),
        before: step.before.map(Hex),
        after: step.content.map(|content| Hex(content.digest)),
        executable: step.executable(),
    });
    Record {
        boot: workspace.disk().boot(),
        history: None,
        ahead: None,
        roots: workspace.roots().iter().map(|root| root.mark().clone()).collect(),
        clipboards: None,
        batch: None,
        dirs,
        emptied: Vec::new(),
        files: files.collect(),
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
