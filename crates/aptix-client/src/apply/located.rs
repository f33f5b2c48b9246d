//! Names the files of failures as reports do: by path, with the lower-case key beside it.

use aptix_model::batch::{FilePatch, Target};
use aptix_model::failure::Failure;
use aptix_model::path::{DocPath, WorkspacePath};
use aptix_model::path_style::PathStyle;

use super::find::Found;
use crate::workspace::roots::workspace::Workspace;

/// Names the files of failures by the places that were found for them. A withheld file keeps the name that its author gave it.
pub(super) fn by_place(mut failures: Vec<Failure>, found: &[Found]) -> Vec<Failure> {
    for failure in &mut failures {
        let file = failure.file_index.and_then(|index| found.get(index)).filter(|file| file.withheld.is_none());
        if let Some(place) = file.map(|file| &file.place) {
            failure.path = Some(place.reported.as_str().to_owned());
            failure.doc_path = Some(place.doc_path.clone());
        }
    }
    failures
}

/// Names the files of failures that have no key yet by what their author wrote. `patch` finds the file patch of an index.
pub fn by_target<'b>(
    workspace: &Workspace,
    mut failures: Vec<Failure>,
    patch: impl Fn(usize) -> Option<&'b FilePatch>,
) -> Vec<Failure> {
    for failure in failures.iter_mut().filter(|failure| failure.doc_path.is_none()) {
        let patch = failure.file_index.and_then(&patch);
        if let Some((path, doc_path)) = patch.and_then(|patch| named(workspace, &patch.target)) {
            (failure.path, failure.doc_path) = (Some(path), Some(doc_path));
        }
    }
    failures
}

/// The path and the key of a target, if it is a path or a key at all.
pub(crate) fn named(workspace: &Workspace, target: &Target) -> Option<(String, String)> {
    let style = PathStyle::among(workspace.roots().len());
    match target {
        Target::DocPath(key) => {
            DocPath::new(key).ok()?;
            Some((style.of_key(key).to_owned(), key.clone()))
        }
        Target::Path(path) => {
            WorkspacePath::new(path).ok()?;
            let root = workspace.roots().first().map(|root| root.name());
            Some((path.clone(), style.key(path, root)?))
        }
        Target::Readings(_) => None,
    }
}
