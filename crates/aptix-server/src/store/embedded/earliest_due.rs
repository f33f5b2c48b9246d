//! Where the list of batches that expire begins. The database passes removed entries one by one until it compacts them away,
//! and most batches leave the list long before their time: a scan from the beginning would cost more with each of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_model::record::UnixMillis;

/// A time before which the list has no entry.
#[derive(Clone, Debug, Default)]
pub(super) struct EarliestDue(Arc<Mutex<Bound>>);

#[derive(Debug)]
struct Bound {
    earliest: UnixMillis,
    /// While a scan is under way: the earliest entry added since it began, which it may not see.
    added: Option<UnixMillis>,
}

impl Default for Bound {
    fn default() -> Self {
        Self { earliest: UnixMillis(0), added: None }
    }
}

impl EarliestDue {
    /// Notes an entry that the list has from now on.
    pub(super) fn add(&self, expires: UnixMillis) {
        let mut bound = self.bound();
        bound.earliest = bound.earliest.min(expires);
        bound.added = bound.added.map(|added| added.min(expires));
    }

    /// Begins a scan of the list. To be called before the instant is taken that the scan reads.
    pub(super) fn scan(&self) -> Scan {
        let mut bound = self.bound();
        let is_alone = bound.added.is_none();
        if is_alone {
            bound.added = Some(UnixMillis(u64::MAX));
        }
        Scan { from: bound.earliest, moves: is_alone.then(|| self.clone()) }
    }

    fn bound(&self) -> MutexGuard<'_, Bound> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A scan of the list that is under way.
pub(super) struct Scan {
    /// No entry is earlier.
    pub(super) from: UnixMillis,
    /// What it moves; nothing if another scan was under way when it began.
    moves: Option<EarliestDue>,
}

impl Scan {
    /// Ends it with the first entry that it came to, or with none at all.
    pub(super) fn end(self, first: Option<UnixMillis>) {
        let Some(mut bound) = self.moves.as_ref().map(EarliestDue::bound) else { return };
        let first = first.unwrap_or(UnixMillis(u64::MAX));
        bound.earliest = bound.added.map_or(bound.earliest, |added| first.min(added));
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        if let Some(moves) = &self.moves {
            moves.bound().added = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: UnixMillis = UnixMillis(u64::MAX);

    fn at(millis: u64) -> UnixMillis {
        UnixMillis(millis)
    }

    #[test]
    fn a_scan_begins_where_the_one_before_it_found_the_first_entry() {
        let list = EarliestDue::default();
        list.scan().end(Some(at(7)));
        assert_eq!(list.scan().from, at(7));
        list.scan().end(None);
        assert_eq!(list.scan().from, NONE);
        list.add(at(5));
        assert_eq!(list.scan().from, at(5));
    }

    #[test]
    fn an_entry_added_during_a_scan_that_does_not_see_it_is_seen_by_the_next_one() {
        for added_after in [false, true] {
            let list = EarliestDue::default();
            let scan = list.scan();
            if added_after {
                scan.end(Some(at(9)));
                list.add(at(3));
            } else {
                list.add(at(3));
                scan.end(Some(at(9)));
            }
            assert_eq!(list.scan().from, at(3));
        }
    }

    #[test]
    fn of_two_scans_at_once_the_first_one_alone_moves_the_beginning() {
        let list = EarliestDue::default();
        let (first, second) = (list.scan(), list.scan());
        second.end(Some(at(9)));
        assert_eq!(list.scan().from, at(0));
        list.add(at(4));
        first.end(Some(at(8)));
        assert_eq!(list.scan().from, at(4));
    }

    #[test]
    fn a_scan_that_fails_moves_nothing_and_keeps_no_other_from_it() {
        let list = EarliestDue::default();
        list.scan().end(Some(at(2)));
        drop(list.scan());
        assert_eq!(list.scan().from, at(2));
        list.scan().end(Some(at(6)));
        assert_eq!(list.scan().from, at(6));
    }
}
