//! The reports that the agent itself makes: of batches that it did not apply, or whose own report is lost.

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{Outcome, Report, fit};

/// Reports why nothing changed.
pub(super) fn refusal(failures: Vec<Failure>) -> Report {
    let rejected = failures.first().is_some_and(|failure| failure.reason == Reason::Rejected);
    let outcome = if rejected { Outcome::Rejected } else { Outcome::Failed };
    Report {
        outcome,
        files: Vec::new(),
        failures: fit::failures(failures),
        warnings: Vec::new(),
        diff: String::new(),
        diff_omitted: false,
    }
}

/// Whether a person said no, and not the agent, which refuses every batch.
pub(super) fn is_rejected_by_person(report: &Report) -> bool {
    let by_agent = report.failures.iter().any(|failure| failure.detail == Some(Detail::NeverApproves));
    report.outcome == Outcome::Rejected && !by_agent
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

/// The report of a batch whose own report is lost.
pub(super) fn lost() -> Report {
    let message = "the batch ended on the agent's machine, and its report was damaged there: whether it was applied is not \
                   known";
    let hint = "read the files before sending the batch again; the agent's log names what was set aside";
    refusal(vec![Failure::new(Reason::NeedsOperator, message).hint(hint)])
}

#[cfg(test)]
mod tests {
    use aptix_model::failure::Excerpt;
    use aptix_model::report::fit::STORED_BYTES;
    use aptix_model::report::{ChangeReport, FileReport, FileStatus, Tier, Warning, Written};
    use aptix_model::wire::fit::SENT_BYTES;

    use super::*;
    use crate::connection::receipt::{self, Receipt};

    fn sent(report: Report) -> Result<Report, Box<Failure>> {
        let batch = "018f6d2e-7c1a-7b3e-9d55-0123456789ab".parse().unwrap();
        let bytes = receipt::encode_to_fit(Receipt {
            workspace: "w".parse().unwrap(),
            batch,
            report,
            decided_by: None,
            traceparent: None,
        })?;
        assert!(bytes.len() <= SENT_BYTES, "{}", bytes.len());
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
        let texts = |failure: &Failure| {
            let path = failure.path.as_ref().map_or(0, String::len);
            failure.message.len() + path + failure.nearest.iter().map(|excerpt| excerpt.text.len()).sum::<usize>()
        };
        assert!(report.failures.iter().map(texts).sum::<usize>() <= STORED_BYTES);
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
            written: Some(Written { sha256: aptix_engine::digest::sha256(b""), size_bytes: 0 }),
            warnings: vec![warning.clone(); warnings],
            changes: vec![change; changes],
            ..FileReport::new("p".repeat(path), format!("r/{}", "p".repeat(path)), FileStatus::Created)
        };
        let report = |files: Vec<FileReport>| Report {
            outcome: Outcome::Applied,
            files,
            failures: Vec::new(),
            warnings: Vec::new(),
            diff: "d".repeat(1 << 20),
            diff_omitted: false,
        };
        let shape = |report| {
            let report = sent(report).unwrap();
            let file = &report.files[0];
            (report.diff.is_empty(), report.diff_omitted, file.warnings.len(), file.changes.len())
        };
        assert_eq!(shape(report(vec![file(1, 100, 10)])), (false, false, 1, 100));
        assert_eq!(shape(report(vec![file(50, 100, 10)])), (true, true, 50, 100));
        assert_eq!(shape(report(vec![file(100, 100, 10)])), (true, true, 0, 100));
        assert_eq!(shape(report(vec![file(100, 500_000, 10)])), (true, true, 0, 0));
        let refused = sent(report(vec![file(0, 0, 4000); 1000])).unwrap_err();
        assert_eq!(refused.reason, Reason::TooLarge);
    }
}
