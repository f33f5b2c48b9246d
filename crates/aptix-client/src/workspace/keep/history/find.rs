//! Which batches are in effect, and which one is to be taken back.
//!
//! An undo takes back a batch, a redo takes back an undo. Both are batches themselves, so both can be undone: a batch is
//! in effect unless one that is in effect took it back.

use std::collections::HashMap;

use aptix_model::failure::Visible;
use aptix_model::id::BatchId;

use super::entries::{Entry, HistoryError, Known, read};
use super::pending::Pending;
use crate::workspace::roots::workspace::Workspace;

/// For each batch that is taken back, the entry that did it.
pub(crate) struct Effects<'e>(HashMap<&'e str, &'e Entry>);

impl<'e> Effects<'e> {
    /// Of all entries there are, newest first.
    pub(crate) fn of(entries: &'e [Entry]) -> Self {
        let mut taken_back: HashMap<&str, &Entry> = HashMap::new();
        for entry in entries {
            if let Some(undone) = entry.undoes.as_deref()
                && !taken_back.contains_key(entry.id.to_string().as_str())
            {
                taken_back.insert(undone, entry);
            }
        }
        Self(taken_back)
    }

    /// What took the batch of an entry back; `None` while it is in effect.
    pub(crate) fn taken_back_by(&self, entry: &Entry) -> Option<&'e Entry> {
        self.0.get(entry.id.to_string().as_str()).copied()
    }
}

/// An entry, and those that came later, newest first.
pub(crate) struct Found {
    pub(crate) entry: Entry,
    pub(crate) later: Vec<Entry>,
}

/// Which batch is to be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted<'a> {
    /// The newest in effect that is no undo.
    Newest,
    /// The newest undo in effect.
    NewestUndo,
    /// The one of this name: that of the entry, that of the batch, or that under which a server lists it; or the only one whose
    /// batch's name begins so.
    Named(&'a str),
    /// The undo of this name, or the undo in effect of the batch of this name; a name may be cut as for `Named`.
    UndoOf(&'a str),
}

impl<'a> Wanted<'a> {
    /// What a person wants taken back who gives a name or none.
    #[must_use]
    pub const fn new(name: Option<&'a str>, redo: bool) -> Self {
        match (name, redo) {
            (None, false) => Self::Newest,
            (None, true) => Self::NewestUndo,
            (Some(name), false) => Self::Named(name),
            (Some(name), true) => Self::UndoOf(name),
        }
    }
}

/// Why no entry is found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FindError {
    #[error(transparent)]
    History(#[from] HistoryError),
    /// There is none of this name.
    #[error("no batch {} is known here", Visible(.0))]
    Unknown(String),
    /// The names of several batches begin so.
    #[error("{} begins the ids of {} batches: {}", Visible(.name), .candidates.len(), listed(.candidates))]
    Ambiguous {
        /// The beginning.
        name: String,
        /// All names that begin so, newest first.
        candidates: Vec<String>,
    },
    /// It is taken back already.
    #[error("batch {} was taken back already, by batch {}", Visible(.name), Visible(.by))]
    TakenBack {
        /// Its name.
        name: String,
        /// What took it back.
        by: String,
    },
    /// There is none at all.
    #[error("no batch is known here")]
    Nothing,
    /// There is none that is not undone.
    #[error("every batch that is known here is undone")]
    AllUndone,
    /// There is no undo in effect.
    #[error("no undo is left to take back")]
    NoUndo,
    /// A batch that is to be done again was never undone, or was done again already.
    #[error("nothing of batch {} is left to redo", Visible(.0))]
    InEffect(String),
}

/// Names that a message lists.
const LISTED: usize = 8;

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names: Vec<_> = names.iter().take(LISTED).map(String::as_str).collect();
    names.join(", ") + &more
}

