//! What a shell offers for the word at the cursor: beside what the command line knows by itself, the batches of the workspace here
//! or of a server, and the workspaces there.
//!
//! The script of a shell calls the program with what was typed. What is not known within a second is not offered. No file of a
//! workspace is changed: an interrupted batch is left for the next command.

use std::ffi::OsString;
use std::sync::mpsc;
use std::time::Duration;

use aptix_model::batch::Target;
use aptix_model::failure::Visible;
use aptix_model::record::BatchOutline;
use aptix_model::state::BatchState;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches, ValueHint, value_parser};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use super::command::Cli;
use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::server::ServerArgs;
use super::token::TokenArgs;
use super::{manual, output};
use crate::connection::batch_query::BatchQuery;
use crate::connection::{CallError, ServerUrl, workspaces};
use crate::present::log::{Query, Row, Shown, log};
use crate::present::text::and_more;
use crate::present::untrusted::Quoted;
use crate::present::view::state_for_people;
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

/// The variable that names the shell that asks.
const VARIABLE: &str = "APTIX_COMPLETE";
/// How long is waited for what is offered.
const WAIT: Duration = Duration::from_secs(1);
/// Batches of the workspace here, and workspaces of a server, that are offered at most.
const MOST: u16 = 100;
/// The script for bash, which knows how that breaks words.
const BASH: &str = include_str!("complete.bash");
/// What the script for zsh lacks to be a file of its search path.
const ZSH_END: &str = include_str!("complete.zsh");

/// Prints the script that has a shell ask.
pub(super) fn script(shell: Shell) -> anyhow::Result<Exit> {
    if shell == Shell::Bash {
        return Ok(output::print(BASH));
    }
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&shell.to_string()) {
        shell.write_registration(VARIABLE, "aptix", "aptix", "aptix", &mut script)?;
    }
    if shell == Shell::Zsh {
        script.extend(ZSH_END.as_bytes());
    }
    Ok(output::print_bytes(&script))
}

/// Answers the shell and ends the process, if it is a script that asks: the variable alone, which a shell may have left, keeps no command
/// from being run.
pub(super) fn answer() {
    if std::env::args_os().nth(1).is_some_and(|word| word == "--") {
        CompleteEnv::with_factory(|| with_values(manual::visible(&Cli::command()))).var(VARIABLE).complete();
    }
}

/// A command, with what is offered for the values of its arguments and of the commands below it.
fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|argument| with_value(&name, argument));
    command.mut_subcommands(with_values)
}

fn with_value(command: &str, argument: Arg) -> Arg {
    let offer = |candidates: fn() -> Vec<CompletionCandidate>| ArgValueCandidates::new(candidates);
    let id = argument.get_id().to_string();
    match (command, id.as_str()) {
        (_, "root" | "roots") => argument.value_hint(ValueHint::DirPath),
        ("explain", "path") => argument.value_hint(ValueHint::AnyPath),
        (_, "workspace") => argument.add(offer(of_token)),
        ("undo", "batch") => argument.add(offer(undoable)),
        ("show", "id") => argument.add(offer(shown)),
        ("approve", "batch") => argument.add(offer(|| in_state(|state| state == BatchState::PendingApproval))),
        ("apply-prepared", "batch") => argument.add(offer(|| in_state(|state| state == BatchState::Prepared))),
        ("cancel" | "reject", "batch") => argument.add(offer(|| in_state(BatchState::is_open))),
        ("revert", "batch") => argument.add(offer(revertible)),
        _ => argument,
    }
}

/// The command line as it is typed so far, and the command in it, in which the value of one argument may be anything.
fn typed(unfinished: &'static str) -> Option<(ArgMatches, ArgMatches)> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let open = move |argument: Arg| match argument.get_id() == unfinished {
        true => argument.value_parser(value_parser!(OsString)),
        false => argument,
    };
    let aptix = Cli::command().ignore_errors(true).mut_subcommands(|command| command.mut_args(open));
    let mut typed = aptix.try_get_matches_from(words).ok()?;
    let (_, command) = typed.remove_subcommand()?;
    Some((typed, command))
}

/// What a look for candidates finds in time: a lock, a disk or a server may take long. The process ends without the rest.
fn in_time<T: Send + 'static>(look: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::sync_channel(1);
    let looking = std::thread::Builder::new().name("completion".to_owned());
    looking.spawn(move || tell.send(look())).ok()?;
    told.recv_timeout(WAIT).ok()?
}

