//! A whole file: created, written or deleted (TUL-004, FILE-SPEC 1).

mod check;
mod plan;

pub(crate) use check::{check_created, check_written};
pub(crate) use plan::{create, delete, write};
