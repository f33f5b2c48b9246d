//! The command line: what it is called with, and how its exit code comes about.

mod agent;
mod apply;
mod batches;
mod cancel;
mod completions;
mod convert;
mod log;
mod mcp;
mod output;
mod progress;
mod read;
mod server;
mod serving;
mod show;
mod submit;
mod tools;
mod undo;
mod usage;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use aptix_model::failure::{Failure, Visible};
use aptix_model::id::BatchId;
use aptix_model::reason::Reason;
use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use uuid::Uuid;

use crate::apply::Refusal;
use crate::person::prompt;
use crate::workspace::OpenError;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::wall::{self, Wall};

use self::output::Form;

/// Applies edits that language models write to the files of a workspace: exactly, or not at all.
#[derive(Parser, Debug)]
#[command(name = "aptix", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    places: Places,
    #[command(subcommand)]
    command: Command,
}

/// Where Aptix keeps its own things.
#[derive(clap::Args, Debug)]
struct Places {
    /// Where programs keep their state, instead of $XDG_STATE_HOME
    #[arg(long, hide = true, global = true, value_name = "DIR", value_parser = absolute)]
    state_home: Option<PathBuf>,
    /// Where programs keep their configuration, instead of $XDG_CONFIG_HOME
    #[arg(long, hide = true, global = true, value_name = "DIR", value_parser = absolute)]
    config_home: Option<PathBuf>,
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err("expected an absolute path".to_owned()) }
}

impl Places {
    /// The directory for state.
    fn state_home(&self) -> anyhow::Result<PathBuf> {
        home(self.state_home.as_ref(), "XDG_STATE_HOME", ".local/state")
    }

    /// The directory for configuration.
    fn config_home(&self) -> anyhow::Result<PathBuf> {
        home(self.config_home.as_ref(), "XDG_CONFIG_HOME", ".config")
    }
}

/// A directory of the person's: given, from the environment, or in its usual place in their home. A relative one in the
/// environment means nothing, as the specification has it.
fn home(given: Option<&PathBuf>, variable: &str, usual: &str) -> anyhow::Result<PathBuf> {
    let from_environment = || std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    given
        .cloned()
        .or_else(from_environment)
        .or_else(|| Some(std::env::home_dir()?.join(usual)))
        .with_context(|| format!("no home directory is known: set {variable} to a directory of your own"))
}

#[derive(Subcommand, Debug)]
enum Command {
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
    /// Send one document to a server as a batch
    Submit(submit::Args),
    /// Show a batch, a file patch or a change
    Show(show::Args),
    /// List a workspace's batches, newest first
    Batches(batches::Args),
    /// Withdraw a batch that has not ended
    Cancel(cancel::Args),
    /// Print a file's authoritative text
    Read(read::Args),
    /// List the tools that models may call
    Tools(tools::Args),
    /// Serve the tools over the Model Context Protocol on stdin and stdout
    Mcp(mcp::Args),
    /// Write a completion script for a shell to stdout
    Completions(completions::Args),
}

impl Command {
    /// How it prints.
    const fn form(&self) -> Form {
        Form::of(match self {
            Self::Apply(args) => args.json,
            Self::Undo(args) => args.json,
            Self::Log(args) => args.json,
            Self::Submit(args) => args.json,
            Self::Show(args) => args.json,
            Self::Batches(args) => args.json,
            Self::Read(args) => args.json,
            Self::Tools(args) => args.json,
            Self::Convert(_) | Self::Agent(_) | Self::Cancel(_) | Self::Mcp(_) | Self::Completions(_) => false,
        })
    }

    /// The roots that it writes in, if it does, and whether it may make what it needs for that.
    fn writes_in(&self) -> Option<(&[RootSpec], Traces)> {
        match self {
            Self::Apply(args) if args.dry_run => Some((&args.roots, Traces::None)),
            Self::Apply(args) => Some((&args.roots, Traces::Left)),
            Self::Undo(args) if args.dry_run => Some((&args.roots, Traces::None)),
            Self::Undo(args) => Some((&args.roots, Traces::Left)),
            Self::Agent(args) => Some((&args.roots, Traces::Left)),
            Self::Mcp(args) => Some((std::slice::from_ref(&args.root), Traces::Left)),
            _ => None,
        }
    }

    /// What is logged unless somebody asks for more or less: a service tells what it does, a command only what is wrong.
    const fn talks_of(&self) -> tracing::Level {
        match self {
            Self::Agent(_) | Self::Mcp(_) => tracing::Level::INFO,
            _ => tracing::Level::WARN,
        }
    }
}

/// Whether a command may make directories of Aptix's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Traces {
    Left,
    None,
}

/// How a command ended, by the fixed exit codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Exit {
    /// It was done, or would have been.
    Done,
    /// It was refused; nothing changed.
    Refused,
    /// It was called wrongly.
    Usage,
    /// The environment failed.
    Environment,
    /// Somebody interrupted it.
    Interrupted,
}

