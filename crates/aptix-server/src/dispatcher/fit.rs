//! Holds a report against its batch: the files it names, and their status.

use std::collections::HashSet;

use aptix_model::batch::{
    AnchorPlace, Atomicity, Batch, BlobRef, FileEdit, FilePatch, GitKind, Presence, Revert, Scope, SearchOperation,
    Target,
};
use aptix_model::failure::{Failure, Visible};
use aptix_model::path::{DocPath, RootedPath, WorkspacePath, fold};
use aptix_model::reason::Reason;
use aptix_model::report::{FileReport, FileStatus, Outcome, Report};

use aptix_engine::readings::may_create;

use crate::store::{FileUpdate, Twins};

/// What a report changes of one cloud file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fitted {
    pub(super) update: FileUpdate,
    /// What happened to the file patch's file.
    pub(super) status: FileStatus,
}

/// The changes of cloud files that a report describes; a renamed file has two, under its old name and its new one.
///
/// # Errors
/// Everything in it that cannot be about this batch.
pub(crate) fn fit(batch: &Batch, report: &Report) -> Result<Vec<Fitted>, Vec<Failure>> {
    match report.outcome {
        Outcome::Failed | Outcome::Rejected => return Ok(Vec::new()),
        Outcome::Partial if batch.atomicity != Atomicity::PerFile => {
            let message = "the outcome is partial, and the batch is applied as a whole or not at all";
            return Err(vec![misfit("report.outcome", message.to_owned())]);
        }
        Outcome::Applied | Outcome::Partial => {}
    }
    if report.files.len() != batch.files.len() {
        let (found, expected) = (report.files.len(), batch.files.len());
        return Err(vec![misfit("report.files", format!("the report has {found} files, the batch has {expected}"))]);
    }
    let mut failures = Vec::new();
    let mut fitted = Vec::with_capacity(report.files.len());
    for (index, (patch, file)) in batch.files.iter().zip(&report.files).enumerate() {
        match fit_file(index, patch, file) {
            Ok(updates) => fitted.extend(updates.into_iter().map(|update| Fitted { update, status: file.status })),
            Err(failure) => failures.push(failure),
        }
    }
    failures.extend(unnamed(report));
    if failures.is_empty() { Ok(fitted) } else { Err(failures) }
}

/// The refused files that no failure names. Failures that were left out for their number or size are counted by one without a file.
fn unnamed(report: &Report) -> impl Iterator<Item = Failure> {
    let named: HashSet<_> = report.failures.iter().map(|failure| failure.file_index).collect();
    let failed = report.files.iter().enumerate().filter(|(_, file)| file.status == FileStatus::Failed);
    let unnamed = failed.filter(move |(index, _)| !named.contains(&Some(*index)) && !named.contains(&None));
    unnamed.map(|(index, file)| {
        let message = format!("the status is {}, and no failure names the file", file.status);
        misfit(&format!("report.files[{index}].status"), message)
    })
}

fn fit_file(index: usize, patch: &FilePatch, file: &FileReport) -> Result<Vec<FileUpdate>, Failure> {
    let at = |name: &str| format!("report.files[{index}].{name}");
    let (path, renamed_to) = file.paths_in_root();
    let path =
        WorkspacePath::new(path).map_err(|error| misfit(&at("path"), error.to_string()).detail(error.detail()))?;
    let doc_path = DocPath::new(&file.doc_path)
        .map_err(|error| misfit(&at("docPath"), error.to_string()).detail(error.detail()))?;
    if doc_path.rest() != path.folded() {
        let message =
            format!("{doc_path} is not the key of {}: expected its root's name and {}", file.path, path.folded());
        return Err(misfit(&at("docPath"), message));
    }
    let named = Named { target: &patch.target, root: doc_path.root() };
    named.check(&at("path"), patch.target.as_str(), &path).or_else(|misfit| match &patch.edit {
        // Another process has moved the file back already.
        FileEdit::Revert(Revert { move_to: Some(former), .. }) => named.check(&at("path"), former, &path),
        _ => Err(misfit),
    })?;
    if !file.status.is_applied() {
        return fit_unchanged(index, file);
    }
    fit_status(index, patch, file)?;
    let content = file.written.map(|written| BlobRef { sha256: written.sha256, size_bytes: written.size_bytes });
    if renamed_to.is_none()
        && let Some(written) = &file.renamed_to
    {
        let message =
            format!("expected a path that begins with {:?}, as the old one does, found {written:?}", doc_path.root());
        return Err(misfit(&at("renamedTo"), message));
    }
    match (renamed_to, patch.edit.moved_to()) {
        (Some(renamed_to), Some(asked)) => {
            let field = at("renamedTo");
            let to = WorkspacePath::new(renamed_to)
                .map_err(|error| misfit(&field, error.to_string()).detail(error.detail()))?;
            named.check(&field, asked, &to)?;
            Ok(vec![named.update(&at("path"), &path, None)?, named.update(&field, &to, content)?])
        }
        _ => Ok(vec![named.update(&at("path"), &path, content)?]),
    }
}

