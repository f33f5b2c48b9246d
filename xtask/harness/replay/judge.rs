//! Applies a document to the files of a step through the engine, and holds the outcome against what really happened.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use aptix_model::documents::Dialect;
use aptix_model::failure::Failure;
use cpu_time::ThreadTime;

use crate::history::FileChange;
use crate::memory::{Applied, File, apply};

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

/// Applies a document, and returns how long that took from its bytes to the new files.
pub(crate) fn judge(document: &[u8], dialect: Dialect, files: &[&FileChange]) -> Result<(Verdict, Duration)> {
    let before: BTreeMap<&str, &File> =
        files.iter().filter_map(|file| Some((file.path.as_str(), file.before.as_ref()?))).collect();
    let start = ThreadTime::now();
    match apply(document, dialect, &before)? {
        Err(failure) => Ok((Verdict::Refused(failure), start.elapsed())),
        Ok(Applied { tree: after, .. }) => {
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
