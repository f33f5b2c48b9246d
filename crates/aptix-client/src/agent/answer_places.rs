//! Places for the server's questions, over all connections of an agent. A question holds its place until its work has ended, also
//! when nothing waits for it any more, and until its answer is sent: there are never more answers in memory than places.

use std::sync::Arc;

use aptix_model::presence::QuestionKind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Questions that hold a place at one time; the others wait.
const AT_ONCE: usize = 8;

/// How many of these may be previews or plans, which take longer than all others.
const PREVIEWS: usize = 2;

/// How many of these may be calls of tools, each of which may hold a whole file in memory.
const TOOLS: usize = 4;

/// The places.
#[derive(Debug)]
pub(super) struct AnswerPlaces {
    all: Arc<Semaphore>,
    previews: Arc<Semaphore>,
    tools: Arc<Semaphore>,
}

/// What one question holds.
pub(super) type Held = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

impl Default for AnswerPlaces {
    fn default() -> Self {
        let [all, previews, tools] = [AT_ONCE, PREVIEWS, TOOLS].map(|places| Arc::new(Semaphore::new(places)));
        Self { all, previews, tools }
    }
}

impl AnswerPlaces {
    /// Waits for a place for a question of this kind.
    pub(super) async fn take(&self, kind: QuestionKind) -> Option<Held> {
        let narrow = match kind {
            QuestionKind::Preview | QuestionKind::Prepare => Some(&self.previews),
            QuestionKind::Tool => Some(&self.tools),
            QuestionKind::Read
            | QuestionKind::Stat
            | QuestionKind::List
            | QuestionKind::Search
            | QuestionKind::Paths => None,
        };
        let narrow = match narrow {
            Some(places) => Some(Arc::clone(places).acquire_owned().await.ok()?),
            None => None,
        };
        Some((Arc::clone(&self.all).acquire_owned().await.ok()?, narrow))
    }
}
