//! Files of a batch of which nothing leaves the machine: which edits would compare them, what is checked before a person is
//! asked about that, and what their author learns.

use aptix_engine::plan;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate;
use aptix_model::batch::{Batch, FileEdit, FilePatch};
use aptix_model::events::cause::causes;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::{FileReport, FileStatus, Warning, Withheld};

use super::find::{Found, Role};
use super::refusal::add_verbatim_hints;
use crate::policy::caller::Caller;
use crate::policy::egress;

/// A withheld file that an edit would be compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hidden<'a> {
    /// Position of the file patch in the batch, from 0.
    pub file: usize,
    /// The path as the author wrote it.
    pub path: &'a str,
    /// Why it is withheld.
    pub why: Withheld,
}

/// The one answer where edits would compare withheld files and nothing is applied.
pub(crate) fn not_compared(hidden: &[Hidden<'_>], caller: Caller) -> Vec<Failure> {
    hidden.iter().map(|hidden| egress::not_compared(hidden.why, caller).file(hidden.file, hidden.path)).collect()
}

/// The same answer, whatever failed while the edits were compared; that is logged alone.
pub(crate) fn not_applied(failures: &[Failure], hidden: &[Hidden<'_>], caller: Caller) -> Vec<Failure> {
    tracing::info!(
        Count = failures.len(),
        Causes = causes(failures),
        "edits of files that are withheld from their author were not applied; the author does not learn why"
    );
    not_compared(hidden, caller)
}

/// The withheld files that the edits of a batch would be compared with.
pub(super) fn hidden<'b>(batch: &'b Batch, found: &[Found]) -> Vec<Hidden<'b>> {
    let files = batch.files.iter().zip(found).enumerate();
    let hidden = files.filter_map(|(file, (patch, found))| {
        let source = found.other.as_ref().filter(|_| patch.edit.copied_from().is_some());
        let source = source.and_then(|source| source.withheld.filter(|_| source.original.is_some()));
        let own = found.withheld.filter(|_| found.original.is_some() && compares(&patch.edit));
        Some(Hidden { file, path: patch.target.as_str(), why: own.or(source)? })
    });
    hidden.collect()
}

/// Whether the outcome of an edit depends on what the file holds, or its report would disclose that.
const fn compares(edit: &FileEdit) -> bool {
    match edit {
        FileEdit::CreateFile(_) | FileEdit::WriteFile(_) | FileEdit::DeleteFile | FileEdit::LocalChange => false,
        FileEdit::LinePatch(_)
        | FileEdit::SearchPatch(_)
        | FileEdit::EditorCommands(_)
        | FileEdit::Replacements(_)
        | FileEdit::ContextPatch(_)
        | FileEdit::AnchorEdit(_)
        | FileEdit::Revert(_)
        | FileEdit::GitPatch(_)
        | FileEdit::GitSeries(_) => true,
    }
}

