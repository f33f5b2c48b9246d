//! What the page is sent of a change. Every text in it was made visible for people before; the page shows it as it is.

use serde::Serialize;

use super::board::{Ended, Question};
use crate::person::rows::Line;
use crate::person::shown::{Base, Shown, ShownFile};
use crate::present::diff::LineKind;

/// Characters of a line that are sent with it; the page fetches the rest of a longer one.
const FOLDED: usize = 2_000;
/// Characters of a long line that are sent at once.
const PIECE: usize = 100_000;

/// Lines of a file before a change that are sent at once.
const BASE_LINES: usize = 1_000;

/// All that waits and what ended.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BoardView {
    pub(super) version: u64,
    /// Browsers that opened the page.
    pub(super) browsers: usize,
    pub(super) waiting: Vec<WaitingView>,
    pub(super) ended: Vec<Ended>,
}

/// A question, without the lines of its files.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitingView {
    number: u64,
    seconds: u64,
    digest: String,
    #[serde(flatten)]
    change: ChangeView,
}

/// A change, without the lines of its files.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangeView {
    title: String,
    head: Vec<String>,
    totals: String,
    is_per_file: bool,
    is_comparison: bool,
    drops_reason: bool,
    files: Vec<FileView>,
    unchanged: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileView {
    index: usize,
    /// What it is called in a list.
    name: String,
    /// What becomes of it.
    title: String,
    attention: Option<String>,
    lines: usize,
    /// Lines of the file before, if those that stay can be asked for.
    base_lines: Option<usize>,
}

/// A line: whose it is (`o` and `b` ours, `h` a header, else as diffs mark it), its beginning, and how many characters are left out.
#[derive(Serialize)]
pub(super) struct LineView(char, String, usize);

/// More of a line, and how many characters are still left out.
#[derive(Serialize)]
pub(super) struct PieceView {
    text: String,
    rest: usize,
}

impl WaitingView {
    pub(super) fn of(number: u64, question: &Question) -> Self {
        Self {
            number,
            seconds: question.asked.elapsed().as_secs(),
            digest: question.subject.to_string(),
            change: ChangeView::of(&question.title, &question.shown),
        }
    }
}

impl ChangeView {
    pub(super) fn of(title: &str, shown: &Shown) -> Self {
        // The title stands above by itself.
        let is_more = |text: &String| !text.is_empty() && text.strip_suffix(':') != Some(title);
        let texts =
            |lines: &[Line]| -> Vec<String> { lines.iter().map(|line| line.text.clone()).filter(is_more).collect() };
        Self {
            title: title.to_owned(),
            head: texts(&shown.head),
            totals: shown.totals.clone(),
            is_per_file: shown.is_per_file,
            is_comparison: shown.is_comparison,
            drops_reason: shown.drops_reason,
            files: shown.files.iter().map(FileView::of).collect(),
            unchanged: texts(&shown.unchanged),
        }
    }
}

impl FileView {
    fn of(file: &ShownFile) -> Self {
        Self {
            index: file.index,
            name: file.name.clone(),
            title: file.lines.first().map(|line| line.text.clone()).unwrap_or_default(),
            attention: file.attention.as_ref().map(|line| line.text.clone()),
            lines: file.lines.len().saturating_sub(1),
            base_lines: file.base.as_ref().map(Base::len),
        }
    }
}

fn file(shown: &Shown, index: usize) -> Option<&ShownFile> {
    shown.files.iter().find(|file| file.index == index)
}

/// The lines of a file of a change, below the one that names it.
pub(super) fn lines(shown: &Shown, index: usize) -> Option<Vec<LineView>> {
    Some(file(shown, index)?.lines.iter().skip(1).map(line).collect())
}

/// Lines of a file before the change, from the one with this number on, counted from 1.
pub(super) fn base_lines(shown: &Shown, index: usize, first: usize, count: usize) -> Option<Vec<LineView>> {
    let base = file(shown, index)?.base.as_ref()?;
    let numbers = first..first.saturating_add(count.min(BASE_LINES));
    Some(numbers.map_while(|number| base.line(number)).map(|found| line(&found)).collect())
}

/// What follows in a long line of a file before the change after so many characters.
pub(super) fn base_piece(shown: &Shown, index: usize, number: usize, from: usize) -> Option<PieceView> {
    Some(cut(&file(shown, index)?.base.as_ref()?.line(number)?.text, from, PIECE))
}

fn line(line: &Line) -> LineView {
    let kind = match line.kind {
        None if line.style == anstyle::Style::new() => 'o',
        None => 'b',
        Some(LineKind::Header) => 'h',
        Some(LineKind::Kept) => ' ',
        Some(LineKind::Added) => '+',
        Some(LineKind::Removed) => '-',
    };
    let PieceView { text, rest } = cut(&line.text, 0, FOLDED);
    LineView(kind, text, rest)
}

/// What follows in a long line after so many characters.
pub(super) fn piece(shown: &Shown, index: usize, line: usize, from: usize) -> Option<PieceView> {
    Some(cut(&file(shown, index)?.lines.get(line.checked_add(1)?)?.text, from, PIECE))
}

fn cut(text: &str, from: usize, most: usize) -> PieceView {
    let mut characters = text.chars().skip(from);
    let text = characters.by_ref().take(most).collect();
    PieceView { text, rest: characters.count() }
}
