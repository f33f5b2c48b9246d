//! Manual pages, made from the description of the command line.

use std::io;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use clap::Command;
use clap_mangen::Man;

use super::exit::Exit;
use super::output::{self, Form};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The page, such as aptix or aptix-apply; without it the names of all pages are printed, one a line
    page: Option<String>,
}

/// Prints a manual page, or the names of all of them.
pub(super) fn run(aptix: &Command, args: &Args) -> anyhow::Result<Exit> {
    let mut command = visible(aptix).disable_help_subcommand(true);
    command.build();
    let pages = pages(&command);
    let Some(name) = &args.page else {
        return Ok(output::print(&pages.iter().map(|(name, _)| format!("{name}\n")).collect::<String>()));
    };
    let Some((_, page)) = pages.into_iter().find(|(found, _)| found == name) else {
        let failure = Failure::new(Reason::NotFound, format!("there is no page {name:?}"));
        let failure = failure.hint("`aptix man` prints the names of all pages");
        return Ok(output::show_refused(Form { json: false }, &failure.into()));
    };
    Ok(output::print_bytes(&rendered(page)?))
}

/// The command, and all below it, each with the name of its page.
fn pages(command: &Command) -> Vec<(String, Command)> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let below = command.get_subcommands().flat_map(pages);
    std::iter::once((name, command.clone())).chain(below).collect()
}

fn rendered(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).manual("Aptix").render(&mut page)?;
    Ok(page)
}

/// A command as `--help` shows it: without hidden commands and arguments, which generators take for any other.
pub(super) fn visible(command: &Command) -> Command {
    let mut shown = Command::new(command.get_name().to_owned())
        .args(command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().filter(|command| !command.is_hide_set()).map(visible))
        .subcommand_required(command.is_subcommand_required_set());
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(about) = command.get_long_about() {
        shown = shown.long_about(about.clone());
    }
    match command.get_version() {
        Some(version) => shown.version(version.to_owned()).propagate_version(command.is_propagate_version_set()),
        None => shown,
    }
}
