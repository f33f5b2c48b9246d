//! Applies a document to files in memory, through the engine alone.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use aptix_engine::plan::{BatchPlan, plan, reads};
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::readings::{Entry, settle};
use aptix_engine::target::ValidTarget;
use aptix_engine::validate::validate;
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::{WorkspacePath, lowercase};
use aptix_model::report::{FileStatus, Warning};

/// A file at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_executable: bool,
}

/// Files by their paths.
pub(crate) type Tree = BTreeMap<String, File>;

/// What an accepted document does.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    /// The files afterwards.
    pub(crate) tree: Tree,
    pub(crate) warnings: Vec<Warning>,
}

/// The first failure of a document that is refused.
pub(crate) type Refusal = Box<Failure>;

/// The reason and the detail of a failure, in one word.
pub(crate) fn code(failure: &Failure) -> String {
    let detail = failure.detail.map(|detail| format!(".{detail}")).unwrap_or_default();
    format!("{}{detail}", failure.reason)
}

/// Applies a document to files. Keys of files begin with the root `repo`.
pub(crate) fn apply(
    document: &[u8],
    dialect: Dialect,
    before: &BTreeMap<&str, &File>,
) -> Result<Result<Applied, Refusal>> {
    let document = match documents::parse(document, Some(dialect)) {
        Ok(document) => document,
        Err(failures) => return refused(failures),
    };
    let entry = |path: &str| match before.contains_key(path) {
        true => Entry::File,
        false if before.keys().any(|file| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))) => {
            Entry::Directory
        }
        false => Entry::Absent,
    };
    let batch = match settle(&document.batch, entry) {
        Ok(batch) => batch,
        Err(failures) => return refused(failures),
    };
    let valid = match validate(&batch, &Limits::DEFAULT) {
        Ok(valid) => valid,
        Err(failures) => return refused(failures),
    };
    let snapshot = reads(&valid).map(|reads| {
        let other = reads.other.map(|other| observed(other, before)).transpose()?.map(Box::new);
        Ok(Observed { other, ..observed(reads.target, before)? })
    });
    let snapshot = snapshot.collect::<Result<Vec<_>>>()?;
    let plan = match plan(&valid, &snapshot, &Settings::DEFAULT) {
        Ok(plan) => plan,
        Err(failures) => return refused(failures),
    };
    let mut warnings = document.warnings;
    warnings.extend(plan.files.iter().flat_map(|file| &file.warnings).cloned());
    Ok(Ok(Applied { tree: written(&plan, &snapshot, before), warnings }))
}

/// What a plan looks at: the file of a target.
fn observed<'a>(target: &ValidTarget, before: &BTreeMap<&str, &'a File>) -> Result<Observed<'a>> {
    let path = match target {
        ValidTarget::Path(path) => path.as_str().to_owned(),
        ValidTarget::DocPath(path) => {
            let wanted = path.as_str().strip_prefix("repo/").unwrap_or_default();
            let mut twins = before.keys().filter(|path| lowercase(path) == wanted);
            twins.next().map_or(wanted, |path| *path).to_owned()
        }
    };
    let file = before.get(path.as_str()).copied();
    Ok(Observed {
        doc_path: format!("repo/{}", lowercase(&path)),
        path: WorkspacePath::new(&path)?,
        content: file.map(|file| file.bytes.as_slice()),
        digest: None,
        is_executable: file.is_some_and(|file| file.is_executable),
        other: None,
    })
}

/// The files after a plan was carried out.
fn written(plan: &BatchPlan<'_>, snapshot: &[Observed<'_>], before: &BTreeMap<&str, &File>) -> Tree {
    let mut tree: Tree = before.iter().map(|(path, file)| ((*path).to_owned(), (*file).clone())).collect();
    // Files may swap their names, so all old names go first.
    let gone = plan.files.iter().filter(|file| matches!(file.status, FileStatus::Deleted | FileStatus::Renamed));
    for file in gone {
        tree.remove(file.path.as_str());
    }
    for (file, observed) in plan.files.iter().zip(snapshot).filter(|(file, _)| file.status != FileStatus::Deleted) {
        let path = file.moved_to.unwrap_or(file.path).as_str().to_owned();
        let is_executable = file.executable.unwrap_or(observed.is_executable);
        tree.insert(path, File { bytes: file.content().into_owned(), is_executable });
    }
    tree
}

fn refused<T>(failures: Vec<Failure>) -> Result<Result<T, Refusal>> {
    let first = failures.into_iter().next().context("a refusal has a failure")?;
    Ok(Err(Box::new(first)))
}
