//! The prepared edits of this process, kept in memory for an hour (WS-MOD 2.2, 4).

use std::collections::HashMap;
use std::sync::Arc;

use aptix_engine::hunk::{self, Hunk, HunkError, Member};
use aptix_model::batch::{Batch, FileEdit, FilePatch};
use aptix_model::failure::Failure;
use aptix_model::id::FilePatchId;
use aptix_model::plan::{Place, Plan};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::UnixMillis;

/// Prepared edits that are kept; the oldest make room.
const MOST: usize = 256;
/// Bytes of new text in them.
const MOST_BYTES: usize = 64 << 20;

/// A prepared edit: the batch, and what it was planned to do.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) batch: Batch,
    pub(super) plan: Plan,
}

impl Prepared {
    /// Bytes of its texts.
    fn size(&self) -> usize {
        let given = |file: &FilePatch| if let FileEdit::AnchorEdit(edit) = &file.edit { edit.content.len() } else { 0 };
        let places: usize = self.plan.places.iter().flatten().map(Place::size).sum();
        self.batch.files.iter().map(given).sum::<usize>() + places
    }
}

/// The position of a call among all calls of a connection, in the order in which they came.
pub(super) type CallNumber = u64;

#[derive(Debug)]
struct Kept {
    hunk: Hunk,
    /// None once it was applied. Each call that applies it holds a clone.
    plan: Option<Arc<Prepared>>,
    /// The call that prepared the plan.
    prepared_by: CallNumber,
}

/// Where a planned edit is to be kept.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) hunk: Hunk,
    /// The call whose plan it replaces.
    replaces: Option<CallNumber>,
}

/// The prepared edits.
#[derive(Debug, Default)]
pub(super) struct Hunks {
    kept: HashMap<FilePatchId, Kept>,
}

impl Hunks {
    /// The slot in which an edit may be kept: that of `existing`, if one is named, else a new one under `new_id`.
    ///
    /// # Errors
    /// By the rules of replacing (WS-MOD 4.2), and when the existing plan was applied or is being applied.
    pub(super) fn place(
        &self,
        existing: Option<FilePatchId>,
        member: Member<'_>,
        kind: &'static str,
        new_id: FilePatchId,
        now: UnixMillis,
    ) -> Result<Slot, Failure> {
        let kept = existing.map(|id| (id, self.kept.get(&id)));
        let hunk = hunk::prepare(kept.map(|(id, kept)| (id, kept.map(|kept| &kept.hunk))), member, kind, new_id, now)
            .map_err(HunkError::failure)?;
        let replaces = match kept {
            Some((id, Some(kept))) => Some(kept.replaceable(id)?),
            _ => None,
        };
        Ok(Slot { hunk, replaces })
    }

    /// Keeps the plan of a call; drops what expired long ago, and the oldest where there are too many.
    ///
    /// # Errors
    /// When the plan that it was to replace was applied, is being applied, or was replaced since the slot was given.
    pub(super) fn keep(
        &mut self,
        slot: Slot,
        plan: Prepared,
        call: CallNumber,
        now: UnixMillis,
    ) -> Result<(), Failure> {
        let Slot { hunk, replaces } = slot;
        if let Some(replaces) = replaces {
            let kept = self.kept.get(&hunk.id).ok_or_else(|| HunkError::Missing(hunk.id).failure())?;
            if kept.replaceable(hunk.id)? != replaces {
                return Err(replaced(hunk.id));
            }
        }
        // Expired ones are reported as such for another hour.
        self.kept.retain(|_, kept| kept.hunk.expires.0.saturating_add(hunk::TTL_MILLIS) > now.0);
        self.kept.insert(hunk.id, Kept { hunk, plan: Some(Arc::new(plan)), prepared_by: call });
        while self.kept.len() > MOST || self.bytes() > MOST_BYTES {
            let oldest = self.kept.values().map(|kept| hunk::turn(&kept.hunk)).min();
            let Some((_, id)) = oldest.filter(|_| self.kept.len() > 1) else { break };
            self.kept.remove(&id);
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.kept.values().filter_map(|kept| kept.plan.as_ref()).map(|plan| plan.size()).sum()
    }

    /// The plan that the call of this number may apply. Nothing replaces it while the result is held.
    ///
    /// # Errors
    /// By the rules of applying (WS-MOD 4.1), when it was applied, and when a later call replaced it.
    pub(super) fn take(
        &self,
        id: FilePatchId,
        member: Member<'_>,
        call: CallNumber,
        now: UnixMillis,
    ) -> Result<Arc<Prepared>, Failure> {
        let kept = self.kept.get(&id);
        hunk::apply(id, kept.map(|kept| &kept.hunk), member, now).map_err(HunkError::failure)?;
        match kept.and_then(|kept| Some((kept.prepared_by, kept.plan.as_ref()?))) {
            None => Err(applied(id)),
            Some((prepared_by, _)) if prepared_by > call => Err(replaced(id)),
            Some((_, plan)) => Ok(Arc::clone(plan)),
        }
    }

    /// Notes that a plan was applied.
    pub(super) fn applied(&mut self, id: FilePatchId) {
        if let Some(kept) = self.kept.get_mut(&id) {
            kept.plan = None;
        }
    }

    /// When a hunk takes its turn, if it is kept.
    pub(super) fn turn(&self, id: FilePatchId) -> Option<(UnixMillis, FilePatchId)> {
        self.kept.get(&id).map(|kept| hunk::turn(&kept.hunk))
    }
}

impl Kept {
    /// Which call prepared the plan, if another plan may replace it.
    fn replaceable(&self, id: FilePatchId) -> Result<CallNumber, Failure> {
        match &self.plan {
            None => Err(applied(id)),
            Some(plan) if Arc::strong_count(plan) > 1 => {
                let message = format!("another call is applying the prepared edit {id}");
                let hint = "wait for the answer of that call; then prepare a new edit, without existing_hunk_id";
                Err(Failure::new(Reason::InvalidState, message).hint(hint))
            }
            Some(_) => Ok(self.prepared_by),
        }
    }
}

fn replaced(id: FilePatchId) -> Failure {
    Failure::new(Reason::InvalidState, format!("a later call replaced the prepared edit {id}, and nothing was written"))
        .detail(Detail::Changed)
        .hint("look at what the later call prepared, then apply that")
}

fn applied(id: FilePatchId) -> Failure {
    Failure::new(Reason::AlreadyApplied, format!("the prepared edit {id} was applied"))
        .hint("nothing is left to do; prepare a new edit for another change")
}

#[cfg(test)]
mod tests {
    use aptix_engine::hunk::TTL_MILLIS;
    use aptix_model::id::Uuid;
    use aptix_model::report::Report;

