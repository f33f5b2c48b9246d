//! A line patch: lines inserted, replaced and deleted by their numbers in a stated version (TUL-002).

pub(crate) mod check;
pub(crate) mod other_version;
