//! One file of a diff: it is changed, created, deleted, renamed, or copied (FILE-SPEC 3).
//!
//! The lines of a diff carry their own terminators. What a hunk removes or keeps must occur in the file byte by byte,
//! or, with a warning, except for terminators that the file then keeps.

mod check;
mod counts;
mod evidence;
mod lower;
mod made;
mod place;
mod plan;
mod refusal;
mod series;
mod settle;
mod splice;

pub(crate) use check::{check, check_series};
pub(crate) use plan::plan;
pub(crate) use series::plan_series;
