//! The author at one connection: applies batches under the policy of the models, and keeps prepared edits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_engine::hunk::Member;
use aptix_model::batch::{Batch, Origin};
use aptix_model::documents::Dialect;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Uuid};
use aptix_model::record::FileIds;

use super::answer::{Applied, DIFF_BYTES};
use super::clock::Clock;
use super::hunks::Hunks;
use super::until::Until;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::{ApplyOptions, Mode, Refusal, apply};
use crate::policy::Policy;
use crate::policy::files::PolicyFiles;
use crate::policy::places::Places;
use crate::present::dialect_terms;
use crate::workspace::roots::workspace::Workspace;

/// One author: a connection, with its clipboards and its prepared edits.
#[derive(Debug)]
pub(super) struct Author {
    pub(super) workspace: Arc<Workspace>,
    policies: Arc<PolicyFiles>,
    /// The session, and the owner of prepared edits.
    name: String,
    pub(super) hunks: Mutex<Hunks>,
    /// By which prepared edits expire and take turns.
    pub(super) clock: Clock,
}

impl Author {
    pub(super) fn new(workspace: Arc<Workspace>, policies: Arc<PolicyFiles>, name: String) -> Self {
        Self { workspace, policies, name, hunks: Mutex::default(), clock: Clock::start() }
    }

    pub(super) fn hunks(&self) -> MutexGuard<'_, Hunks> {
        self.hunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn policy(&self) -> Result<Arc<Policy>, Failure> {
        self.policies.read(&self.workspace).map_err(|error| error.failure())
    }

    fn places(&self) -> Places {
        self.policies.private_places(&self.workspace)
    }

    /// A refusal as a model may read it: without paths of this machine outside of the root.
    pub(super) fn for_model(&self, refusal: impl Into<Refusal>) -> Refusal {
        let mut refusal = refusal.into();
        self.places().name_in(&mut refusal.failures);
        refusal
    }

    pub(super) fn member(&self) -> Member<'_> {
        Member { name: &self.name, may_write: true }
    }

    /// Applies a batch, unless `check` refuses what would come of it.
    pub(super) fn apply(
        &self,
        dialect: Option<Dialect>,
        batch: &Batch,
        until: &Until,
        check: &mut dyn FnMut(&Proposal<'_>) -> Result<(), Failure>,
    ) -> Result<Applied, Refusal> {
        self.attempt(dialect, batch, until, check).map_err(|refusal| self.for_model(refusal))
    }

    fn attempt(
        &self,
        dialect: Option<Dialect>,
        batch: &Batch,
        until: &Until,
        check: &mut dyn FnMut(&Proposal<'_>) -> Result<(), Failure>,
    ) -> Result<Applied, Refusal> {
        let policy = self.policy()?;
        let (id, ids) = (BatchId(mint()), FileIds::mint(batch, mint));
        let options = ApplyOptions {
            policy: &policy,
            origin: &Origin { session_id: Some(self.name.clone()), ..Origin::default() },
            diff_bytes: DIFF_BYTES,
            mode: Mode::CommitNamed { batch: id },
        };
        let mut report = apply(&self.workspace, batch, options, &mut |proposal| {
            let unanswered = proposal.unanswered();
            if !unanswered.is_empty() {
                return Decision::Refuse(unanswered);
            }
            if let Err(failure) = check(proposal) {
                return Decision::Refuse(vec![failure]);
            }
            if until.is_over() { Decision::Refuse(vec![until.failure()]) } else { Decision::Apply }
        })
        .map_err(|refusal| in_words(refusal, dialect, batch))?;
        self.places().name_in_report(&mut report);
        Ok(Applied { ids, batch: id, report })
    }
}

/// A refusal in the words of the call; the tools that prepare edits have no dialect.
pub(super) fn in_words(mut refusal: Refusal, dialect: Option<Dialect>, batch: &Batch) -> Refusal {
    dialect_terms::in_words_of(dialect.unwrap_or(Dialect::Chat), batch, &mut refusal.failures);
    refusal
}

#[expect(clippy::disallowed_methods, reason = "the edge of the program mints ids")]
pub(super) fn mint() -> Uuid {
    Uuid::now_v7()
}
