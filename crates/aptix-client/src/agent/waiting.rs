//! The order of reports: none overtakes an earlier one about the same file.
//!
//! The server takes the content of a file from the report that comes last. A report that was refused for a while, and came after that of a later
//! batch, would take the server's copy back to what the file was before.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aptix_model::id::BatchId;
use aptix_model::path::fold;
use aptix_model::report::{FileReport, Report};

/// How often a report is sent in vain before later ones about its files wait for it no longer.
const IN_VAIN: usize = 10;

/// The reports that the server does not have yet, in the order in which their batches ended.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    batch: BatchId,
    /// The docPaths that it names.
    files: BTreeSet<String>,
    sent_in_vain: usize,
}

impl Waiting {
    /// Notes that a report waits; answers whether it is its turn: none that came before it names one of its files.
    pub(super) fn add(&self, batch: BatchId, report: &Report) -> bool {
        let files: BTreeSet<_> = report.files.iter().flat_map(names).collect();
        let mut all = self.lock();
        let place = all.iter().position(|entry| entry.batch == batch).unwrap_or(all.len());
        let mut before = all.iter().take(place).filter(|entry| entry.sent_in_vain < IN_VAIN);
        let is_turn = before.all(|entry| entry.files.is_disjoint(&files));
        if place == all.len() {
            all.push(Entry { batch, files, sent_in_vain: 0 });
        }
        is_turn
    }

    /// Notes that a report was sent and the server does not have it.
    pub(super) fn sent_in_vain(&self, batch: BatchId) {
        if let Some(entry) = self.lock().iter_mut().find(|entry| entry.batch == batch) {
            entry.sent_in_vain += 1;
        }
    }

    /// Notes that the server has a report, or will not take it.
    pub(super) fn end(&self, batch: BatchId) {
        self.lock().retain(|entry| entry.batch != batch);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The docPaths of a file: of a renamed one also the new one.
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
        assert!(waiting.add(id(1), &first));
        assert!(waiting.add(id(1), &first), "it does not wait for itself");
        assert!(!waiting.add(id(2), &renames), "the first one names where its file is now");
        assert!(!waiting.add(id(3), &last), "nor does it overtake one that waits");
        assert!(waiting.add(id(4), &report(&[("c", None)])));
        assert!(waiting.add(id(5), &report(&[])));
        waiting.end(id(1));
        assert!(!waiting.add(id(3), &last));
        assert!(waiting.add(id(2), &renames));
        waiting.end(id(2));
        assert!(waiting.add(id(3), &last));
    }

    #[test]
    fn a_report_that_is_always_sent_in_vain_is_not_waited_for() {
        let (waiting, file) = (Waiting::default(), report(&[("a", None)]));
        waiting.add(id(1), &file);
        for _ in 0..IN_VAIN {
            assert!(!waiting.add(id(2), &file));
            waiting.sent_in_vain(id(1));
        }
        assert!(waiting.add(id(2), &file));
    }
}
