//! The question whether a batch may be compared with files that its author is not shown.

use super::pager::{self, Pages, Read};
use super::rows::Line;
use super::talk::{NoAnswer, Talk, ask};
use crate::apply::Hidden;
use crate::present::untrusted::Name;

const QUESTION: &str = "Compare the batch with these files? [y/n] ";

/// Names the files and asks until there is an answer. Nothing that the author wrote is shown except the paths.
pub(super) async fn may_compare(name: &str, hidden: &[Hidden<'_>], talk: &mut impl Talk) -> Result<bool, NoAnswer> {
    let head = [
        Line::ours(""),
        Line::head(format!("{name} edits withheld files")),
        Line::ours("Its author is not shown these files, nor told whether the batch fits them."),
        Line::ours("If it fits, you see the whole change before anything is written."),
    ];
    let files = hidden.iter().map(|file| Line::ours(format!("attention: {}: {}", Name(file.path), file.why.because())));
    let body: Vec<_> = head.into_iter().chain(files).collect();
    let question = format!("{} {}\n{QUESTION}", hidden.len(), if hidden.len() == 1 { "file" } else { "files" });
    'shown: loop {
        let pages = Pages { body: &body, attention: &[], end: &[], question: 2 };
        let Read::ToTheEnd(size) = pager::show(pages, talk).await? else { return Ok(false) };
        loop {
            match ask(&question, talk).await?.as_str() {
                "y" | "yes" if talk.size().columns < size.columns => continue 'shown,
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => {}
            }
        }
    }
}
