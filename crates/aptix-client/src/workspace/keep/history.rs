//! What was in the files that batches changed, kept so that a batch can be undone: one entry for each batch.
//!
//! An entry is a draft until its batch is carried out. Entries are in the order of their names, whatever the clock shows, are
//! kept for some time and up to some size, and the oldest are removed first. A power cut may cost the newest ones, and never
//! a file. An index of them is derived from them (`index.rs`).

pub(crate) mod draft;
mod edited;
pub mod entries;
pub(crate) mod entry;
pub mod find;
mod index;
mod index_lines;
pub(crate) mod newest;
pub(crate) mod on_disk;
pub(crate) mod passages;
pub mod past_file;
pub(crate) mod pending;
pub mod prune;
#[cfg(test)]
pub(crate) mod random_texts;
pub(crate) mod since;
mod steps;
pub mod summary;
pub(crate) mod trail;