/// The batches of the workspace here, newest first.
fn here(argument: &'static str, state: Shown, is_offered: fn(&Row) -> bool) -> Vec<CompletionCandidate> {
    let rows = in_time(move || {
        let (aptix, command) = typed(argument)?;
        let roots: Vec<RootSpec> = command.get_many("roots")?.cloned().collect();
        let state_dir = HomeDirs::from_arg_matches(&aptix).ok()?.state_home().ok()?.join("aptix");
        let workspace = Workspace::hold(&roots, &state_dir, Box::new(SystemDisk)).ok()?;
        let query = Query { most: Some(MOST.into()), state, ..Query::default() };
        Some(log(&workspace, query).ok()?.batches)
    });
    let rows = rows.unwrap_or_default().into_iter().filter(is_offered);
    ordered(rows.map(|row| {
        let files = row.files.iter().map(|file| file.path.as_str());
        (row.batch_id.clone(), about(row.state, files, row.batch_label.as_deref()))
    }))
}

/// The batches that can be taken back, or brought back with `--redo`.
fn undoable() -> Vec<CompletionCandidate> {
    let is_redo = typed("batch").is_some_and(|(_, command)| command.get_flag("redo"));
    match is_redo {
        true => here("batch", Shown::Applied, |row| row.can_be_undone && row.undone_by.is_some()),
        false => here("batch", Shown::Applied, |row| row.can_be_undone && row.undone_by.is_none()),
    }
}

/// The batches that can be shown: those of a server, if one is named.
fn shown() -> Vec<CompletionCandidate> {
    match typed("id") {
        Some((_, command)) if command.contains_id("server") => there("id", |_| true, |_| true),
        _ => here("id", Shown::All, |_| true),
    }
}

/// The batches of the workspace at a server that are in some states.
fn in_state(is_in: fn(BatchState) -> bool) -> Vec<CompletionCandidate> {
    there("batch", is_in, |_| true)
}

/// The batches of the workspace at a server that were applied and not taken back.
fn revertible() -> Vec<CompletionCandidate> {
    let is_applied = |state| matches!(state, BatchState::Applied | BatchState::Partial);
    there("batch", is_applied, |batch| batch.reverted_by.is_none())
}

/// Batches of the workspace at a server, newest first.
fn there(
    argument: &'static str,
    is_in: fn(BatchState) -> bool,
    is_offered: fn(&BatchOutline) -> bool,
) -> Vec<CompletionCandidate> {
    let page = in_time(move || {
        let (aptix, command) = typed(argument)?;
        let server = ServerArgs { token: token(&aptix, &command)?, ..ServerArgs::from_arg_matches(&command).ok()? };
        let states = BatchState::ALL.into_iter().filter(|state| is_in(*state)).collect();
        let query = BatchQuery { states, ..BatchQuery::default() };
        asked(async { server.connect().await?.list(&query, String::new()).await })
    });
    let batches = page.map(|page| page.batches).unwrap_or_default();
    ordered(batches.into_iter().filter(is_offered).map(|batch| {
        let files = batch.targets.iter().map(Target::as_str);
        (batch.id.to_string(), about(state_for_people(batch.state), files, batch.label.as_deref()))
    }))
}

/// The workspaces that the token for a server is for.
fn of_token() -> Vec<CompletionCandidate> {
    let listed = in_time(|| {
        let (aptix, command) = typed("workspace")?;
        let url: &ServerUrl = command.get_one("server")?;
        let server = token(&aptix, &command)?.server(url);
        asked(async { workspaces(&server, MOST.into()).await })
    });
    listed.unwrap_or_default().iter().map(|id| CompletionCandidate::new(id.as_str())).collect()
}

fn token(aptix: &ArgMatches, command: &ArgMatches) -> Option<TokenArgs> {
    let mut token = TokenArgs::from_arg_matches(command).ok()?;
    token.keep_in(&HomeDirs::from_arg_matches(aptix).ok()?.config_home().ok()?);
    Some(token)
}

fn asked<T>(call: impl Future<Output = Result<T, CallError>>) -> Option<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?.block_on(call).ok()
}

fn ordered(found: impl Iterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let candidate = |(at, (id, about)): (usize, (String, String))| {
        CompletionCandidate::new(id).help(Some(about.into())).display_order(Some(at))
    };
    found.enumerate().map(candidate).collect()
}

/// What a batch is, in a line.
fn about<'a>(state: &str, mut files: impl Iterator<Item = &'a str>, label: Option<&str>) -> String {
    let first = files.next().unwrap_or_default();
    let more = and_more(files.count());
    let label = label.map_or_else(String::new, |label| format!("  {}", Quoted(label)));
    format!("{state}  {}{more}{label}", Visible(first))
}