/// Fits a file that was refused or skipped: it leaves the cloud files as they are, and its report holds its names alone.
fn fit_unchanged(index: usize, file: &FileReport) -> Result<Vec<FileUpdate>, Failure> {
    let has_changed = file.sha256_before.is_some() || file.written.is_some() || file.renamed_to.is_some();
    if !has_changed && file.changes.is_empty() {
        return Ok(Vec::new());
    }
    let message =
        format!("the status is {}, and such a file has no digests, no other path and no changes", file.status);
    Err(misfit(&format!("report.files[{index}].status"), message))
}

/// How a file patch names its files, and the root that they are in.
#[derive(Clone, Copy)]
struct Named<'a> {
    target: &'a Target,
    root: &'a str,
}

impl Named<'_> {
    /// Whether a path is the one that the batch asks for.
    fn check(self, field: &str, asked: &str, path: &WorkspacePath) -> Result<(), Failure> {
        let root = self.root;
        let in_root = |asked: &str| asked.strip_prefix(root)?.strip_prefix('/').map(ToOwned::to_owned);
        let is_path = |asked: &str| asked == path.as_str() || in_root(asked).as_deref() == Some(path.as_str());
        let fits = match self.target {
            Target::DocPath(_) => in_root(&fold(asked)) == Some(path.folded()),
            Target::Path(_) => is_path(asked),
            // The agent has read the names by the files that it has.
            Target::Readings(readings) => readings.all().any(is_path),
        };
        if fits {
            return Ok(());
        }
        let message = format!("{path}, in {root}, is not the file that the batch names: {}", Visible(asked));
        Err(misfit(field, message))
    }

    fn update(self, field: &str, path: &WorkspacePath, content: Option<BlobRef>) -> Result<FileUpdate, Failure> {
        let refused = |error: aptix_model::path::PathError| misfit(field, error.to_string()).detail(error.detail());
        let twins = match self.target {
            // The agent looks for the only file with this key, at every level.
            Target::DocPath(_) => Twins::Gone,
            Target::Path(_) | Target::Readings(_) => Twins::MayExist,
        };
        Ok(FileUpdate {
            path: RootedPath::new(&format!("{}/{path}", self.root)).map_err(refused)?,
            doc_path: DocPath::new(&format!("{}/{}", self.root, path.folded())).map_err(refused)?,
            content,
            twins,
        })
    }
}

/// Checks the reported status of a file against its digests and against the edit.
fn fit_status(index: usize, patch: &FilePatch, file: &FileReport) -> Result<(), Failure> {
    let at = |name: &str| format!("report.files[{index}].{name}");
    let written = file.written.map(|written| written.sha256);
    let (fits, expected): (&[FileStatus], _) = match (file.sha256_before, written) {
        (Some(_), _) if file.withheld.is_some() => {
            return Err(misfit(&at("sha256Before"), "the content is withheld, and its digest is not".to_owned()));
        }
        (None, None) if file.withheld.is_some() && is_of_workstation(&patch.edit) => (
            &[FileStatus::Created, FileStatus::Modified, FileStatus::Deleted, FileStatus::Renamed],
            "the content is withheld",
        ),
        (None, Some(_)) if file.withheld.is_some() && is_of_workstation(&patch.edit) => {
            return Err(misfit(&at("sha256"), "the content is withheld, and its digest is not".to_owned()));
        }
        (None, None) if file.withheld.is_some() => {
            (&[FileStatus::Modified, FileStatus::Deleted], "the content is withheld")
        }
        (None, Some(_)) if file.withheld.is_some() => {
            (&[FileStatus::Created, FileStatus::Modified], "the content is withheld, and that of the author is fitted")
        }
        (None, None) if matches!(patch.edit, FileEdit::Revert(_)) => {
            (&[FileStatus::Unchanged], "there was no file, and there is none")
        }
        (None, None) => {
            return Err(misfit(&at("sha256"), "the digest of the bytes as written is required".to_owned()));
        }
        (None, Some(_)) => (&[FileStatus::Created], "there was no file before"),
        (Some(_), None) => (&[FileStatus::Deleted], "there is no file any more"),
        (Some(_), Some(_)) if file.renamed_to.is_some() => (&[FileStatus::Renamed], "the file has another path"),
        (Some(before), Some(after)) if before == after && sets_mode(&patch.edit) => {
            (&[FileStatus::Unchanged, FileStatus::Modified], "the digests before and after are equal")
        }
        (Some(before), Some(after)) if before == after => {
            (&[FileStatus::Unchanged], "the digests before and after are equal")
        }
        (Some(_), Some(_)) => (&[FileStatus::Modified], "the digests before and after differ"),
    };
    if !fits.contains(&file.status) {
        let words = words(fits);
        let message = format!("the status is {}, but {expected}: expected {words}", file.status.word());
        return Err(misfit(&at("status"), message));
    }
    if file.renamed_to.is_some() && file.status != FileStatus::Renamed {
        let message = format!("the status is {}, and only a renamed file has another path", file.status.word());
        return Err(misfit(&at("renamedTo"), message));
    }
    let possible = outcomes(&patch.edit);
    if !possible.contains(&file.status) {
        let message = format!("such an edit leaves no {} file: expected {}", file.status.word(), words(possible));
        return Err(misfit(&at("status"), message));
    }
    let changes = patch.edit.change_count();
    // An agent whose report would not fit into a message leaves all of them out.
    if !file.changes.is_empty() && file.changes.len() != changes {
        let message = format!("the file patch has {changes} changes, the report has {}", file.changes.len());
        return Err(misfit(&at("changes"), message));
    }
    Ok(())
}

