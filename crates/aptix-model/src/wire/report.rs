//! What became of a batch, between the wire and the model.

use super::field::{digest, given, missing, unknown_enum};
use super::v1;
use crate::failure::{Excerpt, Failure, NextAction};
use crate::limits::REPORT_DIFF_BYTES;
use crate::path::{DocPath, PathError, WorkspacePath};
use crate::reason::{Detail, Reason};
use crate::report::{
    ChangeReport, FileReport, FileStatus, Normalization, Outcome, Report, Tier, Warning, Withheld, Written,
};

impl TryFrom<v1::Report> for Report {
    type Error = Vec<Failure>;

    fn try_from(report: v1::Report) -> Result<Self, Vec<Failure>> {
        let outcome = match report.outcome() {
            v1::Outcome::Applied => Outcome::Applied,
            v1::Outcome::Failed => Outcome::Failed,
            v1::Outcome::Rejected => Outcome::Rejected,
            v1::Outcome::Partial => Outcome::Partial,
            v1::Outcome::Unspecified => {
                return Err(vec![unknown_enum("report.outcome", report.outcome)]);
            }
        };
        let (mut files, mut failures) = (Vec::with_capacity(report.files.len()), Vec::new());
        for (index, file) in report.files.into_iter().enumerate() {
            match file_report(&format!("report.files[{index}]"), file) {
                Ok(file) => files.push(file),
                Err(failure) => failures.push(failure),
            }
        }
        failures.extend(inconsistency(outcome, &report.failures, &files, &report.diff));
        if !failures.is_empty() {
            return Err(failures);
        }
        Ok(Self {
            outcome,
            files,
            failures: report.failures.into_iter().map(Failure::from).collect(),
            warnings: report.warnings.into_iter().map(Warning::from).collect(),
            diff: report.diff,
            diff_omitted: report.diff_omitted,
        })
    }
}

/// What an outcome and the rest of a report say against each other.
fn inconsistency(outcome: Outcome, failures: &[v1::Failure], files: &[FileReport], diff: &str) -> Option<Failure> {
    let is_all_applied = files.iter().all(|file| file.status.is_applied());
    let message = match outcome {
        Outcome::Partial if is_all_applied || failures.is_empty() => {
            "a batch of which some files were applied names those that were not, and says why"
        }
        Outcome::Partial if !files.iter().any(|file| file.status.is_applied()) => {
            "a batch of which no file was applied is not a partial one"
        }
        Outcome::Applied if !is_all_applied => "an applied batch has no failed and no skipped files",
        Outcome::Applied if !failures.is_empty() => "an applied batch has no failures",
        Outcome::Failed | Outcome::Rejected if failures.is_empty() => {
            "a batch that was not applied says why, in failures"
        }
        Outcome::Failed | Outcome::Rejected if !files.is_empty() || !diff.is_empty() => {
            "a batch that was not applied changed no file"
        }
        _ if diff.len() > REPORT_DIFF_BYTES => "the diff is too long; leave it out and set diffOmitted",
        _ => return None,
    };
    Some(Failure::new(Reason::InvalidRequest, message).detail(Detail::UnexpectedField).field("report"))
}

impl TryFrom<v1::FileReport> for FileReport {
    type Error = Failure;

    fn try_from(file: v1::FileReport) -> Result<Self, Failure> {
        file_report("fileReport", file)
    }
}

