//! Decides which batches run at the same time. Batches that name the same file run in the order of their revisions
//! (WS-MOD 3.2), never in the order of any clock.

use std::collections::BTreeSet;

use aptix_model::batch::{FilePatch, Target};
use aptix_model::id::Revision;
use aptix_model::path::fold;

use super::inbox::Work;

/// Batches that wait or are being dealt with.
const MOST: usize = 8;

/// The batches that arrived and have not been dealt with.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In the order in which they were added: that of their revisions.
    waiting: Vec<Entry>,
    running: Vec<Entry>,
    /// The number of the next entry.
    next: Ticket,
}

/// The number of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Ticket(u64);

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    revision: Revision,
    /// What a batch has to itself while it is dealt with: the files it names, and its session.
    names: BTreeSet<String>,
    /// Taken when it is begun.
    work: Option<Work>,
}

impl Queue {
    /// Whether no more should be added for now.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() + self.running.len() >= MOST
    }

    /// Adds a batch; its revision is higher than that of every batch added before. `root` is the name of the root if there
    /// is only one.
    pub(super) fn add(&mut self, revision: Revision, work: Work, root: Option<&str>) {
        let ticket = self.next;
        self.next = Ticket(ticket.0 + 1);
        // One that cannot be understood touches nothing, and waits for nothing.
        let record = work.content.as_ref().ok();
        let files = record.into_iter().flat_map(|record| &record.batch.files).flat_map(|file| names(file, root));
        let quotes = record.into_iter().flat_map(|record| &record.batch.quotes).flat_map(|quote| &quote.names);
        let files = files.chain(quotes.map(|name| key(&name.path, root)));
        let session = record.and_then(|record| record.origin.session_id.as_ref()).map(|id| format!("session {id}"));
        self.waiting.push(Entry { ticket, revision, names: files.chain(session).collect(), work: Some(work) });
    }

    /// The next batch that can be begun: it names nothing that a running batch or a waiting one with a lower revision names.
    pub(super) fn begin(&mut self) -> Option<(Ticket, Work)> {
        let is_apart = |entry: &Entry, other: &Entry| entry.names.is_disjoint(&other.names);
        let free = (0..self.waiting.len()).find(|index| {
            let (before, rest) = self.waiting.split_at(*index);
            let others = before.iter().chain(&self.running);
            rest.first().is_some_and(|entry| others.into_iter().all(|other| is_apart(entry, other)))
        })?;
        let mut entry = self.waiting.remove(free);
        let begun = (entry.ticket, entry.work.take()?);
        self.running.push(entry);
        Some(begun)
    }

    /// Forgets a batch that was dealt with.
    pub(super) fn end(&mut self, ticket: Ticket) {
        self.running.retain(|entry| entry.ticket != ticket);
    }

    /// Up to which event everything was dealt with, if the last that arrived is this one.
    pub(super) fn dealt_with(&self, last: Revision) -> Revision {
        let open = self.waiting.iter().chain(&self.running).map(|entry| entry.revision).min();
        open.map_or(last, |first| Revision(first.0.saturating_sub(1)).min(last))
    }
}

/// The files that a file patch names, by their folded docPaths.
fn names(file: &FilePatch, root: Option<&str>) -> Vec<String> {
    let key = |path: &str| match &file.target {
        Target::DocPath(_) => fold(path),
        Target::Path(_) | Target::Readings(_) => key(path, root),
    };
    let others = [file.edit.moved_to(), file.edit.copied_from()];
    let targets: Vec<&str> = match &file.target {
        Target::Readings(readings) => readings.all().collect(),
        target => vec![target.as_str()],
    };
    targets.into_iter().chain(others.into_iter().flatten()).map(key).collect()
}

