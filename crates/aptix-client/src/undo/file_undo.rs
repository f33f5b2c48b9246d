//! What has to happen to one file of a batch that is undone.

use std::collections::BTreeMap;

use aptix_engine::digest::sha256;
use aptix_engine::file_plan::FileAction;
use aptix_engine::text::edit::TextEdit;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::path::WorkspacePath;
use aptix_model::reason::Reason;
use aptix_model::report::Withheld;

use super::failure::{history_failure, in_its_place, take_back};
use super::merge::{self, Clash};
use super::passage_undo::{self, NoWay};
use crate::apply::find::{Found, Search};
use crate::policy::Policy;
use crate::policy::caller::Caller;
use crate::workspace::keep::history::entries::{Entry, HistoryError};
use crate::workspace::keep::history::passages::Passages;
use crate::workspace::keep::history::past_file::{Kept, PastFile};
use crate::workspace::read::place::{Claim, Place};
use crate::workspace::roots::workspace::Workspace;

/// How many clashes are reported for one file.
const CLASHES: usize = 10;

/// What a batch is undone with: the workspace as it is, and what later batches did to its files.
pub(super) struct UndoSite<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) search: Search<'a>,
    /// The batch.
    pub(super) entry: &'a Entry,
    /// What came after the batch, newest first.
    pub(super) later: &'a [Entry],
    /// Who has it undone.
    caller: Caller,
    /// Why files are withheld from them, by the positions of the files in the batch.
    pub(super) withheld: BTreeMap<usize, Withheld>,
}

impl<'a> UndoSite<'a> {
    pub(super) fn new(workspace: &'a Workspace, policy: &'a Policy, (entry, later): (&'a Entry, &'a [Entry])) -> Self {
        let search = Search::new(workspace, policy);
        Self { workspace, search, entry, later, caller: policy.caller, withheld: BTreeMap::new() }
    }
    /// Notes that a file that the batch moved is moved back, so that its name is free.
    pub(super) fn leave(&mut self, file: &PastFile) {
        let root = self.workspace.roots().iter().position(|root| root.path() == file.root);
        let path = file.moved_to.as_deref().and_then(|path| WorkspacePath::new(path).ok());
        if let Some((root, path)) = root.zip(path)
            && let Ok(place) = self.search.resolve_in(root, &path)
        {
            self.search.leave(&place);
        }
    }

    /// What there is now at a path in the root of a file, which is the one at this index of the batch.
    fn find(&mut self, index: usize, file: &PastFile, path: &str, claim: Claim) -> Result<Found, Failure> {
        let find = |site: &mut Self| {
            let mut roots = site.workspace.roots().iter();
            let root = roots.position(|root| root.path() == file.root).ok_or_else(|| {
                let message = format!("the batch changed files in {} as well", file.root.display());
                Failure::new(Reason::InvalidRequest, message).hint("name this root, too, with --root")
            })?;
            let path = WorkspacePath::new(path)
                .map_err(|error| Failure::new(Reason::InvalidPath, error.to_string()).detail(error.detail()))?;
            site.search.find_in(index, (root, &path), claim)
        };
        let found = find(self).map_err(|failure| failure.file(index, &self.name(file, path)))?;
        self.withheld.extend(found.withheld.map(|why| (index, why)));
        Ok(found)
    }

    /// How an author would name a path in the root of a file.
    fn name(&self, file: &PastFile, path: &str) -> String {
        file.names(self.workspace, path).0
    }

    /// The batch that, as the last one that came later, moved the file at a path away or deleted it, and where it went.
    fn taken_by(&self, file: &PastFile, path: &str) -> Option<(&Entry, Option<&str>)> {
        let mut later = self.later.iter().flat_map(|entry| entry.files.iter().map(move |past| (entry, past)));
        let is_of = |past: &PastFile| past.path == path || past.moved_to.as_deref() == Some(path);
        let (entry, past) = later.find(|(_, past)| past.root == file.root && is_of(past))?;
        let is_taken = past.path == path && (past.moved_to.is_some() || past.after.is_none());
        is_taken.then_some((entry, past.moved_to.as_deref()))
    }

    /// What helps where later edits of a file are in the way.
    fn way_around(&self, file: &PastFile) -> String {
        let is_same = |past: &PastFile| past.root == file.root && past.left_at() == file.left_at();
        match self.later.iter().find(|entry| entry.files.iter().any(is_same)) {
            Some(later) => {
                let name = later.name();
                format!(
                    "batch {name}, which came later, changed the file as well: first {}, or edit these lines by hand",
                    take_back(&name, self.caller)
                )
            }
            None => merge::HINT.to_owned(),
        }
    }

    /// The failure where another file is at the old path of a file.
    pub(super) fn blocked(&self, index: usize, file: &PastFile) -> Failure {
        in_its_place(&file.path).file(index, &self.name(file, &file.path))
    }

    /// The failure of a file that is not where the batch left it.
    fn gone(&self, index: usize, file: &PastFile, path: &str) -> Failure {
        let (message, hint) = match self.taken_by(file, path) {
            Some((batch, to)) => {
                let deed = to.map_or_else(|| "deleted it".to_owned(), |to| format!("moved it to {to:?}"));
                let name = batch.name();
                (format!("batch {name}, which came later, {deed}"), format!("first {}", take_back(&name, self.caller)))
            }
            None => (
                "the file was removed after the batch, so that there is nothing to undo the edit in".to_owned(),
                "bring the file back to this path first".to_owned(),
            ),
        };
        Failure::new(Reason::FileMissing, message).hint(hint).file(index, &self.name(file, path))
    }
}

