//! A search patch on a real file: every text is found in the file as it is, then all changes are made at once.

mod check;
mod equal;
mod locate;
mod plan;
mod replace;
mod source;
mod splice;
mod tokens;

pub(crate) use check::{ValidSearch, check, check_commands};
pub(crate) use plan::plan;
