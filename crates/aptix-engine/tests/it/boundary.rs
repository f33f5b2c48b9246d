//! The one way in: a batch is validated, planned against files, and applied.

use aptix_engine::digest::sha256;
use aptix_engine::plan::plan;
use aptix_engine::planning::clipboards::Clipboards;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::readings::{Entry, settle};
use aptix_engine::validate::validate;
use aptix_model::batch::{Batch, Change, Content, CreateFile, FileEdit, FilePatch, LinePatch, Operation, Target};
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;
use aptix_model::report::FileReport;

/// What came of one file.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) content: Vec<u8>,
    pub(crate) diff: Vec<u8>,
    pub(crate) report: FileReport,
}

/// Validates, plans and applies a batch to files given in the batch's order.
pub(crate) fn apply_all(batch: &Batch, files: &[Option<&[u8]>], limits: &Limits) -> Result<Vec<Applied>, Vec<Failure>> {
    apply_known(batch, &files.iter().map(|content| (*content, None)).collect::<Vec<_>>(), limits)
}

/// The same for files whose digests may be known.
pub(crate) fn apply_known(
    batch: &Batch,
    files: &[(Option<&[u8]>, Option<Sha256Digest>)],
    limits: &Limits,
) -> Result<Vec<Applied>, Vec<Failure>> {
    apply_with(batch, files, &Settings { limits: *limits, ..Settings::DEFAULT }).map(|(applied, _)| applied)
}

/// The same with other settings, for the files and the clipboards that change.
pub(crate) fn apply_with(
    batch: &Batch,
    files: &[(Option<&[u8]>, Option<Sha256Digest>)],
    settings: &Settings<'_>,
) -> Result<(Vec<Applied>, Clipboards), Vec<Failure>> {
    let is_prefixed = |path: &str| path.starts_with("a/") || path.starts_with("b/");
    let settled = settle(batch, |path| if is_prefixed(path) { Entry::Absent } else { Entry::File })?;
    let batch = settled.as_ref();
    let valid = validate(batch, &settings.limits)?;
    let observed = batch.files.iter().zip(files).map(|(patch, (content, digest))| {
        // Where a file is renamed to, there is nothing.
        let other = patch.edit.moved_to().map(|path| Box::new(observed(path, None)));
        Observed { content: *content, digest: *digest, other, ..observed(patch.target.as_str(), None) }
    });
    let snapshot: Vec<_> = observed.collect();
    let plan = plan(&valid, &snapshot, settings)?;
    let applied = plan.files.iter().map(|file| {
        let content = file.content().into_owned();
        let report = file.report(&content);
        let diff = file.diff(usize::MAX).unwrap();
        assert_eq!(file.diff(diff.len()).as_deref(), Some(diff.as_slice()));
        assert!(diff.is_empty() || file.diff(diff.len() - 1).is_none());
        Applied { diff, content, report }
    });
    let applied: Vec<_> = applied.collect();
    for (applied, (content, digest)) in applied.iter().zip(files) {
        if digest.is_none() {
            assert_eq!(
                applied.report.written.map_or_else(|| sha256(b""), |written| written.sha256),
                sha256(&applied.content),
                "the digest reported is that of the bytes"
            );
            assert_eq!(applied.report.sha256_before, content.map(sha256));
        }
    }
    Ok((applied, plan.clipboards.clone()))
}

/// A file as it was found.
pub(crate) fn observed<'a>(path: &str, content: Option<&'a [u8]>) -> Observed<'a> {
    let path = path.strip_prefix("repo/").unwrap_or(path);
    Observed {
        path: WorkspacePath::new(path).unwrap(),
        doc_path: format!("repo/{}", path.to_lowercase()),
        content,
        digest: None,
        is_executable: false,
        other: None,
    }
}

