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
//! it, and `mcp`, the tools over the Model Context Protocol. Without them there is no runtime among the dependencies.
//!
//! # Rooms
//!
//! From the ground up; each imports only from those before it.
//!
//! | room | feature | what |
//! | --- | --- | --- |
//! | `workspace` | | the only way to a user's file: roots held open, reading, commits, what is kept for undoing |
//! | `policy` | | what a person's policy files let batches do |
//! | `apply` | | one batch: find its files, plan, ask, commit, report |
//! | `undo` | | one batch taken back, as a batch of its own |
//! | `present` | | what became of a batch, as text and as a JSON object |
//! | `connection` | `agent` | the server, in domain types |
//! | `person` | `agent` | the person at the terminal: is shown a change, and decides |
//! | `agent` | `agent` | watches for batches, applies them, reports |
//! | `mcp` | `mcp` | the tools that models call |
//! | `cli` | `cli` | the commands |

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
