//! `aptix doctor`: checks what commands depend on around them, and names for each defect the command or key that mends it.

mod disk;
mod finding;
mod machine;
mod policy;
mod roots;
mod server;
mod state;

use std::path::PathBuf;

use aptix_model::id::WorkspaceId;
use serde::Serialize;

use crate::connection::ServerUrl;
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::wall;

use self::finding::{Finding, Grade};
use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::output::{self, Form, interrupted};
use super::token::TokenArgs;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory of the workspace; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    roots: Vec<RootSpec>,
    /// A server to check: https://HOST:PORT, or http://HOST:PORT without TLS
    #[arg(long, value_name = "URL", env = "APTIX_SERVER")]
    server: Option<ServerUrl>,
    /// A workspace at the server
    #[arg(long, value_name = "ID", env = "APTIX_WORKSPACE")]
    workspace: Option<WorkspaceId>,
    #[command(flatten)]
    pub(super) token: TokenArgs,
    #[command(flatten)]
    form: Form,
}

/// What all checks found.
#[derive(Serialize)]
struct Checked {
    /// Whether there is no problem.
    success: bool,
    checks: Vec<Finding>,
}

/// Where this machine is checked.
struct Places {
    roots: Vec<RootSpec>,
    config_home: PathBuf,
    state_home: PathBuf,
}

pub(super) async fn run(args: Args, homes: &HomeDirs) -> anyhow::Result<Exit> {
    let (config_home, state_home) = (homes.config_home()?, homes.state_home()?);
    let Args { roots, server, workspace, token, form } = args;
    let checked = async {
        let mut checks = check_machine(Places { roots, config_home, state_home }).await?;
        match (server, workspace) {
            (Some(url), workspace) => checks.extend(server::check(&url, workspace.as_ref(), &token).await),
            (None, Some(workspace)) => checks.push(server::check_nowhere(&workspace)),
            (None, None) => {}
        }
        Ok(checks)
    };
    tokio::select! {
        checks = checked => checks.map(|checks| show(form, checks)),
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            Ok(interrupted(form, "interrupted; nothing was changed"))
        }
    }
}

fn show(form: Form, checks: Vec<Finding>) -> Exit {
    let success = checks.iter().all(|finding| finding.state != Grade::Problem);
    let printed = if form.json {
        output::print_object(&Checked { success, checks })
    } else {
        output::print(&checks.iter().map(Finding::text).collect::<String>())
    };
    if success { printed } else { Exit::Refused }
}

/// Checks this machine in a thread in which the kernel, where it can, refuses every write: a check changes nothing.
async fn check_machine(places: Places) -> anyhow::Result<Vec<Finding>> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let work = move || {
        let wall = wall::raise(&[]);
        let mut checks = vec![machine::check_landlock(&wall)];
        let (found, workspace) = roots::check(&places.roots, &places.state_home);
        checks.extend(found);
        checks.extend(policy::check(&places.config_home, workspace.as_ref()));
        checks.extend(state::check(&places.state_home, workspace.as_ref()));
        checks.push(machine::check_clock(&SystemDisk, workspace.as_ref()));
        checks.push(machine::check_git(workspace.as_ref()));
        // The receiver is gone only when the command was interrupted.
        let _ = sender.send(checks);
    };
    std::thread::Builder::new().name("doctor".to_owned()).spawn(work)?;
    Ok(receiver.await?)
}
