//! A batch of the history as it is shown: what its entry keeps of its author's words and of its report, and the diff between the
//! bytes that it keeps.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use aptix_engine::diff::Gap;
use aptix_engine::file_plan::FileAction;
use aptix_engine::planning::draft;
use aptix_engine::planning::observed::Observed;
use aptix_engine::text::edit::TextEdit;
use aptix_model::id::{BatchId, Uuid};
use aptix_model::id_block;
use aptix_model::path::WorkspacePath;
use aptix_model::path_style::PathStyle;
use aptix_model::record::FileIds;
use aptix_model::report::{FileReport, FileStatus, Report, diff_part};

use super::id_prefix::Named;
use crate::undo::{merge, undone};
use crate::workspace::keep::history::entries::{self, Entry};
use crate::workspace::keep::history::passages::Passages;
use crate::workspace::keep::history::past_file::{Images, Kept, PastFile, names_in};
use crate::workspace::keep::history::summary::{FileSummary, Summary};
use crate::workspace::roots::workspace::Workspace;

/// A batch of the history, or one part of it.
pub struct Past {
    /// What it was called.
    pub summary: Summary,
    /// Its id; that of its entry, for a batch of an earlier version that was given none.
    pub id: BatchId,
    /// The ids of its files and changes.
    pub ids: Vec<FileIds>,
    /// What became of it, with its diff.
    pub report: Report,
    /// Positions of its first file in the batch, and of that file's first change.
    pub begins: (usize, usize),
}

/// What the history keeps of a batch.
#[must_use]
pub fn past(workspace: &Workspace, entry: &Entry) -> Past {
    let kept = entries::kept(entry);
    let roots = roots_of(entry);
    let diff = kept.as_ref().ok().and_then(|kept| diff(workspace, entry, &roots, kept));
    let known = entry.summary.as_ref().filter(|summary| !summary.files.is_empty());
    let summary = known.cloned().unwrap_or_else(|| {
        let kept = kept.unwrap_or_default();
        let files = entry.files.iter().enumerate();
        let files: Vec<_> = files.map(|(index, file)| undone::report(workspace, file, kept.get(index))).collect();
        entry.summary.clone().unwrap_or_default().with_reports(&files)
    });
    let (diff_omitted, diff) = (diff.is_none(), diff.unwrap_or_default());
    let mut report = summary.report(PathStyle::among(workspace.roots().len()));
    for (file, kept) in report.files.iter_mut().zip(&summary.files) {
        name_anew(workspace, &roots, file, kept);
    }
    let id = id_of(entry);
    Past { id, ids: ids(id, &summary), report: Report { diff, diff_omitted, ..report }, summary, begins: (0, 0) }
}

/// Which roots those are whose names the keys of a batch begin with.
type Roots<'e> = HashMap<&'e str, &'e Path>;

/// The roots of an entry by the names that they had when the batch was carried out. The files that it changed have the same order
/// in its summary.
fn roots_of(entry: &Entry) -> Roots<'_> {
    let mut changed = entry.files.iter().peekable();
    let files = entry.summary.iter().flat_map(|summary| &summary.files).filter(|file| !file.is_unchanged());
    let mut roots = Roots::new();
    for file in files {
        if let Some(changed) = changed.next_if(|changed| changed.path == file.path()) {
            roots.entry(file.root()).or_insert(&changed.root);
        }
    }
    roots
}

/// Names a file by the name that its root has now. One that the batch did not change may be of a root that is not known.
fn name_anew(workspace: &Workspace, roots: &Roots<'_>, file: &mut FileReport, kept: &FileSummary) {
    if let Some(root) = roots.get(kept.root()) {
        file.renamed_to = kept.renamed_to().map(|path| names_in(workspace, root, path).0);
        (file.path, file.doc_path) = names_in(workspace, root, kept.path());
    }
}

/// The id of the batch of an entry.
fn id_of(entry: &Entry) -> BatchId {
    let id = entry.batch.as_deref().and_then(|name| name.parse().ok());
    id.or_else(|| entry.id.to_string().parse().ok()).unwrap_or(BatchId(Uuid::nil()))
}

/// The ids of the files and changes of the batch of an entry, as far as it has its author's words.
pub(crate) fn ids_of(entry: &Entry) -> (BatchId, Vec<FileIds>) {
    let id = id_of(entry);
    (id, entry.summary.as_ref().map_or_else(Vec::new, |summary| ids(id, summary)))
}

/// None for a batch whose id was not minted as the first of a block.
fn ids(id: BatchId, summary: &Summary) -> Vec<FileIds> {
    if id_block::batch_id(id.0) != id {
        return Vec::new();
    }
    id_block::counted(id, summary.files.iter().map(|file| file.change_count))
}

impl Past {
    /// What of the batch an id names.
    #[must_use]
    pub(crate) fn named(self, named: Named) -> Self {
        match named {
            Named::Batch => self,
            Named::File(file) => self.part(file, None),
            Named::Change(file, change) => self.part(file, Some(change)),
        }
    }

