//! What is reported of the files of a batch that is applied.

use aptix_engine::file_plan::FilePlan;
use aptix_engine::plan::BatchPlan;
use aptix_model::report::{FileReport, FileStatus, Report, Warning};

use super::find::Found;
use crate::workspace::commit::notice::{Loss, Notice};

/// The warning about a batch that is not kept for undoing.
const NOT_UNDOABLE: &str = "NOT_UNDOABLE";

/// What happened to a file, with all that depends on its content.
pub(super) fn full(plan: &FilePlan<'_>, found: &Found) -> FileReport {
    let mut report = plan.report(&plan.content());
    let is_replaced = matches!(plan.status, FileStatus::Modified | FileStatus::Renamed);
    let Some(original) = found.original.as_ref().filter(|_| is_replaced) else { return report };
    let links = original.links;
    if links > 1 {
        let message = format!("the file had {links} names; only this one has the new content");
        add(&mut report.warnings, warning("HARD_LINK_BROKEN", message));
    }
    if original.is_setuid() {
        let message = "the file ran with the rights of its owner or group; with new content it does not";
        add(&mut report.warnings, warning("SETUID_CLEARED", message));
    }
    report
}

/// Adds a warning that a plan of an earlier moment may have had already.
fn add(warnings: &mut Vec<Warning>, warning: Warning) {
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

fn warning(code: &str, message: impl Into<String>) -> Warning {
    Warning { code: code.to_owned(), message: message.into(), line: None }
}

/// Adds the diff of all files that are not withheld, or none if it is longer than the limit.
pub(super) fn add_diff(report: &mut Report, plan: &BatchPlan<'_>, limit: usize) {
    let shown = plan.files.iter().zip(&report.files).filter(|(_, file)| file.withheld.is_none());
    for (file, _) in shown {
        let room = limit - report.diff.len();
        let diff = file.diff(room);
        // Bytes that are no UTF-8 take more room as text.
        match diff.as_deref().map(String::from_utf8_lossy).filter(|diff| diff.len() <= room) {
            Some(diff) => report.diff.push_str(&diff),
            None => {
                report.diff.clear();
                report.diff_omitted = true;
                return;
            }
        }
    }
}

/// Adds what the commit noticed to the report of the file; `changed` has the file of each change.
pub(super) fn add_notice(report: &mut Report, changed: &[usize], notice: Notice) {
    let (change, warning) = match notice {
        Notice::Kept { change, name } => {
            let message = format!("another process wrote the old file while it was replaced; its version is in {name}");
            (change, warning("LATE_WRITE", message))
        }
        Notice::Overwritten { change } => {
            let message = "another process wrote the file right after it was replaced; its version is in place";
            (change, warning("WRITTEN_AFTERWARDS", message))
        }
        Notice::NotUndoable => {
            let message = "what was in the files of the batch is more than `bytes` of `[history]` in the policy file lets \
                           be kept, so that it cannot be undone";
            (0, warning(NOT_UNDOABLE, message))
        }
        Notice::Lost { change, loss: Loss::Owner } => {
            let message = "the system does not let the new file have the owner and group of the old one";
            (change, warning("OWNER_CHANGED", message))
        }
        Notice::Lost { change, loss: Loss::Attribute(name) } => {
            let message = format!("the system does not let the new file have the attribute {name:?} of the old one");
            (change, warning("ATTRIBUTE_LOST", message))
        }
    };
    // How much is kept for undoing depends on the size of every file.
    let is_about_all = warning.code == NOT_UNDOABLE && report.files.iter().any(|file| file.withheld.is_some());
    match changed.get(change).and_then(|index| report.files.get_mut(*index)) {
        // A notice discloses that the file has changed.
        Some(file) if is_about_all || file.withheld.is_some() => {
            tracing::warn!(Path = file.path, Code = warning.code, "{}", warning.message);
        }
        Some(file) => file.warnings.push(warning),
        None => {}
    }
}
