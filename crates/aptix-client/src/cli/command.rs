//! What the command line is called with.

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use super::home_dirs::HomeDirs;
use super::logging::{LogArgs, Logs};
use super::token::TokenArgs;
use super::{
    agent, apply, apply_prepared, batches, cancel, convert, decide, doctor, log, login, manual, mcp, policy, prompt,
    read, revert, review_page, show, submit, tools, undo,
};
use crate::workspace::roots::root::RootSpec;

/// Applies edits that language models write to the files of a workspace: exactly, or not at all.
#[derive(Parser, Debug)]
#[command(name = "aptix", version, propagate_version = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) home_dirs: HomeDirs,
    #[command(flatten)]
    pub(super) logging: LogArgs,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// Apply one document to files, without a server
    Apply(apply::Args),
    /// Print one document's edit in another dialect; nothing is written
    Convert(convert::Args),
    /// Take back what a batch changed
    Undo(undo::Args),
    /// List the batches applied in a workspace, newest first
    Log(log::Args),
    /// Serve a workspace: watch for batches, apply them, report what became of them
    Agent(agent::Args),
    /// Show what was done to a workspace in a browser, and take it back there
    Review(review_page::Args),
    /// Send one document to a server as a batch
    Submit(submit::Args),
    /// Show a batch, a file patch or a change, from the workspace here or from a server
    Show(show::Args),
    /// List a workspace's batches, newest first
    Batches(batches::Args),
    /// Let a prepared batch be applied
    ApplyPrepared(apply_prepared::Args),
    /// Let a batch go ahead that waits for a person at the server
    Approve(decide::Args),
    /// Refuse a batch that has not ended, and say why
    Reject(decide::Args),
    /// Withdraw a batch that has not ended
    Cancel(cancel::Args),
    /// Take back what an applied batch changed, by a batch of its own
    Revert(revert::Args),
    /// Print a file's authoritative text
    Read(read::Args),
    /// Check what commands depend on: policy, roots, state, kernel, clock, server; nothing is changed
    Doctor(doctor::Args),
    /// Write a policy file of your own, in which everything is explained and nothing is stated yet
    Init,
    /// Tell whether the policy files are right, and what they say about a file
    Policy(policy::Args),
    /// List the tools that models may call
    Tools(tools::Args),
    /// Print the guide for whoever writes edits, for a system prompt
    Prompt(prompt::Args),
    /// Serve the tools over the Model Context Protocol on stdin and stdout
    Mcp(mcp::Args),
    /// Keep a token for a server, in a file that you alone can read
    Login(login::Args),
    /// Write a completion script for a shell to stdout
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print a manual page, for a package
    #[command(hide = true)]
    Man(manual::Args),
}

impl Command {
    /// The roots that it opens, and whether it may make directories of Aptix's own. A command that only reads them still
    /// completes or rolls back an interrupted batch.
    pub(super) fn opens(&self) -> Option<(&[RootSpec], Traces)> {
        match self {
            Self::Apply(args) => Some((&args.roots, Traces::unless(args.writing.dry_run))),
            Self::Undo(args) => Some((&args.roots, Traces::unless(args.writing.dry_run))),
            Self::Log(args) => Some((&args.roots, Traces::None)),
            Self::Show(args) if args.server().is_none() => Some((&args.roots, Traces::None)),
            Self::Convert(args) => Some((std::slice::from_ref(&args.root), Traces::None)),
            Self::Policy(args) => Some((args.roots(), Traces::None)),
            Self::Agent(args) => Some((&args.roots, Traces::Left)),
            Self::Review(args) => Some((&args.roots, Traces::Left)),
            Self::Mcp(args) => Some((&args.roots, Traces::Left)),
            Self::Submit(_)
            | Self::Show(_)
            | Self::Batches(_)
            | Self::ApplyPrepared(_)
            | Self::Approve(_)
            | Self::Reject(_)
            | Self::Cancel(_)
            | Self::Revert(_)
            | Self::Read(_)
            | Self::Doctor(_)
            | Self::Init
            | Self::Tools(_)
            | Self::Prompt(_)
            | Self::Login(_)
            | Self::Completions { .. }
            | Self::Man(_) => None,
        }
    }

    /// Where the token for the server comes from that it talks to.
    pub(super) fn token(&mut self) -> Option<&mut TokenArgs> {
        match self {
            Self::Agent(args) => Some(&mut args.server.token),
            Self::Submit(args) => Some(&mut args.server.token),
            Self::Show(args) => Some(&mut args.token),
            Self::Batches(args) => Some(&mut args.server.token),
            Self::ApplyPrepared(args) => Some(&mut args.server.token),
            Self::Approve(args) | Self::Reject(args) => Some(&mut args.server.token),
            Self::Cancel(args) => Some(&mut args.server.token),
            Self::Revert(args) => Some(&mut args.server.token),
            Self::Read(args) => Some(&mut args.server.token),
            Self::Doctor(args) => Some(&mut args.token),
            Self::Login(args) => Some(&mut args.token),
            Self::Apply(_)
            | Self::Convert(_)
            | Self::Undo(_)
            | Self::Log(_)
            | Self::Init
            | Self::Policy(_)
            | Self::Tools(_)
            | Self::Prompt(_)
            | Self::Mcp(_)
            | Self::Review(_)
            | Self::Completions { .. }
            | Self::Man(_) => None,
        }
    }

    /// What it logs by default.
    pub(super) const fn logs(&self) -> Logs {
        match self {
            Self::Agent(_) => Logs::Agent,
            _ => Logs::Command,
        }
    }
}

/// Whether a command may make directories of Aptix's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Traces {
    Left,
    None,
}

impl Traces {
    const fn unless(only_reads: bool) -> Self {
        if only_reads { Self::None } else { Self::Left }
    }
}
