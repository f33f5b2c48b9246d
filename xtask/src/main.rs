//! The project's own commands. `cargo xtask` lists them.
//!
//! This binary depends on none of the project's crates, so that it can mend what it generates for them.

#![expect(clippy::print_stdout, reason = "a command line tool talks to its terminal")]

mod codegen;
mod repo;

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Regenerate what is committed but made by a program: the protocol's code.
    Codegen {
        /// Change nothing; fail if a committed file is not what would be generated.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Codegen { check: true } => codegen::check(),
        Command::Codegen { check: false } => codegen::write(),
    }
}
