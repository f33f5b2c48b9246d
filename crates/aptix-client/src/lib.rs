//! The part of Aptix that writes files: the workstation agent and the command line.
//!
//! `workspace` is the only way to a user's file, `apply` the only way through it, `connection` the only way to a server.

#![cfg_attr(
    not(feature = "cli"),
    expect(dead_code, reason = "lower rooms hold what only features use; nothing is unused with all of them")
)]

#[cfg(feature = "agent")]
pub mod agent;
pub mod apply;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "agent")]
pub mod connection;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "agent")]
mod person;
pub mod policy;
pub mod present;
pub mod undo;
pub mod workspace;
