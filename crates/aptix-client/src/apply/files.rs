//! Every file that a batch is about: those of its file patches, and those that blocks of an answer may be named for.

use std::collections::HashMap;

use aptix_engine::planning::observed::Observed;
use aptix_engine::valid::ValidBatch;
use aptix_model::failure::Failure;

use super::find::{Found, GoOn, Role, Search, find};
use super::refusal::Refusal;
use super::withheld::{self, Hidden};
use crate::policy::Policy;
use crate::workspace::read::place::Claim;
use crate::workspace::roots::workspace::Workspace;

/// The files of a batch as they are, each read once.
pub(super) struct Files {
    /// One entry for each file patch.
    pub(super) found: Vec<Found>,
    /// The files that blocks alone are named for.
    others: Vec<Found>,
    /// For each name of each block, its position in `found`, and behind that in `others`; `None` where there is no file.
    quoted: Vec<Option<usize>>,
}

impl Files {
    /// Finds and reads them, and refuses to take the content of withheld ones along.
    pub(super) fn find(
        workspace: &Workspace,
        batch: &ValidBatch<'_>,
        policy: &Policy,
        go_on: GoOn<'_>,
    ) -> Result<Self, Refusal> {
        let found = find(workspace, batch, policy, go_on)?;
        withheld::refuse_sources(batch.batch, &found, policy.caller)?;
        let mut files = Self { found, others: Vec::new(), quoted: Vec::new() };
        if !batch.quotes().is_empty() {
            files.find_quoted(workspace, batch, policy, go_on)?;
        }
        Ok(files)
    }

    /// Resolves and reads the files of the blocks. A name that only may be a path, and leads to nothing that may be read, is
    /// no path.
    fn find_quoted(
        &mut self,
        workspace: &Workspace,
        batch: &ValidBatch<'_>,
        policy: &Policy,
        go_on: GoOn<'_>,
    ) -> Result<(), Vec<Failure>> {
        let mut failures = Vec::new();
        let mut search = Search::new(workspace, policy).while_wanted(go_on);
        let patched = self.found.iter().enumerate().rev();
        let mut known: HashMap<_, _> =
            patched.map(|(index, file)| ((file.place.root(), file.place.real()), index)).collect();
        for quote in batch.quotes() {
            for name in &quote.names {
                let found = search.resolve(&name.target).and_then(|place| {
                    let key = (place.root(), place.real());
                    if let Some(index) = known.get(&key) {
                        return Ok(*index);
                    }
                    self.others.push(search.look(0, place, Role::Read, Claim::Stays)?);
                    let index = self.found.len() + self.others.len() - 1;
                    known.insert(key, index);
                    Ok(index)
                });
                match found {
                    Err(failure) if name.name.is_path => {
                        let (path, line) = (name.name.path.clone(), quote.quote.first_line);
                        let message = format!("the block of the answer is named for {path:?}: {}", failure.message);
                        let failure = Failure { message, path: Some(path), ..failure };
                        failures.push(failure.field(format!("line {line}")));
                    }
                    found => self.quoted.push(found.ok()),
                }
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(failures) }
    }

    fn quoted(&self) -> impl Iterator<Item = Option<&Found>> {
        self.quoted.iter().map(|index| {
            let index = (*index)?;
            self.found.get(index).or_else(|| self.others.get(index - self.found.len()))
        })
    }

    /// The withheld files that the batch would be compared with; those of blocks have positions behind the file patches.
    pub(super) fn hidden<'b>(&self, batch: &ValidBatch<'b>) -> Vec<Hidden<'b>> {
        let mut hidden = withheld::hidden(batch.batch, &self.found);
        let names = batch.quotes().iter().enumerate().flat_map(|(index, quote)| {
            let file = batch.files().len() + index;
            quote.names.iter().map(move |name| (file, name.name.path.as_str()))
        });
        hidden.extend(names.zip(self.quoted()).filter_map(|((file, path), found)| {
            let found = found?;
            let why = found.withheld.filter(|_| found.original.is_some())?;
            Some(Hidden { file, path, why })
        }));
        hidden
    }

    /// Shows what the author may read anyhow: a person has agreed to it.
    pub(super) fn open_if_approved(&mut self) {
        self.found.iter_mut().chain(&mut self.others).for_each(Found::open_if_approved);
    }

    /// Keeps what is withheld out of the evidence for what was found.
    pub(super) fn blind(&self, batch: &mut ValidBatch<'_>) {
        batch.blind(|index| self.found.get(index).is_some_and(|found| found.withheld.is_some()));
    }

    /// What the engine is shown: of the files of the file patches, and of those that blocks may be named for.
    pub(super) fn observed(&self) -> (Vec<Observed<'_>>, Vec<Option<Observed<'_>>>) {
        let quotable = self.quoted().map(|found| found.map(Found::observed));
        (self.found.iter().map(Found::observed).collect(), quotable.collect())
    }
}
