//! Regular expressions over single lines, whose cost is bounded by counting: compiling by the size of what comes of it,
//! searching by the states that are built and the steps that are taken. Nothing here looks at a clock.
//!
//! A lazy DFA does the search. It gives up where it would build states faster than it reads bytes; where it meets a
//! Unicode word boundary beside a character that is not ASCII, a slower engine takes the line, in counted steps.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::error::Error;

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchErrorKind};
use regex_syntax::Error as SyntaxError;

/// Bytes of a regular expression as it is written.
pub const WRITTEN_BYTES: usize = 2048;

/// Bytes that one regular expression may take once compiled.
pub const COMPILED_BYTES: usize = 1 << 20;

/// Bytes of states that a search keeps; when they are full, it begins with new ones.
const CACHE_BYTES: usize = 1 << 20;

/// How often they may be full before a search that reads few bytes for each of them is given up.
const REFILLS: usize = 3;

/// A state costs as much as this many of the expression's own states, for each byte that it must be good for.
const STATES_A_BYTE: usize = 16;

/// Steps of the slower engine for each byte of a text: a byte of a line is one step for each state of the expression.
const STEPS_A_BYTE: u64 = 16;

/// Steps of the slower engine for any text.
const STEPS: u64 = 16 << 20;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct LineRegex {
    dfa: DFA,
    slow: PikeVM,
    states: usize,
}

/// How cases are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Letters {
    /// As they are written.
    Exact,
    /// Upper and lower case are the same.
    AnyCase,
}

/// Why a text is no regular expression that may be searched for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CompileError {
    /// It is not one. The message shows where, over several lines; [`CompileError::reason`] is one line.
    #[error(transparent)]
    Syntax(Box<SyntaxError>),
    /// It is one that cannot be searched for.
    #[error("{0}")]
    Unsupported(String),
    /// It is long.
    #[error("it has {found} bytes, at most {WRITTEN_BYTES} are compiled")]
    Written {
        /// How many it has.
        found: usize,
    },
    /// It takes too much.
    #[error("it takes more than {limit} bytes when it is compiled")]
    Compiled {
        /// How many it may take.
        limit: usize,
    },
}

impl CompileError {
    /// Why, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Syntax(error) => match &**error {
                SyntaxError::Parse(error) => error.kind().to_string(),
                SyntaxError::Translate(error) => error.kind().to_string(),
                error => error.to_string(),
            },
            _ => self.to_string(),
        }
    }
}

/// The search was given up: it would take more work than its text is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the search takes more steps than a text of this size is worth")]
pub struct GivenUp;

/// What a search of one text keeps between its lines.
#[derive(Debug)]
pub struct Search {
    fast: dfa::Cache,
    slow: Option<pikevm::Cache>,
    steps: u64,
}

impl LineRegex {
    /// Compiles an expression, which may take so many bytes, and never more than [`COMPILED_BYTES`].
    ///
    /// # Errors
    /// When it is none, or takes more.
    pub fn new(pattern: &str, letters: Letters, most: usize) -> Result<Self, CompileError> {
        if pattern.len() > WRITTEN_BYTES {
            return Err(CompileError::Written { found: pattern.len() });
        }
        let limit = most.min(COMPILED_BYTES);
        let nfa = thompson::Compiler::new()
            .configure(
                thompson::Config::new().utf8(false).nfa_size_limit(Some(limit)).which_captures(WhichCaptures::None),
            )
            .syntax(syntax::Config::new().utf8(false).case_insensitive(letters == Letters::AnyCase))
            .build(pattern)
            .map_err(|error| match error.size_limit() {
                Some(limit) => CompileError::Compiled { limit },
                None => match error.source().and_then(|source| source.downcast_ref::<SyntaxError>()) {
                    Some(syntax) => CompileError::Syntax(Box::new(syntax.clone())),
                    None => CompileError::Unsupported(error.to_string()),
                },
            })?;
        let states = nfa.states().len();
        let config = DFA::config()
            .unicode_word_boundary(true)
            .cache_capacity(CACHE_BYTES)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(REFILLS))
            .minimum_bytes_per_state(Some(10 + states / STATES_A_BYTE));
        let unusable = |error: &dyn Error| CompileError::Unsupported(error.to_string());
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa.clone()).map_err(|error| unusable(&error))?;
        let slow = PikeVM::builder().build_from_nfa(nfa).map_err(|error| unusable(&error))?;
        Ok(Self { dfa, slow, states })
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.dfa.get_nfa().memory_usage()
    }

    /// Begins to search a text of so many bytes.
    #[must_use]
    pub fn search(&self, bytes: usize) -> Search {
        Search { fast: self.dfa.create_cache(), slow: None, steps: steps(bytes) }
    }

    /// Whether a line, without its terminator, matches.
    ///
    /// # Errors
    /// When that would take more work than it may.
    pub fn is_match(&self, search: &mut Search, line: &[u8]) -> Result<bool, GivenUp> {
        let input = Input::new(line).earliest(true);
        match self.dfa.try_search_fwd(&mut search.fast, &input) {
            Ok(found) => return Ok(found.is_some()),
            Err(error) if matches!(error.kind(), MatchErrorKind::GaveUp { .. }) => return Err(GivenUp),
            Err(_) => {}
        }
        let steps = (self.states as u64).saturating_mul(line.len() as u64 + 1);
        search.steps = search.steps.checked_sub(steps).ok_or(GivenUp)?;
        let cache = search.slow.get_or_insert_with(|| self.slow.create_cache());
        Ok(self.slow.is_match(cache, input))
    }
}

impl Search {
    /// Begins to search another text of so many bytes, with what was learnt from those before.
    pub fn next_text(&mut self, bytes: usize) {
        self.steps = steps(bytes);
    }
}