    /// One file of the batch alone, or one change of it.
    #[must_use]
    pub fn part(self, file: usize, change: Option<usize>) -> Self {
        let Self { summary, id, ids, report, .. } = self;
        let mut summary = summary.keep_file(file);
        let mut ids: Vec<_> = ids.into_iter().skip(file).take(1).collect();
        let mut diff = diff_part::of_file(&report, file).to_owned();
        let mut files: Vec<_> = report.files.into_iter().skip(file).take(1).collect();
        if let (Some(change), Some(names), Some(ids), Some(file)) =
            (change, summary.files.first_mut(), ids.first_mut(), files.first_mut())
        {
            names.keep_change(change);
            ids.changes = ids.changes.get(change).copied().into_iter().collect();
            file.changes = file.changes.get(change).copied().into_iter().collect();
            diff = file.changes.first().map_or_else(String::new, |change| diff_part::of_change(&diff, change));
        }
        let report = Report { files, diff, ..report };
        Self { summary, id, ids, report, begins: (file, change.unwrap_or_default()) }
    }
}

/// The diff of what a batch changed; `None` if it is not known.
fn diff(workspace: &Workspace, entry: &Entry, roots: &Roots<'_>, kept: &[Kept]) -> Option<String> {
    let executable = |file: &PastFile| {
        let is_it = |kept: &&FileSummary| {
            kept.path() == file.path && roots.get(kept.root()).is_none_or(|root| *root == file.root)
        };
        entry.summary.as_ref()?.files.iter().find(is_it)?.executable
    };
    let diffs = entry.files.iter().zip(kept).map(|(file, kept)| file_diff(workspace, file, kept, executable(file)));
    let diff = diffs.collect::<Option<Vec<_>>>()?.concat();
    Some(String::from_utf8_lossy(&diff).into_owned())
}

fn file_diff(workspace: &Workspace, file: &PastFile, kept: &Kept, created: Option<bool>) -> Option<Vec<u8>> {
    // A diff writes an absolute path as git does: without the slash that it begins with.
    let name = |path: &str| WorkspacePath::new(file.names(workspace, path).0.trim_start_matches('/'));
    let (before, action, gaps) = match kept {
        Kept::Images(Images { before, after }) => {
            (before.as_deref().map(Cow::Borrowed), whole_action(before.as_deref(), after.as_deref()), Vec::new())
        }
        Kept::Passages(passages) => {
            let (before, edit, gaps) = without_gaps(passages);
            (Some(Cow::Owned(before)), FileAction::Edit(edit), gaps)
        }
    };
    let observed = Observed {
        path: name(&file.path).ok()?,
        doc_path: file.names(workspace, &file.path).1,
        content: before.as_deref(),
        digest: file.digest_before(),
        is_executable: false,
        other: None,
    };
    let moved_to = file.moved_to.as_deref().map(name).transpose().ok()?;
    let mut plan = draft::decided(&observed, action).ok()?;
    let executable =
        file.after.as_ref().and_then(|after| after.executable).or(created.filter(|_| observed.content.is_none()));
    let status = match plan.status {
        _ if moved_to.is_some() => FileStatus::Renamed,
        FileStatus::Unchanged if executable.is_some() => FileStatus::Modified,
        status => status,
    };
    (plan.status, plan.executable, plan.moved_to) = (status, executable, moved_to.as_ref());
    plan.diff_between(&gaps)
}

fn whole_action<'a>(before: Option<&[u8]>, after: Option<&'a [u8]>) -> FileAction<'a> {
    match (before, after) {
        (_, None) => FileAction::Delete,
        (None, Some(after)) => FileAction::Write(after.into()),
        (Some(before), Some(after)) => FileAction::Edit(merge::line_edit(before, after)),
    }
}

/// The passages of a file before the batch, one after the other, the edit of them that the batch made, and the gaps between.
fn without_gaps(passages: &Passages) -> (Vec<u8>, TextEdit, Vec<Gap>) {
    let (mut before, mut edits, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
    for passage in passages.iter() {
        gaps.push(Gap { at: before.len(), lines: passage.gap });
        edits.push((before.len(), merge::line_edit(&passage.before, &passage.after)));
        before.extend_from_slice(&passage.before);
    }
    (before, merge::joined(edits), gaps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::keep::history::random_texts::Random;

    fn diff_of(before: &[u8], action: FileAction<'_>, gaps: &[Gap]) -> String {
        let path = WorkspacePath::new("f").unwrap();
        let observed = Observed {
            path,
            doc_path: "ws/f".to_owned(),
            content: Some(before),
            digest: None,
            is_executable: false,
            other: None,
        };
        let diff = draft::decided(&observed, action).unwrap().diff_between(gaps).unwrap();
        String::from_utf8_lossy(&diff).into_owned()
    }

    #[test]
    fn the_diff_of_passages_is_that_of_the_whole_file() {
        let (mut random, mut count, mut others) = (Random::new(21), 0, 0);
        let lines = |diff: &str, mark: char| diff.lines().filter(|line| line.starts_with(mark)).count();
        for _ in 0..2_000 {
            let before = random.lines(400);
            let edit = random.edit(&before);
            let after = edit.apply(&before);
            let Some(passages) = Passages::of(&before, &after, &edit) else { continue };
            let (parts, edit, gaps) = without_gaps(&passages);
            let whole = diff_of(&before, whole_action(Some(&before), Some(&after)), &[]);
            let diff = diff_of(&parts, FileAction::Edit(edit), &gaps);
            count += 1;
            if diff != whole {
                // Which of two equal lines is an old one is not said: that is all.
                assert_eq!(
                    ['-', '+'].map(|mark| lines(&diff, mark)),
                    ['-', '+'].map(|mark| lines(&whole, mark)),
                    "{diff}{whole}"
                );
                others += 1;
            }
        }
        assert!(count > 1_000 && others < count / 50, "{count} {others}");
    }
}
