//! The positions of events that arrived, so that what was dealt with can be named in the server's history.

use std::collections::VecDeque;

use aptix_model::id::Revision;

use super::inbox::Arrival;
use crate::connection::Position;

/// Positions from the last event that everything was dealt with up to, to the newest that arrived.
#[derive(Debug)]
pub(super) struct Passed {
    done: Position,
    /// In the order of their revisions; whether a batch has to be carried out for each.
    later: VecDeque<(Position, bool)>,
    last: Revision,
}

impl Passed {
    /// Nothing has arrived after this position.
    pub(super) fn after(done: Position) -> Self {
        Self { done, later: VecDeque::new(), last: done.revision() }
    }

    /// The newest event that arrived.
    pub(super) fn last(&self) -> Revision {
        self.last
    }

    /// Adds an event. Of several in a row with nothing to be carried out, only the last is ever a place to go on from.
    pub(super) fn add(&mut self, arrival: &Arrival) {
        self.last = arrival.revision;
        let position = match (arrival.cursor, self.newest()) {
            (Some(cursor), _) => Position::Cursor(cursor),
            (None, Position::Revision(_)) => Position::Revision(arrival.revision),
            // The server binds positions, and could not read this event's own: the one before is still good.
            (None, bound @ Position::Cursor(_)) => bound,
        };
        let is_work = arrival.work.is_some();
        match self.later.back_mut() {
            Some(back) if !back.1 && !is_work => back.0 = position,
            _ => self.later.push_back((position, is_work)),
        }
    }

    fn newest(&self) -> Position {
        self.later.back().map_or(self.done, |(position, _)| *position)
    }

    /// The newest position that is not after a revision.
    pub(super) fn up_to(&mut self, revision: Revision) -> Position {
        while let Some((position, _)) = self.later.front()
            && position.revision() <= revision
        {
            self.done = *position;
            self.later.pop_front();
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aptix_model::cursor::Cursor;
    use aptix_model::digest::Sha256Digest;
    use aptix_model::id::{HistoryId, Uuid};

    fn arrival(revision: u64, bound: bool) -> Arrival {
        let revision = Revision(revision);
        let cursor = Cursor { history: HistoryId(Uuid::nil()), revision, digest: Sha256Digest::EMPTY };
        Arrival { revision, cursor: bound.then_some(cursor), work: None }
    }

    #[test]
    fn what_was_dealt_with_is_named_by_its_own_cursor() {
        let mut passed = Passed::after(Position::START);
        passed.add(&arrival(1, true));
        assert_eq!(passed.up_to(Revision(0)), Position::START);
        assert!(matches!(passed.up_to(Revision(1)), Position::Cursor(cursor) if cursor.revision == Revision(1)));
        passed.add(&arrival(2, false));
        assert!(matches!(passed.up_to(Revision(2)), Position::Cursor(cursor) if cursor.revision == Revision(1)));
        passed.add(&arrival(3, true));
        assert_eq!((passed.up_to(Revision(3)).revision(), passed.last()), (Revision(3), Revision(3)));
    }

    #[test]
    fn a_server_without_cursors_is_read_by_revision() {
        let mut passed = Passed::after(Position::START);
        (1..=9).for_each(|revision| passed.add(&arrival(revision, false)));
        assert_eq!(passed.later.len(), 1, "what needs nothing takes no room");
        assert_eq!(passed.up_to(Revision(9)), Position::Revision(Revision(9)));
    }
}
