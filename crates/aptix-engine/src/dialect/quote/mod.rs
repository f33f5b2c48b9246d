//! Blocks of an answer that may be named for a file and are no edits: each quotes its file, is an example, or refuses the
//! batch.

mod check;
mod excerpt;
mod settle;

pub(crate) use check::{ValidQuote, check};
pub(crate) use settle::settle;
