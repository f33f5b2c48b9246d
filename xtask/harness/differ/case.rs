//! What one comparison is about: a tree, and a diff for it.

use crate::memory::Tree;

/// What Aptix and git are both given.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) tree: Tree,
    pub(crate) diff: Vec<u8>,
    /// The arguments with which git wrote the diff.
    pub(crate) written: Vec<String>,
    /// What happened to it, and to the tree since.
    pub(crate) perturbed: Vec<&'static str>,
    /// What the diff makes of its own tree, where neither was perturbed.
    pub(crate) truth: Option<Tree>,
}

impl Case {
    /// Whether the diff was written in a certain way.
    pub(crate) fn is_written(&self, how: &str) -> bool {
        self.written.iter().any(|flag| flag == how)
    }
}
