//! Takes a batch back for the server that asks for it: as [`undo`](super::undo) does, with a report for every file patch of
//! the server's batch, and nothing in it of a file that is withheld.

use std::collections::BTreeMap;

use aptix_engine::file_plan::FileAction;
use aptix_model::actor::Actor;
use aptix_model::batch::{Batch, FilePatch};
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::reason::Reason;
use aptix_model::report::{FileReport, FileStatus, Report, Withheld, Written};

use super::failure::{history_failure, not_found};
use super::file_undo::{FileUndo, UndoSite};
use super::{file_undos, take_back};
use crate::apply::located::named;
use crate::apply::planned::refuse_removed;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::withheld::{not_applied, not_compared};
use crate::apply::{ApplyOptions, Hidden, Mode, Refusal};
use crate::policy::Policy;
use crate::policy::disclosure::{Disclosure, Inside};
use crate::workspace::keep::history::entries::{self, Entry};
use crate::workspace::keep::history::find::{self, Found as FoundEntry, Wanted};
use crate::workspace::keep::history::past_file::{Kept, PastFile};
use crate::workspace::roots::workspace::Workspace;

/// What to do about a batch that the workstation alone can take back.
const UNDO_THERE: &str = "ask the user to undo the batch where it was carried out, with `aptix undo` and its id";

/// Takes back the batch of this id; `batch` is the one that does it, with a file patch for each file that it changed.
///
/// # Errors
/// Those of [`undo`](super::undo), with the positions of the file patches of `batch`.
pub fn revert(
    workspace: &Workspace,
    (batch, of): (&Batch, BatchId),
    options: ApplyOptions<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Report, Refusal> {
    let policy = options.policy;
    policy.may_write()?;
    refuse_removed(workspace)?;
    let of = of.to_string();
    let found = find::find(workspace, Wanted::Named(&of));
    let FoundEntry { entry, later } = found.map_err(|error| not_found(&error, policy.caller))?;
    let kept = entries::kept(&entry).map_err(|error| history_failure(&error, policy.caller))?;
    let asked = Asked::new(workspace, batch, &entry)?;
    let mut site = UndoSite::new(workspace, policy, (&entry, &later));
    let mut undos = file_undos(&mut site, &kept);
    if let Ok(undos) = &mut undos {
        undos.iter_mut().for_each(|undo| withhold(workspace, policy, undo));
        site.withheld.extend(undos.iter().filter_map(|undo| Some((undo.index, undo.found.withheld?))));
    }
    let hidden = asked.hidden(&site.withheld);
    if !hidden.is_empty() && !may_compare(options.mode, &hidden) {
        return Err(not_compared(&hidden, policy.caller).into());
    }
    let refused = |failures: Vec<Failure>| match hidden.is_empty() {
        true => Refusal::from(failures),
        false => not_applied(&failures, &hidden, policy.caller).into(),
    };
    let mut undos = undos.map_err(|failures| refused(asked.located(failures)))?;
    let still_withheld: BTreeMap<_, _> =
        site.withheld.into_iter().filter(|(_, why)| *why != Withheld::Unapproved).collect();
    undos.iter_mut().for_each(|undo| undo.found.open_if_approved());
    undos.sort_by_key(|undo| asked.position(undo.index));
    asked.carry_out(&kept, (undos, &still_withheld), options, confirm).map_err(|refusal| refused(refusal.failures))
}

/// Asks whether withheld files may be compared with what a batch left; where no person can be asked, none agrees.
fn may_compare(mode: Mode<'_>, hidden: &[Hidden<'_>]) -> bool {
    matches!(mode, Mode::CommitWithReceipt { compare, .. } if compare(hidden))
}

