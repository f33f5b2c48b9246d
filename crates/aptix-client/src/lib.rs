//! The part of Aptix that writes files: the workstation agent and the command line.
//!
//! `workspace` is the only way to a user's file, `apply` the only way through it, `connection` the only way to a server.

pub mod agent;
pub mod apply;
pub mod cli;
pub mod connection;
pub mod mcp;
mod person;
pub mod policy;
pub mod present;
pub mod undo;
pub mod workspace;