impl Exit {
    fn of(refusal: &Refusal) -> Self {
        if refusal.is_environment() { Self::Environment } else { Self::Refused }
    }
}

impl From<&OpenError> for Exit {
    fn from(error: &OpenError) -> Self {
        match error {
            OpenError::Root(_) | OpenError::NoRoot => Self::Usage,
            OpenError::State(_) | OpenError::Recovery(_) => Self::Environment,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::Environment => 3,
            Exit::Interrupted => 130,
        })
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be done about a closed terminal.
            let _ = error.print();
            if !error.use_stderr() {
                return Exit::Done.into();
            }
            output::show_broken_off(asked_form(), usage::failure(&error));
            return Exit::Usage.into();
        }
    };
    log_to_stderr(cli.command.talks_of());
    let form = cli.command.form();
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            let told = told(&error);
            output::show_broken_off(form, Failure::new(Reason::Internal, told.as_str()));
            // It may hold words of a server.
            let lines: Vec<_> = told.lines().map(|line| Visible(line).to_string()).collect();
            output::say(&format!("error: {}", lines.join("\n")));
            Exit::Environment.into()
        }
    }
}

/// How a command was asked to print whose arguments cannot be read.
fn asked_form() -> Form {
    let mut arguments = std::env::args_os().skip(1).take_while(|argument| argument != "--");
    Form::of(arguments.any(|argument| argument == "--json"))
}

/// An error and what caused it, each once: many say it themselves.
fn told(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.ends_with(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

fn log_to_stderr(level: tracing::Level) {
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| {
            progress::make_way();
            prompt::Aside
        })
        // Who logs to a closed pipe is not heard, and works on; the complaint about it would panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    if let Some((roots, traces)) = cli.command.writes_in() {
        raise_wall(roots, traces, &cli.places)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answered = Arc::new(undo::Answered::default());
    let exit = runtime.block_on(dispatch(cli, &answered));
    // Whoever interrupts does not wait; a commit cut short is brought to an end by the next command.
    runtime.shutdown_background();
    answered.acknowledge();
    exit
}

/// Has the kernel forbid what nobody means to do. Before there is any other thread, so that it holds for each.
fn raise_wall(roots: &[RootSpec], traces: Traces, places: &Places) -> anyhow::Result<()> {
    let (state_home, config_home) = (places.state_home()?, places.config_home()?);
    if traces == Traces::Left {
        wall::make_own(&state_home, &config_home);
    }
    if let Wall::Absent(why) = wall::raise_for(roots, &state_home, &config_home) {
        tracing::info!(%why, "the kernel gives no second wall around the roots; the first one stands alone");
    }
    Ok(())
}

async fn dispatch(cli: Cli, answered: &Arc<undo::Answered>) -> anyhow::Result<Exit> {
    let Cli { places, command } = cli;
    match command {
        Command::Apply(args) => {
            interruptible(Form::of(args.json), move || apply::run(&args, &places, BatchId(mint()))).await
        }
        Command::Convert(args) => interruptible(Form::Text, move || convert::run(&args, &places)).await,
        Command::Undo(args) => {
            let answered = Arc::clone(answered);
            interruptible(Form::of(args.json), move || undo::run(&args, &places, BatchId(mint()), &answered)).await
        }
        Command::Log(args) => interruptible(Form::of(args.json), move || log::run(&args, &places)).await,
        Command::Agent(args) => agent::run(args, &places, format!("agent-{}", mint()).parse()).await,
        Command::Submit(args) => submit::run(args, mint().to_string().parse()).await,
        Command::Show(args) => show::run(args).await,
        Command::Batches(args) => batches::run(args).await,
        Command::Cancel(args) => cancel::run(args).await,
        Command::Read(args) => read::run(args).await,
        Command::Tools(args) => Ok(tools::run(&args)),
        Command::Mcp(args) => mcp::run(args, &places, format!("mcp-{}", mint())).await,
        Command::Completions(args) => Ok(completions::run(&args)),
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge of the program mints ids")]
fn mint() -> Uuid {
    Uuid::new_v4()
}

/// Runs work that blocks until it ends or somebody presses Ctrl-C.
async fn interruptible(
    form: Form,
    work: impl FnOnce() -> anyhow::Result<Exit> + Send + 'static,
) -> anyhow::Result<Exit> {
    tokio::select! {
        ended = progress::shown_while(tokio::task::spawn_blocking(work)) => ended?,
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            Ok(interrupted(form, "interrupted; run any aptix command on this root to see the batch wholly applied or not at all"))
        }
    }
}

fn interrupted(form: Form, said: &str) -> Exit {
    output::show_broken_off(form, Failure::new(Reason::Interrupted, said));
    output::say(said);
    Exit::Interrupted
}
