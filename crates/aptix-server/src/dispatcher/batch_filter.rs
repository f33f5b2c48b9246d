//! Which batches of a workspace a list has.

use std::ops::Range;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::state::BatchState;

use super::file_pattern::FilePattern;

/// A batch fits if it fits every field that is set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BatchFilter {
    /// It is in one of these states.
    pub states: Option<Vec<BatchState>>,
    /// It is of one of these sessions.
    pub sessions: Option<Vec<String>>,
    /// It names a file that fits one of these.
    pub files: Option<Vec<FilePattern>>,
    /// One of these made it.
    pub authors: Option<Vec<AuthorPattern>>,
    /// It was stored at one of these times.
    pub created: Option<Range<UnixMillis>>,
}

/// One author, or several: what is absent fits all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthorPattern {
    /// What they are.
    pub kind: Option<ActorKind>,
    /// Their name.
    pub name: Option<String>,
}

impl AuthorPattern {
    fn fits(&self, author: &Actor) -> bool {
        self.kind.is_none_or(|kind| kind == author.kind) && (self.name.is_none() || self.name == author.name)
    }
}

impl BatchFilter {
    /// Whether a batch fits as it is now.
    #[must_use]
    pub fn fits(&self, batch: &BatchRecord) -> bool {
        fn is_any<T>(wanted: Option<&Vec<T>>, fits: impl Fn(&T) -> bool) -> bool {
            wanted.is_none_or(|wanted| wanted.iter().any(fits))
        }
        let author = batch.author();
        is_any(self.states.as_ref(), |state| *state == batch.state)
            && is_any(self.sessions.as_ref(), |session| batch.origin.session_id.as_ref() == Some(session))
            && is_any(self.authors.as_ref(), |pattern| pattern.fits(&author))
            && self.created.as_ref().is_none_or(|times| times.contains(&batch.created))
            && self.files.as_ref().is_none_or(|files| FilePattern::any_is_named_in(files, batch))
    }
}