/// What is to happen to one file.
pub(super) struct FileUndo<'e> {
    /// Its position among the files of the batch, from 0.
    pub(super) index: usize,
    pub(super) file: &'e PastFile,
    /// The file, as an author would name it.
    pub(super) name: String,
    pub(super) found: Found,
    pub(super) action: FileAction<'static>,
}

impl FileUndo<'_> {
    /// Where the file is afterwards; nothing for one that is deleted.
    pub(super) fn written(&self) -> Option<&Place> {
        let to = self.found.other.as_ref().map_or(&self.found.place, |other| &other.place);
        (self.action != FileAction::Delete).then_some(to)
    }
}

/// Finds out what has to happen to one file; nothing where it is as before the batch already. `is_taken_over` says whether
/// the batch moved another file to where this one was.
pub(super) fn file_undo<'e>(
    site: &mut UndoSite<'_>,
    index: usize,
    file: &'e PastFile,
    kept: &Kept,
    is_taken_over: bool,
) -> Result<Option<FileUndo<'e>>, Vec<Failure>> {
    let mut found = locate(site, index, file, is_taken_over).map_err(|failure| vec![failure])?;
    let left_at = file.left_at();
    let name = site.name(file, left_at);
    let here = |failure: Failure| failure.file(index, &name);
    let now = found.original.as_ref().map(|original| original.bytes.as_slice());
    let images = match (kept, now) {
        (Kept::Images(images), _) => images,
        (Kept::Passages(_), None) => return Err(vec![site.gone(index, file, left_at)]),
        (Kept::Passages(passages), Some(now)) => {
            let edit = edit_of_passages(site, file, passages, now);
            let edit = edit.map_err(|failures| failures.into_iter().map(here).collect::<Vec<_>>())?;
            return Ok(Some(FileUndo { index, file, name, found, action: FileAction::Edit(edit) }));
        }
    };
    let action = match (&images.before, &images.after, now) {
        (Some(before), Some(after), Some(now)) => match merge::way_back(before, after, now) {
            Ok(edit) => FileAction::Edit(edit),
            Err(clashes) => {
                let hint = site.way_around(file);
                return Err(clashes.iter().take(CLASHES).map(|clash| here(clashed(clash).hint(&*hint))).collect());
            }
        },
        (None, Some(after), Some(now)) if after.as_slice() == now => FileAction::Delete,
        (None, Some(_), Some(now)) => {
            let message = "the batch created the file, and it was edited since";
            let first = now.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let excerpt = Excerpt { start_line: 1, end_line: 1, text: merge::shown(&[first], "\n") };
            let failure = Failure { nearest: vec![excerpt], ..Failure::new(Reason::ExpectedMismatch, message) };
            return Err(vec![here(failure.hint(site.way_around(file)))]);
        }
        (Some(before), None, Some(now)) if before.as_slice() == now => return Ok(None),
        (Some(_), None, Some(_)) => return Err(vec![site.blocked(index, file)]),
        (Some(before), None, None) => {
            found.attributes = file.before.as_ref().map(|before| before.attributes.clone());
            FileAction::Write(before.clone().into())
        }
        // What was deleted since is as it was before; what was moved is not.
        (None, Some(_), None) => match site.taken_by(file, left_at) {
            Some((_, Some(_))) => return Err(vec![site.gone(index, file, left_at)]),
            _ => return Ok(None),
        },
        (None, None, _) => return Ok(None),
        (Some(_), Some(_), None) => return Err(vec![site.gone(index, file, left_at)]),
    };
    Ok(Some(FileUndo { index, file, name, found, action }))
}

/// Finds a file where the batch left it and, where the batch moved it, what is at its old path.
fn locate(site: &mut UndoSite<'_>, index: usize, file: &PastFile, is_taken_over: bool) -> Result<Found, Failure> {
    let Some(left_at) = &file.moved_to else { return site.find(index, file, &file.path, Claim::Stays) };
    let here = site.find(index, file, left_at, Claim::Leaves)?;
    let there = site.find(index, file, &file.path, Claim::Arrives)?;
    let is = |found: &Found, digest: Option<Sha256Digest>| {
        found.original.as_ref().is_some_and(|original| digest == Some(sha256(&original.bytes)))
    };
    let (before, after) = (file.digest_before(), file.digest_after());
    match (here.original.is_some(), there.original.is_some()) {
        // Another process has moved the files back.
        (true, true) if is_taken_over && is(&there, before) && !is(&here, after) => Ok(there),
        (true, true) if !is_taken_over => Err(site.blocked(index, file)),
        (true, _) => Ok(Found { other: Some(Box::new(there)), ..here }),
        // Another process has moved it back.
        (false, true) if !is_taken_over && (is(&there, before) || is(&there, after)) => Ok(there),
        (false, _) => Err(site.gone(index, file, left_at)),
    }
}

/// The edit that takes back what the batch did to a file of which its passages are kept.
fn edit_of_passages(
    site: &UndoSite<'_>,
    file: &PastFile,
    passages: &Passages,
    now: &[u8],
) -> Result<TextEdit, Vec<Failure>> {
    passage_undo::way_back(passages, file, now).map_err(|no_way| match no_way {
        NoWay::Damaged => vec![history_failure(&HistoryError::Damaged(site.entry.path()), site.caller)],
        NoWay::Edited(edited) => {
            let hint = site.way_around(file);
            edited.iter().take(CLASHES).map(|edited| edited.failure().hint(&*hint)).collect()
        }
    })
}

fn clashed(clash: &Clash) -> Failure {
    let (start_line, end_line) = clash.now;
    let message = format!("later edits stand where the batch left {:?}; now there is {:?}", clash.left, clash.text);
    let excerpt = Excerpt { start_line, end_line, text: clash.text.clone() };
    Failure { line: Some(start_line), nearest: vec![excerpt], ..Failure::new(Reason::ExpectedMismatch, message) }
}
