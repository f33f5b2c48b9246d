//! Finds the lines of a text that match a pattern, and the lines near them, as long as the caller waits.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use aptix_engine::text::line_regex::{COMPILED_BYTES, CompileError, Letters, LineRegex, Search};
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

use super::IsOver;

/// Bytes that are searched before the deadline is looked at.
const PIECE_BYTES: usize = 64 << 10;

/// A search for a pattern through several texts.
pub(crate) struct LineSearch {
    regex: LineRegex,
    search: Search,
}

/// A line that matches, or is near one that does.
pub(crate) struct Line<'t> {
    /// From 1.
    pub(crate) number: u64,
    /// Without its terminator.
    pub(crate) text: &'t [u8],
    pub(crate) is_match: bool,
}

/// Why a text was not searched to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// The search would take more work than the text is worth.
    Costly,
    /// The caller does not wait any more.
    Over,
}

impl LineSearch {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// When it is no regular expression, names a line feed, or takes too much.
    pub(crate) fn new(pattern: &str, letters: Letters) -> Result<Self, Failure> {
        if names_line_feed(pattern) {
            return Err(no_regex("it names a line feed"));
        }
        let regex = LineRegex::new(pattern, letters, COMPILED_BYTES).map_err(|error| match error {
            CompileError::Syntax(_) | CompileError::Unsupported(_) => no_regex(&error.to_string()),
            CompileError::Written { .. } => Failure::new(Reason::TooLarge, format!("the pattern is too long: {error}"))
                .field("pattern")
                .hint("search for a shorter part of it"),
            CompileError::Compiled { .. } => {
                Failure::new(Reason::MatchBudgetExceeded, format!("the pattern is too large: {error}"))
                    .field("pattern")
                    .hint("repeat less in it, or search for a part of it")
            }
        })?;
        let search = regex.search(0);
        Ok(Self { regex, search })
    }

    /// Hands over the lines that match and those near them, top to bottom, until `take` breaks off.
    ///
    /// # Errors
    /// When the search is given up before the end of the text.
    pub(crate) fn lines<'t>(
        &mut self,
        text: &'t [u8],
        near: usize,
        is_over: IsOver<'_>,
        take: &mut dyn FnMut(Line<'t>) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        self.search.next_text(text.len());
        let mut above = VecDeque::new();
        let (mut below, mut searched) = (0, PIECE_BYTES);
        let whole = text.strip_suffix(b"\n").unwrap_or(text);
        let lines = whole.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        for (number, line) in (1..).zip(lines).filter(|_| !text.is_empty()) {
            searched += line.len() + 1;
            if searched >= PIECE_BYTES {
                searched = 0;
                if is_over() {
                    return Err(Stopped::Over);
                }
            }
            let is_match = self.regex.is_match(&mut self.search, line).map_err(|_| Stopped::Costly)?;
            let line = Line { number, text: line, is_match };
            let flow = if is_match {
                below = near;
                above.drain(..).chain([line]).try_for_each(&mut *take)
            } else if below > 0 {
                below -= 1;
                take(line)
            } else {
                above.push_back(line);
                if above.len() > near {
                    above.pop_front();
                }
                ControlFlow::Continue(())
            };
            if flow.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn no_regex(why: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("the pattern is no regular expression: {why}"))
        .detail(Detail::Regex)
        .field("pattern")
        .hint(
            "escape what is meant literally with \\; look-around and back-references do not exist here, and no pattern \
             spans lines",
        )
}

/// Whether a pattern has a capital letter that is meant as one: `\W` and its like have none.
pub(crate) fn has_capital(pattern: &str) -> bool {
    tokens(pattern).any(|(is_escaped, _, character)| !is_escaped && character.is_uppercase())
}

/// Whether a pattern asks for a line feed, which no line has. A class may have one among others.
fn names_line_feed(pattern: &str) -> bool {
    tokens(pattern)
        .any(|(is_escaped, in_class, character)| !in_class && (character == '\n' || is_escaped && character == 'n'))
}

/// The characters of a pattern: whether each is escaped, and whether it is in a class.
fn tokens(pattern: &str) -> impl Iterator<Item = (bool, bool, char)> {
    let (mut is_escaped, mut depth) = (false, 0_usize);
    pattern.chars().filter_map(move |character| {
        if !is_escaped && character == '\\' {
            is_escaped = true;
            return None;
        }
        let was_escaped = std::mem::take(&mut is_escaped);
        match character {
            '[' if !was_escaped => depth += 1,
            ']' if !was_escaped => depth = depth.saturating_sub(1),
            _ => {}
        }
        Some((was_escaped, depth > 0, character))
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// However long a text takes to search, it is searched on only while the caller waits.
    #[test]
    fn a_text_is_searched_only_while_the_caller_waits() {
        let is_over = Cell::new(false);
        let text = "some text\n".repeat(PIECE_BYTES);
        let mut search = LineSearch::new("text", Letters::Exact).unwrap();
        let mut matched = 0;
        let stopped = search.lines(text.as_bytes(), 0, &|| is_over.get(), &mut |_| {
            matched += 1;
            is_over.set(true);
            ControlFlow::Continue(())
        });
        assert_eq!(stopped, Err(Stopped::Over));
        assert!(matched <= PIECE_BYTES / 10 + 1, "{matched} lines after the caller stopped waiting");
    }

    #[test]
    fn lines_near_a_match_come_once_and_in_order() {
        let cases: [(&str, &str, usize, &str); 8] = [
            ("", "x", 1, ""),
            ("x", "x", 0, "1x"),
            ("a\nx\nb\nx\nc\nd\ne\nx\n", "x", 1, "1-a 2x 3-b 4x 5-c 7-e 8x"),
            ("a\nb\nc\nx", "x", 2, "2-b 3-c 4x"),
            ("X\r\nx\r\n", "X$", 0, "1X"),
            ("X\r\nx\r\n", "x$", 0, "1X 2x"),
            ("\n\nx\n", "^$", 0, "1 2"),
            ("ab\u{e9}\n", r"\W", 0, ""),
        ];
        for (text, pattern, near, expected) in cases {
            let mut found = Vec::new();
            let letters = if has_capital(pattern) { Letters::Exact } else { Letters::AnyCase };
            let mut search = LineSearch::new(pattern, letters).unwrap();
            search
                .lines(text.as_bytes(), near, &|| false, &mut |line| {
                    let dash = if line.is_match { "" } else { "-" };
                    found.push(format!("{}{dash}{}", line.number, String::from_utf8_lossy(line.text)));
                    ControlFlow::Continue(())
                })
                .unwrap();
            assert_eq!(found.join(" "), expected, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn a_line_feed_is_refused_where_it_would_have_to_stand() {
        for (pattern, is_refused) in [
            ("a\\nb", true),
            ("a\nb", true),
            ("[^\\n]", false),
            ("\\\\n", false),
            ("\\[\\n", true),
            ("[\\]\\n]", false),
        ] {
            assert_eq!(LineSearch::new(pattern, Letters::Exact).is_err(), is_refused, "{pattern:?}");
        }
    }
}
