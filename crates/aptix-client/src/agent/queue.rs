//! Which batches run at the same time: those that name the same file run in the order of their revisions (WS-MOD 3.2),
//! never in the order of any clock. And from which event of the feed to resume.

use std::collections::{BTreeSet, VecDeque};

use aptix_model::batch::{FilePatch, Target};
use aptix_model::id::{BatchId, Revision};
use aptix_model::path::fold;

use super::inbox::{Arrival, Work};
use super::open_batches::OpenBatches;
use crate::connection::Position;

/// Batches that wait or run.
const MOST: usize = 8;

/// The events that arrived, as long as one before them is not handled.
#[derive(Debug)]
pub(super) struct Queue {
    /// Everything up to here was handled.
    handled: Position,
    /// The events after it, in the order of their revisions.
    events: VecDeque<Event>,
    /// The batches that hold the position back.
    open: OpenBatches,
}

#[derive(Debug)]
struct Event {
    revision: Revision,
    /// The position to resume from once this event and all before it are handled.
    position: Position,
    /// What a batch has to itself while it runs: the files it names, and its session.
    names: BTreeSet<String>,
    state: State,
}

#[derive(Debug)]
enum State {
    Waits(Work),
    Runs,
    Handled,
}

impl Event {
    fn is_handled(&self) -> bool {
        matches!(self.state, State::Handled)
    }
}

impl Queue {
    /// A queue of the events after a position.
    pub(super) fn after(handled: Position) -> Self {
        Self { handled, events: VecDeque::new(), open: OpenBatches::default() }
    }

    /// Whether no more should be added for now.
    pub(super) fn is_full(&self) -> bool {
        self.events.iter().filter(|event| !event.is_handled()).count() >= MOST
    }

    /// Adds the next event. `root` is the name of the root if there is only one.
    pub(super) fn add(&mut self, arrival: Arrival, root: Option<&str>) {
        let Arrival { revision, cursor, step, work } = arrival;
        let before = self.events.back().map_or(self.handled, |event| event.position);
        if let Some(step) = step {
            self.open.note(step, revision, before);
        }
        let position = match (cursor, before) {
            (Some(cursor), _) => Position::Cursor(cursor),
            (None, Position::Revision(_)) => Position::Revision(revision),
            // The server binds positions, and could not read this event's own: the one before is still good.
            (None, bound @ Position::Cursor(_)) => bound,
        };
        let names = work.as_ref().map(|work| names_of(work, root)).unwrap_or_default();
        let event = Event { revision, position, names, state: work.map_or(State::Handled, State::Waits) };
        match self.events.back_mut() {
            // Nothing resumes between two events that are handled.
            Some(back) if back.is_handled() && event.is_handled() => *back = event,
            _ => self.events.push_back(event),
        }
    }

    /// Begins the next batch that may run: no batch with a lower revision that waits or runs names what it names.
    pub(super) fn begin(&mut self) -> Option<(Revision, Work)> {
        let is_free = |index: &usize| {
            let event = self.events.get(*index).filter(|event| matches!(event.state, State::Waits(_)));
            let mut before = self.events.iter().take(*index).filter(|other| !other.is_handled());
            event.is_some_and(|event| before.all(|other| event.names.is_disjoint(&other.names)))
        };
        let free = (0..self.events.len()).find(is_free)?;
        let event = self.events.get_mut(free)?;
        match std::mem::replace(&mut event.state, State::Runs) {
            State::Waits(work) => Some((event.revision, work)),
            State::Runs | State::Handled => None,
        }
    }

    /// Notes that the batch of a revision was handled.
    pub(super) fn end(&mut self, revision: Revision) {
        if let Some(event) = self.events.iter_mut().find(|event| event.revision == revision) {
            // What it names is of no more use, and a server may send many that are handled at once.
            (event.state, event.names) = (State::Handled, BTreeSet::new());
        }
    }

    /// Notes that the server will not state the end of a batch.
    pub(super) fn release(&mut self, batch: BatchId) {
        self.open.release(batch);
    }

    /// The position to resume from: everything before it was handled, and has ended at the server.
    pub(super) fn resume(&mut self) -> Position {
        while let Some(event) = self.events.front().filter(|event| event.is_handled()) {
            self.handled = event.position;
            self.events.pop_front();
        }
        self.open.resume(self.handled)
    }
}

