//! `aptix completions SHELL`.

use clap::Command;
use clap_complete::Shell;

use super::exit::Exit;
use super::output;

/// Arguments of `aptix completions`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Which shell
    shell: Shell,
}

/// Prints the completion script of a command.
pub(super) fn run(args: &Args, command: &mut Command) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "aptix", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
