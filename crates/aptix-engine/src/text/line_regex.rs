//! Regular expressions over single lines, whose cost is bounded by counting: compiling by the size of the result,
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
