//! How a batch is applied: by which policy, for whom, and what happens once it is planned.

use aptix_model::actor::Actor;
use aptix_model::batch::Origin;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::plan::Plan;
use aptix_model::reason::Reason;
use aptix_model::report::Report;

use super::acting::Acting;
use super::withheld::Hidden;
use crate::policy::Policy;

/// Puts a report into bytes, with the person who agreed to the batch, if one did.
pub(super) type Encode<'a> = dyn Fn(&Report, Option<&Actor>) -> Result<Vec<u8>, Box<Failure>> + 'a;

/// How a batch is applied.
#[derive(Clone, Copy)]
pub struct ApplyOptions<'a> {
    /// What the person lets batches do.
    pub policy: &'a Policy,
    /// Whose turn it came from: its clipboards are those of that session.
    pub origin: &'a Origin,
    /// Bytes of diff that the report may carry.
    pub diff_bytes: usize,
    /// What happens once the batch is planned.
    pub mode: Mode<'a>,
    /// What the batch was planned to do when it was prepared: it does that, or nothing. Absent if it was not prepared.
    pub prepared: Option<&'a Plan>,
    /// Who has it applied, for the record.
    pub acting: Acting<'a>,
}

impl<'a> ApplyOptions<'a> {
    /// By a policy, for no session and nobody, with all of the diff in the report.
    #[must_use]
    pub const fn new(policy: &'a Policy, mode: Mode<'a>) -> Self {
        const NOBODY: &Origin = &Origin { session_id: None, conversation_id: None, turn_id: None };
        let acting = Acting::UNKNOWN;
        Self { policy, origin: NOBODY, diff_bytes: usize::MAX, mode, prepared: None, acting }
    }
}

/// What happens once a batch is planned.
#[derive(Clone, Copy)]
pub enum Mode<'a> {
    /// Nothing: the report says what would.
    DryRun,
    /// The same, for a caller that may stop waiting.
    Preview {
        /// Whether it has; looked at before each file is read, and before what takes long.
        is_over: &'a dyn Fn() -> bool,
    },
    /// It is committed.
    Commit,
    /// It is committed, and known by this id from then on.
    CommitNamed {
        /// The id.
        batch: BatchId,
    },
    /// It is committed, and in the same step the outbox gets its receipt and its new contents.
    CommitWithReceipt {
        /// The batch's id at the server.
        batch: BatchId,
        /// Puts the report into the bytes that will be sent, with the person who agreed to the batch, if one did; fails where they
        /// would be too many.
        encode: &'a Encode<'a>,
        /// Asks a person whether the batch may be compared with files that are withheld from its author.
        compare: &'a dyn Fn(&[Hidden<'_>]) -> bool,
    },
}

impl Mode<'_> {
    /// Whether nothing is written.
    #[must_use]
    pub const fn is_dry_run(&self) -> bool {
        matches!(self, Self::DryRun | Self::Preview { .. })
    }

    /// The id that the batch is known by, where no server has given it one.
    pub(super) const fn name(&self) -> Option<BatchId> {
        match self {
            Self::CommitNamed { batch } => Some(*batch),
            Self::DryRun | Self::Preview { .. } | Self::Commit | Self::CommitWithReceipt { .. } => None,
        }
    }

    /// Refuses to go on for a caller that has stopped waiting.
    pub(super) fn check_wanted(&self) -> Result<(), Failure> {
        match self {
            Self::Preview { is_over } if is_over() => {
                Err(Failure::new(Reason::DeadlineExceeded, "the batch was not planned in time"))
            }
            _ => Ok(()),
        }
    }
}
