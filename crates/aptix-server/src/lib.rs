//! Keeps batches, numbers them, and streams them to the agents that apply them.
//!
//! `service` decodes a call, asks the `dispatcher`, and encodes its answer; the dispatcher decides what becomes of a
//! batch; a `store` keeps it. No other crate's files are ever touched from here: no I/O on what users edit.

mod accept;
pub mod blob_sweep;
pub mod caller;
pub mod config;
mod cpu_pool;
pub mod descriptors;
pub mod dispatcher;
pub mod fleet;
pub mod identity;
pub mod listen;
mod log_limit;
pub mod metrics;
pub mod mint;
pub mod options;
pub mod quota;
pub mod retention;
pub mod room;
pub mod secret;
pub mod serve;
pub mod service;
mod shared_quotas;
pub mod steady_clock;
pub mod store;
pub mod ticket;
pub mod tls;
mod turns;
mod waited;
pub mod web_origins;