/// Refuses to take the content of withheld files along: to a copy, another name, or a clipboard.
///
/// # Errors
/// A failure for each such file patch.
pub(super) fn refuse_sources(batch: &Batch, found: &[Found], caller: Caller) -> Result<(), Vec<Failure>> {
    // What a person's agreement opens is asked about instead.
    let closed = |found: &Found| found.withheld.filter(|why| found.original.is_some() && *why != Withheld::Unapproved);
    let files = batch.files.iter().zip(found).enumerate();
    let failures: Vec<_> = files
        .filter_map(|(index, (patch, found))| {
            let is_kept = matches!(&patch.edit, FileEdit::SearchPatch(patch)
                if patch.changes.iter().any(|change| change.to_clipboard.is_some()));
            let taken = is_kept || patch.edit.moved_to().is_some();
            let own = closed(found).filter(|_| taken).map(|why| egress::no_source(why, caller));
            let copied = || {
                let from = patch.edit.copied_from()?;
                let why = closed(found.other.as_deref()?)?;
                Some(Role::Read.failure_at(from, egress::no_source(why, caller)))
            };
            Some(own.or_else(copied)?.file(index, patch.target.as_str()))
        })
        .collect();
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

/// Plans the file patches that compare nothing withheld without the others: what is wrong with them is reported whatever the
/// withheld files hold, and before a person is asked.
pub(super) fn check_rest(
    batch: &Batch,
    found: &[Found],
    hidden: &[Hidden<'_>],
    (settings, caller): (&Settings<'_>, Caller),
) -> Result<(), Vec<Failure>> {
    let is_moved = |index: usize| batch.files.get(index).is_some_and(|patch| patch.edit.moved_to().is_some());
    // A file may move to where a hidden one moves away from.
    let hides_moved = hidden.iter().any(|hidden| is_moved(hidden.file));
    let is_alone = |index: usize| !hides_moved || !is_moved(index);
    let is_open = |index: &usize| is_alone(*index) && hidden.iter().all(|hidden| hidden.file != *index);
    let open: Vec<usize> = (0..batch.files.len()).filter(is_open).collect();
    if open.is_empty() {
        return Ok(());
    }
    let files = open.iter().filter_map(|index| batch.files.get(*index)).cloned().collect();
    let rest = Batch { files, ..Batch::default() };
    let observed: Vec<Observed<'_>> = open.iter().filter_map(|index| found.get(*index)).map(Found::observed).collect();
    let in_batch = |mut failures: Vec<Failure>| {
        add_verbatim_hints(&mut failures, &rest, caller);
        let failures = failures.into_iter().map(|failure| match failure.file_index.and_then(|at| open.get(at)) {
            Some(index) => Failure { file_index: Some(*index), ..failure },
            None => failure,
        });
        without_content(failures.collect(), found)
    };
    let mut valid = validate::validate(&rest, &settings.limits).map_err(in_batch)?;
    let is_withheld = |index: usize| open.get(index).and_then(|index| found.get(*index)?.withheld).is_some();
    valid.blind(is_withheld);
    plan::plan(&valid, &observed, settings).map(|_| ()).map_err(in_batch)
}

/// Failures without anything that depends on the content of withheld files.
pub(crate) fn without_content(mut failures: Vec<Failure>, found: &[Found]) -> Vec<Failure> {
    let is_withheld = |failure: &Failure| {
        let file = failure.file_index.and_then(|index| found.get(index));
        file.is_some_and(|file| file.withheld.is_some())
    };
    for failure in failures.iter_mut().filter(|failure| is_withheld(failure)) {
        failure.nearest.clear();
        failure.current_sha256 = None;
        failure.line = None;
        if failure.reason == Reason::FileExists {
            failure.hint = Some("choose another path, or ask for all of the file to be replaced".to_owned());
        }
    }
    failures
}

/// The report of a file without anything that depends on its content, if that is withheld.
pub(super) fn redacted(full: &FileReport, patch: &FilePatch, found: &Found) -> FileReport {
    let Some(why) = found.withheld else { return full.clone() };
    // What a revert brings back is not its author's.
    let is_new = full.status == FileStatus::Created && !matches!(patch.edit, FileEdit::Revert(_));
    let is_authors = is_new || matches!(patch.edit, FileEdit::CreateFile(_) | FileEdit::WriteFile(_));
    let message = format!("nothing that depends on the content of this file is reported, because {}", why.because());
    FileReport {
        path: full.path.clone(),
        doc_path: full.doc_path.clone(),
        status: if full.status == FileStatus::Unchanged { FileStatus::Modified } else { full.status },
        sha256_before: None,
        renamed_to: full.renamed_to.clone(),
        written: full.written.filter(|_| is_authors),
        normalized: if is_authors { full.normalized.clone() } else { Vec::new() },
        warnings: vec![Warning { code: "WITHHELD".to_owned(), message, line: None }],
        changes: if is_new { full.changes.clone() } else { Vec::new() },
        withheld: Some(why),
    }
}
