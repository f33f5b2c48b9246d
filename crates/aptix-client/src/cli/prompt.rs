//! `aptix prompt`: the guide for whoever writes edits, for a system prompt.

use aptix_model::tools::guide::guide;

use super::document::{DialectChoice, dialects};
use super::exit::Exit;
use super::output;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The guide for one dialect alone; auto: for all
    #[arg(long, default_value = "auto", value_parser = dialects())]
    dialect: DialectChoice,
}

pub(super) fn run(args: &Args) -> Exit {
    output::print(&guide(args.dialect.0))
}
