//! The part of Aptix that writes files: a library, and with features the agent, the tools for models and the command line.
//!
//! A program that embeds it opens a [`Workspace`](workspace::roots::workspace::Workspace), reads a document with
//! `aptix_model::documents`, and [applies](apply::apply) its batch: all of it or nothing. [`look`](apply::look) only plans,
//! [`undo`](undo::undo) takes a batch back, [`log`](present::log::log) lists the batches that were applied, and
//! [`present`] puts results into text and JSON. Calls block; threads can share a workspace.
//!
//! ```
#![doc = include_str!("../examples/embed.rs")]
//! ```
//!
//! # Features
//!
//! `cli`, the default, is the binary `aptix` and turns on the others: `agent`, the connection to a server and what serves
//! it, and `mcp`, the tools over the Model Context Protocol. Both turn on `person`, the dialog at the terminal and the review page. Without
//! them there is no runtime among the dependencies.
//!
//! ARCHITECTURE.md has the map of the modules, lowest first; each imports only from those below it.

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
pub mod live;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "person")]
mod person;
pub mod policy;
pub mod present;
#[cfg(feature = "person")]
pub mod review;
#[cfg(any(feature = "agent", feature = "mcp"))]
mod tools;
pub mod undo;
pub mod unsaved;
pub mod workspace;
