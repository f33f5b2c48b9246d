//! How callers write the paths of a workspace: relative to its only root, or with a root's name in front where it has several.

use aptix_model::id::WorkspaceId;
use aptix_model::live::FileSelector;
use aptix_model::path::{RootedPath, WorkspacePath};
use aptix_model::path_style;

use super::Dispatcher;
use crate::store::StoreError;

/// How results name files, and the name of the only root where it is known.
pub type Naming = (path_style::PathStyle, Option<String>);

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

    /// How results name the files of a workspace, and the name of its only root, by the roots that its newest agent named.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn naming(&self, workspace: &WorkspaceId) -> Result<Naming, StoreError> {
        let mut roots = self.roots(workspace).await?;
        let style = path_style::PathStyle::among(roots.len());
        Ok((style, roots.pop().filter(|_| roots.is_empty())))
    }

    /// The names of a workspace's roots, as its newest agent named them; empty if none did.
    pub(super) async fn roots(&self, workspace: &WorkspaceId) -> Result<Vec<String>, StoreError> {
        match self.serving(workspace).await? {
            Some(serving) => Ok(serving.presence.roots.clone()),
            None => self.store.roots(workspace.clone()).await,
        }
    }
}

impl PathStyle {
    /// The files that a path may name, the likelier one first: a file of a root that the workspace does not have any more keeps
    /// that root's name, also where the workspace has one root now.
    pub(super) fn rooted(&self, path: &WorkspacePath) -> impl Iterator<Item = RootedPath> {
        let (in_root, former) = match self {
            Self::Relative(root) => {
                let former = RootedPath::new(path.as_str()).ok().filter(|path| path.root() != root);
                (format!("{root}/{path}"), former)
            }
            Self::Rooted => (path.to_string(), None),
        };
        RootedPath::new(&in_root).ok().into_iter().chain(former)
    }

    /// The path and the lower-case key of a file that was asked for, as far as the question has them.
    pub(super) fn names(&self, which: &FileSelector) -> (String, String) {
        match (which, self) {
            (FileSelector::DocPath(key), Self::Relative(root)) if key.root() == root => {
                (key.rest().to_owned(), key.to_string())
            }
            (FileSelector::DocPath(key), _) => (key.to_string(), key.to_string()),
            (FileSelector::Path(path), Self::Relative(root)) => (path.to_string(), format!("{root}/{}", path.folded())),
            (FileSelector::Path(path), Self::Rooted) => (path.to_string(), path.folded()),
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
