//! Replacements on a real file: each is made in the result of the one before, and all are folded to one edit.

mod block;
mod check;
mod equal;
mod made;
mod plan;
mod sequence;
mod step;

pub(crate) use check::{ValidStep, check};
pub(crate) use plan::plan;
