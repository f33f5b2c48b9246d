//! The project's own commands. `cargo xtask` lists them.
//!
//! This binary depends on none of the project's crates, so that it can mend what it generates for them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

mod breaking;
mod bucket;
mod ci;
mod codegen;
mod demo;
mod dist;
mod harness;
mod node;
mod python;
mod register;
mod repo;
mod steps;
mod test;
mod tidy;
mod toolchains;

use std::process::ExitCode;

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
    /// Regenerate what is committed but made by a program: the protocol's code, the tables in docs/.
    Codegen {
        /// Change nothing; fail if a committed file is not what would be generated.
        #[arg(long)]
        check: bool,
    },
    /// Make the protocol as it is now the one that later changes must not break.
    Freeze {
        /// Change nothing; fail if the protocol breaks clients and no line in `proto/BREAKING.md` says why.
        #[arg(long)]
        check: bool,
    },
    /// Check what the compiler does not: arrows between crates and modules, who names what, requirement ids, house rules.
    Tidy(tidy::Args),
    /// Show the main job on a small real project: server, agent, one batch applied, one refused.
    Demo,
    /// Measure beside floors and peers, in the same run.
    Bench {
        /// What to measure.
        subject: harness::Subject,
        /// Of `submit`, `end-to-end`, `idle` and `postgres`: `--quick`, `--passes`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Measure unit costs, compare a simulation of servers and databases with real processes, and print what a million agents take.
    Scale {
        /// `--quick` (measures nothing), `--write`, `--passes`, `--agents`, `--rate`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Kill, fail and cut the power of what writes files, or with `server` of the server; `-- --help` lists the ways.
    Crash {
        /// `server` for the server's harness; arguments of the harness: suites, `--long`, `--cycles`, `--seed`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Apply whole answers of models and compare the files with what a reader expects; `-- --help` lists the options.
    Answers {
        /// Words of a case's title or file, `--show`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Say real changes in every dialect, apply them, and compare with what really became of the files.
    Replay(harness::replay::Args),
    /// Let git and Aptix apply the same perturbed diffs, and compare the trees; `-- --help` lists the options.
    Differ {
        /// `--long`, `--count`, `--seed`, `--only`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Play histories of prepared batches against a plain reference, with restarts of server and agent; `-- --help` lists the options.
    Prepared {
        /// `--long`, `--count`, `--seed`, `--only`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Play histories of one server or three, agents and authors over a simulated network, in simulated time, against a plain reference;
    /// `-- --help` lists the options.
    Simulate {
        /// `--long`, `--count`, `--servers`, `--seed`, `--only`, `--keep`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Build the programs and pack them with completions, manual pages and licences, with a checksum.
    Dist(dist::Args),
    /// Run every test, with the binaries and the Python environment they need.
    Test,
    /// Run everything a change must pass before it lands.
    Ci,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Codegen { check: true } => codegen::check(),
        Command::Codegen { check: false } => codegen::write(),
        Command::Freeze { check: true } => breaking::check(),
        Command::Freeze { check: false } => breaking::freeze(),
        Command::Tidy(args) => tidy::tidy(&args),
        Command::Demo => demo::demo(),
        Command::Dist(args) => dist::dist(&args),
        Command::Bench { subject, args } => harness::bench(subject, &args),
        Command::Scale { args } => harness::scale(&args),
        Command::Crash { args } => harness::crash(&args),
        Command::Answers { args } => harness::answers(&args),
        Command::Replay(args) => harness::replay::replay(&args),
        Command::Differ { args } => harness::differ(&args),
        Command::Prepared { args } => harness::prepared(&args),
        Command::Simulate { args } => harness::simulate(&args),
        Command::Test => test::test(),
        Command::Ci => ci::ci(),
    }
}