/// A path as a folded docPath.
fn key(path: &str, root: Option<&str>) -> String {
    root.map_or_else(|| fold(path), |root| fold(&format!("{root}/{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aptix_model::batch::{Batch, CreateFile, FileEdit, Origin};
    use aptix_model::id::BatchId;
    use aptix_model::record::{BatchRecord, UnixMillis};
    use aptix_model::state::BatchState;
    use tokio_util::sync::CancellationToken;

    fn work(number: u64, created: u64, session: Option<&str>, targets: &[Target]) -> Work {
        let batch: BatchId = format!("018f6d2e-7c1a-7b3e-9d55-{number:012}").parse().unwrap();
        let content = aptix_model::batch::Content::Text(String::new());
        let edit = FileEdit::CreateFile(CreateFile { content, overwrite: true, content_format: None });
        let file = |target: &Target| FilePatch { target: target.clone(), key: None, label: None, edit: edit.clone() };
        let record = BatchRecord {
            id: batch,
            workspace: "w".parse().unwrap(),
            revision: Revision(number),
            state: BatchState::Approved,
            batch: Batch { files: targets.iter().map(file).collect(), ..Batch::default() },
            ids: Vec::new(),
            origin: Origin { session_id: session.map(str::to_owned), ..Origin::default() },
            request_id: "r".parse().unwrap(),
            created: UnixMillis(created),
            updated: UnixMillis(created),
            report: None,
        };
        Work { batch, content: Ok(Box::new(record)), withdrawn: CancellationToken::new() }
    }

    fn path(text: &str) -> Target {
        Target::Path(text.to_owned())
    }

    /// Begins whatever can be begun, and tells which batches that are.
    fn begun(queue: &mut Queue) -> Vec<(Ticket, String)> {
        std::iter::from_fn(|| queue.begin())
            .map(|(ticket, work)| (ticket, work.batch.to_string()[33..].to_owned()))
            .collect()
    }

    fn told(begun: &[(Ticket, String)]) -> Vec<&str> {
        begun.iter().map(|(_, batch)| batch.as_str()).collect()
    }

    #[test]
    fn one_file_is_dealt_with_in_order_and_others_at_the_same_time() {
        // WS-MOD-3.2.1, WS-MOD-3.2.2
        let mut queue = Queue::default();
        let doc_path = Target::DocPath("ws/a.txt".to_owned());
        queue.add(Revision(1), work(1, 10, None, &[path("a.txt")]), Some("ws"));
        let first = begun(&mut queue);
        assert_eq!(told(&first), ["001"]);
        queue.add(Revision(2), work(5, 30, None, &[path("A.txt")]), Some("ws"));
        queue.add(Revision(3), work(4, 20, None, std::slice::from_ref(&doc_path)), Some("ws"));
        queue.add(Revision(4), work(3, 20, None, &[doc_path, path("b.txt")]), Some("ws"));
        queue.add(Revision(5), work(2, 40, None, &[path("c.txt")]), Some("ws"));
        queue.add(Revision(6), work(6, 50, None, &[path("b.txt")]), Some("ws"));
        assert_eq!(told(&begun(&mut queue)), ["002"], "what waits for a file holds the others back that it names");
        assert_eq!(queue.dealt_with(Revision(6)), Revision(0));
        queue.end(first[0].0);
        assert_eq!(queue.dealt_with(Revision(6)), Revision(1));
        let mut order = Vec::new();
        loop {
            let now = begun(&mut queue);
            let Some((ticket, _)) = now.first() else { break };
            queue.end(*ticket);
            order.extend(told(&now).into_iter().map(str::to_owned));
        }
        assert_eq!(order, ["005", "004", "003", "006"], "by revision, not by time of creation or by id");
    }

    #[test]
    fn a_session_is_dealt_with_in_order_and_no_more_is_taken_than_there_is_room() {
        let mut queue = Queue::default();
        for number in 0..8 {
            assert!(!queue.is_full());
            let session = Some("s").filter(|_| number < 2);
            queue.add(Revision(number), work(number, number, session, &[path(&format!("{number}"))]), None);
        }
        assert!(queue.is_full());
        assert_eq!(begun(&mut queue).len(), 7);
    }
}
