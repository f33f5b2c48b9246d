//! The server through its boundaries: the store trait, gRPC over an in-memory connection, and the program itself.

#![cfg(test)]

mod approvals;
mod audit;
mod backup;
mod backup_file;
mod bad_input;
mod blob_model;
mod blobs;
#[cfg(feature = "s3")]
mod bucket;
mod busy;
mod census;
mod certificates;
#[cfg(feature = "postgres")]
mod cluster;
mod compacted;
mod configuration;
mod damage;
mod damaged_links;
mod deadlines;
#[cfg(feature = "postgres")]
mod dealt;
mod decisions;
mod deletion;
mod deletion_store;
mod delivery;
mod deploy;
mod disk_reserve;
mod documents;
mod early;
mod every_failure;
mod expiry;
mod fair;
mod file_reads;
mod fitting;
mod fleet;
mod fleet_store;
mod hand_made;
mod held_up;
mod history;
mod http2;
mod identity;
mod lease;
mod limits;
mod link;
mod listed;
mod live_files;
mod local;
mod logs;
mod metrics;
#[cfg(feature = "postgres")]
mod migrate;
mod other_versions;
mod parts;
mod paths;
mod place;
mod plan_store;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_expected;
#[cfg(feature = "postgres")]
mod postgres_files;
#[cfg(feature = "postgres")]
mod postgres_groups;
#[cfg(feature = "postgres")]
mod postgres_hints;
#[cfg(feature = "postgres")]
mod postgres_known;
#[cfg(feature = "postgres")]
mod postgres_outages;
#[cfg(feature = "postgres")]
mod postgres_refusals;
#[cfg(feature = "postgres")]
mod postgres_set_back;
#[cfg(feature = "postgres")]
mod postgres_store;
#[cfg(feature = "postgres")]
mod postgres_wal;
#[cfg(feature = "postgres")]
mod postgres_wire;
mod prepared;
mod process;
mod questions;
mod quotas;
mod reopening;
mod reports;
mod retention;
mod retention_command;
mod sample;
mod server;
mod session_store;
mod sessions;
mod signed;
#[path = "../../../aptix-client/tests/it/skip.rs"]
mod skip;
mod store_contract;
mod stored_bytes;
mod submit;
mod token_changes;
mod tool_calls;
mod tool_writes;
mod tools;
mod traced;
mod unacceptable;
mod undecodable;
mod until;
mod upgrade;
mod uploads;
mod waiting_calls;
mod web;
mod workspaces;
mod wrong_answers;
