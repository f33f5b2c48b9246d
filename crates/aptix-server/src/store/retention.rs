//! What a workspace keeps of batches that have ended: their content, and later their records and events.
//!
//! Ages are not taken from the times that events record, which a wrong clock makes wrong for ever. The store counts the time that
//! passes while it is served, and notes now and then how far each workspace had come by then (see [`Age`]).

use std::collections::HashSet;
use std::time::Duration;

use aptix_model::batch::{Batch, BlobRef, Content};
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::wire::bytes::batch_to_bytes;
use sha2::{Digest, Sha256};

/// How long a plan that failed when it was applied can be applied again: as long as any batch is prepared for.
pub(super) const PLANS: Duration = Duration::from_secs(24 * 3600);

/// Notes of how far a workspace had come that are kept.
const NOTES: usize = 256;

/// Limits on what is kept of batches that have ended. `None` is no limit. What is open is always kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// How long content is kept after the last event of its batch.
    pub content_age: Option<Duration>,
    /// How many of the newest batches keep their content.
    pub content_batches: Option<u64>,
    /// How many bytes of content are kept, those of blobs that batches name among them; of the newest batches.
    pub content_bytes: Option<u64>,
    /// How long records and events are kept.
    pub record_age: Option<Duration>,
    /// How many of the newest events are kept, with the records of their batches.
    pub record_events: Option<u64>,
    /// How long records and events are kept at least. With its record the request id of a batch is forgotten.
    pub record_least: Duration,
}

impl Limits {
    /// Whether anything is ever removed.
    #[must_use]
    pub const fn keep_all(&self) -> bool {
        self.content_age.is_none()
            && self.content_batches.is_none()
            && self.content_bytes.is_none()
            && self.record_age.is_none()
            && self.record_events.is_none()
    }
}

/// What is asked of a store about one workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// What it keeps.
    pub limits: Limits,
    /// The age of the store now.
    pub now: Age,
    /// Whether it is only counted what would go.
    pub is_rehearsal: bool,
}

/// How long a store was served so far. It is kept with the store and never goes back. The time in which nobody serves the store does not
/// count: only the time of day could tell it, and one that is set forward would make everything old.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Age(pub u64);

impl Age {
    /// The age after a while.
    #[must_use]
    pub fn after(self, passed: Duration) -> Self {
        Self(self.0.saturating_add(millis(passed)))
    }

    /// The age a while ago; `None` if there was no store then.
    #[must_use]
    pub fn before(self, passed: Duration) -> Option<Self> {
        self.0.checked_sub(millis(passed)).map(Self)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What went, or would go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retained {
    /// Batches whose content was removed.
    pub contents: u64,
    /// Bytes of that content, those of blobs that it names among them.
    pub content_bytes: u64,
    /// Batches whose records were removed.
    pub records: u64,
    /// Events that were removed.
    pub events: u64,
    /// The oldest event that is kept.
    pub oldest: Revision,
    /// What keeps older events than the limits do.
    pub held_by: Option<HeldBy>,
    /// Whether there is more to remove at once.
    pub has_more: bool,
}

/// What keeps events, and all after them, although they are past the limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeldBy {
    /// A batch that has not ended, whose newest event this is.
    Open(Revision, BatchId),
    /// A record that cannot be read: what it says is not known, so nothing of it is removed.
    Damaged(Revision),
}

/// How far a workspace had come at some ages of the store, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Notes(pub(super) Vec<(Age, Revision)>);

impl Notes {
    /// Notes how far the workspace has come; answers whether that is new.
    pub(super) fn note(&mut self, now: Age, newest: Revision) -> bool {
        if self.0.last().is_some_and(|(age, noted)| *noted >= newest || *age > now) {
            return false;
        }
        self.0.push((now, newest));
        if self.0.len() > NOTES {
            self.thin(now);
        }
        true
    }

    /// Drops the note, neither the oldest nor the newest, that leaves the smallest gap beside the age of what is in the gap: so ages are
    /// known to within a few hundredths, however many rounds there were. Without a note things are taken for younger than they are.
    fn thin(&mut self, now: Age) {
        let gap = |three: &[(Age, Revision)]| match three {
            [(before, _), _, (after, _)] => (after.0 - before.0) as f64 / (now.0 - before.0) as f64,
            _ => f64::INFINITY,
        };
        let gaps = self.0.windows(3).map(gap).enumerate();
        if let Some((first, _)) = gaps.min_by(|(_, one), (_, other)| one.total_cmp(other)) {
            self.0.remove(first + 1);
        }
    }

    /// The newest event that is at least so old.
    pub(super) fn aged(&self, now: Age, age: Duration) -> Revision {
        let Some(then) = now.before(age) else { return Revision(0) };
        let old = self.0.partition_point(|(noted, _)| *noted <= then);
        old.checked_sub(1).and_then(|last| self.0.get(last)).map_or(Revision(0), |(_, revision)| *revision)
    }
}

/// What the limits of a workspace come to now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    /// Batches whose newest event is up to here are past the age of content.
    pub(super) content: Revision,
    /// Plans that failed up to here cannot be applied again.
    pub(super) plans: Revision,
    /// Events up to here are past the limits of records.
    pub(super) records: Revision,
}

