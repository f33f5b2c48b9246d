//! Lines as rows of a terminal. A line that is too long goes on in rows that begin with a mark, measured in cells, so that
//! no part of it can pose as a line of its own, whatever it holds.

use anstyle::Style;
use unicode_width::UnicodeWidthChar as _;

use crate::present::diff::{DiffLine, LineKind};

/// Begins a row with the beginning of a line of a diff.
const DIFF: &str = "| ";
/// Begins a row in which the line above goes on.
const GOES_ON: &str = ": ";
/// Cells from one tab stop to the next.
const TAB: usize = 8;

/// The size of a terminal, in cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Size {
    /// The size of a terminal that does not report one.
    pub(crate) const USUAL: Self = Self { rows: 24, columns: 80 };

    /// The size that a terminal reports, but not too small to work with.
    pub(crate) fn of(rows: u16, columns: u16) -> Self {
        let known =
            |cells: u16, usual: usize, least: usize| if cells == 0 { usual } else { usize::from(cells).max(least) };
        Self { rows: known(rows, Self::USUAL.rows, 10), columns: known(columns, Self::USUAL.columns, 20) }
    }
}

/// A line that is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Line {
    /// Whose line of a diff it is; `None` for one of ours.
    pub(crate) kind: Option<LineKind>,
    pub(crate) style: Style,
    pub(crate) text: String,
}

impl Line {
    /// One of ours: it begins with words of ours, and holds no other's text as it is.
    pub(crate) fn ours(text: impl Into<String>) -> Self {
        Self { kind: None, style: Style::new(), text: text.into() }
    }

    /// One of ours that is emphasized.
    pub(crate) fn head(text: impl Into<String>) -> Self {
        Self { style: Style::new().bold(), ..Self::ours(text) }
    }

    /// One of a diff.
    pub(crate) fn diff(DiffLine { style, text, kind }: DiffLine) -> Self {
        Self { kind: Some(kind), style, text }
    }

    const fn mark(&self) -> &'static str {
        if self.kind.is_some() { DIFF } else { "" }
    }
}

/// Breaks lines into rows of less than so many columns. Each row is whole: its style ends with it.
pub(crate) fn rows(lines: &[Line], columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in lines {
        let (mark, Line { style, text, .. }) = (line.mark(), line);
        let pieces = pieces(text, columns.saturating_sub(1 + mark.len()), columns.saturating_sub(1 + GOES_ON.len()));
        let marks = std::iter::once(mark).chain(std::iter::repeat(GOES_ON));
        rows.extend(pieces.into_iter().zip(marks).map(|(piece, mark)| format!("{mark}{style}{piece}{style:#}\n")));
    }
    rows
}

/// Breaks a text into pieces of so many cells: the first, and each that follows. Tabs become blanks.
fn pieces(text: &str, first: usize, next: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut used, mut most, mut column) = (0, first, 0);
    let mut put = |character: char, cells: usize| {
        if used + cells > most {
            pieces.push(String::new());
            (used, most) = (0, next);
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
        used += cells;
    };
    for character in text.chars() {
        if character == '\t' {
            // The sign of a line of a diff is not of the file.
            let blanks = TAB - usize::saturating_sub(column, 1) % TAB;
            (0..blanks).for_each(|_| put(' ', 1));
            column += blanks;
        } else {
            let cells = cells(character);
            put(character, cells);
            column += cells;
        }
    }
    pieces
}

/// The cells that a character takes on a terminal, at most: some take one or two, as the terminal likes, among them all
/// that it may draw as an emoji.
fn cells(character: char) -> usize {
    if matches!(character, '\u{2300}'..='\u{23ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
    {
        return 2;
    }
    character.width().unwrap_or(0).max(character.width_cjk().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: Line, columns: usize) -> Vec<String> {
        rows(&[line], columns).iter().map(|row| anstream::adapter::strip_str(row).to_string()).collect()
    }

    #[test]
    fn a_long_line_goes_on_in_marked_rows() {
        let diff = |text: &str| Line { kind: Some(LineKind::Kept), ..Line::ours(text) };
        assert_eq!(shown(diff("+123456789abc"), 8), ["| +1234\n", ": 56789\n", ": abc\n"]);
        assert_eq!(shown(Line::ours("1234567"), 8), ["1234567\n"]);
        assert_eq!(shown(Line::ours("12345678"), 8), ["1234567\n", ": 8\n"]);
        assert_eq!(shown(diff("+語語語"), 8), ["| +語語\n", ": 語\n"]);
        assert_eq!(shown(diff("+e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}"), 8).len(), 2);
        assert_eq!(shown(diff(""), 8), ["| \n"]);
        // Terminals do not agree on flags and symbols: half of a flag may take as much as a whole one.
        assert_eq!(shown(diff("+\u{1f1e9}\u{1f1ea}\u{1f1e9}"), 8), ["| +\u{1f1e9}\u{1f1ea}\n", ": \u{1f1e9}\n"]);
        assert_eq!(shown(diff("+\u{2764}\u{2764}\u{2764}"), 8), ["| +\u{2764}\u{2764}\n", ": \u{2764}\n"]);
        assert_eq!(shown(diff("+a\tb"), 20), ["| +a       b\n"]);
        assert_eq!(shown(diff("+\tb"), 8), ["| +    \n", ":     b\n"]);
    }

    #[test]
    fn a_terminal_that_reports_no_size_has_the_usual_size() {
        assert_eq!(Size::of(0, 0), Size::USUAL);
        assert_eq!(Size::of(1, 1), Size { rows: 10, columns: 20 });
        assert_eq!(Size::of(50, 200), Size { rows: 50, columns: 200 });
    }
}
