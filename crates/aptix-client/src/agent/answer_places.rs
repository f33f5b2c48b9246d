//! Places for the server's questions, over all connections of an agent. A question holds its place until its work has ended, also
//! when nothing waits for it any more, and until its answer is sent: there are never more answers in memory than places.

use std::sync::Arc;

use aptix_model::presence::QuestionKind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Questions that hold a place at one time; the others wait.
const AT_ONCE: usize = 8;

/// How many of these may be previews or plans, which take longer than all others.
const PREVIEWS: usize = 2;

/// The places.
#[derive(Debug)]
pub(super) struct AnswerPlaces {
    all: Arc<Semaphore>,
    previews: Arc<Semaphore>,
}

/// What one question holds.
pub(super) type Held = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

impl Default for AnswerPlaces {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(AT_ONCE)), previews: Arc::new(Semaphore::new(PREVIEWS)) }
    }
}

impl AnswerPlaces {
    /// Waits for a place for a question of this kind.
    pub(super) async fn take(&self, kind: QuestionKind) -> Option<Held> {
        let preview = match kind {
            QuestionKind::Preview | QuestionKind::Prepare => {
                Some(Arc::clone(&self.previews).acquire_owned().await.ok()?)
            }
            _ => None,
        };
        Some((Arc::clone(&self.all).acquire_owned().await.ok()?, preview))
    }
}
