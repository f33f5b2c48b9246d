//! Every file that a batch is about: those of its file patches, and those that blocks of an answer may be named for.

use aptix_engine::planning::observed::Observed;
use aptix_engine::valid::ValidBatch;

use super::find::{Found, find};
use super::quoted::{self, AllQuoted, find_quoted};
use super::refusal::Refusal;
use super::withheld::{self, Hidden};
use crate::policy::Policy;
use crate::workspace::roots::workspace::Workspace;

/// The files of a batch as they are, read once.
pub(super) struct Files {
    /// One entry for each file patch.
    pub(super) found: Vec<Found>,
    quoted: AllQuoted,
}

impl Files {
    /// Finds and reads them, and refuses to take the content of withheld ones along.
    pub(super) fn find(workspace: &Workspace, batch: &ValidBatch<'_>, policy: &Policy) -> Result<Self, Refusal> {
        let found = find(workspace, batch, policy)?;
        withheld::refuse_sources(batch.batch, &found, policy.caller)?;
        let quoted = find_quoted(workspace, batch, &found, policy)?;
        Ok(Self { found, quoted })
    }

    /// The withheld files that the batch would be compared with.
    pub(super) fn hidden<'b>(&self, batch: &ValidBatch<'b>) -> Vec<Hidden<'b>> {
        let mut hidden = withheld::hidden(batch.batch, &self.found);
        hidden.extend(quoted::hidden(batch, &self.quoted, &self.found));
        hidden
    }

    /// A person has agreed that what the author may read anyhow is shown.
    pub(super) fn open_if_approved(&mut self) {
        self.found.iter_mut().for_each(Found::open_if_approved);
        quoted::open_if_approved(&mut self.quoted);
    }

    /// Keeps what is withheld out of the evidence for what was found.
    pub(super) fn blind(&self, batch: &mut ValidBatch<'_>) {
        batch.blind(|index| self.found.get(index).is_some_and(|found| found.withheld.is_some()));
    }

    /// What the engine is shown of the files of the file patches.
    pub(super) fn observed(&self) -> Vec<Observed<'_>> {
        self.found.iter().map(Found::observed).collect()
    }

    /// What it is shown of the files that blocks may be named for.
    pub(super) fn quotable(&self) -> Vec<Option<Observed<'_>>> {
        quoted::observed(&self.quoted, &self.found)
    }
}
