//! A value as a source gives it, before its key gives it a type.

use std::ffi::{OsStr, OsString};
use std::fmt;

/// A value as a source gives it. What it shows may have a password, if it is that of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Given {
    /// A string of the file.
    Text(String),
    /// A whole number of the file that is not below 0.
    Whole(u64),
    /// A truth value of the file.
    Flag(bool),
    /// A list of strings of the file.
    List(Vec<String>),
    /// Any other value of the file, described.
    Other(String),
    /// A word of the environment or the command line, which has no type of its own.
    Word(OsString),
}

impl Given {
    /// It as text.
    pub(super) fn text(&self) -> Option<&OsStr> {
        match self {
            Self::Text(text) => Some(text.as_ref()),
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    /// It as a list of texts; a word has them with commas between.
    pub(super) fn list(&self) -> Option<Vec<&str>> {
        match self {
            Self::List(texts) => Some(texts.iter().map(String::as_str).collect()),
            Self::Word(word) => Some(word.to_str()?.split(',').map(str::trim).collect()),
            _ => None,
        }
    }

    /// It as a whole number.
    pub(super) fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(*number),
            Self::Word(word) => word.to_str()?.parse().ok(),
            _ => None,
        }
    }

    /// It as a truth value.
    pub(super) fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            Self::Word(word) => word.to_str()?.parse().ok(),
            _ => None,
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(out, "{text:?}"),
            Self::Whole(number) => number.fmt(out),
            Self::Flag(flag) => flag.fmt(out),
            Self::List(texts) => write!(out, "{texts:?}"),
            Self::Other(kind) => kind.fmt(out),
            Self::Word(word) => write!(out, "{:?}", word.to_string_lossy()),
        }
    }
}
