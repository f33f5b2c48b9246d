//! Opens a data directory, unless something that was acknowledged is missing from it.
//!
//! Nothing is changed before that is known: journals that cannot be read to their end are looked at in a look-alike of the
//! directory. A tail that was never acknowledged is cut off; anything else is named, and stays until its loss is accepted.

use std::path::{Path, PathBuf};

use aptix_model::id::{Revision, WorkspaceId};

use super::format;
use super::lock::{Locked, lock};
use super::marks::{self, Marks};
use super::own_files::{self, View};
use super::parts;
use super::record::{Counters, Head};
use super::scan::{self, Journals};
use super::tables::Tables;
use super::{tokens, upgrade};
use crate::mint;
use crate::store::StoreError;

/// Events looked at in one go.
const PAGE: usize = 1000;

/// Files of its tables that the store keeps open by default.
const OPEN_FILES: usize = 500;

/// How a store is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// Files of its tables that are open at one time.
    pub open_files: usize,
    /// What to do when something that was acknowledged is missing.
    pub on_loss: OnLoss,
}

impl Default for Opening {
    fn default() -> Self {
        Self { open_files: OPEN_FILES, on_loss: OnLoss::Refuse }
    }
}

/// What to do when something that was acknowledged is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnLoss {
    /// The store does not open.
    Refuse,
    /// The journals are copied aside, and the store opens with what is left.
    Accept,
}

/// An open data directory, and the marks of what is acknowledged from now on.
pub(super) struct Opened {
    pub(super) tables: Tables,
    pub(super) head: Head,
    pub(super) marks: marks::Writer,
    pub(super) locked: Locked,
}

/// Opens a data directory; makes it if there is none.
///
/// # Errors
/// When it cannot be used, is in use, or lacks something that was acknowledged.
pub(super) fn open(dir: &Path, opening: Opening, copy: upgrade::Copy) -> Result<Opened, StoreError> {
    let on_loss = opening.on_loss;
    // It holds what users write: only its owner reads it.
    own_files::make_dir(dir).map_err(|error| own_files::failed("make the data directory", dir, &error))?;
    let locked = lock(dir)?;
    let is_old = format::begin(dir)?;
    View::sweep(dir);
    let marks = marks::read(dir)?;
    let journals = scan::journals(dir)?;
    if let Some(marks) = &marks {
        marks.damaged.iter().for_each(|damage| tracing::warn!(damage, "high-water mark is damaged"));
    }
    let lost_if_opened = foresee(dir, opening, marks.as_ref(), &journals)?;
    settle(dir, &journals, lost_if_opened, marks.is_some(), on_loss)?;
    let copied = (is_old && copy == upgrade::Copy::Kept).then(|| upgrade::copy(dir, &journals)).transpose()?;
    let tables = Tables::open(dir, opening.open_files)?;
    let lost = lost(&tables, marks.as_ref(), &journals)?;
    settle(dir, &Journals { files: Vec::new(), ..journals }, lost, marks.is_some(), on_loss)?;
    let head = tables.now().head()?;
    upgrade::run(dir, &tables, head, (copied, copy))?;
    let now = tables.now().every_workspace(marks.as_ref());
    let marks = marks::Writer::create(dir, head, now.clone())?;
    tables.know(now.into_iter().map(|(workspace, counters)| (workspace, Some(counters))));
    Ok(Opened { tables, head, marks, locked })
}

/// What would be missing if the directory were opened. That is looked at before only where opening may change what is read:
/// where the journals cannot be read to their end, and where they are to be copied aside.
fn foresee(
    dir: &Path,
    opening: Opening,
    marks: Option<&Marks>,
    journals: &Journals,
) -> Result<Vec<String>, StoreError> {
    let is_written = marks.is_some_and(|marks| marks.acknowledged() != Some(0));
    let damaged = if is_written { parts::damaged(dir) } else { Vec::new() };
    let may_copy = opening.on_loss == OnLoss::Accept && !journals.files.is_empty();
    if !damaged.is_empty() || (journals.is_whole() && !may_copy) {
        return Ok(damaged);
    }
    look(dir, opening, marks, journals)
}

