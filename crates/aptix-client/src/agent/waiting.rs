//! The order of reports: none overtakes an earlier one about the same file, and no two tasks send one.
//!
//! The server takes the content of a file from the report that comes last. A report that was refused for a while, and came after that of a later
//! batch, would take the server's copy back to what the file was before.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aptix_model::id::BatchId;
use aptix_model::path::fold;
use aptix_model::report::{FileReport, Report};
use tokio::sync::Notify;

/// How often a report is sent in vain before later ones about its files wait for it no longer.
const IN_VAIN: usize = 10;

/// The reports that the server does not have yet, in the order in which their batches ended.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    all: Mutex<Vec<Entry>>,
    /// Wakes those who want to send what another task was sending.
    given_back: Notify,
}

#[derive(Debug)]
struct Entry {
    batch: BatchId,
    /// The docPaths that it names.
    files: BTreeSet<String>,
    is_being_sent: bool,
    sent_in_vain: usize,
}

/// The right to send a report, which one task has at a time.
#[derive(Debug)]
pub(super) struct Turn<'w> {
    waiting: &'w Waiting,
    batch: BatchId,
}

impl Waiting {
    /// Notes that a report waits; answers the ones that have to come before it, in their order.
    pub(super) fn add(&self, batch: BatchId, report: &Report) -> Vec<BatchId> {
        let mut files: BTreeSet<_> = report.files.iter().flat_map(names).collect();
        let mut all = self.lock();
        let place = all.iter().position(|entry| entry.batch == batch).unwrap_or_else(|| {
            all.push(Entry { batch, files: files.clone(), is_being_sent: false, sent_in_vain: 0 });
            all.len() - 1
        });
        let mut before = Vec::new();
        for entry in all.iter().take(place).rev() {
            if entry.sent_in_vain < IN_VAIN && !entry.files.is_disjoint(&files) {
                before.push(entry.batch);
                files.extend(entry.files.iter().cloned());
            }
        }
        before.reverse();
        before
    }

    /// Waits until no other task sends a report; `None` if it does not wait any more.
    pub(super) async fn turn(&self, batch: BatchId) -> Option<Turn<'_>> {
        loop {
            let given_back = self.given_back.notified();
            tokio::pin!(given_back);
            given_back.as_mut().enable();
            {
                let mut all = self.lock();
                let entry = all.iter_mut().find(|entry| entry.batch == batch)?;
                if !std::mem::replace(&mut entry.is_being_sent, true) {
                    return Some(Turn { waiting: self, batch });
                }
            }
            given_back.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// Notes that the server has the report, or will not take it.
    pub(super) fn end(self) {
        self.waiting.lock().retain(|entry| entry.batch != self.batch);
    }
}

/// Gives the right back: whoever has not ended the report has sent it in vain.
impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.waiting.lock().iter_mut().find(|entry| entry.batch == self.batch) {
            entry.is_being_sent = false;
            entry.sent_in_vain += 1;
        }
        self.waiting.given_back.notify_waiters();
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

    #[tokio::test]
    async fn a_report_comes_after_earlier_ones_about_its_files_alone() {
        let waiting = Waiting::default();
        let (first, renames, last) = (report(&[("a", None)]), report(&[("b", Some("A"))]), report(&[("B", None)]));
        assert_eq!(waiting.add(id(1), &first), []);
        assert_eq!(waiting.add(id(2), &report(&[("c", None)])), []);
        assert_eq!(waiting.add(id(3), &renames), [id(1)], "the first one names where its file is now");
        assert_eq!(waiting.add(id(4), &last), [id(1), id(3)], "nor does it overtake what those before it wait for");
        assert_eq!(waiting.add(id(5), &report(&[])), []);
        assert_eq!(waiting.add(id(1), &first), [], "it comes before all that came later");
        waiting.turn(id(1)).await.unwrap().end();
        assert!(waiting.turn(id(1)).await.is_none());
        assert_eq!(waiting.add(id(4), &last), [id(3)]);
    }

    #[tokio::test]
    async fn a_report_is_sent_by_one_task_at_a_time_and_is_not_waited_for_for_ever() {
        let waiting = Waiting::default();
        let file = report(&[("a", None)]);
        waiting.add(id(1), &file);
        assert_eq!(waiting.add(id(2), &file), [id(1)]);
        let first = waiting.turn(id(1)).await.unwrap();
        let mut second = std::pin::pin!(waiting.turn(id(1)));
        assert!(is_pending(second.as_mut()).await);
        drop(first);
        drop(second.await.unwrap());
        for _ in 2..IN_VAIN {
            assert_eq!(waiting.add(id(2), &file), [id(1)]);
            drop(waiting.turn(id(1)).await.unwrap());
        }
        assert_eq!(waiting.add(id(2), &file), []);
    }

    async fn is_pending<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }
}
