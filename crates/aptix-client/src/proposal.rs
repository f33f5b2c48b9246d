//! A change that is ready to be written, for whoever decides whether it may be.

use aptix_engine::plan::BatchPlan;
use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

use crate::policy::paths::Listed;

/// What is about to be written, for whoever decides about it.
#[derive(Debug)]
pub struct Proposal<'a> {
    /// As its author wrote it.
    pub batch: &'a Batch,
    /// What becomes of each file.
    pub plan: &'a BatchPlan<'a>,
    /// For each file, whether a person has to agree.
    pub needs: Vec<Need>,
}

/// Whether a person has to agree to the change of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nobody is asked: policy allows it, or the file stays as it is.
    Nothing,
    /// Where a person is asked about every batch, they are asked about this.
    Usual,
    /// Somebody is asked wherever that is.
    Ask(Ask),
}

/// Why a person has to agree to the change of a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ask {
    /// A machine does what the file says.
    #[error("the file tells an editor, an agent, a build service or version control what to do")]
    Sensitive,
    /// A policy file says so.
    #[error("{0}")]
    Listed(Listed),
    /// It would be gone.
    #[error("the file is deleted")]
    Deletion,
}

impl Proposal<'_> {
    /// What has to be said where a person has to agree and none can be asked: a failure for each such file.
    #[must_use]
    pub fn unanswered(&self) -> Vec<Failure> {
        let needs = self.needs.iter().zip(&self.batch.files).enumerate();
        let asks = needs.filter_map(|(index, (need, file))| match need {
            Need::Ask(ask) => Some(ask.failure().file(index, file.target.as_str())),
            Need::Nothing | Need::Usual => None,
        });
        asks.collect()
    }

    /// Whether nobody needs to be asked about any file.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.needs.iter().all(|need| *need == Need::Nothing)
    }
}

impl Ask {
    fn failure(&self) -> Failure {
        let detail = match self {
            Self::Sensitive => Detail::Sensitive,
            Self::Listed(_) => Detail::Listed,
            Self::Deletion => Detail::Deletion,
        };
        Failure::new(Reason::ApprovalRequired, format!("a person has to agree: {self}"))
            .detail(detail)
            .hint("leave the file out of the batch, or have a person apply it, who can see the change and agree")
    }
}

/// What somebody says to a proposal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Do it.
    Apply,
    /// Do not; the failures say who refused and why.
    Refuse(Vec<Failure>),
}