fn words(statuses: &[FileStatus]) -> String {
    let words: Vec<_> = statuses.iter().map(|status| status.word()).collect();
    words.join(" or ")
}

/// Whether the new content is the workstation's, and none of an author's.
const fn is_of_workstation(edit: &FileEdit) -> bool {
    matches!(edit, FileEdit::LocalChange | FileEdit::Revert(_))
}

/// Whether an edit sets who may execute the file.
fn sets_mode(edit: &FileEdit) -> bool {
    match edit {
        FileEdit::Revert(_) => true,
        FileEdit::GitPatch(patch) => patch.executable.is_some(),
        // A file that comes again has the mode of a new one.
        FileEdit::GitSeries(parts) => {
            parts.iter().any(|part| part.executable.is_some() || part.kind == GitKind::Create)
        }
        _ => false,
    }
}

/// What an edit can come to.
fn outcomes(edit: &FileEdit) -> &'static [FileStatus] {
    use FileStatus::{Created, Deleted, Modified, Renamed, Unchanged};
    const EDITED: &[FileStatus] = &[Modified, Unchanged];
    const WRITTEN: &[FileStatus] = &[Created, Modified, Unchanged];
    match edit {
        FileEdit::Revert(_) => &[Created, Modified, Deleted, Renamed, Unchanged],
        _ if edit.moved_to().is_some() => &[Renamed],
        FileEdit::LinePatch(_) | FileEdit::EditorCommands(_) | FileEdit::ContextPatch(_) => EDITED,
        FileEdit::AnchorEdit(edit) => match edit.place {
            AnchorPlace::Append => WRITTEN,
            _ => EDITED,
        },
        FileEdit::CreateFile(_) => WRITTEN,
        FileEdit::WriteFile(write) => match write.presence {
            Presence::Absent => &[Created],
            Presence::Present => EDITED,
            Presence::Either => WRITTEN,
        },
        FileEdit::DeleteFile => &[Deleted],
        FileEdit::LocalChange => &[Created, Modified, Deleted, Unchanged],
        FileEdit::SearchPatch(patch) => {
            let looks = |operation: &SearchOperation| matches!(operation, SearchOperation::Replace { .. });
            if patch.changes.iter().any(|change| looks(&change.operation)) { EDITED } else { WRITTEN }
        }
        FileEdit::Replacements(all) => match all.steps.first() {
            Some(step) if step.find.is_empty() && matches!(step.scope, Scope::Block { .. }) => WRITTEN,
            _ => EDITED,
        },
        FileEdit::GitSeries(parts) => match (parts.first(), parts.last()) {
            (_, Some(last)) if last.kind == GitKind::Delete => &[Deleted],
            (Some(first), _) if matches!(first.kind, GitKind::Create | GitKind::Copy { .. }) => &[Created],
            (Some(first), _) if may_create(first) => WRITTEN,
            _ => EDITED,
        },
        FileEdit::GitPatch(patch) => match patch.kind {
            GitKind::Modify if may_create(patch) => WRITTEN,
            GitKind::Modify => EDITED,
            GitKind::Create | GitKind::Copy { .. } => &[Created],
            GitKind::Delete => &[Deleted],
            GitKind::Rename { .. } => &[Renamed],
        },
    }
}

fn misfit(field: &str, message: String) -> Failure {
    Failure::new(Reason::InvalidRequest, message).field(field)
}