impl Bounds {
    pub(super) fn of(limits: &Limits, notes: &Notes, now: Age, newest: Revision) -> Self {
        let aged = |age: Option<Duration>| age.map_or(Revision(0), |age| notes.aged(now, age));
        let by_count = limits.record_events.map_or(0, |kept| newest.0.saturating_sub(kept));
        let past = aged(limits.record_age).max(Revision(by_count));
        // The newest event stays: it says which history this is.
        let before_newest = Revision(newest.0.saturating_sub(1));
        let least = if limits.record_least.is_zero() { newest } else { notes.aged(now, limits.record_least) };
        Self {
            content: aged(limits.content_age),
            plans: notes.aged(now, PLANS),
            records: past.min(least).min(before_newest),
        }
    }
}

/// Counts the content of batches, newest first, and of each blob that they name once.
#[derive(Debug, Default)]
pub(super) struct Counted {
    batches: u64,
    bytes: u64,
    blobs: HashSet<Sha256Digest>,
}

impl Counted {
    /// Counts one more, whose records have so many bytes; answers whether it is past the limits, and how many bytes it adds. The
    /// blobs that it names are asked for only where they count.
    ///
    /// # Errors
    /// Those of asking for the blobs.
    pub(super) fn add<E>(
        &mut self,
        limits: &Limits,
        records: u64,
        is_aged: bool,
        blobs: impl FnOnce() -> Result<Vec<BlobRef>, E>,
    ) -> Result<(bool, u64), E> {
        self.batches += 1;
        let is_past = is_aged || limits.content_batches.is_some_and(|kept| self.batches > kept);
        let named = if is_past || limits.content_bytes.is_some() { blobs()? } else { Vec::new() };
        let of_blobs = named.into_iter().filter(|blob| self.blobs.insert(blob.sha256)).map(|blob| blob.size_bytes);
        let bytes = records + of_blobs.sum::<u64>();
        self.bytes = self.bytes.saturating_add(bytes);
        Ok((is_past || limits.content_bytes.is_some_and(|kept| self.bytes > kept), bytes))
    }
}

/// The blobs that a batch names.
pub(super) fn blobs_of(batch: &Batch) -> Vec<BlobRef> {
    let named = batch.files.iter().filter_map(|patch| match patch.edit.content()? {
        Content::Blob(blob) => Some(*blob),
        Content::Text(_) => None,
    });
    named.collect()
}

/// SHA-256 of a batch's content: the same for equal batches alone.
#[must_use]
pub fn content_digest(batch: &Batch) -> Sha256Digest {
    Sha256Digest::from_bytes(Sha256::digest(batch_to_bytes(batch)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(60 * count)
    }

    #[test]
    fn what_was_there_at_a_note_is_as_old_as_the_note() {
        let mut notes = Notes::default();
        assert!(notes.note(Age(0), Revision(3)));
        assert!(!notes.note(Age(0).after(minutes(5)), Revision(3)), "nothing came since");
        assert!(notes.note(Age(0).after(minutes(10)), Revision(8)));
        let now = Age(0).after(minutes(15));
        for (age, expected) in [(0, 8), (5, 8), (6, 3), (15, 3), (16, 0)] {
            assert_eq!(notes.aged(now, minutes(age)), Revision(expected), "{age}");
        }
    }

    /// A note that is dropped makes nothing older than it is, and not much younger.
    #[test]
    fn notes_are_bounded_and_ages_are_known_to_within_a_tenth() {
        let mut notes = Notes::default();
        for minute in 1..=5000 {
            notes.note(Age(0).after(minutes(minute)), Revision(minute));
        }
        assert!(notes.0.len() <= NOTES);
        let now = Age(0).after(minutes(5000));
        for age in 0..5000 {
            let aged = notes.aged(now, minutes(age));
            assert!(aged.0 <= 5000 - age, "{age}: {aged}");
            assert!(aged.0 >= 4999_u64.saturating_sub(age + age / 10), "{age}: {aged}");
        }
    }

    #[test]
    fn the_newest_event_and_those_of_the_least_age_stay() {
        let notes = Notes(vec![(Age(0), Revision(4)), (Age(0).after(minutes(10)), Revision(9))]);
        let limits = Limits { record_events: Some(0), ..Limits::default() };
        let bounds = |limits: &Limits| Bounds::of(limits, &notes, Age(0).after(minutes(10)), Revision(9)).records;
        assert_eq!(bounds(&limits), Revision(8));
        assert_eq!(bounds(&Limits { record_least: minutes(5), ..limits }), Revision(4));
        assert_eq!(bounds(&Limits { record_events: None, ..limits }), Revision(0));
        assert_eq!(bounds(&Limits { record_events: None, record_age: Some(minutes(5)), ..limits }), Revision(4));
    }
}
