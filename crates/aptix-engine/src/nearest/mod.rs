//! What a refusal shows of the real file: the lines most like those that were expected, and how they differ.

pub(crate) mod excerpt;
pub(crate) mod line_change;
mod lookalike;
pub(crate) mod old_text;
