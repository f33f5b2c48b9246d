//! End to end: the real server, agent and command line as processes, an orchestrator in Python, files on a real disk.

#![cfg(test)]

mod agent;
mod agreement;
mod allowed_for_ever;
mod approve;
mod audit;
mod bad_clients;
mod browser;
mod certificates;
mod clients;
mod clock;
mod cloud_copy;
mod compacted;
mod completions;
mod concurrency;
mod crash;
mod cut_short;
mod dialects;
mod diffs;
mod dist;
mod doctor;
mod documents;
mod drain;
mod events;
mod failed_flush;
mod fuzz;
mod half_open;
mod line_patches;
mod listed;
mod live;
mod local_batches;
mod mcp_asked;
mod mcp_clients;
mod mcp_pages;
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
#[path = "../../../crates/aptix-client/tests/it/live/odd_files.rs"]
mod odd_files;
mod paged;
mod paths;
mod per_file;
mod person;
mod prepared;
mod previews;
mod processes;
mod quiet;
mod readme;
mod refused;
mod restore;
mod resumed;
mod revert;
mod revert_local;
mod review;
#[path = "../../../crates/aptix-client/tests/it/scenario_text.rs"]
mod scenario_text;
mod screen;
mod serve;
mod sessions;
mod shown;
#[path = "../../../crates/aptix-client/tests/it/skip.rs"]
mod skip;
mod tls;
mod tokens;
mod tool_calls;
mod tool_plans;
mod tool_writes;
mod tools_forwarded;
mod traced;
#[path = "../../../crates/aptix-client/tests/it/tree.rs"]
mod tree;
mod unsaved;
mod withheld;
