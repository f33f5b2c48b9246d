//! The order of reports: none overtakes an earlier one about the same file.
//!
//! The server takes the content of a file from the report that comes last. A report that was refused for a while, and came after that of a later
//! batch, would take the server's copy back to what the file was before.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use aptix_model::id::BatchId;
use aptix_model::path::fold;
use aptix_model::report::{FileReport, Report};

/// The reports that the server does not have yet, in the order in which their batches ended, with the files that each names.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<Vec<(BatchId, BTreeSet<String>)>>);

impl Waiting {
    /// Notes that a report waits; answers whether it is its turn: none that came before it names one of its files.
    pub(super) fn begin(&self, batch: BatchId, report: &Report) -> bool {
        let files: BTreeSet<_> = report.files.iter().flat_map(names).collect();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = waiting.iter().position(|(other, _)| *other == batch).unwrap_or(waiting.len());
        let is_turn = waiting.iter().take(place).all(|(_, others)| others.is_disjoint(&files));
        if place == waiting.len() {
            waiting.push((batch, files));
        }
        is_turn
    }

    /// Notes that the server has a report, or will not take it.
    pub(super) fn end(&self, batch: BatchId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(other, _)| *other != batch);
    }
}

/// The docPaths of a file: of a renamed one also that where it is now.
fn names(file: &FileReport) -> impl Iterator<Item = String> {
    let root = file.doc_path.split('/').next().unwrap_or_default();
    let renamed_to = file.paths_in_root().1.map(|path| fold(&format!("{root}/{path}")));
    renamed_to.into_iter().chain([file.doc_path.clone()])
}

#[cfg(test)]
mod tests {
    use aptix_model::report::{FileStatus, Outcome};

    use super::*;

    fn id(number: u32) -> BatchId {
        format!("018f6d2e-7c1a-7b3e-9d55-{number:012}").parse().unwrap()
    }

    fn report(files: &[(&str, Option<&str>)]) -> Report {
        let file = |(path, renamed_to): &(&str, Option<&str>)| FileReport {
            renamed_to: renamed_to.map(str::to_owned),
            ..FileReport::new((*path).to_owned(), fold(&format!("r/{path}")), FileStatus::Modified)
        };
        Report {
            outcome: Outcome::Applied,
            files: files.iter().map(file).collect(),
            failures: Vec::new(),
            warnings: Vec::new(),
            diff: String::new(),
            diff_omitted: false,
        }
    }

    #[test]
    fn a_report_waits_for_earlier_ones_about_its_files_alone() {
        let waiting = Waiting::default();
        let (first, renames, last) = (report(&[("a", None)]), report(&[("b", Some("A"))]), report(&[("B", None)]));
        assert!(waiting.begin(id(1), &first));
        assert!(waiting.begin(id(1), &first), "it does not wait for itself");
        assert!(!waiting.begin(id(2), &renames), "the first one names where its file is now");
        assert!(!waiting.begin(id(3), &last), "nor does it overtake one that waits");
        assert!(waiting.begin(id(4), &report(&[("c", None)])));
        assert!(waiting.begin(id(5), &report(&[])));
        waiting.end(id(1));
        assert!(!waiting.begin(id(3), &last));
        assert!(waiting.begin(id(2), &renames));
        waiting.end(id(2));
        assert!(waiting.begin(id(3), &last));
    }
}
