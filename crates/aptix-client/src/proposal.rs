//! A change that is ready to be written, for whoever decides whether it may be.

use aptix_engine::plan::BatchPlan;
use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

/// What is about to be written, for whoever decides about it.
#[derive(Debug)]
pub struct Proposal<'a> {
    /// As its author wrote it.
    pub batch: &'a Batch,
    /// What becomes of each file.
    pub plan: &'a BatchPlan<'a>,
    /// For each file, why a person has to agree even where nobody is asked otherwise.
    pub asks: Vec<Option<Ask>>,
}

/// Why a person has to agree to the change of a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ask {
    /// A machine does what the file says.
    #[error("the file tells an editor, an agent, a build service or version control what to do")]
    Sensitive,
}

impl Proposal<'_> {
    /// What has to be said where a person has to agree and none can be asked: a failure for each such file.
    #[must_use]
    pub fn unanswered(&self) -> Vec<Failure> {
        let asks = self.asks.iter().zip(&self.batch.files).enumerate();
        let asks = asks.filter_map(|(index, (ask, file))| Some((index, ask.as_ref()?, file)));
        asks.map(|(index, ask, file)| ask.failure().file(index, file.target.as_str())).collect()
    }
}

impl Ask {
    fn failure(&self) -> Failure {
        let failure = Failure::new(Reason::ApprovalRequired, format!("a person has to agree: {self}"));
        match self {
            Self::Sensitive => failure
                .detail(Detail::Sensitive)
                .hint("leave the file out of the batch, or have a person apply it, who can see the change and agree"),
        }
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
