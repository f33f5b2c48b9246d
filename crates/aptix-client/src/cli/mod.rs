//! The command line: runs one command, prints why it failed, and gives its exit code.

mod agent;
mod apply;
mod apply_prepared;
mod batches;
mod cancel;
mod command;
mod complete;
mod convert;
mod decide;
mod doctor;
mod document;
mod exit;
mod home_dirs;
mod init;
mod log;
mod logging;
mod login;
mod manual;
mod mcp;
mod origin;
mod output;
mod pager;
mod policy;
mod progress;
mod prompt;
mod read;
mod revert;
mod review_page;
mod server;
mod serving;
mod show;
mod stdio;
mod submit;
mod token;
mod tools;
mod trust;
mod undo;
mod usage;
mod wall;
mod words;
mod writing;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use aptix_model::failure::{Failure, Visible};
use aptix_model::id::BatchId;
use aptix_model::id_block;
use aptix_model::reason::Reason;
use clap::{CommandFactory, Parser};
use uuid::Uuid;

use self::command::{Cli, Command, Traces};
use self::exit::Exit;
use self::output::{Form, interrupted};
use crate::workspace::fs::core_dump;
use crate::workspace::roots::workspace::Workspace;
use crate::workspace::wall::make_own;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    core_dump::leave_none();
    complete::answer();
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
    cli.logging.begin(cli.command.logs());
    let form = asked_form();
    match run(cli, form) {
        Ok(exit) => exit.into(),
        Err(error) => {
            // Each of our errors names its cause itself.
            let text = error.to_string();
            output::show_broken_off(form, Failure::new(Reason::Internal, text.as_str()));
            // It may hold words of a server.
            let lines: Vec<_> = text.lines().map(|line| Visible(line).to_string()).collect();
            output::say(&format!("error: {}", lines.join("\n")));
            Exit::Environment.into()
        }
    }
}

/// How the command was asked to print, also where its arguments cannot be parsed.
fn asked_form() -> Form {
    let mut arguments = std::env::args_os().skip(1).take_while(|argument| argument != "--");
    Form { json: arguments.any(|argument| argument == "--json") }
}

fn run(cli: Cli, form: Form) -> anyhow::Result<Exit> {
    if let Some((roots, traces)) = cli.command.opens() {
        let (state_home, config_home) = (cli.home_dirs.state_home()?, cli.home_dirs.config_home()?);
        if traces == Traces::Left {
            make_own(&state_home, &config_home);
        }
        // Before there is any other thread, so that it holds for each. A client that is to name the roots is asked first.
        if !roots.is_empty() {
            wall::raise(roots, &state_home, &config_home);
        }
    }
    let pager = cli.logging.pager.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answered = Arc::new(OnceLock::new());
    let exit = runtime.block_on(dispatch(cli, form, &answered));
    // An interruption does not wait; the next command completes or rolls back a commit that was cut short.
    runtime.shutdown_background();
    answered.get().into_iter().for_each(undo::acknowledge);
    pager::show_kept(pager.as_deref());
    exit
}

async fn dispatch(cli: Cli, form: Form, answered: &Arc<OnceLock<Workspace>>) -> anyhow::Result<Exit> {
    let Cli { home_dirs: homes, mut command, .. } = cli;
    if let Some(token) = command.token() {
        token.keep_in(&homes.config_home()?);
    }
    match command {
        Command::Apply(args) => interruptible(form, move || apply::run(&args, &homes, mint_batch())).await,
        Command::Convert(args) => interruptible(form, move || convert::run(&args, &homes)).await,
        Command::Undo(args) => {
            let answered = Arc::clone(answered);
            interruptible(form, move || undo::run(&args, &homes, mint_batch(), &answered)).await
        }
        Command::Log(args) => interruptible(form, move || log::run(&args, &homes)).await,
        Command::Agent(args) => agent::run(args, &homes, format!("agent-{}", mint()).parse()).await,
        Command::Review(args) => review_page::run(args, &homes).await,
        Command::Submit(args) => submit::run(args, mint().to_string().parse()).await,
        Command::Show(args) => match args.server() {
            Some((there, workspace)) => server::run(form, show::run_there(form, there, workspace, args.id())).await,
            None => interruptible(form, move || show::run_here(&args, &homes)).await,
        },
        Command::Batches(args) => server::run(form, batches::run(args)).await,
        Command::ApplyPrepared(args) => apply_prepared::run(args, form, mint().to_string().parse()).await,
        Command::Approve(args) => server::run(form, decide::approve(args)).await,
        Command::Reject(args) => server::run(form, decide::reject(args)).await,
        Command::Cancel(args) => server::run(form, cancel::run(args)).await,
        Command::Revert(args) => revert::run(args, mint().to_string().parse()).await,
        Command::Login(args) => server::run(form, login::run(args)).await,
        Command::Read(args) => server::run(form, read::run(args)).await,
        Command::Doctor(args) => doctor::run(args, &homes).await,
        Command::Init => interruptible(form, move || init::run(&homes)).await,
        Command::Policy(args) => interruptible(form, move || policy::run(&args, &homes)).await,
        Command::Tools(args) => Ok(tools::run(&args)),
        Command::Prompt(args) => Ok(prompt::run(&args)),
        Command::Mcp(args) => mcp::run(args, &homes, format!("mcp-{}", mint())).await,
        Command::Completions { shell } => complete::script(shell),
        Command::Man(args) => manual::run(&Cli::command(), &args),
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge of the program mints ids")]
fn mint() -> Uuid {
    Uuid::new_v4()
}

/// A new id for a batch, as a server would give it.
#[expect(clippy::disallowed_methods, reason = "the edge of the program mints ids")]
fn mint_batch() -> BatchId {
    id_block::batch_id(Uuid::now_v7())
}

/// Runs work that blocks until it ends or the user presses Ctrl-C.
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