/// Finds the entry of a batch.
///
/// # Errors
/// When there is no such entry, when the history cannot be read, or when an entry is damaged that may be the one.
pub(crate) fn find(workspace: &Workspace, wanted: Wanted<'_>) -> Result<Found, FindError> {
    let Known { entries: mut later, damaged } = read(workspace)?;
    let effects = Effects::of(&later);
    let is_open = |entry: &Entry| effects.taken_back_by(entry).is_none();
    let found = match wanted {
        Wanted::Newest => later.iter().find(|entry| !entry.is_undo() && is_open(entry)),
        Wanted::NewestUndo => later.iter().find(|entry| entry.is_undo() && is_open(entry)),
        Wanted::Named(name) => {
            let named = named(&later, name)?;
            if let Some(by) = effects.taken_back_by(named) {
                return Err(FindError::TakenBack { name: named.name(), by: by.name() });
            }
            Some(named)
        }
        Wanted::UndoOf(name) => {
            let named = named(&later, name)?;
            let undo = if named.is_undo() { Some(named) } else { effects.taken_back_by(named) };
            Some(undo.filter(|undo| is_open(undo)).ok_or_else(|| FindError::InEffect(named.name()))?)
        }
    };
    let found = found.map(|entry| entry.id);
    let by_age = matches!(wanted, Wanted::Newest | Wanted::NewestUndo);
    if let Some((id, path)) = damaged.into_iter().max().filter(|_| by_age)
        && found.is_none_or(|found| found < id)
    {
        return Err(HistoryError::Damaged(path).into());
    }
    let Some(at) = later.iter().position(|entry| Some(entry.id) == found) else {
        return Err(match wanted {
            _ if later.is_empty() => FindError::Nothing,
            Wanted::NewestUndo | Wanted::UndoOf(_) => FindError::NoUndo,
            Wanted::Newest | Wanted::Named(_) => FindError::AllUndone,
        });
    };
    let entry = later.split_off(at).into_iter().next();
    entry.map(|entry| Found { entry, later }).ok_or(FindError::Nothing)
}

/// The entry of this name, the one that a server has under this id, or the only one whose batch's name begins so. A beginning of
/// the entry's own name may be one of a later batch, too, and counts for nothing.
fn named<'e>(entries: &'e [Entry], name: &str) -> Result<&'e Entry, FindError> {
    let reported = || {
        let id: BatchId = name.parse().ok()?;
        entries.iter().find(|entry| entry.reported_id() == id || entry.own_reported_id() == id)
    };
    if let Some(entry) = entries.iter().find(|entry| is_called(entry, name)).or_else(reported) {
        return Ok(entry);
    }
    let begun: Vec<_> = entries.iter().filter(|entry| is_begun(entry, name)).collect();
    match begun[..] {
        [] => Err(FindError::Unknown(name.to_owned())),
        [entry] => Ok(entry),
        _ => {
            let candidates = begun.iter().map(|entry| entry.name()).collect();
            Err(FindError::Ambiguous { name: name.to_owned(), candidates })
        }
    }
}

/// A batch that took another one back.
pub(crate) struct Completed {
    pub(crate) entry: Entry,
    pub(crate) undone: Entry,
}

/// The newest batch, if it is the one that took back what was noted, and that is what is wanted again.
pub(crate) fn completed(
    workspace: &Workspace,
    wanted: Wanted<'_>,
    noted: Pending,
) -> Result<Option<Completed>, HistoryError> {
    let mut entries = read(workspace)?.entries.into_iter();
    let Some(entry) = entries.next().filter(|entry| entry.undoes.as_deref() == Some(&noted.of.to_string())) else {
        return Ok(None);
    };
    let rest: Vec<_> = entries.collect();
    let by_id = |id: &str| rest.iter().find(|entry| entry.id.to_string() == id);
    let Some(undone) = by_id(&noted.of.to_string()) else { return Ok(None) };
    let brought_back = || undone.undoes.as_deref().and_then(by_id);
    let is_wanted = match wanted {
        Wanted::Newest => !noted.is_redo,
        Wanted::NewestUndo => noted.is_redo,
        Wanted::Named(name) => is_meant(undone, name),
        Wanted::UndoOf(name) => {
            noted.is_redo && (is_meant(undone, name) || brought_back().is_some_and(|entry| is_meant(entry, name)))
        }
    };
    Ok(is_wanted.then(|| Completed { undone: undone.clone(), entry }))
}

fn is_called(entry: &Entry, name: &str) -> bool {
    entry.name() == name || entry.id.to_string() == name
}

fn is_begun(entry: &Entry, name: &str) -> bool {
    !name.is_empty() && entry.name().starts_with(&name.to_ascii_lowercase())
}

fn is_meant(entry: &Entry, name: &str) -> bool {
    is_called(entry, name) || is_begun(entry, name)
}
