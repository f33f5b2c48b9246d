//! What comes next for a reader of events.

use aptix_model::id::{Revision, WorkspaceId};

use super::Dispatcher;
use super::stream::{FeedEnd, Position, Stop, check_workspace, stop};
use super::wake::Waker;
use crate::store::{Listed, StoreError};

/// Events read at once.
const PAGE: usize = 64;

impl Dispatcher {
    /// The events after a position, and whether there may be more. Ends the stream once its workspace was deleted, or the history does
    /// not lead from there any more: a copy of a shared store that lacks its newest events may take the place of the store while it is
    /// read, and have as many others by then.
    pub(super) async fn events_after(
        &self,
        (workspace, waker): (&WorkspaceId, &Waker),
        position: Position,
    ) -> Result<(Vec<Listed>, bool), Stop> {
        let events = self.continued(workspace, position).await.map_err(stop)?;
        check_workspace(waker, workspace)?;
        if events.is_none() {
            self.not_deleted(workspace).await.map_err(stop)?;
        }
        let events = events.ok_or(Some(FeedEnd::SetBack))?;
        let more = events.len() == PAGE;
        Ok((events, more))
    }

    /// The events after a position; `None` if another history is there.
    async fn continued(
        &self,
        workspace: &WorkspaceId,
        Position { revision, digest }: Position,
    ) -> Result<Option<Vec<Listed>>, StoreError> {
        let events = |after, most| self.store.events(workspace.clone(), after, most);
        let Some(digest) = digest.filter(|_| self.fleet.is_shared()) else {
            return events(revision, PAGE).await.map(Some);
        };
        // One read has the event of the position, too.
        match events(Revision(revision.0.saturating_sub(1)), PAGE + 1).await {
            Err(StoreError::Compacted { oldest }) if oldest == revision.next() => {
                // In this order: what was read before belongs to the history that is found.
                let events = events(revision, PAGE).await?;
                let found = self.store.digest(workspace.clone(), revision).await?;
                if found.is_none() {
                    // It may have been removed since.
                    self.store.events(workspace.clone(), revision, 1).await?;
                }
                Ok((found == Some(digest)).then_some(events))
            }
            Err(error) => Err(error),
            Ok(mut found) => {
                let is_here = match found.first() {
                    Some(Ok(event)) => event.digest == Some(digest),
                    // What the event was cannot be read any more.
                    Some(Err(_)) => true,
                    None => false,
                };
                Ok(is_here.then(|| found.split_off(1)))
            }
        }
    }
}
