//! `aptix mcp`: the tools, served on stdin and stdout over one workspace.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::policy::Deletions;
use crate::policy::files::PolicyFiles;
use crate::tools::server::serve;
use crate::workspace::disk::SystemDisk;
use crate::workspace::root::RootSpec;
use crate::workspace::{OpenError, Workspace};

use super::{Exit, Places, output};

/// Arguments of `aptix mcp`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The directory to edit files in, and the name docPaths know it by
    #[arg(long, value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) root: RootSpec,
}

/// Serves; `name` names the connection.
pub(super) async fn run(args: Args, places: &Places, name: String) -> anyhow::Result<Exit> {
    let state_home = places.state_home()?;
    let root = args.root;
    let opened = move || Workspace::open(std::slice::from_ref(&root), &state_home, Box::new(SystemDisk));
    let workspace = match tokio::task::spawn_blocking(opened).await? {
        Ok(workspace) => workspace,
        Err(error) => {
            output::say(&format!("error: {}", error.failure()));
            return Ok(match error {
                OpenError::Root(_) | OpenError::NoRoot => Exit::Usage,
                OpenError::State(_) | OpenError::Recovery(_) => Exit::Environment,
            });
        }
    };
    let policies = PolicyFiles::new(&places.config_home()?, Deletions::Ask);
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
        // A second signal does not make it stop sooner: the call in hand is finished first.
        std::future::pending::<()>().await;
    };
    let streams = (tokio::io::stdin(), tokio::io::stdout());
    tokio::select! {
        ended = serve(workspace, policies, name, streams, stop.clone()) => ended?,
        () = told => {}
    }
    Ok(Exit::Done)
}
