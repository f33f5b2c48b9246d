//! Finds and reads the files that blocks of an answer may be named for, to be held against the blocks.

use std::collections::HashMap;

use aptix_engine::planning::observed::Observed;
use aptix_engine::valid::ValidBatch;
use aptix_model::failure::Failure;

use super::find::{Found, Quoted, Search};
use super::refusal::Refusal;
use super::withheld::Hidden;
use crate::policy::Policy;
use crate::workspace::roots::workspace::Workspace;

/// What was found for the names of all blocks.
#[derive(Debug)]
pub(super) struct AllQuoted {
    /// An entry for each name of each quote.
    names: Vec<Quoted>,
    /// The files that no file patch is about, each once.
    others: Vec<Found>,
}

impl AllQuoted {
    fn found<'f>(&'f self, files: &'f [Found]) -> impl Iterator<Item = Option<&'f Found>> {
        self.names.iter().map(move |name| match *name {
            Quoted::Nothing => None,
            Quoted::Patched(index) => files.get(index),
            Quoted::Other(index) => self.others.get(index),
        })
    }
}

/// Resolves and reads the files of a batch's quotes, each once. A name that only may be a path, and leads to nothing that
/// may be read, is no path.
pub(super) fn find_quoted(
    workspace: &Workspace,
    batch: &ValidBatch<'_>,
    files: &[Found],
    policy: &Policy,
) -> Result<AllQuoted, Refusal> {
    let (mut names, mut others, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    if batch.quotes().is_empty() {
        return Ok(AllQuoted { names, others });
    }
    let mut search = Search::new(workspace, policy);
    let patched = files.iter().enumerate().rev();
    let mut known: HashMap<_, _> =
        patched.map(|(index, file)| ((file.place.root(), file.place.real()), Quoted::Patched(index))).collect();
    for quote in batch.quotes() {
        for name in &quote.names {
            match search.find_quoted(&name.target, &mut known, &mut others) {
                Ok(found) => names.push(found),
                Err(failure) if name.name.is_path => {
                    let line = quote.quote.first_line;
                    let message =
                        format!("the block of the answer is named for {:?}: {}", name.name.path, failure.message);
                    let failure = Failure { message, path: Some(name.name.path.clone()), ..failure };
                    failures.push(failure.field(format!("line {line}")));
                }
                Err(_) => names.push(Quoted::Nothing),
            }
        }
    }
    if failures.is_empty() { Ok(AllQuoted { names, others }) } else { Err(failures.into()) }
}

/// What the engine is shown of the files.
pub(super) fn observed<'f>(quoted: &'f AllQuoted, files: &'f [Found]) -> Vec<Option<Observed<'f>>> {
    quoted.found(files).map(|found| found.map(Found::observed)).collect()
}

/// The withheld files that quotes would be compared with; each is said to belong to an entry behind the file patches.
pub(super) fn hidden<'b>(batch: &ValidBatch<'b>, quoted: &AllQuoted, files: &[Found]) -> Vec<Hidden<'b>> {
    let names = batch.quotes().iter().enumerate().flat_map(|(index, quote)| {
        let file = batch.files().len() + index;
        quote.names.iter().map(move |name| (file, name.name.path.as_str()))
    });
    let hidden = names.zip(quoted.found(files)).filter_map(|((file, path), found)| {
        let found = found?;
        let why = found.withheld.filter(|_| found.original.is_some())?;
        Some(Hidden { file, path, why })
    });
    hidden.collect()
}

/// A person has agreed that what the author may read anyhow is shown.
pub(super) fn open_if_approved(quoted: &mut AllQuoted) {
    quoted.others.iter_mut().for_each(Found::open_if_approved);
}