fn steps(bytes: usize) -> u64 {
    STEPS.max(STEPS_A_BYTE.saturating_mul(bytes as u64))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::borrow::ToOwned;
    use alloc::format;
    use alloc::vec::Vec;
    use core::time::Duration;

    use cpu_time::ThreadTime;

    use super::*;

    /// The least time of a few rounds, which whatever else happens on the machine does not make longer.
    fn least<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
        let timed = |work: &mut dyn FnMut() -> T| {
            let begun = ThreadTime::now();
            let done = work();
            (begun.elapsed(), done)
        };
        let mut best = timed(&mut work);
        for _ in 0..2 {
            let next = timed(&mut work);
            best = if next.0 < best.0 { next } else { best };
        }
        best
    }

    /// Patterns that cost an engine of regular expressions as much as they can.
    fn costly() -> Vec<String> {
        let written = [
            r"\w{1,30}",
            r"\w{1,1000}",
            r"(a{1000}){1000}",
            r"((((a{9}){9}){9}){9}){9}",
            r"(?:a|b)*a(?:a|b){20}c",
            r"a[ab]{400}$",
            r"a[ab]{9000}c",
            r"(\w+\s*)*zz",
            r"(\w+\s*){10}$z",
            r"(?:\w{1,12}\b){3}zz",
            r"\b(\w+\W*){9}zz",
            r"(\w{1,8}\s*[a-f]*){3}$z",
            r"[a-z]{500}[A-Z]|[a-m]{400}x|[c-z]{300}y",
            r"(.*)(.*)(.*)(.*)(.*)[ab]{400}c",
            r"\bfoo\b",
        ];
        let mut patterns: Vec<String> = written.iter().map(|pattern| (*pattern).to_owned()).collect();
        patterns.push(r"[^a]".repeat(500));
        patterns.push(format!("(?i){}", r"[^a]".repeat(500)));
        patterns.push(r"\w".repeat(1000));
        patterns.push(format!("(?i){}", r"[\w--a]".repeat(290)));
        patterns.push((0..500).map(|number| format!("{number}")).collect::<Vec<_>>().join("|"));
        patterns.push(format!("{}a{}", "(".repeat(200), ")*".repeat(200)));
        patterns
    }

    fn texts() -> [(&'static str, Vec<u8>); 4] {
        let mut state = 7_u64;
        let mut random = |of: &'static [u8]| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            of[usize::try_from(state >> 33).unwrap() % of.len()]
        };
        let mut text = |of| (0..1 << 20).map(|_| random(of)).collect::<Vec<u8>>();
        [
            ("one line of two letters", text(b"ab")),
            ("lines of words", text(b"abcdefghi jklmnop \n")),
            ("short lines", text(b"ab\n")),
            ("not ASCII", "\u{65e5}\u{672c}\u{8a9e} x".repeat((1 << 20) / 11).into_bytes()),
        ]
    }

    /// One compile, and one search of 1 MiB, take 50 ms of a processor at most, or are refused within that.
    #[test]
    fn a_compile_and_a_search_of_one_mebibyte_are_bounded() {
        const MOST: Duration = Duration::from_millis(50);
        let texts = texts();
        let (mut refused, mut given_up) = (0, 0);
        for pattern in costly() {
            let (took, regex) = least(|| LineRegex::new(&pattern, Letters::Exact, COMPILED_BYTES));
            assert!(took < MOST, "{pattern:.60} takes {took:?} to compile");
            let Ok(regex) = regex else {
                refused += 1;
                continue;
            };
            for (name, text) in &texts {
                let (took, found) = least(|| {
                    let mut search = regex.search(text.len());
                    let fits = text.split(|byte| *byte == b'\n').map(|line| regex.is_match(&mut search, line));
                    fits.collect::<Result<Vec<_>, _>>().is_ok()
                });
                assert!(took < MOST, "{pattern:.60} takes {took:?} in {name}");
                given_up += usize::from(!found);
            }
        }
        assert!(refused > 3 && given_up > 3, "the costly ones are met: {refused} refused, {given_up} given up");
    }

    #[test]
    fn lines_match_as_they_should() {
        let cases: &[(&str, Letters, &[&str], &[&str])] = &[
            ("^fn main", Letters::Exact, &["fn main() {"], &[" fn main", "FN MAIN"]),
            ("^FN m", Letters::AnyCase, &["fn main"], &["f"]),
            (r"\bfoo\b", Letters::Exact, &["a foo b", "\u{65e5} foo"], &["\u{65e5}foo", "food"]),
            (r"\d+$", Letters::Exact, &["x1", "\u{661}"], &["1x"]),
            ("", Letters::Exact, &["", "x"], &[]),
            ("a.c", Letters::Exact, &["a\u{65e5}c"], &["ac"]),
        ];
        for (pattern, letters, fitting, other) in cases {
            let regex = LineRegex::new(pattern, *letters, COMPILED_BYTES).unwrap();
            let mut search = regex.search(100);
            for (lines, expected) in [(fitting, true), (other, false)] {
                for line in *lines {
                    assert_eq!(regex.is_match(&mut search, line.as_bytes()), Ok(expected), "{pattern} and {line}");
                }
            }
        }
        assert!(matches!(LineRegex::new("(", Letters::Exact, COMPILED_BYTES), Err(CompileError::Syntax(_))));
        assert!(matches!(LineRegex::new("a{1000}", Letters::Exact, 1000), Err(CompileError::Compiled { limit: 1000 })));
        let long = "a".repeat(WRITTEN_BYTES + 1);
        assert!(matches!(LineRegex::new(&long, Letters::Exact, COMPILED_BYTES), Err(CompileError::Written { .. })));
    }
}
