//! What a commit is to change, and the steps in which it gives names another meaning.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use aptix_engine::file_plan::{FileAction, FilePlan};
use aptix_engine::text::edit::TextEdit;
use aptix_model::digest::Sha256Digest;
use aptix_model::report::FileStatus;

use crate::workspace::read::attributes::Attributes;
use crate::workspace::read::place::{At, Place};
use crate::workspace::read::snapshot::Original;

/// One file that changes.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Where.
    pub place: &'a Place,
    /// What is there; absent when there is no file.
    pub original: Option<&'a Original>,
    /// The digest of what is there.
    pub before: Option<Sha256Digest>,
    /// What is there afterwards.
    pub becomes: Becomes<'a>,
}

/// What is there after a change.
#[derive(Clone, Copy, Debug)]
pub enum Becomes<'a> {
    /// A file of new bytes in the same place, with the mode, owner and attributes of the old one.
    Content(Content<'a>),
    /// A file at another place, where there must be none, with the mode, owner and attributes of the old one, which is removed.
    Moved(&'a Place, Content<'a>),
    /// No file.
    Nothing,
}

/// What a file is to hold.
#[derive(Clone, Copy)]
pub struct Content<'a> {
    /// The digest of the bytes.
    pub digest: Sha256Digest,
    /// Whether those who may read the file may run it; `None` leaves that as it is.
    pub executable: Option<bool>,
    /// What a file gets, besides its bytes, where there is no old one to take it from.
    pub attributes: Option<&'a Attributes>,
    /// Makes the bytes.
    pub bytes: &'a dyn Source,
}

impl std::fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content").field("digest", &self.digest).field("executable", &self.executable).finish()
    }
}

/// Bytes that are made when they are needed, and not kept.
pub trait Source {
    /// Makes them; the same ones each time.
    fn bytes(&self) -> Cow<'_, [u8]>;

    /// The same bytes as replacements of ranges of the old ones, where that is how they are made.
    fn edit_of(&self, old: &[u8]) -> Option<&TextEdit> {
        let _ = old;
        None
    }
}

impl Source for FilePlan<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        self.content()
    }

    fn edit_of(&self, old: &[u8]) -> Option<&TextEdit> {
        match &self.action {
            FileAction::Edit(edit) if self.status != FileStatus::Unchanged && self.base() == Some(old) => Some(edit),
            FileAction::Edit(_) | FileAction::Write(_) | FileAction::Delete => None,
        }
    }
}

impl Source for Vec<u8> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self)
    }
}

impl Change<'_> {
    /// Whether the file can be run afterwards, if that changes.
    pub(crate) fn flips(&self) -> Option<bool> {
        match self.becomes {
            Becomes::Content(content) | Becomes::Moved(_, content) => flips(self.original, content.executable),
            Becomes::Nothing => None,
        }
    }

    /// Where a file is, before or after.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        let to = match self.becomes {
            Becomes::Moved(to, _) => Some(to),
            Becomes::Content(_) | Becomes::Nothing => None,
        };
        to.into_iter().chain([self.place])
    }

    /// Whether it would leave everything as it is.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        match self.becomes {
            Becomes::Content(content) => self.before == Some(content.digest) && self.flips().is_none(),
            Becomes::Moved(..) => false,
            Becomes::Nothing => self.original.is_none(),
        }
    }
}

/// Whether a file is to be run, if that differs from the original.
fn flips(original: Option<&Original>, executable: Option<bool>) -> Option<bool> {
    let (original, wanted) = (original?, executable?);
    (original.attributes.would_run(wanted) != original.attributes.is_executable()).then_some(wanted)
}

/// One name that gets another meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    /// Index of the change that caused it, from 0.
    pub(crate) change: usize,
    pub(crate) place: &'a Place,
    /// What is there.
    pub(crate) original: Option<&'a Original>,
    /// The digest of what is there.
    pub(crate) before: Option<Sha256Digest>,
    /// What is to be there; absent when the file is removed.
    pub(crate) content: Option<Content<'a>>,
    /// The mode, owner and attributes that it gets.
    pub(crate) model: Option<&'a Attributes>,
}

impl Step<'_> {
    /// Whether the new file can be run, where that is not so of the old one.
    pub(crate) fn executable(&self) -> Option<bool> {
        let (original, content, model) = (self.original?, self.content?, self.model?);
        let runs = content.executable.map_or(model.is_executable(), |wanted| model.would_run(wanted));
        (runs != original.attributes.is_executable()).then_some(runs)
    }

    /// Whether the file stays as it is: it has the bytes of another one that takes its name.
    fn is_idle(&self) -> bool {
        self.content.is_some_and(|content| Some(content.digest) == self.before) && self.executable().is_none()
    }
}

/// The names that changes give another meaning, in the order in which they get it: a file that moves is in its new place
/// before it leaves the old one. Where one file moves away and another one moves to, the name is given its new meaning in one
/// step; the files whose bytes and rights are equal stay.
pub(crate) fn steps<'a>(changes: &[Change<'a>]) -> Vec<Step<'a>> {
    let moves = || {
        changes.iter().filter_map(|change| match change.becomes {
            Becomes::Moved(to, _) => Some((change, to)),
            Becomes::Content(_) | Becomes::Nothing => None,
        })
    };
    let left: HashMap<_, _> =
        moves().map(|(change, _)| (change.place.at(), (change.original, change.before))).collect();
    let entered: HashSet<_> = moves().map(|(_, to)| to.at()).collect();
    let mut steps = Vec::with_capacity(changes.len());
    for (change, what) in changes.iter().enumerate() {
        let Change { place, original, before, becomes } = *what;
        let here = Step { change, place, original, before, content: None, model: None };
        let model = |content: Content<'a>| original.map(|original| &original.attributes).or(content.attributes);
        match becomes {
            Becomes::Content(content) => {
                steps.push(Step { content: Some(content), model: model(content), ..here });
            }
            Becomes::Moved(to, content) => {
                let (original, before) = left.get(&to.at()).copied().unwrap_or_default();
                let there = Step { place: to, original, before, content: Some(content), model: model(content), ..here };
                steps.extend([there, here]);
            }
            Becomes::Nothing => steps.push(here),
        }
    }
    // The step in which a file leaves a name that another one takes over, or in which that changes nothing.
    let is_taken_over = |at: &At<'_>| left.contains_key(at) && entered.contains(at);
    steps.retain(|step| !(is_taken_over(&step.place.at()) && (step.content.is_none() || step.is_idle())));
    steps
}
