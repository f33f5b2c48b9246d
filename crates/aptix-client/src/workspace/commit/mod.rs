//! Writes every file of a batch or none, whatever happens in between.
//!
//! A commit is an `attempt` that passes three stages: `Staged`, `Recorded`, `Published`.

pub(super) mod attempt;
pub mod change;
pub mod check;
pub(super) mod clear;
pub mod commit_error;
pub(super) mod contents;
pub mod displaced_writes;
pub(super) mod ending;
pub(super) mod file_state;
pub(super) mod history_draft;
pub mod journal;
pub mod notice;
pub(super) mod orphans;
pub(super) mod publish;
pub mod record;
pub mod record_file;
pub(super) mod recorded;
pub(super) mod recovery;
pub(super) mod rollback;
pub(super) mod staged;
pub(super) mod staged_name;
pub(super) mod staging;
pub(super) mod swap;
pub(super) mod work_tree;
pub(super) mod written_ahead;
