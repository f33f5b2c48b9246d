//! The prepared edits of a workspace as the tools know them: who may apply or replace which, until when (WS-MOD 2.2, 4).
//!
//! They are kept on disk (`workspace/keep/prepared.rs`) for their owner, so they outlive the process that prepared them.

use aptix_engine::hunk::{self, Hunk, HunkError, Member};
use aptix_model::batch::{Batch, FileEdit};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, FilePatchId};
use aptix_model::id_block;
use aptix_model::plan::Plan;
use aptix_model::record::UnixMillis;
use aptix_model::wire::bytes::{batch_from_bytes, batch_to_bytes, plan_from_bytes, plan_to_bytes};

use crate::workspace::keep::prepared::{self, Head, PreparedEdit, PreparedEdits};
use crate::workspace::roots::workspace::Workspace;

/// The kind of an edit that was applied: that is not kept.
const NO_KIND: &str = "";

/// A prepared edit: the batch, and what it was planned to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Prepared {
    pub(super) batch: Batch,
    pub(super) plan: Plan,
}

impl Prepared {
    /// The batch's length in 8 bytes, the batch, the plan.
    fn to_bytes(&self) -> Vec<u8> {
        let batch = batch_to_bytes(&self.batch);
        [&(batch.len() as u64).to_le_bytes(), batch.as_slice(), &plan_to_bytes(&self.plan)].concat()
    }

    /// An edit of one file by anchors, with the plan of that file; `None` for anything else.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (batch, plan) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let (batch, plan) = (batch_from_bytes(batch).ok()?, plan_from_bytes(plan).ok()?);
        let is_of_one = batch.files.len() == 1 && plan.report.files.len() == 1 && plan.places.len() == 1;
        let prepared = Self { batch, plan };
        prepared.kind().filter(|_| is_of_one)?;
        Some(prepared)
    }

    /// The word of its place.
    fn kind(&self) -> Option<&'static str> {
        match self.batch.files.first().map(|file| &file.edit) {
            Some(FileEdit::AnchorEdit(edit)) => Some(edit.place.kind()),
            _ => None,
        }
    }
}

/// The position of a call among all calls of a connection, in the order in which they came.
pub(super) type CallNumber = u64;

/// Who calls, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) member: Member<'a>,
    /// The name of the connection.
    pub(super) connection: &'a str,
    pub(super) call: CallNumber,
    /// The time of the connection, in which a hunk's times are shown.
    pub(super) now: UnixMillis,
}

/// Where a planned edit is to be kept.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) hunk: Hunk,
    /// The version that it replaces.
    replaces: Option<u64>,
}

/// A kept edit as a caller sees it.
struct Seen {
    hunk: Hunk,
    head: Head,
    /// None once it was applied.
    prepared: Option<Prepared>,
}

/// The prepared edits, while no other call applies or replaces one.
#[derive(Debug)]
pub(super) struct Hunks<'w>(PreparedEdits<'w>);

impl<'w> Hunks<'w> {
    /// Waits until no other call or process applies or replaces a prepared edit.
    ///
    /// # Errors
    /// When that takes too long, or a commit that was left half-way cannot be recovered.
    pub(super) fn lock(workspace: &'w Workspace) -> Result<Self, Failure> {
        let lock = workspace.lock_prepared().map_err(|error| error.failure())?;
        Ok(Self(PreparedEdits::under(workspace, lock)))
    }

    /// The slot in which an edit may be kept: that of `existing`, if one is named, else a new one under `new_id`.
    ///
    /// # Errors
    /// By the rules of replacing (WS-MOD 4.2), when the existing edit was applied, and when its file is damaged.
    pub(super) fn place(
        &self,
        existing: Option<FilePatchId>,
        caller: Caller<'_>,
        kind: &'static str,
        new_id: FilePatchId,
    ) -> Result<Slot, Failure> {
        let Caller { member, now, .. } = caller;
        let seen = existing.map(|id| Ok::<_, Failure>((id, self.see(id, caller)?))).transpose()?;
        if let Some((id, Some(Seen { hunk, prepared: None, .. }))) = &seen {
            hunk::apply(*id, Some(hunk), member, now).map_err(HunkError::failure)?;
            return Err(HunkError::Applied(*id).failure());
        }
        let named = seen.as_ref().map(|(id, seen)| (*id, seen.as_ref().map(|seen| &seen.hunk)));
        let hunk = hunk::prepare(named, member, kind, new_id, now).map_err(HunkError::failure)?;
        let replaces = seen.and_then(|(_, seen)| seen).map(|seen| seen.head.version);
        Ok(Slot { hunk, replaces })
    }

