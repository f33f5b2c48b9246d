//! Writes every file of a batch or none, whatever happens in between.
//!
//! A commit is an `attempt` that passes three stages: `staged`, `recorded`, `published`.

pub(in crate::workspace) mod attempt;
pub mod attributes;
pub mod change;
pub mod check;
pub(in crate::workspace) mod clear;
pub mod commit_error;
pub(in crate::workspace) mod contents;
pub mod displaced_writes;
pub(in crate::workspace) mod draft;
pub(in crate::workspace) mod emptied;
pub(in crate::workspace) mod ending;
pub(in crate::workspace) mod file_state;
pub(in crate::workspace) mod history_draft;
pub(in crate::workspace) mod journal;
pub mod journal_error;
pub mod notice;
pub(in crate::workspace) mod orphans;
pub(in crate::workspace) mod publish;
pub(in crate::workspace) mod published;
pub(in crate::workspace) mod record;
pub(in crate::workspace) mod record_bounds;
pub mod record_file;
pub(in crate::workspace) mod recorded;
pub(in crate::workspace) mod recovery;
pub mod recovery_error;
pub(in crate::workspace) mod rollback;
pub(in crate::workspace) mod staged;
pub(in crate::workspace) mod staged_name;
pub(in crate::workspace) mod staging;
pub(in crate::workspace) mod swap;
pub mod taken;
pub(in crate::workspace) mod work_tree;
pub(in crate::workspace) mod written_ahead;
