//! What an edit does, as data: a file before, a patch, and what must come of it.

#![cfg(test)]

mod already;
mod anchor_edit;
mod boundary;
mod content;
mod context_patch;
mod correct;
#[path = "../../../aptix-model/tests/it/cost.rs"]
mod cost;
mod create_file;
mod diff;
mod editor_commands;
mod express;
mod form;
mod generated;
mod git_apply;
mod git_patch;
mod hunk_counts;
mod hunks_cut;
mod imported;
mod line_patch;
mod line_regex;
mod matching;
mod multi_line;
mod prepared;
mod properties;
mod quote;
mod readings;
mod refusals;
mod replacements;
mod search_patch;
mod sent_twice;
mod text_edit;
mod tree;
mod validate;
mod versions;
mod write_file;
