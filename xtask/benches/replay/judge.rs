//! Applies a document to the files of a step through the engine, and holds the outcome against what really happened.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use aptix_engine::plan::{Observed, Settings, plan, reads};
use aptix_engine::readings::{Entry, settle};
use aptix_engine::validate::{ValidTarget, validate};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::{WorkspacePath, lowercase};
use aptix_model::report::FileStatus;
use cpu_time::ThreadTime;

use crate::history::{File, FileChange};

/// What came of a document.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Every file is as it should be.
    Exact,
    /// The document, or the edit, was refused.
    Refused(Box<Failure>),
    /// A file is not as it should be.
    Wrong(String),
}

/// Applies a document, and tells how long that took from its bytes to the new files.
pub(crate) fn judge(document: &[u8], dialect: Dialect, files: &[&FileChange]) -> Result<(Verdict, Duration)> {
    let before: BTreeMap<&str, &File> =
        files.iter().filter_map(|file| Some((file.path.as_str(), file.before.as_ref()?))).collect();
    let start = ThreadTime::now();
    match apply(document, dialect, &before)? {
        Err(failure) => Ok((Verdict::Refused(failure), start.elapsed())),
        Ok(after) => {
            let time = start.elapsed();
            let wrong = files.iter().find(|file| after.get(&file.path) != file.after.as_ref());
            let extra = after.keys().find(|path| !files.iter().any(|file| file.path == **path));
            Ok(match (wrong, extra) {
                (None, None) => (Verdict::Exact, time),
                (Some(file), _) => (Verdict::Wrong(file.path.clone()), time),
                (None, Some(path)) => (Verdict::Wrong(path.clone()), time),
            })
        }
    }
}

type Refusal = Box<Failure>;

/// Applies a document to some files; what they are then.
pub(crate) fn apply(
    document: &[u8],
    dialect: Dialect,
    before: &BTreeMap<&str, &File>,
) -> Result<Result<BTreeMap<String, File>, Refusal>> {
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
    let observed = |target: &ValidTarget| -> Result<Observed<'_>> {
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
    };
    let snapshot = reads(&valid).map(|reads| {
        let other = reads.other.map(observed).transpose()?.map(Box::new);
        Ok(Observed { other, ..observed(reads.target)? })
    });
    let snapshot = snapshot.collect::<Result<Vec<_>>>()?;
    let plan = match plan(&valid, &snapshot, &Settings::DEFAULT) {
        Ok(plan) => plan,
        Err(failures) => return refused(failures),
    };
    let mut after: BTreeMap<String, File> =
        before.iter().map(|(path, file)| ((*path).to_owned(), (*file).clone())).collect();
    for (file, observed) in plan.files.iter().zip(&snapshot) {
        let path = file.path.as_str().to_owned();
        let is_executable = file.executable.unwrap_or(observed.is_executable);
        if matches!(file.status, FileStatus::Deleted | FileStatus::Renamed) {
            after.remove(&path);
        }
        if file.status != FileStatus::Deleted {
            let path = file.moved_to.map_or(path, |path| path.as_str().to_owned());
            after.insert(path, File { bytes: file.content().into_owned(), is_executable });
        }
    }
    Ok(Ok(after))
}

fn refused<T>(failures: Vec<Failure>) -> Result<Result<T, Refusal>> {
    let first = failures.into_iter().next().context("a refusal has a failure")?;
    Ok(Err(Box::new(first)))
}
