//! The prepared edits of this process: kept in memory for an hour, and gone with it (WS-MOD 2.2, 4).

use std::collections::HashMap;
use std::sync::Arc;

use aptix_engine::hunk::{self, Hunk, HunkError, Member};
use aptix_model::batch::Batch;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::FilePatchId;
use aptix_model::reason::Reason;
use aptix_model::record::UnixMillis;
use aptix_model::report::FileReport;

/// Prepared edits that are kept; the oldest make room.
const MOST: usize = 256;
/// Bytes of new text in them.
const MOST_BYTES: usize = 64 << 20;

/// A planned edit, and what it was planned for.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) batch: Arc<Batch>,
    pub(super) pinned: Pinned,
    /// Bytes of its new text.
    pub(super) bytes: usize,
}

/// Exactly what a plan makes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pinned {
    before: Option<Sha256Digest>,
    after: Option<Sha256Digest>,
}

impl Pinned {
    /// By what is reported of a file.
    pub(super) fn of(file: &FileReport) -> Self {
        Self { before: file.sha256_before, after: file.written.map(|written| written.sha256) }
    }

    /// Whether it is for a file of this digest.
    pub(super) fn is_for(self, digest: Sha256Digest) -> bool {
        self.before == Some(digest)
    }
}

#[derive(Debug)]
struct Kept {
    hunk: Hunk,
    /// None once it was applied.
    plan: Option<Plan>,
}

/// The prepared edits.
#[derive(Debug, Default)]
pub(super) struct Hunks {
    kept: HashMap<FilePatchId, Kept>,
}

impl Hunks {
    /// The hunk under which an edit may be kept: in the place of `existing`, if one is named, else under `new_id`.
    ///
    /// # Errors
    /// As the rules of replacing have it (WS-MOD 4.2).
    pub(super) fn place(
        &self,
        existing: Option<FilePatchId>,
        member: Member<'_>,
        kind: &'static str,
        new_id: FilePatchId,
        now: UnixMillis,
    ) -> Result<Hunk, Failure> {
        let kept = existing.map(|id| (id, self.kept.get(&id)));
        let hunk = hunk::prepare(kept.map(|(id, kept)| (id, kept.map(|kept| &kept.hunk))), member, kind, new_id, now)
            .map_err(HunkError::failure)?;
        match kept {
            Some((id, Some(Kept { plan: None, .. }))) => Err(applied(id)),
            _ => Ok(hunk),
        }
    }

    /// Keeps a planned edit; whatever expired, or is too much, goes.
    pub(super) fn keep(&mut self, hunk: Hunk, plan: Plan, now: UnixMillis) {
        // Expired ones are told as such for another hour.
        self.kept.retain(|_, kept| kept.hunk.expires.0.saturating_add(hunk::TTL_MILLIS) > now.0);
        self.kept.insert(hunk.id, Kept { hunk, plan: Some(plan) });
        while self.kept.len() > MOST || self.bytes() > MOST_BYTES {
            let oldest = self.kept.values().map(|kept| hunk::turn(&kept.hunk)).min();
            let Some((_, id)) = oldest.filter(|_| self.kept.len() > 1) else { break };
            self.kept.remove(&id);
        }
    }

    fn bytes(&self) -> usize {
        self.kept.values().filter_map(|kept| kept.plan.as_ref()).map(|plan| plan.bytes).sum()
    }

    /// The plan that may be applied.
    ///
    /// # Errors
    /// As the rules of applying have it (WS-MOD 4.1), and when it was applied.
    pub(super) fn plan(&self, id: FilePatchId, member: Member<'_>, now: UnixMillis) -> Result<Plan, Failure> {
        let kept = self.kept.get(&id);
        hunk::apply(id, kept.map(|kept| &kept.hunk), member, now).map_err(HunkError::failure)?;
        kept.and_then(|kept| kept.plan.clone()).ok_or_else(|| applied(id))
    }

    /// When a hunk takes its turn, if it is kept.
    pub(super) fn turn(&self, id: FilePatchId) -> Option<(UnixMillis, FilePatchId)> {
        self.kept.get(&id).map(|kept| hunk::turn(&kept.hunk))
    }

    /// Notes that a plan was applied; one that took its place meanwhile was not.
    pub(super) fn applied(&mut self, id: FilePatchId, plan: &Plan) {
        let is_it = |kept: &Plan| Arc::ptr_eq(&kept.batch, &plan.batch);
        if let Some(kept) = self.kept.get_mut(&id)
            && kept.plan.as_ref().is_some_and(is_it)
        {
            kept.plan = None;
        }
    }
}

