//! A planned change and the decision about it: why a person has to agree, and what they decided.

use aptix_engine::plan::BatchPlan;
use aptix_model::batch::Batch;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{FileReport, Withheld};

use super::subject;
use crate::policy::paths::Listed;
use crate::workspace::commit::change::Change;
use crate::workspace::read::place::Place;
use crate::workspace::roots::workspace::Workspace;

/// What is about to be written, for the decision.
#[derive(Debug)]
pub struct Proposal<'a> {
    /// As its author wrote it.
    pub batch: &'a Batch,
    /// What becomes of each file.
    pub plan: &'a BatchPlan<'a>,
    /// For each file, whether a person has to agree.
    pub needs: Vec<Need>,
    /// For each file, its report in full.
    pub reports: &'a [FileReport],
    /// For each file, where it is, and where else it comes from or goes to.
    pub(crate) places: Vec<(&'a Place, Option<&'a Place>)>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) changes: &'a [Change<'a>],
    /// For each of the changes, the position of its file.
    pub(crate) changed: &'a [usize],
    /// Whether its author is not shown one of the files, as it was or where it comes from.
    pub(crate) is_withheld: bool,
    /// How many files of the batch are refused already, where it is applied file by file; they are no part of this.
    pub(crate) left_out: usize,
}

/// Whether a person has to agree to the change of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Need {
    /// No question: policy allows it, or the file stays as it is.
    Nothing,
    /// Where a person is asked about every batch, they are asked about this.
    Usual,
    /// A person is asked in every mode.
    Ask {
        /// Why.
        ask: Ask,
        /// The path that this is about, if that is not the one of the file patch but where it is renamed to, or what it is
        /// copied from.
        other: Option<String>,
    },
}

/// Why a person has to agree to the change of a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ask {
    /// A machine executes or obeys the file.
    #[error("the file tells an editor, an agent, a build service or version control what to do")]
    Sensitive,
    /// It is new at a root and begins with a dot: a tool may execute it as soon as it is there.
    #[error("a new file or directory at the root whose name begins with a dot may tell a tool what to do")]
    NewDotName,
    /// A policy file says so.
    #[error("{0}")]
    Listed(Listed),
    /// It has other names, and policy denies some.
    #[error(
        "the file has other names, which policy may deny; only this one gets the new content, and the link is broken"
    )]
    HardLinked,
    /// It would be gone.
    #[error("the file is deleted")]
    Deletion,
    /// Keys, passwords, tokens.
    #[error("the file usually holds secrets")]
    Secret,
    /// Its author may not see what is in it.
    #[error("the author of the edit is not shown this file, because {}", .0.because())]
    Withheld(Withheld),
    /// Its ignore rules keep files from servers.
    #[error("the file keeps other files from servers, and lines of it are changed, removed or taken back")]
    IgnoreRules,
}

impl Proposal<'_> {
    /// The refusal where a person has to agree and none can be asked: a failure for each such file.
    #[must_use]
    pub fn unanswered(&self) -> Vec<Failure> {
        let needs = self.needs.iter().zip(&self.batch.files).enumerate();
        let asks = needs.filter_map(|(index, (need, file))| match need {
            Need::Ask { ask, other } => Some(ask.failure(other.as_deref()).file(index, file.target.as_str())),
            Need::Nothing | Need::Usual => None,
        });
        asks.collect()
    }

    /// Every name of a file, by the root's number and the path in it.
    #[must_use]
    pub fn names(&self, file: usize) -> Vec<(usize, String)> {
        let places = self.places.get(file).into_iter().flat_map(|(place, other)| std::iter::once(*place).chain(*other));
        let mut names: Vec<_> = places
            .flat_map(|place| [(place.root(), place.path.as_str().to_owned()), (place.root(), place.real())])
            .collect();
        names.dedup();
        names
    }

    /// The digest of what would be agreed to; computed anew by each call.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        subject::digest(self.workspace, self.batch, self.changes)
    }

    /// The digest of each change that would be agreed to; computed anew by each call.
    #[must_use]
    pub fn parts(&self) -> Vec<Sha256Digest> {
        subject::parts(self.workspace, self.changes)
    }

    /// Those of the changes of these files.
    #[must_use]
    pub fn parts_of(&self, files: &[usize]) -> Vec<Sha256Digest> {
        let parts = self.changed.iter().zip(self.parts());
        parts.filter(|(index, _)| files.contains(index)).map(|(_, part)| part).collect()
    }

    /// Whether no file needs a person's agreement.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.needs.iter().all(|need| *need == Need::Nothing)
    }
}

impl Ask {
    fn failure(&self, other: Option<&str>) -> Failure {
        let detail = match self {
            Self::Sensitive | Self::NewDotName | Self::IgnoreRules => Detail::Sensitive,
            Self::Listed(_) => Detail::Listed,
            Self::HardLinked => Detail::HardLinked,
            Self::Deletion => Detail::Deletion,
            Self::Secret => Detail::Secret,
            Self::Withheld(_) => Detail::Withheld,
        };
        let about = other.map_or_else(String::new, |path| format!("{path:?}: "));
        Failure::new(Reason::ApprovalRequired, format!("a person has to agree: {about}{self}"))
            .detail(detail)
            .hint("leave the file out of the batch, or have a person apply it, who can see the change and agree")
    }
}

/// The decision about a proposal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Do it; no agreement was needed.
    Apply,
    /// Do it if it is what has this [digest](Proposal::digest), which a person has agreed to.
    Approved(Sha256Digest),
    /// Do not; the failures say who refused and why.
    Refuse(Vec<Failure>),
}

impl Decision {
    /// Decides where there is no person to ask: applies what needs no agreement, and refuses the rest.
    #[must_use]
    pub fn unattended(proposal: &Proposal<'_>) -> Self {
        let unanswered = proposal.unanswered();
        if unanswered.is_empty() { Self::Apply } else { Self::Refuse(unanswered) }
    }

    /// Checks that a decision agrees to what the proposal is now; answers whether a person did.
    pub(crate) fn check(self, proposal: &Proposal<'_>) -> Result<bool, Vec<Failure>> {
        match self {
            Self::Apply => Ok(false),
            Self::Approved(digest) if digest == proposal.digest() => Ok(true),
            Self::Approved(_) => {
                let message = "what a person agreed to is not what would be written now, so nothing was written";
                let hint = "send the batch again; it is shown and asked about anew";
                Err(vec![Failure::new(Reason::ApprovalRequired, message).detail(Detail::Changed).hint(hint)])
            }
            Self::Refuse(failures) => Err(failures),
        }
    }
}