fn file_report(at: &str, file: v1::FileReport) -> Result<FileReport, Failure> {
    let status = match file.status() {
        v1::FileStatus::Created => FileStatus::Created,
        v1::FileStatus::Modified => FileStatus::Modified,
        v1::FileStatus::Unchanged => FileStatus::Unchanged,
        v1::FileStatus::Deleted => FileStatus::Deleted,
        v1::FileStatus::Renamed => FileStatus::Renamed,
        v1::FileStatus::Failed => FileStatus::Failed,
        v1::FileStatus::Skipped => FileStatus::Skipped,
        v1::FileStatus::Unspecified => {
            return Err(unknown_enum(&format!("{at}.status"), file.status));
        }
    };
    let refused = |field: &str, error: PathError| {
        Failure::new(Reason::InvalidPath, format!("{error}")).detail(error.detail()).field(format!("{at}.{field}"))
    };
    WorkspacePath::new(&file.path).map_err(|error| refused("path", error))?;
    DocPath::new(&file.doc_path).map_err(|error| refused("docPath", error))?;
    let sha256_before = file.sha256_before.map(|text| digest(&format!("{at}.sha256Before"), &text)).transpose()?;
    let sha256 = file.sha256.map(|text| digest(&format!("{at}.sha256"), &text)).transpose()?;
    let written = match (sha256, file.size_bytes) {
        (None, None) => None,
        (Some(sha256), Some(size_bytes)) => Some(Written { sha256, size_bytes }),
        (None, Some(_)) => return Err(missing(&format!("{at}.sha256"), "the digest of the bytes as written")),
        (Some(_), None) => return Err(missing(&format!("{at}.sizeBytes"), "the number of bytes written")),
    };
    if let Some(path) = &file.renamed_to {
        WorkspacePath::new(path).map_err(|error| refused("renamedTo", error))?;
    }
    let changes = file.changes.into_iter().enumerate();
    let changes = changes.map(|(index, change)| {
        let tier = Tier::from_word(&change.tier)
            .ok_or_else(|| unknown_word(&format!("{at}.changes[{index}].tier"), &change.tier))?;
        Ok(ChangeReport {
            tier,
            candidates: change.candidates,
            start_line: change.start_line,
            end_line: change.end_line,
        })
    });
    Ok(FileReport {
        status,
        sha256_before,
        written,
        renamed_to: file.renamed_to,
        normalized: file.normalized.iter().filter_map(|word| Normalization::from_word(word)).collect(),
        warnings: file.warnings.into_iter().map(Warning::from).collect(),
        changes: changes.collect::<Result<_, Failure>>()?,
        // A word that this version does not know withholds all the same.
        withheld: given(file.withheld).map(|word| Withheld::from_word(&word).unwrap_or(Withheld::Unknown)),
        path: file.path,
        doc_path: file.doc_path,
    })
}

impl From<v1::Warning> for Warning {
    fn from(warning: v1::Warning) -> Self {
        Self { code: warning.code, message: warning.message, line: warning.line.map(|line| line as usize) }
    }
}

impl From<Warning> for v1::Warning {
    fn from(warning: Warning) -> Self {
        Self { code: warning.code, message: warning.message, line: warning.line.map(count) }
    }
}

fn unknown_word(field: &str, found: &str) -> Failure {
    let shown: String = found.chars().take(40).collect();
    let message = format!("{field} is {shown:?}, which this version does not know");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownEnum).field(field)
}

impl From<v1::Failure> for Failure {
    /// A reason that this version does not know is kept in the message.
    fn from(failure: v1::Failure) -> Self {
        let reason = Reason::from_code(&failure.reason);
        let message = match reason {
            Some(_) => failure.message,
            None => format!("{}: {}", failure.reason, failure.message),
        };
        Self {
            reason: reason.unwrap_or(Reason::Internal),
            detail: Detail::from_code(&failure.detail),
            message,
            hint: given(failure.hint),
            field: given(failure.field),
            file_index: failure.file_index.map(|index| index as usize),
            // Whoever reads a report has its batch.
            file_key: None,
            change_key: None,
            path: given(failure.path),
            doc_path: given(failure.doc_path),
            change_index: failure.change_index.map(|index| index as usize),
            line: failure.line.map(|line| line as usize),
            nearest: failure
                .nearest
                .into_iter()
                .map(|excerpt| Excerpt {
                    start_line: excerpt.start_line as usize,
                    end_line: excerpt.end_line as usize,
                    text: excerpt.text,
                })
                .collect(),
            current_sha256: failure.current_sha256.and_then(|text| text.parse().ok()),
            next_action: failure
                .next_action
                .and_then(|action| Some((action.dialect, core::str::from_utf8(&action.text).ok()?.to_owned())))
                .map(|(dialect, document)| NextAction { dialect, document }),
        }
    }
}

