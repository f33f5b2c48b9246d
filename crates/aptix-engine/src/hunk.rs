//! The life of a prepared edit, a hunk: who may replace it, who may apply it, and until when (WS-MOD 4).
//!
//! Pure: the caller keeps the hunks, passes them and the time, and acts on the answer.

use aptix_model::failure::Failure;
use aptix_model::id::FilePatchId;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::UnixMillis;

use alloc::string::{String, ToString};

/// How long a hunk can be applied, in milliseconds, unless it is prepared again: an hour.
pub const TTL_MILLIS: u64 = 60 * 60 * 1000;

/// A prepared edit of one file, as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hunk {
    /// Names it; minted by the program that keeps it, never chosen by its author.
    pub id: FilePatchId,
    /// The member who prepared it.
    pub owner: String,
    /// The kind of edit: the word of its place.
    pub kind: &'static str,
    /// When it was first prepared.
    pub created: UnixMillis,
    /// From when on it can no more be applied.
    pub expires: UnixMillis,
}

/// Who calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member<'a> {
    /// The name.
    pub name: &'a str,
    /// Whether the member may write files.
    pub may_write: bool,
}

/// Why a hunk cannot be applied, or not be prepared anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HunkError {
    /// No such hunk is kept.
    #[error("there is no prepared edit {0}")]
    Missing(FilePatchId),
    /// Its time is up.
    #[error("the prepared edit {0} has expired")]
    Expired(FilePatchId),
    /// Another member prepared it.
    #[error("the prepared edit {0} belongs to another member")]
    WrongOwner(FilePatchId),
    /// It was prepared as another kind of edit.
    #[error("the prepared edit {id} is a {found}, and a {asked} cannot take its place")]
    OtherKind {
        /// The hunk.
        id: FilePatchId,
        /// What it is.
        found: &'static str,
        /// What was to take its place.
        asked: &'static str,
    },
    /// It was applied.
    #[error("the prepared edit {0} was applied")]
    Applied(FilePatchId),
    /// Another call prepared it again meanwhile.
    #[error("a later call replaced the prepared edit {0}, and nothing was written")]
    Replaced(FilePatchId),
    /// The member may not write.
    #[error("this member may not write files")]
    NoWriteAccess,
}

impl HunkError {
    /// The error as it is reported to its author.
    #[must_use]
    pub fn failure(self) -> Failure {
        let (reason, detail, hint) = match self {
            Self::Missing(_) => {
                (Reason::NotFound, None, "prepare the edit again without existing_hunk_id, and apply the id you get")
            }
            Self::Expired(_) => {
                (Reason::HunkExpired, None, "prepare the edit again without existing_hunk_id, and apply the id you get")
            }
            Self::WrongOwner(_) => {
                (Reason::WrongOwner, None, "prepare the edit yourself: only who prepared it can apply or replace it")
            }
            Self::OtherKind { .. } => (
                Reason::InvalidState,
                Some(Detail::OtherKind),
                "leave existing_hunk_id out, or prepare with the tool that made the plan",
            ),
            Self::Applied(_) => {
                (Reason::AlreadyApplied, None, "nothing is left to do; prepare a new edit for another change")
            }
            Self::Replaced(_) => {
                (Reason::InvalidState, Some(Detail::Changed), "look at what the later call prepared, then apply that")
            }
            Self::NoWriteAccess => (Reason::PolicyDenied, None, "ask a member with write access to apply the edit"),
        };
        Failure { detail, ..Failure::new(reason, self.to_string()).hint(hint) }
    }
}

/// What is kept for a prepared edit: in the place of `existing`, if the caller names one, else new under `new_id`.
///
/// `existing` is the id that the caller gave, and the hunk kept under it.
///
/// # Errors
/// When the named hunk is not there, has expired, belongs to another member, or is another kind of edit
/// (WS-MOD 4.2).
pub fn prepare(
    existing: Option<(FilePatchId, Option<&Hunk>)>,
    member: Member<'_>,
    kind: &'static str,
    new_id: FilePatchId,
    now: UnixMillis,
) -> Result<Hunk, HunkError> {
    let expires = UnixMillis(now.0.saturating_add(TTL_MILLIS));
    let Some((id, kept)) = existing else {
        return Ok(Hunk { id: new_id, owner: member.name.to_string(), kind, created: now, expires });
    };
    let kept = owned(id, kept, member, now)?;
    if kept.kind != kind {
        return Err(HunkError::OtherKind { id, found: kept.kind, asked: kind });
    }
    Ok(Hunk { expires, ..kept.clone() })
}

/// The hunk that may be applied.
///
/// # Errors
/// When it is not there, has expired, belongs to another member, or the member may not write (WS-MOD 4.1).
pub fn apply<'h>(
    id: FilePatchId,
    kept: Option<&'h Hunk>,
    member: Member<'_>,
    now: UnixMillis,
) -> Result<&'h Hunk, HunkError> {
    let kept = owned(id, kept, member, now)?;
    if member.may_write { Ok(kept) } else { Err(HunkError::NoWriteAccess) }
}

fn owned<'h>(
    id: FilePatchId,
    kept: Option<&'h Hunk>,
    member: Member<'_>,
    now: UnixMillis,
) -> Result<&'h Hunk, HunkError> {
    let kept = kept.ok_or(HunkError::Missing(id))?;
    if kept.owner != member.name {
        Err(HunkError::WrongOwner(id))
    } else if kept.expires <= now {
        Err(HunkError::Expired(id))
    } else {
        Ok(kept)
    }
}

/// The order in which hunks of one file are applied: by time of creation, then by id (WS-MOD 3.2).
#[must_use]
pub fn turn(hunk: &Hunk) -> (UnixMillis, FilePatchId) {
    (hunk.created, hunk.id)
}
