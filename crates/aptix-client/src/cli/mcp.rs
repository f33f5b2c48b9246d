//! `aptix mcp`: the tools, served on stdin and stdout over one workspace.

use crate::mcp::server::serve;
use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::workspace::roots::root::RootSpec;

use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::serving;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The directory to edit files in, and the name docPaths know it by
    #[arg(long, value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) root: RootSpec,
}

/// Serves; `name` names the connection.
pub(super) async fn run(args: Args, homes: &HomeDirs, name: String) -> anyhow::Result<Exit> {
    let policies = PolicyFiles::new(&homes.config_home()?, Caller::Model);
    let streams = (tokio::io::stdin(), tokio::io::stdout());
    serving::run(vec![args.root], homes, |workspace, stop| serve(workspace, policies, name, streams, stop)).await
}
