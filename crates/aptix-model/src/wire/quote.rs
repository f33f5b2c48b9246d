//! Blocks of an answer that are no edits, between the wire and the model: the last entries of an edit's files.

use super::field::note;
use super::v1;
use super::v1::file_patch::{Action, Target};
use crate::failure::Failure;
use crate::limits::INLINE_BYTES;
use crate::quote::{Quote, QuoteName};
use crate::reason::{Detail, Reason};

/// Takes the quotes off the end of an edit's files; what is wrong with them goes to `failures`.
pub(super) fn split_off(files: &mut Vec<v1::FilePatch>, failures: &mut Vec<Failure>) -> Vec<Quote> {
    let edits = files.iter().rposition(|file| !is_quote(file)).map_or(0, |last| last + 1);
    let quotes = files.split_off(edits).into_iter().enumerate();
    let quotes = quotes.filter_map(|(index, file)| {
        let Some(Action::Quote(quote)) = file.action else { return None };
        let at = format!("files[{}].quote", edits + index);
        read(&at, quote).map_err(|failure| note(failures, failure)).ok()
    });
    quotes.collect()
}

/// Whether an entry of an edit's files is a quote.
pub(super) fn is_quote(file: &v1::FilePatch) -> bool {
    matches!(file.action, Some(Action::Quote(_)))
}

fn read(at: &str, quote: v1::Quote) -> Result<Quote, Failure> {
    if quote.text.len() > INLINE_BYTES {
        let message = format!("the text of the quote has {} bytes, expected at most {INLINE_BYTES}", quote.text.len());
        return Err(Failure::new(Reason::TooLarge, message)
            .detail(Detail::Text)
            .field(format!("{at}.text"))
            .hint("leave the block out of the answer"));
    }
    let names = quote.names.into_iter().map(|name| QuoteName { path: name.path, is_path: name.is_path });
    Ok(Quote {
        first_line: quote.first_line,
        last_line: quote.last_line,
        names: names.collect(),
        is_announced: quote.is_announced,
        text: quote.text,
    })
}

/// The failure of a quote that another entry follows.
pub(super) fn misplaced(index: usize) -> Failure {
    Failure::new(Reason::InvalidRequest, "a quote is before a file patch, expected all quotes at the end")
        .detail(Detail::UnexpectedField)
        .field(format!("files[{index}].quote"))
}

/// A quote as an entry of an edit's files. An agent that does not know quotes finds no action in it, and refuses the edit.
pub(super) fn message(quote: Quote) -> v1::FilePatch {
    let target = quote.names.first().map_or_else(String::new, |name| name.path.clone());
    let names = quote.names.into_iter().map(|name| v1::QuoteName { path: name.path, is_path: name.is_path });
    let quote = v1::Quote {
        first_line: quote.first_line,
        last_line: quote.last_line,
        names: names.collect(),
        is_announced: quote.is_announced,
        text: quote.text,
    };
    v1::FilePatch { target: Some(Target::Path(target)), action: Some(Action::Quote(quote)), ..v1::FilePatch::default() }
}