/// Withholds a file also for what comes back, and for where it comes from or goes to.
fn withhold(workspace: &Workspace, policy: &Policy, undo: &mut FileUndo<'_>) {
    let found = &mut undo.found;
    let now = found.original.as_ref().map_or(&[][..], |original| &original.bytes);
    let comes = match &undo.action {
        FileAction::Edit(edit) => edit.apply(now),
        FileAction::Write(bytes) => bytes.to_vec(),
        FileAction::Delete => Vec::new(),
    };
    let inside = Inside { names: 0, head: comes.get(..KEY_HEAD_BYTES).unwrap_or(&comes) };
    let mut disclosure = Disclosure::new(workspace, policy);
    let other = found.other.as_ref();
    let there = other.and_then(|other| other.withheld.or_else(|| disclosure.withheld(&other.place, inside)));
    found.withheld = found.withheld.or(there).or_else(|| disclosure.withheld(&found.place, inside));
}

/// The batch of a server that takes an entry's batch back.
struct Asked<'a> {
    workspace: &'a Workspace,
    batch: &'a Batch,
    entry: &'a Entry,
    /// For each file of the entry, its file patch in the batch.
    positions: Vec<usize>,
}

impl<'a> Asked<'a> {
    /// Refuses a batch that does not name every file of the entry.
    fn new(workspace: &'a Workspace, batch: &'a Batch, entry: &'a Entry) -> Result<Self, Failure> {
        let named = |file: &PastFile| {
            if workspace.roots().iter().all(|root| root.path() != file.root) {
                let message =
                    format!("batch {} changed files of another root as well, which is not served", entry.name());
                return Err(Failure::new(Reason::InvalidState, message).hint(UNDO_THERE));
            }
            let (path, doc_path) = file.names(workspace, file.left_at());
            let root = doc_path.split_once('/').map_or("", |(root, _)| root);
            let names = [path, format!("{root}/{}", file.left_at()), file.left_at().to_owned()];
            let position = |name: &String| batch.files.iter().position(|patch| patch.target.as_str() == name);
            let found = names.iter().find_map(position);
            let [path, ..] = &names;
            if let Some(position) = found.filter(|_| file.moved_to.is_some())
                && batch.files.get(position).is_some_and(|patch| patch.edit.moved_to().is_none())
            {
                // Of a batch of the workstation the server has the old path and the new one, and no move.
                let from = file.names(workspace, &file.path).0;
                let message = format!("batch {} of the workstation itself moved {from:?} to {path:?}", entry.name());
                let failure = Failure::new(Reason::InvalidState, message).hint(UNDO_THERE);
                return Err(failure.file(position, path));
            }
            found.ok_or_else(|| {
                let message =
                    format!("batch {} changed {path:?} as well, which the revert does not name", entry.name());
                Failure::new(Reason::InvalidRequest, message).hint("call RevertBatch, which names every file")
            })
        };
        let positions = entry.files.iter().map(named).collect::<Result<_, _>>()?;
        Ok(Self { workspace, batch, entry, positions })
    }

    /// The file patch of a file of the entry.
    fn position(&self, index: usize) -> usize {
        self.positions.get(index).copied().unwrap_or(index)
    }

