//! `aptix log`: lists the batches that were applied in a workspace.

use std::path::Path;

use crate::present::log::{Log, Query, Shown, log};
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::{Exit, Refused};
use super::home_dirs::HomeDirs;
use super::output::{self, Form};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory whose batches are listed; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    /// List at most so many batches, the newest
    #[arg(short = 'n', value_name = "N")]
    most: Option<usize>,
    /// Show what each batch changed
    #[arg(short = 'p', long = "patch")]
    has_diffs: bool,
    /// List batches that were applied, that were refused (`failed`), or both (`all`)
    #[arg(long, value_enum, default_value_t = Shown::Applied)]
    state: Shown,
    #[command(flatten)]
    form: Form,
    /// List only batches that touched this file or folder, also under a name it had before a batch renamed it
    #[arg(value_name = "PATH")]
    path: Option<String>,
}

pub(super) fn run(args: &Args, homes: &HomeDirs) -> anyhow::Result<Exit> {
    Ok(match listed(args, &homes.state_home()?) {
        Ok(log) if args.form.json => output::print_object(&log),
        Ok(log) => output::print_long(log.text()),
        Err(refused) => output::show_refused(args.form, &refused),
    })
}

fn listed(args: &Args, state_home: &Path) -> Result<Log, Refused> {
    let workspace = Workspace::open_to_look(&args.roots, state_home, Box::new(SystemDisk))?;
    let query = Query { most: args.most, path: args.path.as_deref(), has_diffs: args.has_diffs, state: args.state };
    Ok(log(&workspace, query)?)
}