    use super::*;

    const ANN: Member<'_> = Member { name: "ann", may_write: true };
    const BOB: Member<'_> = Member { name: "bob", may_write: true };

    fn id(number: u128) -> FilePatchId {
        FilePatchId(Uuid::from_u128(number))
    }

    fn plan(bytes: usize) -> Prepared {
        let place = Place { start_line: 1, above: vec![], old: vec![], new: vec![b'x'; bytes], below: vec![] };
        let plan = Plan { report: Report::applied(Vec::new()), places: vec![vec![place]], evidence: vec![None] };
        Prepared { batch: Batch::default(), plan }
    }

    fn kept(hunks: &mut Hunks, number: u128, bytes: usize, now: u64) {
        let slot = hunks.place(None, ANN, "append", id(number), UnixMillis(now)).unwrap();
        hunks.keep(slot, plan(bytes), 1, UnixMillis(now)).unwrap();
    }

    fn reason<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> String {
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
        assert_eq!(reason(hunks.take(id(2), ANN, 1, now)), "NOT_FOUND");
        assert_eq!(reason(hunks.take(id(1), BOB, 1, now)), "WRONG_OWNER");
        assert_eq!(reason(hunks.take(id(1), ANN, 1, over)), "HUNK_EXPIRED");
        for (existing, member, kind, now, expected) in [
            (2, ANN, "append", now, "NOT_FOUND"),
            (1, BOB, "append", now, "WRONG_OWNER"),
            (1, ANN, "insert_after", now, "INVALID_STATE.OTHER_KIND"),
            (1, ANN, "append", over, "HUNK_EXPIRED"),
        ] {
            assert_eq!(reason(hunks.place(Some(id(existing)), member, kind, id(9), now)), expected);
        }
        let again = hunks.place(Some(id(1)), ANN, "append", id(9), now).unwrap();
        assert_eq!((again.hunk.id, again.hunk.created), (id(1), UnixMillis(1_000)), "a plan keeps its id and its turn");
        hunks.keep(again, plan(2), 2, now).unwrap();
        assert_eq!(hunks.take(id(1), ANN, 2, over).unwrap().size(), 2);
        hunks.applied(id(1));
        assert_eq!(reason(hunks.take(id(1), ANN, 3, now)), "ALREADY_APPLIED");
        assert_eq!(reason(hunks.place(Some(id(1)), ANN, "append", id(9), now)), "ALREADY_APPLIED");
    }

    /// The first call wins and the other is refused: a plan is applied or replaced, never both.
    #[test]
    fn a_plan_is_replaced_by_one_call_and_not_while_it_is_applied() {
        let mut hunks = Hunks::default();
        kept(&mut hunks, 1, 1, 1_000);
        let now = UnixMillis(2_000);
        let place = |hunks: &Hunks| hunks.place(Some(id(1)), ANN, "append", id(9), now);
        let [one, other, late] = [(); 3].map(|()| place(&hunks).unwrap());
        hunks.keep(one, plan(2), 3, now).unwrap();
        assert_eq!(reason(hunks.keep(other, plan(3), 4, now)), "INVALID_STATE.CHANGED");
        // The call that applies came before the one that replaced.
        assert_eq!(reason(hunks.take(id(1), ANN, 2, now)), "INVALID_STATE.CHANGED");
        let slot = place(&hunks).unwrap();
        let taken = hunks.take(id(1), ANN, 5, now).unwrap();
        assert_eq!(taken.size(), 2);
        assert_eq!(reason(place(&hunks)), "INVALID_STATE");
        assert_eq!(reason(hunks.keep(slot, plan(4), 6, now)), "INVALID_STATE");
        // Two calls at once apply it: it is in use until both have ended.
        let other = hunks.take(id(1), ANN, 5, now).unwrap();
        drop(taken);
        assert_eq!(reason(place(&hunks)), "INVALID_STATE");
        // It could not be applied, and may be replaced again.
        drop(other);
        let slot = place(&hunks).unwrap();
        hunks.applied(id(1));
        assert_eq!(reason(hunks.keep(slot, plan(5), 8, now)), "ALREADY_APPLIED");
        assert_eq!(reason(hunks.keep(late, plan(6), 9, now)), "ALREADY_APPLIED");
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
