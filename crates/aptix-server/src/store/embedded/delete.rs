//! Takes the steps of a deletion, commit by commit: between two of them other writes have their turn.

use aptix_model::id::WorkspaceId;

use super::EmbeddedStore;
use super::committer::Flush;
use crate::store::deletion::Deletion;
use crate::store::{Store, StoreError};

impl EmbeddedStore {
    /// Takes the next step of a deletion.
    pub(super) async fn delete_step(&self, workspace: WorkspaceId) -> Result<Option<Deletion>, StoreError> {
        loop {
            let of = workspace.clone();
            let Some(step) = self.read(move |now| now.step_of_deletion(&of)).await? else { return Ok(None) };
            let of = workspace.clone();
            let taken = self.write(Flush::Now, move |view| step.commit(view, &of)).await?;
            if let Some((deletion, uploads)) = taken {
                uploads.into_iter().for_each(|upload| self.discard_upload(upload));
                return Ok(Some(deletion));
            }
        }
    }
}