/// What would be missing if the journals were cut off where they cannot be read.
fn look(dir: &Path, opening: Opening, marks: Option<&Marks>, journals: &Journals) -> Result<Vec<String>, StoreError> {
    let view = view(dir, journals)?;
    match Tables::open(view.path(), opening.open_files) {
        Ok(tables) => lost(&tables, marks, journals),
        Err(error) => Ok(vec![error.to_string()]),
    }
}

/// A look-alike of a data directory, which stays unused by others while this is.
pub(super) struct Look {
    view: View,
    _locked: Locked,
}

impl Look {
    pub(super) fn path(&self) -> &Path {
        self.view.path()
    }
}

/// A look-alike that can be opened as a store.
///
/// # Errors
/// When the directory is in use, of a newer format, or cannot be read.
pub(super) fn look_alike(dir: &Path) -> Result<Look, StoreError> {
    let locked = lock(dir)?;
    format::read(dir)?;
    let view = view(dir, &scan::journals(dir)?)?;
    for name in [marks::FILE, tokens::NEEDED, format::FILE] {
        if dir.join(name).exists() {
            let copied = own_files::copy(&dir.join(name), &view.path().join(name), u64::MAX);
            copied.map_err(|error| own_files::failed("look at the data directory", dir, &error))?;
        }
    }
    Ok(Look { view, _locked: locked })
}

/// A look-alike with every journal cut off where it cannot be read.
pub(super) fn view(dir: &Path, journals: &Journals) -> Result<View, StoreError> {
    let readable: Vec<_> = journals.files.iter().map(|journal| (journal.path.clone(), journal.end)).collect();
    View::of(dir, &readable).map_err(|error| own_files::failed("look at the data directory", dir, &error))
}

/// Goes on, refuses, or puts aside and goes on. Journals are put aside as well where nothing records what was acknowledged: those
/// of an earlier version, if they have to be cut off.
fn settle(
    dir: &Path,
    journals: &Journals,
    lost: Vec<String>,
    has_marks: bool,
    on_loss: OnLoss,
) -> Result<(), StoreError> {
    if !lost.is_empty() {
        if on_loss == OnLoss::Refuse {
            return Err(StoreError::Lost { lost });
        }
        lost.iter().for_each(|lost| tracing::error!(lost, "loss accepted"));
    }
    let broken: Vec<_> = journals.files.iter().filter(|journal| journal.broken.is_some()).collect();
    if !journals.files.is_empty() && (!lost.is_empty() || (!has_marks && !broken.is_empty())) {
        let aside = put_aside(dir, journals);
        let aside = aside.map_err(|error| own_files::failed("copy the journals aside", dir, &error))?;
        tracing::warn!(aside = %aside.display(), "journals copied aside");
    }
    for journal in broken {
        tracing::warn!(journal = %journal.path.display(), at = journal.end, why = journal.broken, "journal cut off");
        own_files::truncate(&journal.path, journal.end)
            .map_err(|error| own_files::failed("cut a journal off", &journal.path, &error))?;
    }
    Ok(())
}

fn put_aside(dir: &Path, journals: &Journals) -> std::io::Result<PathBuf> {
    let aside = dir.join(format!("aside-{}", mint::now().0));
    own_files::make_dir(&aside)?;
    for journal in &journals.files {
        if let Some(name) = journal.path.file_name() {
            own_files::copy(&journal.path, &aside.join(name), own_files::used(&journal.path)?)?;
        }
    }
    if dir.join(marks::FILE).exists() {
        own_files::copy(&dir.join(marks::FILE), &aside.join(marks::FILE), u64::MAX)?;
    }
    own_files::sync_dir(&aside)?;
    own_files::sync_dir(dir)?;
    Ok(aside)
}