/// Applies a batch of one file patch, for `Ok`, or for its only failure.
pub(crate) fn apply(patch: FilePatch, before: Option<&[u8]>) -> Result<Applied, Box<Failure>> {
    let batch = batch(vec![patch]);
    match apply_all(&batch, &[before], &Limits::DEFAULT) {
        Ok(mut applied) => Ok(applied.remove(0)),
        Err(mut failures) => {
            assert_eq!(failures.len(), 1, "{failures:?}");
            Err(Box::new(failures.remove(0)))
        }
    }
}

/// The reason and detail of the only failure.
pub(crate) fn refused(result: Result<Applied, Box<Failure>>) -> String {
    code(&result.expect_err("nothing was refused"))
}

/// `REASON` or `REASON.DETAIL`.
pub(crate) fn code(failure: &Failure) -> String {
    let detail = failure.detail.map(|detail| format!(".{detail}")).unwrap_or_default();
    format!("{}{detail}", failure.reason)
}

/// Asserts what a line patch makes of a file whose digest it states.
#[track_caller]
pub(crate) fn check(before: impl AsRef<[u8]>, changes: &[Change], expect: impl AsRef<[u8]>) {
    let before = before.as_ref();
    match apply(line_patch(before, changes), Some(before)) {
        Ok(applied) => assert_eq!(shown(&applied.content), shown(expect.as_ref())),
        Err(failure) => panic!("refused: {failure}"),
    }
}

/// Asserts why a line patch is refused for a file whose digest it states.
#[track_caller]
pub(crate) fn check_refused(before: impl AsRef<[u8]>, changes: &[Change], code: &str) -> Failure {
    let before = before.as_ref();
    let failure = apply(line_patch(before, changes), Some(before)).expect_err("nothing was refused");
    assert_eq!(self::code(&failure), code, "{failure}");
    *failure
}

/// Bytes as a failing assertion can show them.
pub(crate) fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

pub(crate) fn batch(files: Vec<FilePatch>) -> Batch {
    Batch { files, ..Batch::default() }
}

/// A patch of `repo/a.txt` that states the digest of `before`.
pub(crate) fn line_patch(before: &[u8], changes: &[Change]) -> FilePatch {
    line_patch_of("repo/a.txt", &sha256(before).to_string(), changes)
}

pub(crate) fn line_patch_of(doc_path: &str, sha256: &str, changes: &[Change]) -> FilePatch {
    FilePatch {
        target: Target::DocPath(doc_path.to_owned()),
        key: None,
        label: None,
        edit: FileEdit::LinePatch(LinePatch { original_sha256: sha256.to_owned(), changes: changes.to_vec() }),
    }
}

pub(crate) fn create(path: &str, content: &str) -> FilePatch {
    content_of(
        path,
        content,
        CreateFile { content: Content::Text(String::new()), overwrite: false, content_format: None },
    )
}

pub(crate) fn overwrite(path: &str, content: &str) -> FilePatch {
    content_of(
        path,
        content,
        CreateFile { content: Content::Text(String::new()), overwrite: true, content_format: None },
    )
}

fn content_of(path: &str, content: &str, create: CreateFile) -> FilePatch {
    FilePatch {
        target: Target::Path(path.to_owned()),
        key: None,
        label: None,
        edit: FileEdit::CreateFile(CreateFile { content: Content::Text(content.to_owned()), ..create }),
    }
}

pub(crate) fn insert(after_line: i64, new_lines: &[&str]) -> Change {
    change(Operation::Insert { after_line, new_lines: strings(new_lines) })
}

pub(crate) fn replace(start_line: i64, end_line: i64, expected: &[&str], new_lines: &[&str]) -> Change {
    let (expected_original_lines, new_lines) = (strings(expected), strings(new_lines));
    change(Operation::Replace { start_line, end_line, expected_original_lines, new_lines })
}

pub(crate) fn delete(start_line: i64, end_line: i64, expected: &[&str]) -> Change {
    change(Operation::Delete { start_line, end_line, expected_original_lines: strings(expected) })
}

fn change(operation: Operation) -> Change {
    Change { key: None, description: None, operation }
}

fn strings(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}
