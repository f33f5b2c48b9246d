//! What is run on any input: a document is read in a dialect, and what it says is done to a file. Nothing may panic, and
//! what is done must hold together.

use aptix_engine::digest::sha256;
use aptix_engine::file_plan::{FileAction, FilePlan};
use aptix_engine::plan::{plan, reads};
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::readings::{Entry, settle};
use aptix_engine::target::ValidTarget;
use aptix_engine::validate::validate;
use aptix_model::documents::{self, Dialect};
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;
use aptix_model::report::FileStatus;

/// Reads a document in each dialect, and in none.
pub(crate) fn read(document: &[u8]) {
    let chosen = Dialect::ALL.into_iter().map(Some).chain([None]);
    for dialect in chosen {
        if let Err(failures) = documents::parse(document, dialect) {
            assert!(!failures.is_empty(), "a refusal says why");
        }
    }
}

/// Does what a document says to a file, which every path leads to; tells whether anything was done.
pub(crate) fn edit(dialect: Dialect, file: &[u8], document: &[u8]) -> bool {
    let Ok(document) = documents::parse(document, Some(dialect)) else { return false };
    let is_prefixed = |path: &str| path.starts_with("a/") || path.starts_with("b/");
    let entry = |path: &str| if is_prefixed(path) { Entry::Absent } else { Entry::File };
    let Ok(batch) = settle(&document.batch, entry) else { return false };
    let Ok(valid) = validate(&batch, &Limits::DEFAULT) else { return false };
    let observed = |target: &ValidTarget, content| {
        let name = match target {
            ValidTarget::DocPath(path) => path.as_str().rsplit('/').next().unwrap_or("file").to_owned(),
            ValidTarget::Path(path) => path.as_str().to_owned(),
        };
        Some(Observed {
            doc_path: format!("root/{}", name.to_lowercase()),
            path: WorkspacePath::new(&name).ok()?,
            content,
            digest: None,
            is_executable: false,
            other: None,
        })
    };
    for content in [Some(file), None] {
        let snapshot = reads(&valid).map(|reads| {
            // A file that is renamed leads where nothing is; one that is copied is there.
            let other = reads.other.and_then(|other| observed(other, content.xor(Some(file)))).map(Box::new);
            Some(Observed { other, ..observed(reads.target, content)? })
        });
        let Some(snapshot) = snapshot.collect::<Option<Vec<_>>>() else { return false };
        match plan(&valid, &snapshot, &Settings::DEFAULT) {
            Ok(plan) => {
                plan.files.iter().for_each(check);
                return true;
            }
            Err(failures) => assert!(!failures.is_empty(), "a refusal says why"),
        }
    }
    false
}

/// A plan's bytes, digests, status and diff tell one story.
fn check(plan: &FilePlan<'_>) {
    let content = plan.content();
    let base = plan.base().unwrap_or_default();
    if let FileAction::Edit(edit) = &plan.action {
        assert_eq!(edit.apply(base), &*content);
        assert_eq!(edit.invert(base).apply(&content), base, "an edit can be taken back");
    }
    let report = plan.report(&content);
    match report.written {
        Some(written) => assert_eq!(written.sha256, sha256(&content)),
        None => assert_eq!(plan.status, FileStatus::Deleted),
    }
    assert_eq!(report.sha256_before, plan.base().map(sha256));
    if plan.status == FileStatus::Unchanged {
        assert_eq!(&*content, base);
    }
    assert!(plan.diff(usize::MAX).is_some());
}
