//! Which events of a workspace a reader wants.

use aptix_model::batch::Target;
use aptix_model::batch_event::EventKind;
use aptix_model::path::{DocPath, PathError, fold};
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;

use super::event::WorkspaceEvent;

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

/// One file, or all below a directory, by the lower-case key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePattern(String);

impl FilePattern {
    /// Checks a document path, or one that ends in `/`: a root's name with a slash, or a directory in it.
    ///
    /// # Errors
    /// When it is neither.
    pub fn new(text: &str) -> Result<Self, PathError> {
        // A directory is what any name makes a document path of.
        let name = if text.ends_with('/') { "x" } else { "" };
        DocPath::new(&format!("{text}{name}")).map(|_| Self(text.to_owned()))
    }

    fn fits(&self, doc_path: &str) -> bool {
        doc_path == self.0 || (self.0.ends_with('/') && doc_path.starts_with(&self.0))
    }

    /// As [`Self::fits`], for a path whose root's name is not known: then the pattern is compared without its own.
    fn fits_in_some_root(&self, path: &str) -> bool {
        let inside = self.0.split_once('/').map(|(_, inside)| inside);
        self.fits(path) || inside.is_some_and(|inside| inside.is_empty() || Self(inside.to_owned()).fits(path))
    }
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
        let fits_file = |patterns: &Vec<FilePattern>| {
            patterns.iter().any(|pattern| (0..batch.batch.files.len()).any(|index| names(batch, index, pattern)))
        };
        self.sessions.as_ref().is_none_or(fits_session) && self.files.as_ref().is_none_or(fits_file)
    }
}

/// Whether a file patch is about a file that fits: as its agent reported it, else as its author named it.
fn names(batch: &BatchRecord, index: usize, pattern: &FilePattern) -> bool {
    let report = batch.report.as_ref().and_then(|report| report.files.get(index));
    let patch = batch.batch.files.get(index);
    let fits = |path: &str| pattern.fits_in_some_root(&fold(path));
    let fits_new_path = || patch.and_then(|patch| patch.edit.moved_to()).is_some_and(fits);
    match (report, patch.map(|patch| &patch.target)) {
        (Some(file), _) => {
            let root = file.doc_path.split('/').next().unwrap_or_default();
            let renamed = file.paths_in_root().1.map(|path| format!("{root}/{}", fold(path)));
            pattern.fits(&file.doc_path) || renamed.is_some_and(|renamed| pattern.fits(&renamed))
        }
        (None, Some(Target::DocPath(doc_path))) => pattern.fits(doc_path) || fits_new_path(),
        (None, Some(Target::Path(path))) => fits(path) || fits_new_path(),
        (None, Some(Target::Readings(readings))) => readings.all().any(fits),
        (None, None) => false,
    }
}
