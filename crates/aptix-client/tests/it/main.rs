//! What users of the crate `aptix-client` rely on, tested through the binary and the workspace.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests lay out the directories they work in")]

mod age;
mod agent;
mod agreement;
mod audit;
mod clipboards;
mod command_line;
mod convert;
mod displaced;
mod displaced_faults;
mod doctor;
mod earlier_mode;
mod embed;
mod events;
mod fake_server;
mod faults;
mod faulty_disk;
mod git_diffs;
mod guarded;
mod history;
mod history_index;
mod hostile_records;
mod large;
mod live;
mod looks;
mod mcp;
mod moves;
mod near_path;
mod next_action;
mod out_of_order;
mod outbox;
mod own_files;
mod passages;
mod past;
mod per_file;
mod policy_command;
mod policy_file;
mod power;
mod races;
mod redo;
mod refused;
mod roots;
mod scenario_text;
mod scenarios;
mod shown;
mod skip;
mod states;
mod surroundings;
mod tree;
mod undo;
mod undo_killed;
mod unfinished;
mod verbatim;
mod wall;
