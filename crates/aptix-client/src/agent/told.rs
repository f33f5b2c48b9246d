//! What the agent tells the server, cut to what the protocol carries, whatever went right or wrong.

use aptix_model::failure::{Excerpt, Failure};
use aptix_model::limits::{Limits, MESSAGE_BYTES};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{Outcome, Report};

use crate::connection::receipt::{self, Receipt};

/// Bytes of a receipt: a message, less what the lease adds to it.
const RECEIPT_BYTES: usize = MESSAGE_BYTES - 64;
/// Failures of a report.
const FAILURES: usize = 1000;
/// Excerpts of a failure.
const EXCERPTS: usize = 3;
/// Lines of an excerpt.
const EXCERPT_LINES: usize = 20;
/// Bytes of failures after which the lines they quote are left out.
const QUOTED_BYTES: usize = 1 << 20;
/// Bytes of failures after which the rest is only counted.
const TOLD_BYTES: usize = 2 << 20;
/// Ends a text that was cut.
const CUT: &str = "...";

/// Reports why nothing changed.
pub(super) fn refusal(failures: Vec<Failure>) -> Report {
    let rejected = failures.first().is_some_and(|failure| failure.reason == Reason::Rejected);
    let outcome = if rejected { Outcome::Rejected } else { Outcome::Failed };
    Report {
        outcome,
        files: Vec::new(),
        failures: bounded(failures),
        warnings: Vec::new(),
        diff: String::new(),
        diff_omitted: false,
    }
}

/// Puts a receipt into bytes that fit into a message: without the diff if need be, then without warnings, then without
/// the places of the changes.
///
/// # Errors
/// The names and digests of the files are already too much.
pub(super) fn encode(mut receipt: Receipt) -> Result<Vec<u8>, Box<Failure>> {
    let report = &mut receipt.report;
    let of_files = report.files.iter_mut().flat_map(|file| &mut file.warnings);
    for warning in of_files.chain(&mut report.warnings) {
        cut(&mut warning.message);
    }
    let cuts: [fn(&mut Report); 3] = [
        |report| {
            report.diff_omitted |= !report.diff.is_empty();
            report.diff.clear();
        },
        |report| {
            report.warnings.clear();
            report.files.iter_mut().for_each(|file| file.warnings.clear());
        },
        |report| report.files.iter_mut().for_each(|file| file.changes.clear()),
    ];
    let mut cuts = cuts.into_iter();
    loop {
        let bytes = receipt::encode(receipt.clone());
        if bytes.len() <= RECEIPT_BYTES {
            return Ok(bytes);
        }
        let Some(cut) = cuts.next() else {
            let message = format!("the report would have {} bytes, at most {RECEIPT_BYTES} can be sent", bytes.len());
            let failure = Failure::new(Reason::TooLarge, message).detail(Detail::File);
            return Err(Box::new(failure.hint("send several smaller batches")));
        };
        cut(&mut receipt.report);
    }
}

fn bounded(failures: Vec<Failure>) -> Vec<Failure> {
    let all = failures.len();
    let (mut told, mut bytes) = (Vec::new(), 0);
    for mut failure in failures {
        shorten(&mut failure);
        if bytes + size(&failure) > QUOTED_BYTES {
            failure.nearest.clear();
            failure.next_action = None;
        }
        bytes += size(&failure);
        if bytes > TOLD_BYTES || (told.len() + 1 == FAILURES && all > FAILURES) {
            let message = format!("{} more failures are left out", all - told.len());
            let hint = "mend these and send the batch again, or send smaller batches";
            told.push(Failure::new(Reason::TooLarge, message).hint(hint));
            break;
        }
        told.push(failure);
    }
    told
}

fn shorten(failure: &mut Failure) {
    cut(&mut failure.message);
    [&mut failure.hint, &mut failure.field, &mut failure.path].into_iter().flatten().for_each(cut);
    failure.nearest.truncate(EXCERPTS);
    failure.nearest.iter_mut().for_each(shorten_excerpt);
}

fn shorten_excerpt(excerpt: &mut Excerpt) {
    if let Some((end, _)) = excerpt.text.match_indices('\n').nth(EXCERPT_LINES - 1) {
        excerpt.text.truncate(end);
        excerpt.end_line = excerpt.start_line + EXCERPT_LINES - 1;
    }
    cut(&mut excerpt.text);
}

/// Cuts a text to what a text may have.
fn cut(text: &mut String) {
    let most = Limits::DEFAULT.text_bytes;
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most - CUT.len()));
        text.push_str(CUT);
    }
}