    /// Keeps the plan of a call durably.
    ///
    /// # Errors
    /// When the plan that it was to replace was applied, was replaced since the slot was given, or is not kept any more.
    pub(super) fn keep(&self, slot: Slot, plan: &Prepared, caller: Caller<'_>) -> Result<(), Failure> {
        let Slot { hunk, replaces } = slot;
        if let Some(version) = replaces {
            let seen = self.see(hunk.id, caller)?.ok_or_else(|| HunkError::Missing(hunk.id).failure())?;
            if seen.prepared.is_none() {
                return Err(HunkError::Applied(hunk.id).failure());
            }
            if seen.head.version != version {
                return Err(HunkError::Replaced(hunk.id).failure());
            }
        }
        let age = self.0.age().map_err(|error| error.failure())?;
        let head = Head {
            hunk: hunk.id.to_string(),
            owner: hunk.owner,
            created: hunk.created.0,
            until: age.saturating_add(hunk::TTL_MILLIS),
            expires: hunk.expires.0,
            version: replaces.map_or(0, |version| version.saturating_add(1)),
            call: (caller.connection.to_owned(), caller.call),
            is_applied: false,
        };
        self.0.put(batch_of(hunk.id), &PreparedEdit { head, content: plan.to_bytes() })
    }

    /// The edit that a call may apply.
    ///
    /// # Errors
    /// By the rules of applying (WS-MOD 4.1), when it was applied, when a later call of the connection replaced it, and when its
    /// file is damaged.
    pub(super) fn take(&self, id: FilePatchId, caller: Caller<'_>) -> Result<Prepared, Failure> {
        let seen = self.see(id, caller)?;
        hunk::apply(id, seen.as_ref().map(|seen| &seen.hunk), caller.member, caller.now).map_err(HunkError::failure)?;
        let Some(Seen { prepared: Some(prepared), head, .. }) = seen else {
            return Err(HunkError::Applied(id).failure());
        };
        let (connection, call) = head.call;
        if connection == caller.connection && call > caller.call {
            return Err(HunkError::Replaced(id).failure());
        }
        Ok(prepared)
    }

    /// Marks an edit as applied, if its commit did not.
    pub(super) fn applied(&self, id: FilePatchId) {
        if let Err(error) = self.0.applied(batch_of(id)) {
            tracing::warn!(%error, "a prepared edit that changed nothing can be applied again");
        }
    }

    fn see(&self, id: FilePatchId, caller: Caller<'_>) -> Result<Option<Seen>, Failure> {
        let batch = batch_of(id);
        let Some(PreparedEdit { head, content }) = self.0.read(batch)? else { return Ok(None) };
        let stated: Option<FilePatchId> = head.hunk.parse().ok();
        if stated.is_none_or(|stated| batch_of(stated) != batch) {
            return Err(self.0.refuse(batch));
        }
        if stated != Some(id) {
            return Ok(None);
        }
        let prepared = (!head.is_applied).then(|| Prepared::from_bytes(&content).ok_or_else(|| self.0.refuse(batch)));
        let prepared = prepared.transpose()?;
        let age = self.0.age().map_err(|error| error.failure())?;
        let by_age = caller.now.0.saturating_add(head.until.saturating_sub(age).min(hunk::TTL_MILLIS));
        // The clock of a connection never jumps either; that of an earlier connection may have.
        let is_its_own = head.call.0 == caller.connection;
        let hunk = Hunk {
            id,
            owner: head.owner.clone(),
            kind: prepared.as_ref().and_then(Prepared::kind).unwrap_or(NO_KIND),
            created: UnixMillis(head.created),
            expires: UnixMillis(if is_its_own { by_age.min(head.expires) } else { by_age }),
        };
        Ok(Some(Seen { hunk, head, prepared }))
    }
}

/// When a hunk takes its turn, if it is kept; for this look no lock is needed.
pub(super) fn turn(workspace: &Workspace, id: FilePatchId) -> Option<(UnixMillis, FilePatchId)> {
    let created = prepared::created(workspace, batch_of(id))?;
    Some((UnixMillis(created), id))
}

/// The batch that applies an edit.
fn batch_of(id: FilePatchId) -> BatchId {
    id_block::batch_id(id.0)
}

#[cfg(test)]
mod tests {
    use aptix_model::batch::{AnchorEdit, AnchorPlace, FilePatch, Target};
    use aptix_model::id::Uuid;
    use aptix_model::report::{FileReport, FileStatus, Report};

    use super::*;
    use crate::workspace::fs::disk::SystemDisk;

    const ANN: Member<'_> = Member { name: "ann", may_write: true };
    const BOB: Member<'_> = Member { name: "bob", may_write: true };

    fn id(number: u128) -> FilePatchId {
        FilePatchId(Uuid::from_u128((number << 17) | 1))
    }

