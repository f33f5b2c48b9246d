//! Which events of a workspace a reader wants.

use aptix_model::batch_event::EventKind;
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;

use super::event::WorkspaceEvent;
use super::file_pattern::FilePattern;

/// An event passes if it fits every list that is set. What cannot be read passes, so that its reader learns of the damage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// The state right after the event is one of these.
    pub states: Option<Vec<BatchState>>,
    /// The event is of one of these kinds.
    pub kinds: Option<Vec<EventKind>>,
    /// The batch is of one of these sessions.
    pub sessions: Option<Vec<String>>,
    /// The batch names a file that fits one of these.
    pub files: Option<Vec<FilePattern>>,
}

impl EventFilter {
    /// Whether an event passes.
    #[must_use]
    pub fn passes(&self, event: &WorkspaceEvent) -> bool {
        let facts = event.facts.as_ref();
        let fits = |facts: &aptix_model::batch_event::EventFacts| {
            self.states.as_ref().is_none_or(|states| states.contains(&facts.state))
                && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&facts.kind))
        };
        facts.is_none_or(fits) && event.batch.as_deref().map_or(true, |batch| self.fits_batch(batch))
    }

    fn fits_batch(&self, batch: &BatchRecord) -> bool {
        let session = batch.origin.session_id.as_ref();
        let fits_session = |sessions: &Vec<String>| session.is_some_and(|session| sessions.contains(session));
        let fits_file = |patterns: &Vec<FilePattern>| FilePattern::any_is_named_in(patterns, batch);
        self.sessions.as_ref().is_none_or(fits_session) && self.files.as_ref().is_none_or(fits_file)
    }
}
