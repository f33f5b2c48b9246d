//! Reading cloud files: what the agent last reported of each.

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::INLINE_BYTES;
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::reason::{Detail, Reason};
use tokio_util::bytes::Bytes;

use super::Dispatcher;
use super::read::{Page, ReadError};
use super::refusal::{Refusal, not_found};
use super::transfer::verified;
use crate::store::{CloudFile, ListedFile, StoreError};

/// Selects one cloud file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileSelector {
    /// By its lower-case key.
    Key(DocPath),
    /// By its path, its root's name in front.
    Path(RootedPath),
}

/// Why a file cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileError {
    /// The workspace has no such cloud file.
    #[error("workspace {0} has no cloud file {1}")]
    NotFound(WorkspaceId, String),
    /// More than one file has this key.
    #[error("{} files have the key {key}: {}", paths.len(), paths.join(", "))]
    Ambiguous {
        /// The key.
        key: DocPath,
        /// Their paths.
        paths: Vec<String>,
    },
    /// The workspace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        let message = error.to_string();
        Self::denied(match error {
            FileError::NotFound(workspace, what) => not_found(&workspace, &format!("cloud file {what}")),
            FileError::Ambiguous { .. } => Failure::new(Reason::AmbiguousPath, message)
                .detail(Detail::CaseCollision)
                .hint("name the file by its path"),
            FileError::Read(error) => return error.into(),
            FileError::Store(error) => return error.into(),
        })
    }
}

impl Dispatcher {
    /// A cloud file, with its bytes if they are few enough for one message.
    ///
    /// # Errors
    /// When there is no such file, or its key is that of several.
    pub async fn read_file(
        &self,
        workspace: &WorkspaceId,
        which: FileSelector,
    ) -> Result<(CloudFile, Option<Bytes>), FileError> {
        let missing = |what: String| FileError::NotFound(workspace.clone(), what);
        let file = match which {
            FileSelector::Path(path) => {
                let file = self.store.file(workspace.clone(), path.clone()).await?;
                file.ok_or_else(|| missing(path.to_string()))?
            }
            FileSelector::Key(key) => {
                let mut files = self.store.files_with_key(workspace.clone(), key.clone()).await?;
                if files.len() > 1 {
                    let paths = files.into_iter().map(|file| file.path.to_string()).collect();
                    return Err(FileError::Ambiguous { key, paths });
                }
                files.pop().ok_or_else(|| missing(key.to_string()))?
            }
        };
        let few = usize::try_from(file.content.size_bytes).is_ok_and(|size| size <= INLINE_BYTES);
        let content = if few { Some(self.content(workspace, &file).await?) } else { None };
        Ok((file, content))
    }

    async fn content(&self, workspace: &WorkspaceId, file: &CloudFile) -> Result<Bytes, StoreError> {
        let bytes = if file.content.size_bytes == 0 {
            Bytes::new()
        } else {
            let chunk = self.store.blob_chunk(workspace.clone(), file.content.sha256, 0).await?;
            chunk.unwrap_or_default()
        };
        verified(bytes, &file.content.sha256)
    }

    /// A workspace's cloud files by path, after a path if one is given.
    ///
    /// # Errors
    /// When there is no such workspace.
    pub async fn files(
        &self,
        workspace: &WorkspaceId,
        page: Page<RootedPath>,
        limit: usize,
    ) -> Result<Vec<ListedFile>, FileError> {
        self.check_page(workspace, page.cursor).await?;
        let files = self.store.files(workspace.clone(), page.after, limit).await?;
        if files.is_empty() {
            self.existing(workspace).await?;
        }
        Ok(files)
    }
}
