//! The server through its boundaries: the store trait, gRPC over an in-memory connection, and the program itself.

#![cfg(test)]

mod approvals;
mod audit;
mod bad_input;
mod blobs;
mod busy;
mod damage;
mod decisions;
mod delivery;
mod documents;
mod early;
mod expiry;
mod fitting;
mod hand_made;
mod held_up;
mod history;
mod lease;
mod limits;
mod link;
mod listed;
mod live_files;
mod local;
mod logs;
mod other_versions;
mod parts;
mod paths;
mod plan_store;
mod prepared;
mod process;
mod questions;
mod reopening;
mod reports;
mod server;
mod session_store;
mod sessions;
mod store_contract;
mod submit;
mod tool_calls;
mod tool_writes;
mod tools;
mod unacceptable;
mod uploads;
mod waiting_calls;
mod workspaces;
mod wrong_answers;
