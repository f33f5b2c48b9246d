//! Options whose values are words of a list: parsed by a function, and named to what completes them.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};

/// A parser that also knows the words that it takes.
#[derive(Clone)]
pub(super) struct Words<P> {
    parser: P,
    words: Vec<&'static str>,
}

impl<P> Words<P> {
    pub(super) fn new(parser: P, words: impl IntoIterator<Item = &'static str>) -> Self {
        Self { parser, words: words.into_iter().collect() }
    }
}

impl<P: TypedValueParser> TypedValueParser for Words<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words.iter().map(|word| PossibleValue::new(*word))))
    }
}