impl From<Report> for v1::Report {
    fn from(report: Report) -> Self {
        let outcome = match report.outcome {
            Outcome::Applied => v1::Outcome::Applied,
            Outcome::Failed => v1::Outcome::Failed,
            Outcome::Rejected => v1::Outcome::Rejected,
            Outcome::Partial => v1::Outcome::Partial,
        };
        Self {
            outcome: outcome.into(),
            files: report.files.into_iter().map(Into::into).collect(),
            failures: report.failures.into_iter().map(Into::into).collect(),
            warnings: report.warnings.into_iter().map(Into::into).collect(),
            diff: report.diff,
            diff_omitted: report.diff_omitted,
        }
    }
}

impl From<FileReport> for v1::FileReport {
    fn from(file: FileReport) -> Self {
        let status = match file.status {
            FileStatus::Created => v1::FileStatus::Created,
            FileStatus::Modified => v1::FileStatus::Modified,
            FileStatus::Unchanged => v1::FileStatus::Unchanged,
            FileStatus::Deleted => v1::FileStatus::Deleted,
            FileStatus::Renamed => v1::FileStatus::Renamed,
            FileStatus::Failed => v1::FileStatus::Failed,
            FileStatus::Skipped => v1::FileStatus::Skipped,
        };
        let changes = file.changes.into_iter().map(|change| v1::ChangeReport {
            tier: change.tier.word().into(),
            candidates: change.candidates,
            start_line: change.start_line,
            end_line: change.end_line,
        });
        Self {
            path: file.path,
            doc_path: file.doc_path,
            status: status.into(),
            sha256_before: file.sha256_before.map(Into::into),
            sha256: file.written.map(|written| written.sha256.into()),
            size_bytes: file.written.map(|written| written.size_bytes),
            renamed_to: file.renamed_to,
            normalized: file.normalized.into_iter().map(|normalization| normalization.word().into()).collect(),
            warnings: file.warnings.into_iter().map(Into::into).collect(),
            changes: changes.collect(),
            withheld: file.withheld.map(|withheld| withheld.word().into()).unwrap_or_default(),
        }
    }
}

impl From<Failure> for v1::Failure {
    /// The failure of a file that was read on the workstation, if one was.
    fn from(failure: Failure) -> Self {
        let current_source =
            if failure.current_sha256.is_some() { v1::Source::Active } else { v1::Source::Unspecified };
        Self {
            current_source: current_source.into(),
            current_time: None,
            current_batch_id: String::new(),
            reason: failure.reason.code().into(),
            detail: failure.detail.map(|detail| detail.code().into()).unwrap_or_default(),
            message: failure.message,
            hint: failure.hint.unwrap_or_default(),
            field: failure.field.unwrap_or_default(),
            file_index: failure.file_index.map(count),
            path: failure.path.unwrap_or_default(),
            doc_path: failure.doc_path.unwrap_or_default(),
            change_index: failure.change_index.map(count),
            line: failure.line.map(count),
            nearest: failure.nearest.into_iter().map(Into::into).collect(),
            current_sha256: failure.current_sha256.map(Into::into),
            next_action: failure
                .next_action
                .map(|action| v1::Document { dialect: action.dialect, text: action.document.into() }),
        }
    }
}

impl From<Excerpt> for v1::Excerpt {
    fn from(excerpt: Excerpt) -> Self {
        Self { start_line: count(excerpt.start_line), end_line: count(excerpt.end_line), text: excerpt.text }
    }
}

/// Line numbers and positions stay far below 2^32: files have at most 256 MiB.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