/// What a batch has to itself while it runs. One that cannot be understood touches nothing, and waits for nothing.
fn names_of(work: &Work, root: Option<&str>) -> BTreeSet<String> {
    let Ok(record) = &work.content else { return BTreeSet::new() };
    let files = record.batch.files.iter().flat_map(|file| names(file, root));
    let quotes = record.batch.quotes.iter().flat_map(|quote| &quote.names).map(|name| key(&name.path, root));
    let session = record.origin.session_id.as_ref().map(|id| format!("session {id}"));
    files.chain(quotes).chain(session).collect()
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
    use aptix_model::batch::{Batch, Content, CreateFile, FileEdit, Origin};
    use aptix_model::cursor::Cursor;
    use aptix_model::digest::Sha256Digest;
    use aptix_model::id::{BatchId, HistoryId, Uuid};
    use aptix_model::record::{BatchRecord, Sent, Source, UnixMillis};
    use aptix_model::state::BatchState;
    use tokio_util::sync::CancellationToken;

    use super::super::open_batches::Step;
    use super::*;

    /// The event of a revision with a batch of this number, created at this time.
    fn event(revision: u64, number: u64, created: u64, session: Option<&str>, targets: &[Target]) -> Arrival {
        let batch: BatchId = format!("018f6d2e-7c1a-7b3e-9d55-{number:012}").parse().unwrap();
        let content = Content::Text(String::new());
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
            source: Source::Submitted,
            reverted_by: None,
            is_restricted: false,
            removed_content: None,
            sent: Sent::default(),
        };
        let work = Work { batch, content: Ok(Box::new(record)), step: None, withdrawn: CancellationToken::new() };
        Arrival { revision: Revision(revision), cursor: None, step: None, work: Some(work) }
    }

    fn path(text: &str) -> Target {
        Target::Path(text.to_owned())
    }

    /// Begins every batch that may run, and names them by the ends of their ids.
    fn begin(queue: &mut Queue) -> Vec<(Revision, String)> {
        let begun = std::iter::from_fn(|| queue.begin());
        begun.map(|(revision, work)| (revision, work.batch.to_string()[33..].to_owned())).collect()
    }

    fn begun(queue: &mut Queue) -> Vec<String> {
        begin(queue).into_iter().map(|(_, batch)| batch).collect()
    }

    #[test]
    fn one_file_is_dealt_with_in_order_and_others_at_the_same_time() {
        // WS-MOD-3.2.1, WS-MOD-3.2.2
        let mut queue = Queue::after(Position::START);
        let doc_path = Target::DocPath("ws/a.txt".to_owned());
        queue.add(event(1, 1, 10, None, &[path("a.txt")]), Some("ws"));
        assert_eq!(begun(&mut queue), ["001"]);
        queue.add(event(2, 5, 30, None, &[path("A.txt")]), Some("ws"));
        queue.add(event(3, 4, 20, None, std::slice::from_ref(&doc_path)), Some("ws"));
        queue.add(event(4, 3, 20, None, &[doc_path, path("b.txt")]), Some("ws"));
        queue.add(event(5, 2, 40, None, &[path("c.txt")]), Some("ws"));
        queue.add(event(6, 6, 50, None, &[path("b.txt")]), Some("ws"));
        assert_eq!(begun(&mut queue), ["002"], "what waits for a file holds the others back that it names");
        assert_eq!(queue.resume(), Position::START);
        queue.end(Revision(1));
        assert_eq!(queue.resume(), Position::Revision(Revision(1)));
        let mut order = Vec::new();
        loop {
            let now = begin(&mut queue);
            let Some((revision, _)) = now.first() else { break };
            queue.end(*revision);
            order.extend(now.into_iter().map(|(_, batch)| batch));
        }
        assert_eq!(order, ["005", "004", "003", "006"], "by revision, not by time of creation or by id");
    }

    #[test]
    fn a_session_is_dealt_with_in_order_and_no_more_is_taken_than_there_is_room() {
        let mut queue = Queue::after(Position::START);
        for number in 0..8 {
            assert!(!queue.is_full());
            let session = Some("s").filter(|_| number < 2);
            queue.add(event(number, number, number, session, &[path(&format!("{number}"))]), None);
        }
        assert!(queue.is_full());
        assert_eq!(begun(&mut queue).len(), 7);
    }

    #[test]
    fn what_was_handled_is_named_by_its_own_cursor() {
        let bound = |revision| Cursor { history: HistoryId(Uuid::nil()), revision, digest: Sha256Digest::EMPTY };
        let idle = |revision, cursor| Arrival { revision, cursor, step: None, work: None };
        let [first, second, third] = [1, 2, 3].map(Revision);
        let mut queue = Queue::after(Position::START);
        queue.add(Arrival { cursor: Some(bound(first)), ..event(1, 1, 10, None, &[path("a.txt")]) }, None);
        assert_eq!((begun(&mut queue).len(), queue.resume()), (1, Position::START));
        queue.end(first);
        assert_eq!(queue.resume(), Position::Cursor(bound(first)));
        queue.add(idle(second, None), None);
        assert_eq!(queue.resume(), Position::Cursor(bound(first)));
        queue.add(idle(third, Some(bound(third))), None);
        assert_eq!(queue.resume(), Position::Cursor(bound(third)));
    }

    #[test]
    fn a_batch_that_was_handled_comes_again_until_the_server_states_its_end() {
        let mut queue = Queue::after(Position::START);
        let freed = event(5, 1, 10, None, &[path("a.txt")]);
        let batch = freed.work.as_ref().unwrap().batch;
        let idle = |revision, step| Arrival { revision: Revision(revision), cursor: None, step, work: None };
        queue.add(idle(4, None), None);
        queue.add(Arrival { step: Some(Step::Frees(batch)), ..freed }, None);
        assert_eq!(begun(&mut queue).len(), 1);
        queue.end(Revision(5));
        queue.add(idle(6, None), None);
        assert_eq!(queue.resume(), Position::Revision(Revision(4)));
        queue.add(event(7, 2, 10, None, &[path("a.txt")]), None);
        queue.add(idle(8, Some(Step::Ends(batch))), None);
        assert_eq!(queue.resume(), Position::Revision(Revision(4)), "an event before its end is not handled");
        assert_eq!(begun(&mut queue).len(), 1);
        queue.end(Revision(7));
        assert_eq!(queue.resume(), Position::Revision(Revision(8)));
    }

    #[test]
    fn a_server_without_cursors_is_read_by_revision() {
        let mut queue = Queue::after(Position::START);
        (1..=9)
            .map(Revision)
            .for_each(|revision| queue.add(Arrival { revision, cursor: None, step: None, work: None }, None));
        assert_eq!(queue.events.len(), 1, "what needs nothing takes no room");
        assert_eq!(queue.resume(), Position::Revision(Revision(9)));
    }
}
