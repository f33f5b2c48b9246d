//! What the files of a batch share while they are planned.

pub(crate) mod clipboards;
