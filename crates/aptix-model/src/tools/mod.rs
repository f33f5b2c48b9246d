//! The tools that models call: the calls that are not documents, and what is shown of prepared edits.

pub mod look;
pub mod prepare;
pub mod preview;