    fn by(member: Member<'_>, call: CallNumber) -> Caller<'_> {
        Caller { member, connection: "one", call, now: UnixMillis(1_000) }
    }

    fn workspace() -> ([tempfile::TempDir; 2], Workspace) {
        let places = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let root = places[0].path().display().to_string().parse().unwrap();
        let workspace = Workspace::open(&[root], places[1].path(), Box::new(SystemDisk)).unwrap();
        (places, workspace)
    }

    fn plan(content: &str) -> Prepared {
        let edit = FileEdit::AnchorEdit(AnchorEdit { place: AnchorPlace::Append, content: content.to_owned() });
        let file = FilePatch { target: Target::Path("a.txt".to_owned()), key: None, label: None, edit };
        let report = FileReport::new("a.txt".to_owned(), "ws/a.txt".to_owned(), FileStatus::Modified);
        let plan = Plan { report: Report::applied(vec![report]), places: vec![Vec::new()], evidence: vec![None] };
        Prepared { batch: Batch { files: vec![file], ..Batch::default() }, plan }
    }

    fn reason<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> String {
        let failure = outcome.unwrap_err();
        failure.detail.map_or_else(|| failure.reason.to_string(), |detail| format!("{}.{detail}", failure.reason))
    }

    /// WS-MOD-4.1.2, WS-MOD-4.1.3, WS-MOD-4.2.2, WS-MOD-4.2.3, WS-MOD-4.2.4: who may apply or replace which plan.
    #[test]
    fn a_plan_is_applied_once_by_its_owner() {
        let (_places, workspace) = workspace();
        let hunks = Hunks::lock(&workspace).unwrap();
        let slot = hunks.place(None, by(ANN, 1), "append", id(1)).unwrap();
        hunks.keep(slot, &plan("x\n"), by(ANN, 1)).unwrap();
        assert_eq!(reason(hunks.take(id(2), by(ANN, 1))), "NOT_FOUND");
        assert_eq!(reason(hunks.take(id(1), by(BOB, 1))), "WRONG_OWNER");
        // Another id in the same block of ids.
        assert_eq!(reason(hunks.take(FilePatchId(Uuid::from_u128(id(1).0.as_u128() + 1)), by(ANN, 1))), "NOT_FOUND");
        for (existing, member, kind, expected) in [
            (2, ANN, "append", "NOT_FOUND"),
            (1, BOB, "append", "WRONG_OWNER"),
            (1, ANN, "insert_after", "INVALID_STATE.OTHER_KIND"),
        ] {
            assert_eq!(reason(hunks.place(Some(id(existing)), by(member, 2), kind, id(9))), expected);
        }
        let created = turn(&workspace, id(1)).unwrap();
        let again = hunks.place(Some(id(1)), Caller { now: UnixMillis(9_000), ..by(ANN, 2) }, "append", id(9)).unwrap();
        assert_eq!((again.hunk.id, again.hunk.created), (id(1), created.0), "a plan keeps its id and its turn");
        hunks.keep(again, &plan("y\n"), by(ANN, 2)).unwrap();
        assert_eq!(hunks.take(id(1), by(ANN, 2)).unwrap(), plan("y\n"));
        hunks.applied(id(1));
        assert_eq!(reason(hunks.take(id(1), by(BOB, 3))), "WRONG_OWNER");
        assert_eq!(reason(hunks.take(id(1), by(ANN, 3))), "ALREADY_APPLIED");
        assert_eq!(reason(hunks.place(Some(id(1)), by(ANN, 3), "insert_after", id(9))), "ALREADY_APPLIED");
    }

    /// The first call wins and the other is refused: a plan is applied or replaced, never both.
    #[test]
    fn a_plan_is_replaced_by_one_call() {
        let (_places, workspace) = workspace();
        let hunks = Hunks::lock(&workspace).unwrap();
        let slot = hunks.place(None, by(ANN, 1), "append", id(1)).unwrap();
        hunks.keep(slot, &plan("1\n"), by(ANN, 1)).unwrap();
        let [one, other, late] =
            [2, 3, 4].map(|call| hunks.place(Some(id(1)), by(ANN, call), "append", id(9)).unwrap());
        hunks.keep(one, &plan("2\n"), by(ANN, 3)).unwrap();
        assert_eq!(reason(hunks.keep(other, &plan("3\n"), by(ANN, 4))), "INVALID_STATE.CHANGED");
        // The call that applies came before the one that replaced; calls of other connections have no order.
        assert_eq!(reason(hunks.take(id(1), by(ANN, 2))), "INVALID_STATE.CHANGED");
        assert!(hunks.take(id(1), Caller { connection: "other", ..by(ANN, 2) }).is_ok());
        hunks.applied(id(1));
        assert_eq!(reason(hunks.keep(late, &plan("4\n"), by(ANN, 9))), "ALREADY_APPLIED");
    }
}
