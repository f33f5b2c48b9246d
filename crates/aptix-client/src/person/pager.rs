//! Shows more than a screen page by page. Aptix runs no other program for that.

use super::keyboard::{NoAnswer, Talk, ask};
use super::rows::{Line, Size, rows};

/// What is shown before a question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages<'a> {
    /// As much as there is.
    pub(super) body: &'a [Line],
    /// The lines that need attention, shown again as far as there is room.
    pub(super) attention: &'a [Line],
    /// Shown at the very end.
    pub(super) end: &'a [Line],
    /// Rows of the question.
    pub(super) question: usize,
}

/// How the pages were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Read {
    /// To their end, on a terminal of this size; so many rows were passed over by a word that says so.
    ToTheEnd(Size, usize),
    /// Not: the reader refused below a page.
    Refused,
}

/// Shows pages until their end, or until the reader skips the rest or refuses.
pub(super) async fn show(pages: Pages<'_>, talk: &mut impl Talk) -> Result<Read, NoAnswer> {
    let size = talk.size();
    let body = rows(pages.body, size.columns);
    let last = last_rows(pages, size);
    let (mut left, mut unread) = (body.as_slice(), 0);
    while !left.is_empty() && left.len() + last.len() + pages.question > size.rows {
        let (page, rest) = left.split_at(left.len().min(size.rows - 1));
        talk.say(&page.concat());
        left = rest;
        let (shown, all) = (body.len() - left.len(), body.len());
        let question = format!("--more-- {shown}/{all} [Enter: go on, skip: leave the rest unread, n: refuse] ");
        loop {
            // What was typed before may have ended the row of the question.
            talk.forget();
            match ask(&question, talk).await?.as_str() {
                "" => break,
                "skip" => {
                    unread = left.len();
                    left = &[];
                    break;
                }
                "n" | "no" => return Ok(Read::Refused),
                _ => {}
            }
        }
    }
    talk.say(&left.concat());
    if unread > 0 {
        talk.say(&format!("{unread} rows were not shown\n"));
    }
    talk.say(&last.concat());
    talk.forget();
    Ok(Read::ToTheEnd(size, unread))
}

/// The rows of the end, after as many of the lines that need attention as fit on its screen.
fn last_rows(pages: Pages<'_>, size: Size) -> Vec<String> {
    let end = rows(pages.end, size.columns);
    let room = size.rows.saturating_sub(end.len() + pages.question + 2);
    let mut last = Vec::new();
    for (index, line) in pages.attention.iter().enumerate() {
        let next = rows(std::slice::from_ref(line), size.columns);
        if last.len() + next.len() > room {
            last.push(format!("attention: {} more, shown first\n", pages.attention.len() - index));
            break;
        }
        last.extend(next);
    }
    last.extend(end);
    last
}
