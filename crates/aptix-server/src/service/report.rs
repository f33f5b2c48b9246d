//! Holds a report to its bounds when it is received: it is stored for ever, and comes with every answer about its batch.

use aptix_model::failure::Failure;
use aptix_model::limits::NEXT_ACTION_BYTES;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::fit::{EXCERPT_LINES, EXCERPTS, FAILURES, REMARKS, STORED_BYTES, TEXT_BYTES};
use aptix_model::wire::{fit, v1};
use prost::Message;

/// The report as it is stored: if it is large, without its diff.
///
/// # Errors
/// Everything that no report may hold.
pub(super) fn bounded(mut report: v1::Report) -> Result<v1::Report, Vec<Failure>> {
    let mut found = Vec::new();
    if report.failures.len() > FAILURES {
        let message = format!("the report has {} failures, at most {FAILURES} are kept", report.failures.len());
        found.push(too_large("report.failures", message));
    }
    for (index, failure) in report.failures.iter().take(FAILURES).enumerate() {
        check_failure(&format!("report.failures[{index}]"), failure, &mut found);
    }
    for (index, file) in report.files.iter().enumerate() {
        check_file(&format!("report.files[{index}]"), file, &mut found);
    }
    check_count("report.warnings", report.warnings.len(), &mut found);
    check_warnings("report", &report.warnings, &mut found);
    let failures: usize = report.failures.iter().map(Message::encoded_len).sum();
    if failures > STORED_BYTES {
        let message = format!("the failures have {failures} bytes, at most {STORED_BYTES} are kept");
        found.push(too_large("report.failures", message).hint("leave out what they quote, then the last of them"));
    }
    if !found.is_empty() {
        return Err(found);
    }
    fit::stored(&mut report);
    Ok(report)
}

fn check_failure(at: &str, failure: &v1::Failure, found: &mut Vec<Failure>) {
    let texts = [
        ("reason", &failure.reason),
        ("detail", &failure.detail),
        ("message", &failure.message),
        ("hint", &failure.hint),
        ("field", &failure.field),
        ("path", &failure.path),
        ("docPath", &failure.doc_path),
    ];
    for (name, text) in texts {
        check_text(&format!("{at}.{name}"), text, found);
    }
    if let Some(action) = &failure.next_action {
        check_text(&format!("{at}.nextAction.dialect"), &action.dialect, found);
        let bytes = action.text.len();
        if bytes > NEXT_ACTION_BYTES {
            let message = format!("the document has {bytes} bytes, at most {NEXT_ACTION_BYTES} are kept");
            found.push(too_large(&format!("{at}.nextAction.text"), message));
        }
    }
    if failure.nearest.len() > EXCERPTS {
        let message = format!("{} excerpts are given, at most {EXCERPTS} are kept", failure.nearest.len());
        found.push(too_large(&format!("{at}.nearest"), message));
    }
    for (index, excerpt) in failure.nearest.iter().take(EXCERPTS).enumerate() {
        let field = format!("{at}.nearest[{index}].text");
        check_text(&field, &excerpt.text, found);
        let lines = excerpt.text.split('\n').count();
        if lines > EXCERPT_LINES {
            found.push(too_large(&field, format!("the excerpt has {lines} lines, at most {EXCERPT_LINES} are kept")));
        }
    }
}

fn check_file(at: &str, file: &v1::FileReport, found: &mut Vec<Failure>) {
    for (name, count) in [("warnings", file.warnings.len()), ("normalized", file.normalized.len())] {
        check_count(&format!("{at}.{name}"), count, found);
    }
    check_warnings(at, &file.warnings, found);
}

fn check_count(field: &str, count: usize, found: &mut Vec<Failure>) {
    if count > REMARKS {
        found.push(too_large(field, format!("{count} entries are given, at most {REMARKS} are kept")));
    }
}

fn check_warnings(at: &str, warnings: &[v1::Warning], found: &mut Vec<Failure>) {
    for (index, warning) in warnings.iter().take(REMARKS).enumerate() {
        check_text(&format!("{at}.warnings[{index}].code"), &warning.code, found);
        check_text(&format!("{at}.warnings[{index}].message"), &warning.message, found);
    }
}

fn check_text(field: &str, text: &str, found: &mut Vec<Failure>) {
    if text.len() > TEXT_BYTES {
        found.push(too_large(field, format!("the text has {} bytes, at most {TEXT_BYTES} are kept", text.len())));
    }
}

fn too_large(field: &str, message: String) -> Failure {
    Failure::new(Reason::TooLarge, message).detail(Detail::Text).field(field)
}
