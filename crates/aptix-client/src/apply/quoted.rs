//! Finds and reads the files that blocks of an answer may be named for, to be held against the blocks.

use aptix_engine::plan::Observed;
use aptix_engine::validate::ValidBatch;
use aptix_model::failure::Failure;

use super::Refusal;
use super::find::{Found, Search};
use super::withheld::Hidden;
use crate::policy::Policy;
use crate::workspace::Workspace;

/// What was found for one name of a block.
#[derive(Debug)]
pub(super) enum Quoted {
    /// No file.
    Nothing,
    /// The file of the file patch at this position in the batch.
    Patched(usize),
    /// Another file.
    Other(Box<Found>),
}

impl Quoted {
    fn found<'f>(&'f self, files: &'f [Found]) -> Option<&'f Found> {
        match self {
            Self::Nothing => None,
            Self::Patched(index) => files.get(*index),
            Self::Other(found) => Some(found),
        }
    }
}

/// Resolves and reads the files of a batch's quotes, an entry for each name of each. What a file patch is about
/// is not read again. A name that only may be a path, and leads to nothing that may be read, is no path.
pub(super) fn find_quoted(
    workspace: &Workspace,
    batch: &ValidBatch<'_>,
    files: &[Found],
    policy: &Policy,
) -> Result<Vec<Quoted>, Refusal> {
    let mut search = Search::new(workspace, policy);
    let (mut quoted, mut failures) = (Vec::new(), Vec::new());
    for quote in batch.quotes() {
        for name in &quote.names {
            match search.find_quoted(&name.target, files) {
                Ok(found) => quoted.push(found),
                Err(failure) if name.name.is_path => {
                    let line = quote.quote.first_line;
                    let message =
                        format!("the block of the answer is named for {:?}: {}", name.name.path, failure.message);
                    let failure = Failure { message, path: Some(name.name.path.clone()), ..failure };
                    failures.push(failure.field(format!("line {line}")));
                }
                Err(_) => quoted.push(Quoted::Nothing),
            }
        }
    }
    if failures.is_empty() { Ok(quoted) } else { Err(failures.into()) }
}

/// What the engine is shown of the files.
pub(super) fn observed<'f>(quoted: &'f [Quoted], files: &'f [Found]) -> Vec<Option<Observed<'f>>> {
    quoted.iter().map(|quoted| quoted.found(files).map(Found::observed)).collect()
}

/// The withheld files that quotes would be compared with; each is said to belong to an entry behind the file patches.
pub(super) fn hidden<'b>(batch: &ValidBatch<'b>, quoted: &[Quoted], files: &[Found]) -> Vec<Hidden<'b>> {
    let names = batch.quotes().iter().enumerate().flat_map(|(index, quote)| {
        let file = batch.files().len() + index;
        quote.names.iter().map(move |name| (file, name.name.path.as_str()))
    });
    let hidden = names.zip(quoted).filter_map(|((file, path), quoted)| {
        let found = quoted.found(files)?;
        let why = found.withheld.filter(|_| found.original.is_some())?;
        Some(Hidden { file, path, why })
    });
    hidden.collect()
}

/// A person has agreed that what the author may read anyhow is shown.
pub(super) fn open_if_approved(quoted: &mut [Quoted]) {
    for quoted in quoted {
        if let Quoted::Other(found) = quoted {
            found.open_if_approved();
        }
    }
}