/// About how many bytes a failure takes in a message.
fn size(failure: &Failure) -> usize {
    let texts = [&failure.hint, &failure.field, &failure.path].into_iter().flatten().map(String::len);
    let quoted = failure.nearest.iter().map(|excerpt| excerpt.text.len() + 16);
    let action = failure.next_action.as_ref().map_or(0, |action| action.document.len());
    256 + failure.message.len() + texts.sum::<usize>() + quoted.sum::<usize>() + action
}

/// The report of a batch that ended here, for a server that was set back, when what was reported then is not kept any more.
pub(super) fn forgotten() -> Report {
    let message = "the batch ended on this workstation before the server was set back, and its report or its new content is not kept any more";
    refusal(vec![Failure::new(Reason::ResultFinal, message).hint("look at the files that it names")])
}

/// The report of a batch whose new content was damaged before it was uploaded.
pub(super) fn content_lost() -> Report {
    let message = "the batch was applied on the agent's machine, and new content of a file was damaged there before it was uploaded";
    refusal(vec![Failure::new(Reason::NeedsOperator, message).hint("read the files before sending the batch again")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use aptix_model::report::{ChangeReport, FileReport, FileStatus, Tier, Warning, Written};

    fn sent(report: Report) -> Result<Report, Box<Failure>> {
        let batch = "018f6d2e-7c1a-7b3e-9d55-0123456789ab".parse().unwrap();
        let bytes = encode(Receipt { workspace: "w".parse().unwrap(), batch, report })?;
        assert!(bytes.len() <= RECEIPT_BYTES, "{}", bytes.len());
        Ok(receipt::decode(&bytes).unwrap().report)
    }

    #[test]
    fn however_much_went_wrong_the_report_can_be_sent() {
        let lines = "x".repeat(4000) + "\n";
        let excerpt = Excerpt { start_line: 1, end_line: 50, text: lines.repeat(50) };
        let failure = Failure {
            nearest: vec![excerpt; 5],
            path: Some("é".repeat(100_000)),
            ..Failure::new(Reason::ExpectedMismatch, "m".repeat(100_000))
        };
        let report = sent(refusal(vec![failure; 100])).unwrap();
        assert_eq!(report.outcome, Outcome::Failed);
        assert!(report.failures.iter().map(size).sum::<usize>() <= TOLD_BYTES + 512);
        let first = &report.failures[0];
        assert_eq!((first.message.len(), first.nearest.len()), (64 << 10, 3));
        assert!(first.path.as_ref().unwrap().len() <= 64 << 10);
        assert_eq!((first.nearest[0].end_line, first.nearest[0].text.split('\n').count()), (20, 17));
        assert!(report.failures.last().unwrap().message.ends_with("more failures are left out"));

        let short = Failure::new(Reason::ExpectedMismatch, "short");
        assert_eq!(sent(refusal(vec![short.clone(); 1000])).unwrap().failures, vec![short.clone(); 1000]);
        let many = sent(refusal(vec![short; 1001])).unwrap().failures;
        assert_eq!((many.len(), many[999].message.as_str()), (1000, "2 more failures are left out"));
    }

    #[test]
    fn however_much_was_done_the_report_can_be_sent_or_nothing_is_done() {
        let warning = Warning { code: "LATE_WRITE".to_owned(), message: "w".repeat(100_000), line: None };
        let change = ChangeReport { tier: Tier::Exact, candidates: 1, start_line: 1000, end_line: 1000 };
        let file = |warnings: usize, changes: usize, path: usize| FileReport {
            path: "p".repeat(path),
            doc_path: format!("r/{}", "p".repeat(path)),
            status: FileStatus::Created,
            sha256_before: None,
            renamed_to: None,
            written: Some(Written { sha256: aptix_engine::digest::sha256(b""), size_bytes: 0 }),
            normalized: Vec::new(),
            warnings: vec![warning.clone(); warnings],
            changes: vec![change; changes],
            withheld: None,
        };
        let report = |files: Vec<FileReport>| Report {
            outcome: Outcome::Applied,
            files,
            failures: Vec::new(),
            warnings: Vec::new(),
            diff: "d".repeat(1 << 20),
            diff_omitted: false,
        };
        let told = |report| {
            let report = sent(report).unwrap();
            let file = &report.files[0];
            (report.diff.is_empty(), report.diff_omitted, file.warnings.len(), file.changes.len())
        };
        assert_eq!(told(report(vec![file(1, 100, 10)])), (false, false, 1, 100));
        assert_eq!(told(report(vec![file(50, 100, 10)])), (true, true, 50, 100));
        assert_eq!(told(report(vec![file(100, 100, 10)])), (true, true, 0, 100));
        assert_eq!(told(report(vec![file(100, 500_000, 10)])), (true, true, 0, 0));
        let refused = sent(report(vec![file(0, 0, 4000); 1000])).unwrap_err();
        assert_eq!(refused.reason, Reason::TooLarge);
    }
}
