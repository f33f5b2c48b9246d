//! What a report may hold: the table of its bounds, and failures and texts cut down to them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::failure::{Excerpt, Failure};
use crate::limits::Limits;
use crate::reason::Reason;
use crate::report::Report;

/// Bytes of one text.
pub const TEXT_BYTES: usize = Limits::DEFAULT.text_bytes;
/// Failures of a report.
pub const FAILURES: usize = 1000;
/// Excerpts of a failure.
pub const EXCERPTS: usize = 3;
/// Lines of an excerpt.
pub const EXCERPT_LINES: usize = 20;
/// Warnings of a report; warnings and normalizations of a file.
pub const REMARKS: usize = 100;
/// Bytes of all failures together; of a report as it is stored, unless its files alone are more.
pub const STORED_BYTES: usize = 2 << 20;
/// Bytes of failures after which their excerpts and next actions are left out.
const QUOTED_BYTES: usize = 1 << 20;
/// Ends a text that was cut.
const CUT: &str = "...";

/// The failures, within the bounds of a report: texts and excerpts are cut, and a last failure counts those left out.
#[must_use]
pub fn failures(failures: Vec<Failure>) -> Vec<Failure> {
    let all = failures.len();
    let (mut fitting, mut bytes) = (Vec::new(), 0);
    for mut failure in failures {
        shorten(&mut failure);
        if bytes + size(&failure) > QUOTED_BYTES {
            failure.nearest.clear();
            failure.next_action = None;
        }
        bytes += size(&failure);
        if bytes > STORED_BYTES || (fitting.len() + 1 == FAILURES && all > FAILURES) {
            let message = format!("{} more failures are left out", all - fitting.len());
            let hint = "mend these and send the batch again, or send smaller batches";
            fitting.push(Failure::new(Reason::TooLarge, message).hint(hint));
            break;
        }
        fitting.push(failure);
    }
    fitting
}

/// Cuts the warnings of a report to the length that a text may have.
pub fn warnings(report: &mut Report) {
    let of_files = report.files.iter_mut().flat_map(|file| &mut file.warnings);
    of_files.chain(&mut report.warnings).for_each(|warning| cut(&mut warning.message));
}

fn shorten(failure: &mut Failure) {
    cut(&mut failure.message);
    let texts = [&mut failure.hint, &mut failure.field, &mut failure.path, &mut failure.doc_path];
    texts.into_iter().flatten().for_each(cut);
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

fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES {
        text.truncate(text.floor_char_boundary(TEXT_BYTES - CUT.len()));
        text.push_str(CUT);
    }
}

/// About how many bytes a failure takes in a message.
fn size(failure: &Failure) -> usize {
    let texts = [&failure.hint, &failure.field, &failure.path, &failure.doc_path];
    let texts = texts.into_iter().flatten().map(String::len);
    let quoted = failure.nearest.iter().map(|excerpt| excerpt.text.len() + 16);
    let action = failure.next_action.as_ref().map_or(0, |action| action.document.len());
    256 + failure.message.len() + texts.sum::<usize>() + quoted.sum::<usize>() + action
}
