//! How callers write the paths of a workspace: relative to its only root, or with a root's name in front where it has several.

use aptix_model::id::WorkspaceId;
use aptix_model::path::{RootedPath, WorkspacePath};

use super::Dispatcher;
use crate::store::StoreError;

/// How paths are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PathStyle {
    /// Relative to the only root, which has this name.
    Relative(String),
    /// With a root's name in front; also where no agent has said which roots there are.
    Rooted,
}

impl Dispatcher {
    /// How the paths of a workspace are written, by the roots that its newest agent named.
    pub(super) async fn path_style(&self, workspace: &WorkspaceId) -> Result<PathStyle, StoreError> {
        let mut roots = self.roots(workspace).await?;
        Ok(match (roots.pop(), roots.is_empty()) {
            (Some(only), true) => PathStyle::Relative(only),
            _ => PathStyle::Rooted,
        })
    }

    /// The names of a workspace's roots, as its newest agent named them; empty if none did.
    pub(super) async fn roots(&self, workspace: &WorkspaceId) -> Result<Vec<String>, StoreError> {
        match self.serving(workspace) {
            Some(serving) => Ok(serving.presence.roots.clone()),
            None => self.store.roots(workspace.clone()).await,
        }
    }
}

impl PathStyle {
    /// The file that a path names; `None` if it has to begin with a root's name, and is a root's name alone.
    pub(super) fn rooted(&self, path: &WorkspacePath) -> Option<RootedPath> {
        RootedPath::new(&self.below(path.as_str())).ok()
    }

    /// What the paths of the files below a directory begin with.
    pub(super) fn directory(&self, directory: &WorkspacePath) -> String {
        self.below(&format!("{directory}/"))
    }

    fn below(&self, path: &str) -> String {
        match self {
            Self::Relative(root) => format!("{root}/{path}"),
            Self::Rooted => path.to_owned(),
        }
    }

    /// A file's path as callers write it.
    pub(super) fn name(&self, path: &RootedPath) -> String {
        match self {
            Self::Relative(root) if path.root() == root => path.rest().to_owned(),
            _ => path.to_string(),
        }
    }
}
