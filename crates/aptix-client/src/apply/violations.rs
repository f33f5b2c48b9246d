//! Everything that is wrong with an edit before any of it is planned: one file hides nothing of another one.

use aptix_engine::validate::{validate, validate_part};
use aptix_model::batch::{Batch, PartialBatch};
use aptix_model::documents::PartialDocument;
use aptix_model::documents::terms::in_terms_of_part;
use aptix_model::failure::Failure;

use super::files::Files;
use super::located;
use super::names;
use super::refusal::Refusal;
use crate::policy::Policy;
use crate::workspace::roots::workspace::Workspace;

/// Failures that are listed; paths are not looked up beyond them.
const LISTED: usize = 100;

/// Refuses an edit of which some file patches have the wrong shape, with everything that is wrong with the others as well. What
/// validation finds is passed through `in_terms`.
fn refuse_part(
    workspace: &Workspace,
    part: &PartialBatch,
    policy: &Policy,
    in_terms: impl Fn(Failure) -> Failure,
) -> Refusal {
    let mut failures = validate_part(part, &policy.limits, in_terms);
    failures.extend(unresolved(workspace, part, policy, &failures));
    failures.sort_by_key(|failure| failure.file_index.unwrap_or(usize::MAX));
    failures.into()
}

/// Refuses a document that does not have the shape of its dialect, with everything that is wrong with it, in its terms.
#[must_use]
pub fn refuse_document(workspace: &Workspace, document: &PartialDocument, policy: &Policy) -> Refusal {
    let part = &document.part;
    let refusal = refuse_part(workspace, part, policy, |failure| in_terms_of_part(document, failure));
    let patch = |index| part.batch.files.get(part.positions.iter().position(|position| *position == index)?);
    let named = |failure: Failure| match failure.file_index.and_then(patch) {
        Some(patch) => patch.name(failure),
        None => failure,
    };
    let failures: Vec<_> = located::by_target(workspace, refusal.failures, patch).into_iter().map(named).collect();
    failures.into()
}

/// Refuses a batch for `known` and everything else that is wrong with it.
pub(super) fn refuse(workspace: &Workspace, batch: &Batch, policy: &Policy, known: Vec<Failure>) -> Refusal {
    let part = PartialBatch { failures: known, ..batch.clone().into() };
    refuse_part(workspace, &part, policy, core::convert::identity)
}

/// Why the files of those file patches cannot be found with which nothing else is wrong.
fn unresolved(workspace: &Workspace, part: &PartialBatch, policy: &Policy, known: &[Failure]) -> Vec<Failure> {
    if known.len() >= LISTED {
        return Vec::new();
    }
    let is_right = |position: &usize| known.iter().all(|failure| failure.file_index != Some(*position));
    let right = part.positions.iter().zip(&part.batch.files).filter(|(position, _)| is_right(position));
    let (positions, files): (Vec<usize>, Vec<_>) = right.map(|(position, file)| (*position, file.clone())).unzip();
    let rest = Batch { files, ..Batch::default() };
    let found = names::settle(workspace, &rest).and_then(|settled| {
        let valid = validate(settled.as_ref(), &policy.limits)?;
        Files::find(workspace, &valid, policy, &|| Ok(())).map(drop)
    });
    let Err(refusal) = found else { return Vec::new() };
    let in_part = |failure: Failure| {
        let file_index = failure.file_index.and_then(|index| positions.get(index).copied());
        Failure { file_index, ..failure }
    };
    refusal.failures.into_iter().filter(|failure| failure.file_index.is_some()).map(in_part).collect()
}
