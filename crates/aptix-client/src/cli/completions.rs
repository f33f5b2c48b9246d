//! `aptix completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, Exit, output};

/// Arguments of `aptix completions`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Which shell
    shell: Shell,
}

pub(super) fn run(args: &Args) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "aptix", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
