//! Whether new text is the content of a file, or the wrapping, the notation or a summary of an edit that was meant.
//!
//! Looks at whole texts, at conflict markers and at comments in the place of lines that were left out, never at words
//! alone. It works on a plan, so that every dialect and every way in gets the same decision.

mod check;
mod diff;
pub(crate) mod elision;
pub(crate) mod encoding;
mod marks;
mod scan;

pub(crate) use check::{check, is_suspect};