    fn patch(&self, index: usize) -> Option<&'a FilePatch> {
        self.batch.files.get(self.position(index))
    }

    fn hidden(&self, withheld: &BTreeMap<usize, Withheld>) -> Vec<Hidden<'a>> {
        let hidden = |(index, why): (&usize, &Withheld)| {
            Some(Hidden { file: self.position(*index), path: self.patch(*index)?.target.as_str(), why: *why })
        };
        withheld.iter().filter_map(hidden).collect()
    }

    /// Failures by the positions of the entry's files, as the server's author gets them.
    fn located(&self, failures: Vec<Failure>) -> Vec<Failure> {
        let located = |failure: Failure| match failure.file_index {
            Some(index) => Failure { file_index: Some(self.position(index)), ..failure },
            None => failure,
        };
        failures.into_iter().map(located).collect()
    }

    /// Carries out what has to happen, which is in the order of the batch.
    fn carry_out(
        &self,
        kept: &[Kept],
        (undos, withheld): (Vec<FileUndo<'_>>, &BTreeMap<usize, Withheld>),
        options: ApplyOptions<'_>,
        confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
    ) -> Result<Report, Refusal> {
        let changed: Vec<usize> = undos.iter().map(|undo| undo.index).collect();
        let files: Vec<FilePatch> = changed.iter().filter_map(|index| self.patch(*index)).cloned().collect();
        let part = Batch { files, ..self.batch.clone() };
        let hidden: Vec<_> = (changed.iter().enumerate())
            .filter_map(|(file, index)| Some((file, *withheld.get(index)?)))
            .map(|(file, why)| Hidden { file, path: part.files.get(file).map_or("", |file| file.target.as_str()), why })
            .collect();
        let completed =
            |report: &Report| Report { files: self.reports(kept, (&changed, withheld), report), ..report.clone() };
        let encoded;
        let mode = match options.mode {
            Mode::CommitWithReceipt { batch, encode, compare } => {
                encoded = move |report: &Report, person: Option<&Actor>| encode(&completed(report), person);
                Mode::CommitWithReceipt { batch, encode: &encoded, compare }
            }
            mode => mode,
        };
        let options = ApplyOptions { mode, ..options };
        let report = take_back(self.workspace, (self.entry, &part, undos), &hidden, options, confirm);
        let report = report.map_err(|refusal| {
            let of_entry = |failure: Failure| match failure.file_index.and_then(|file| changed.get(file)) {
                Some(index) => Failure { file_index: Some(*index), ..failure },
                None => failure,
            };
            self.located(refusal.failures.into_iter().map(of_entry).collect())
        })?;
        Ok(completed(&report))
    }

    /// A report for each file patch of the batch: those of the files that changed, and of the others that they stay.
    fn reports(
        &self,
        kept: &[Kept],
        (changed, withheld): (&[usize], &BTreeMap<usize, Withheld>),
        report: &Report,
    ) -> Vec<FileReport> {
        let of_patch = |position: usize| {
            let Some(index) = self.positions.iter().position(|of| *of == position) else {
                return self.empty(position);
            };
            let changed = changed.iter().position(|changed| *changed == index);
            if let Some(changed) = changed.and_then(|at| report.files.get(at)) {
                return changed.clone();
            }
            self.unchanged(index, kept.get(index), withheld.get(&index).copied())
        };
        (0..self.batch.files.len()).map(of_patch).collect()
    }

    /// A file of the entry that is as before its batch already.
    fn unchanged(&self, index: usize, kept: Option<&Kept>, withheld: Option<Withheld>) -> FileReport {
        let Some(file) = self.entry.files.get(index) else { return self.empty(index) };
        let (path, doc_path) = file.names(self.workspace, file.left_at());
        let size = kept.and_then(Kept::size_before).map(|size| size as u64);
        let before = file.digest_before().zip(size).filter(|_| withheld.is_none());
        FileReport {
            path,
            doc_path,
            // Whether a withheld file had to change is not disclosed.
            status: if withheld.is_some() { FileStatus::Modified } else { FileStatus::Unchanged },
            sha256_before: before.map(|(sha256, _)| sha256),
            written: before.map(|(sha256, size_bytes)| Written { sha256, size_bytes }),
            withheld,
            ..self.empty(self.position(index))
        }
    }

    /// A file patch about a file that the entry does not have: its batch left the file as it was, which was withheld.
    fn empty(&self, position: usize) -> FileReport {
        let target = self.batch.files.get(position).map(|patch| &patch.target);
        let (path, doc_path) = target.and_then(|target| named(self.workspace, target)).unwrap_or_default();
        let withheld = Some(Withheld::Unknown);
        FileReport { withheld, ..FileReport::new(path, doc_path, FileStatus::Modified) }
    }
}
