//! The report of a batch that changed nothing, small enough to be sent whatever went wrong.

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::{Outcome, Report};

/// Bytes of failures after which the lines they quote are left out.
const QUOTED_BYTES: usize = 1 << 20;
/// Bytes of failures after which the rest is only counted.
const TOLD_BYTES: usize = 2 << 20;

/// Reports why nothing changed.
pub(super) fn report(failures: Vec<Failure>) -> Report {
    let rejected = failures.first().is_some_and(|failure| failure.reason == Reason::Rejected);
    let outcome = if rejected { Outcome::Rejected } else { Outcome::Failed };
    Report { outcome, files: Vec::new(), failures: bounded(failures), diff: String::new(), diff_omitted: false }
}

fn bounded(failures: Vec<Failure>) -> Vec<Failure> {
    let all = failures.len();
    let (mut told, mut bytes) = (Vec::new(), 0);
    for mut failure in failures {
        if bytes + size(&failure) > QUOTED_BYTES {
            failure.nearest.clear();
        }
        bytes += size(&failure);
        if bytes > TOLD_BYTES {
            let message = format!("{} more failures are left out", all - told.len());
            let hint = "mend these and send the batch again, or send smaller batches";
            told.push(Failure::new(Reason::TooLarge, message).hint(hint));
            break;
        }
        told.push(failure);
    }
    told
}

/// About how many bytes a failure takes in a message.
fn size(failure: &Failure) -> usize {
    let texts = [&failure.hint, &failure.field, &failure.path].into_iter().flatten().map(String::len);
    let quoted = failure.nearest.iter().map(|excerpt| excerpt.text.len() + 16);
    256 + failure.message.len() + texts.sum::<usize>() + quoted.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aptix_model::failure::Excerpt;

    #[test]
    fn however_much_went_wrong_the_report_can_be_sent() {
        let nearest = vec![Excerpt { start_line: 1, end_line: 1, text: "x".repeat(100_000) }];
        let failure = Failure { nearest, ..Failure::new(Reason::ExpectedMismatch, "other lines") };
        let report = report(vec![failure; 100_000]);
        assert_eq!(report.outcome, Outcome::Failed);
        assert!(report.failures.iter().map(size).sum::<usize>() <= TOLD_BYTES + 512);
        assert_eq!(report.failures[0].nearest.len(), 1);
        assert!(report.failures.last().unwrap().message.ends_with("more failures are left out"));
    }
}
