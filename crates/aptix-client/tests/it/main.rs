//! What users of the crate `aptix-client` rely on, tested through the binary and the workspace.
#![expect(clippy::disallowed_methods, reason = "tests lay out the directories they work in")]

#[cfg(test)]
mod age;
#[cfg(test)]
mod agent;
#[cfg(test)]
mod agreement;
#[cfg(test)]
mod clipboards;
#[cfg(test)]
mod command_line;
#[cfg(test)]
mod convert;
#[cfg(test)]
mod displaced;
#[cfg(test)]
mod displaced_faults;
#[cfg(test)]
mod earlier_mode;
#[cfg(test)]
mod embed;
#[cfg(test)]
mod fake_server;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod faulty_disk;
#[cfg(test)]
mod guarded;
#[cfg(test)]
mod history;
#[cfg(test)]
mod hostile_records;
#[cfg(test)]
mod large;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod near_path;
#[cfg(test)]
mod next_action;
#[cfg(test)]
mod out_of_order;
#[cfg(test)]
mod outbox;
#[cfg(test)]
mod own_files;
#[cfg(test)]
mod policy_file;
#[cfg(test)]
mod power;
#[cfg(test)]
mod races;
#[cfg(test)]
mod redo;
#[cfg(test)]
mod roots;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod skip;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod undo;
#[cfg(test)]
mod undo_killed;
#[cfg(test)]
mod verbatim;
#[cfg(test)]
mod wall;
