//! Reading cloud files: what the agent last reported of each.

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::INLINE_BYTES;
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::reason::{Detail, Reason};
use tokio_util::bytes::Bytes;

use super::Dispatcher;
use super::read::Page;
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

impl Dispatcher {
    /// A cloud file, with its bytes if they are few enough for one message.
    ///
    /// # Errors
    /// When there is no such file, or its key is that of several.
    pub async fn read_file(
        &self,
        workspace: &WorkspaceId,
        which: FileSelector,
    ) -> Result<(CloudFile, Option<Bytes>), Refusal> {
        let missing = |path: &str| Refusal::denied(not_found(workspace, &format!("cloud file {path}")));
        let file = match which {
            FileSelector::Path(path) => {
                let file = self.store.file(workspace.clone(), path.clone()).await?;
                file.ok_or_else(|| missing(path.as_str()))?
            }
            FileSelector::Key(key) => {
                let mut files = self.store.files_with_key(workspace.clone(), key.clone()).await?;
                if files.len() > 1 {
                    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
                    let message = format!("{} files have the key {key}: {}", paths.len(), paths.join(", "));
                    let failure = Failure::new(Reason::AmbiguousPath, message).detail(Detail::CaseCollision);
                    return Err(Refusal::denied(failure.hint("name the file by its path")));
                }
                files.pop().ok_or_else(|| missing(key.as_str()))?
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
    ) -> Result<Vec<ListedFile>, Refusal> {
        self.check_page(workspace, page.cursor).await?;
        let files = self.store.files(workspace.clone(), page.after, limit).await?;
        if files.is_empty() {
            self.existing(workspace).await?;
        }
        Ok(files)
    }
}
