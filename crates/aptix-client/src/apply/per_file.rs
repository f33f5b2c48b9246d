//! Applies a batch file by file: a refused file takes only the files along that depend on it, and all others are committed at once.
//!
//! Each round applies the files that are left as a batch that is applied whole or not at all. What it refuses is left out of the
//! next round. So the files have one journal, one receipt and one entry of the history, and a crash leaves all of them or none.

use std::collections::{BTreeMap, HashSet};

use aptix_model::batch::{Batch, FilePatch};
use aptix_model::failure::Failure;
use aptix_model::path::DocPath;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{FileReport, FileStatus, Outcome, Report, Warning, fit};

use super::located;
use super::options::ApplyOptions;
use super::refusal::Refusal;
use super::units::Units;
use crate::workspace::roots::workspace::Workspace;

/// A batch that is applied file by file, and what is refused of it so far.
pub(crate) struct Whole<'a> {
    workspace: &'a Workspace,
    batch: &'a Batch,
    /// Positions of the file patches that are not refused, ascending.
    left: Vec<usize>,
    /// What the refused ones failed with, by position; nothing for one that depends on another.
    refused: BTreeMap<usize, Vec<Failure>>,
}

/// Applies a batch file by file; `apply` applies a part of it, whole or not at all, and completes its report.
///
/// # Errors
/// When no file can be applied, when a failure is about no single file, and when a person refuses the batch. Nothing has changed.
pub(super) fn apply(
    workspace: &Workspace,
    batch: &Batch,
    options: ApplyOptions<'_>,
    apply: &mut dyn FnMut(&Batch, &Whole<'_>) -> Result<Report, Refusal>,
) -> Result<Report, Refusal> {
    if options.prepared.is_some() {
        let message =
            "a prepared batch is applied as it was planned or not at all, and this one is to be applied file by file";
        return Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownFeature).into());
    }
    let units = Units::of(workspace, batch);
    let mut whole = Whole { workspace, batch, left: (0..batch.files.len()).collect(), refused: BTreeMap::new() };
    let mut part = batch.clone();
    loop {
        let refusal = match apply(&part, &whole) {
            Ok(report) => return Ok(report),
            Err(refusal) => refusal,
        };
        let named = located::by_target(workspace, refusal.failures, |file| part.files.get(file));
        whole.refuse(named, &units)?;
        if whole.left.is_empty() {
            return Err(whole.failures().into());
        }
        part.files = whole.left.iter().filter_map(|index| batch.files.get(*index)).cloned().collect();
    }
}

impl Whole<'_> {
    /// How many file patches are refused.
    pub(crate) fn refused(&self) -> usize {
        self.refused.len()
    }

    /// The batch with all its file patches.
    pub(crate) const fn batch(&self) -> &Batch {
        self.batch
    }

    /// The position of a file patch in the batch, by its position in the part that is left.
    pub(crate) fn position(&self, index: usize) -> usize {
        self.left.get(index).copied().unwrap_or(index)
    }

    /// Leaves out the files that the part is refused for, and those that depend on them.
    ///
    /// # Errors
    /// The end of the whole batch, if a failure is about more than a file.
    fn refuse(&mut self, failures: Vec<Failure>, units: &Units) -> Result<(), Refusal> {
        let of_file = |failure: &Failure| failure.file_index.filter(|index| *index < self.left.len());
        let ends_all = |failure: &Failure| of_file(failure).is_none() || is_of_machine(failure);
        let is_end = failures.is_empty() || failures.iter().any(ends_all);
        let in_whole = failures.into_iter().map(|failure| Failure {
            file_index: of_file(&failure).map(|index| self.position(index)).or(failure.file_index),
            // A corrected document would repeat the files that are applied.
            next_action: None,
            ..failure
        });
        let mut failures: Vec<_> = in_whole.collect();
        if is_end {
            // What ends the batch decides what becomes of it.
            failures.sort_by_key(|failure| !ends_all(failure));
            failures.extend(self.failures());
            return Err(failures.into());
        }
        let mut found: BTreeMap<usize, Vec<Failure>> = BTreeMap::new();
        for failure in failures {
            found.entry(failure.file_index.unwrap_or_default()).or_default().push(failure);
        }
        let blamed: HashSet<usize> = found.keys().map(|index| units.lowest(*index)).collect();
        for (position, failures) in found {
            self.refused.entry(position).or_default().extend(failures);
        }
        let is_blamed = |index: &usize| blamed.contains(&units.lowest(*index));
        let (gone, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.left).into_iter().partition(is_blamed);
        self.left = left;
        let has_names = gone.iter().all(|index| self.names(*index).is_some());
        for index in gone {
            self.refused.entry(index).or_default();
        }
        if has_names { Ok(()) } else { Err(self.failures().into()) }
    }

    fn failures(&self) -> Vec<Failure> {
        self.refused.values().flatten().cloned().collect()
    }

    /// The path and the key of a file patch, as a report can hold them.
    fn names(&self, index: usize) -> Option<(String, String)> {
        let FilePatch { target, .. } = self.batch.files.get(index)?;
        located::named(self.workspace, target).filter(|(_, doc_path)| DocPath::new(doc_path).is_ok())
    }

    /// The report of the whole batch, from that of the part that is left.
    pub(crate) fn report(&self, part: Report) -> Report {
        if self.refused.is_empty() {
            return part;
        }
        let (files, failures) = (self.files(part.files), fit::failures(self.failures()));
        Report { outcome: Outcome::Partial, files, failures, ..part }
    }

    /// The reports of all files, from those of the part that is left.
    pub(crate) fn files(&self, part: Vec<FileReport>) -> Vec<FileReport> {
        let mut left = part.into_iter();
        let files = (0..self.batch.files.len()).filter_map(|index| match self.refused.get(&index) {
            Some(failures) => self.unchanged(index, !failures.is_empty()),
            None => left.next(),
        });
        files.collect()
    }

    /// As [`Self::files`], each refused file with the reasons, for the history.
    pub(crate) fn kept_files(&self, part: Vec<FileReport>) -> Vec<FileReport> {
        let mut files = self.files(part);
        for (index, failures) in &self.refused {
            let refused = |failure: &Failure| Warning {
                code: failure.reason.code().to_owned(),
                message: "the file was refused and did not change".to_owned(),
                line: None,
            };
            if let Some(file) = files.get_mut(*index) {
                file.warnings = failures.iter().map(refused).collect();
            }
        }
        files
    }

    fn unchanged(&self, index: usize, has_failed: bool) -> Option<FileReport> {
        let (path, doc_path) = self.names(index)?;
        let status = if has_failed { FileStatus::Failed } else { FileStatus::Skipped };
        Some(FileReport::new(path, doc_path, status))
    }
}

/// Whether a failure is about the machine, whatever file it was found at: the batch is tried again, or a person has to act.
const fn is_of_machine(failure: &Failure) -> bool {
    matches!(
        failure.reason,
        Reason::Internal | Reason::NeedsOperator | Reason::ResourceExhausted | Reason::WorkspaceBusy
    )
}
