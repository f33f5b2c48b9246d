//! Batches that were freed to be applied and whose end the server's events have not stated yet.
//!
//! The agent never resumes between the event that freed a batch and the one that ended it, although the batch is applied and
//! reported: a server that is restored to a state between the two has the batch open again, and only the first of them hands it to
//! the agent once more. A position before both is the same in both histories, and what follows it hands the batch out.

use std::collections::VecDeque;

use aptix_model::id::{BatchId, Revision};

use crate::connection::Position;

/// Batches that are remembered. Beyond them the one that was freed first holds the position back no more, if all are open.
const MOST: usize = 4096;

/// What an event means for the position to resume from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// It freed a batch to be applied.
    Frees(BatchId),
    /// It ended a batch.
    Ends(BatchId),
}

/// The batches that were freed behind the position to resume from, in the order in which they were freed.
#[derive(Debug, Default)]
pub(super) struct OpenBatches {
    batches: VecDeque<OpenBatch>,
}

#[derive(Debug)]
struct OpenBatch {
    batch: BatchId,
    /// The event that freed it.
    freed: Revision,
    /// The position before that event.
    before: Position,
    /// The event that ended it, once that has arrived.
    ended: Option<Revision>,
}

impl OpenBatches {
    /// Notes what the event of a revision means; `before` is the position before that event.
    pub(super) fn note(&mut self, step: Step, revision: Revision, before: Position) {
        match step {
            Step::Frees(batch) if self.batches.iter().any(|open| open.batch == batch) => {}
            Step::Frees(batch) => {
                if self.batches.len() >= MOST {
                    // One that has ended holds back less than one that has not.
                    let ended = self.batches.iter().position(|open| open.ended.is_some());
                    self.batches.remove(ended.unwrap_or_default());
                }
                self.batches.push_back(OpenBatch { batch, freed: revision, before, ended: None });
            }
            Step::Ends(batch) => {
                if let Some(open) = self.batches.iter_mut().find(|open| open.batch == batch) {
                    open.ended = Some(revision);
                }
            }
        }
    }

    /// Lets go of a batch whose end the server will not state: it refuses the report.
    pub(super) fn release(&mut self, batch: BatchId) {
        self.batches.retain(|open| open.batch != batch);
    }

    /// The position to resume from when everything up to `handled` was handled: the last one that is not between the two events of
    /// any batch.
    pub(super) fn resume(&mut self, handled: Position) -> Position {
        let mut position = handled;
        // Where one batch moves it back, it may come to lie between the events of others, which were all freed earlier.
        for open in self.batches.iter().rev() {
            let at = position.revision();
            if open.freed <= at && open.ended.is_none_or(|ended| ended > at) {
                position = open.before;
            }
        }
        self.batches.retain(|open| open.ended.is_none_or(|ended| ended > position.revision()));
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> BatchId {
        format!("018f6d2e-7c1a-7b3e-9d55-{number:012}").parse().unwrap()
    }

    fn at(revision: u64) -> Position {
        Position::Revision(Revision(revision))
    }

    fn note(open: &mut OpenBatches, step: Step, revision: u64) {
        open.note(step, Revision(revision), at(revision - 1));
    }

    #[test]
    fn nothing_resumes_between_the_event_that_frees_a_batch_and_the_one_that_ends_it() {
        let mut open = OpenBatches::default();
        note(&mut open, Step::Frees(id(1)), 5);
        note(&mut open, Step::Frees(id(2)), 6);
        // The same batch comes twice: its first event counts.
        note(&mut open, Step::Frees(id(1)), 7);
        assert_eq!(open.resume(at(4)), at(4), "its event is not handled yet");
        assert_eq!(open.resume(at(7)), at(4));
        note(&mut open, Step::Ends(id(1)), 9);
        assert_eq!(open.resume(at(8)), at(4), "the end has arrived, and what comes before it is not handled");
        assert_eq!(
            open.resume(at(9)),
            at(4),
            "the other one is open, and what comes before it is between the events of this one"
        );
        note(&mut open, Step::Ends(id(2)), 10);
        note(&mut open, Step::Ends(id(3)), 11);
        assert_eq!(open.resume(at(11)), at(11));
    }

    #[test]
    fn a_batch_without_an_end_holds_the_position_back_no_longer_than_it_is_one_of_so_many() {
        let mut open = OpenBatches::default();
        note(&mut open, Step::Frees(id(1)), 1);
        note(&mut open, Step::Frees(id(2)), 2);
        open.release(id(1));
        assert_eq!(open.resume(at(2)), at(1));
        note(&mut open, Step::Frees(id(3)), 3);
        note(&mut open, Step::Ends(id(3)), 5001);
        (4..).take(MOST - 1).for_each(|number| note(&mut open, Step::Frees(id(number)), number));
        assert_eq!((open.batches.len(), open.resume(at(5000))), (MOST, at(1)), "the one that has ended made room");
        note(&mut open, Step::Frees(id(5000)), 5000);
        assert_eq!(open.batches.len(), MOST);
        assert_eq!(open.resume(at(5000)), at(3));
    }
}