fn applied(id: FilePatchId) -> Failure {
    Failure::new(Reason::AlreadyApplied, format!("the prepared edit {id} was applied"))
        .hint("nothing is left to do; prepare a new edit for another change")
}

#[cfg(test)]
mod tests {
    use aptix_engine::hunk::TTL_MILLIS;
    use aptix_model::id::Uuid;

    use super::*;

    const ANN: Member<'_> = Member { name: "ann", may_write: true };
    const BOB: Member<'_> = Member { name: "bob", may_write: true };

    fn id(number: u128) -> FilePatchId {
        FilePatchId(Uuid::from_u128(number))
    }

    fn plan(bytes: usize) -> Plan {
        Plan { batch: Arc::new(Batch::default()), pinned: Pinned { before: None, after: None }, bytes }
    }

    fn kept(hunks: &mut Hunks, number: u128, bytes: usize, now: u64) {
        let hunk = hunks.place(None, ANN, "append", id(number), UnixMillis(now)).unwrap();
        hunks.keep(hunk, plan(bytes), UnixMillis(now));
    }

    fn told<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> String {
        let failure = outcome.unwrap_err();
        failure.detail.map_or_else(|| failure.reason.to_string(), |detail| format!("{}.{detail}", failure.reason))
    }

    /// WS-MOD-4.1.2, WS-MOD-4.1.3, WS-MOD-4.2.2, WS-MOD-4.2.3, WS-MOD-4.2.4: who may apply or replace which plan, until when.
    #[test]
    fn a_plan_is_applied_once_by_its_owner_in_time() {
        let mut hunks = Hunks::default();
        kept(&mut hunks, 1, 1, 1_000);
        let over = UnixMillis(1_000 + TTL_MILLIS);
        let now = UnixMillis(2_000);
        assert_eq!(told(hunks.plan(id(2), ANN, now)), "NOT_FOUND");
        assert_eq!(told(hunks.plan(id(1), BOB, now)), "WRONG_OWNER");
        assert_eq!(told(hunks.plan(id(1), ANN, over)), "NOT_FOUND.EXPIRED");
        for (existing, member, kind, now, expected) in [
            (2, ANN, "append", now, "NOT_FOUND"),
            (1, BOB, "append", now, "WRONG_OWNER"),
            (1, ANN, "insert_after", now, "INVALID_STATE.OTHER_KIND"),
            (1, ANN, "append", over, "NOT_FOUND.EXPIRED"),
        ] {
            assert_eq!(told(hunks.place(Some(id(existing)), member, kind, id(9), now)), expected);
        }
        let again = hunks.place(Some(id(1)), ANN, "append", id(9), now).unwrap();
        assert_eq!((again.id, again.created), (id(1), UnixMillis(1_000)), "a plan keeps its id and its turn");
        hunks.keep(again, plan(2), now);
        let taken = hunks.plan(id(1), ANN, over).unwrap();
        assert_eq!(taken.bytes, 2);
        let again = hunks.place(Some(id(1)), ANN, "append", id(9), now).unwrap();
        hunks.keep(again, plan(3), now);
        hunks.applied(id(1), &taken);
        let taken = hunks.plan(id(1), ANN, now).unwrap();
        assert_eq!(taken.bytes, 3, "what took its place while it was applied was not applied");
        hunks.applied(id(1), &taken);
        assert_eq!(told(hunks.plan(id(1), ANN, now)), "ALREADY_APPLIED");
        assert_eq!(told(hunks.place(Some(id(1)), ANN, "append", id(9), now)), "ALREADY_APPLIED");
    }

    #[test]
    fn the_oldest_make_room_and_what_expired_long_ago_is_forgotten() {
        let mut hunks = Hunks::default();
        (0..=MOST as u128).for_each(|number| kept(&mut hunks, number, 1, 1_000 + u64::try_from(number).unwrap()));
        assert_eq!((hunks.kept.len(), hunks.kept.contains_key(&id(0))), (MOST, false));
        kept(&mut hunks, 1_000, MOST_BYTES, 5_000);
        assert_eq!(hunks.kept.len(), 1, "one plan always has room");
        kept(&mut hunks, 1_001, 1, 5_000 + 2 * TTL_MILLIS);
        assert_eq!(hunks.kept.len(), 1);
    }
}
