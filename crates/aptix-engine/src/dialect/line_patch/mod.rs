//! A line patch: lines inserted, replaced and deleted by their numbers in a stated version (TUL-002).

mod check;
mod lower;

pub(crate) use check::check;
pub(crate) use lower::plan;
