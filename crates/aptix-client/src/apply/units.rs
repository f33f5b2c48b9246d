//! Which file patches of a batch depend on each other: those are applied together or not at all, also where the batch is applied
//! file by file.

use std::collections::HashMap;

use aptix_model::batch::{Batch, FilePatch, Target};
use aptix_model::path::fold;
use aptix_model::path_style::PathStyle;

use crate::workspace::roots::workspace::Workspace;

/// The file patches of a batch in units. Two of them share a unit if they name the same file (as the target, where it is renamed
/// to, or what it is copied from), if one names a path below the other's, or if both use clipboards.
pub(super) struct Units {
    /// Of each file patch, another one of its unit with a lower position, or itself.
    lower: Vec<usize>,
}

impl Units {
    /// Finds the units of a batch.
    pub(super) fn of(workspace: &Workspace, batch: &Batch) -> Self {
        let mut units = Self { lower: (0..batch.files.len()).collect() };
        let mut by_key: HashMap<String, usize> = HashMap::new();
        let mut first_with_clipboards = None;
        for (index, patch) in batch.files.iter().enumerate() {
            for key in keys(workspace, patch) {
                units.join(index, *by_key.entry(key).or_insert(index));
            }
            if patch.edit.uses_clipboards() {
                units.join(index, *first_with_clipboards.get_or_insert(index));
            }
        }
        for (key, index) in &by_key {
            let ends = key.match_indices('/').map(|(end, _)| end);
            let above = ends.filter_map(|end| by_key.get(key.get(..end)?));
            above.for_each(|other| units.join(*index, *other));
        }
        units
    }

    /// The lowest position in the unit of a file patch.
    pub(super) fn lowest(&self, mut index: usize) -> usize {
        while let Some(lower) = self.lower.get(index).filter(|lower| **lower != index) {
            index = *lower;
        }
        index
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.lowest(one), self.lowest(other));
        if let Some(lower) = self.lower.get_mut(one.max(other)) {
            *lower = one.min(other);
        }
    }
}

/// The lower-case keys of the files that a file patch names.
fn keys(workspace: &Workspace, patch: &FilePatch) -> impl Iterator<Item = String> {
    let style = PathStyle::among(workspace.roots().len());
    let root = workspace.roots().first().map(|root| root.name());
    let key = move |path: &str| match patch.target {
        Target::DocPath(_) => Some(fold(path)),
        Target::Path(_) | Target::Readings(_) => style.key(path, root),
    };
    let names = [Some(patch.target.as_str()), patch.edit.moved_to(), patch.edit.copied_from()];
    names.into_iter().flatten().filter_map(key)
}