/// What was acknowledged and is not there, each by its name.
///
/// # Errors
/// When the store cannot be read at all.
pub(super) fn lost(tables: &Tables, marks: Option<&Marks>, journals: &Journals) -> Result<Vec<String>, StoreError> {
    let now = tables.now();
    let head = now.head()?;
    let Some(marks) = marks else {
        let unknown = format!("the file {} is missing: what was acknowledged is unknown", marks::FILE);
        return Ok(if head.number == 0 { Vec::new() } else { vec![unknown] });
    };
    let Some(acknowledged) = marks.acknowledged() else {
        return Ok(vec![format!("the file {} cannot be read: what was acknowledged is unknown", marks::FILE)]);
    };
    let mut lost = Vec::new();
    let deleted = now.every_deletion();
    for (workspace, counters) in marks.workspaces().filter(|(workspace, _)| !deleted.contains(workspace)) {
        let found = now.counters_of(workspace);
        lost.extend(revisions_lost(tables, workspace, counters, found, journals.has_gap()));
    }
    if head.number < acknowledged && lost.is_empty() {
        let (first, last) = (head.number + 1, acknowledged);
        lost.push(format!("commits {first} to {last}, which stored no revision: leases, uploads"));
    }
    let other = |mark: &Head| mark.number == head.number && mark.digest != head.digest;
    if lost.is_empty() && marks.heads().any(|mark| other(&mark)) {
        lost.push(format!("commit {} is another one than was acknowledged", head.number));
    }
    let missing = journals.first_events.iter().filter(|key| matches!(tables.records.get(*key), Ok(None)));
    lost.extend(
        missing
            .filter_map(|key| super::keys::event_of(key))
            // What was removed on purpose is not lost: by retention, or with a workspace, which may have been created anew.
            .filter(|(workspace, revision)| now.trim(workspace).is_ok_and(|trim| *revision > trim.upto))
            .filter(|(workspace, revision)| {
                let marked = marks.workspaces().find(|(marked, _)| *marked == workspace).map(|(_, counters)| counters);
                let newest = marked.into_iter().chain(now.counters_of(workspace)).map(|counters| counters.newest).max();
                !deleted.contains(workspace) && newest.is_some_and(|newest| *revision <= newest)
            })
            .map(|(workspace, revision)| format!("workspace {workspace}: revision {revision}")),
    );
    Ok(lost)
}

/// Which revisions of a workspace are missing, as ranges.
fn revisions_lost(
    tables: &Tables,
    workspace: &WorkspaceId,
    expected: Counters,
    found: Option<Counters>,
    every_one: bool,
) -> Vec<String> {
    let event = tables.now().event(workspace, expected.newest).ok().flatten();
    // Where the counters are damaged, the newest event shows that what they counted is there.
    let newest = match (found, &event) {
        (Some(found), _) => found.newest,
        (None, Some(_)) => expected.newest,
        (None, None) => Revision(0),
    };
    let mut lost = Vec::new();
    if every_one {
        lost.extend(unreadable(tables, workspace, newest.min(expected.newest)));
    }
    if newest < expected.newest {
        lost.push(format!("workspace {workspace}: revisions {} to {}", newest.0 + 1, expected.newest));
        return lost;
    }
    let digest = event.and_then(|event| event.digest);
    if expected.digest.is_some() && digest.is_some() && digest != expected.digest {
        lost.push(format!("workspace {workspace}: revision {} is another commit", expected.newest));
    }
    if found.is_some_and(|found| found.lease.epoch < expected.lease.epoch) {
        lost.push(format!("workspace {workspace}: lease epoch {}", expected.lease.epoch));
    }
    lost
}

/// The events of a workspace that cannot be read, up to a revision.
pub(super) fn unreadable(tables: &Tables, workspace: &WorkspaceId, newest: Revision) -> Vec<String> {
    let trimmed = tables.now().trim(workspace).map_or(Revision(0), |trim| trim.upto);
    let (mut after, mut found) = (trimmed, Vec::new());
    while after < newest {
        let Ok(events) = tables.now().events_up_to(workspace, after, newest, PAGE) else {
            found.push(format!("workspace {workspace}: revisions {} to {newest} cannot be read", after.0 + 1));
            return found;
        };
        let Some(last) = after.0.checked_add(events.len() as u64).filter(|_| !events.is_empty()) else { break };
        found.extend(
            events
                .into_iter()
                .filter_map(Result::err)
                .map(|damaged| format!("workspace {workspace}: revision {}: {}", damaged.revision, damaged.why)),
        );
        after = Revision(last);
    }
    found
}
