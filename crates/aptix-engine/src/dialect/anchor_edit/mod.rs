//! Adds and removes lines at a line number or beside a line that is described (WS-MOD).
//!
//! Every line these edits leave ends with a terminator, the file's last one too (WS-MOD 5.1); blank lines of the
//! content stay as they are (WS-MOD 5.2).

mod check;
mod locate;
mod lower;

pub(crate) use check::{ValidAnchorEdit, check};
pub(crate) use lower::plan;
