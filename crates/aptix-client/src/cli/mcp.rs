//! `aptix mcp`: the tools, served on stdin and stdout over one workspace.

use std::net::SocketAddr;

use aptix_model::id::OwnerId;
use aptix_model::tools::catalogue::Selection;

use crate::mcp::server::{Session, serve};
use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::workspace::roots::root::RootSpec;

use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::review_page;
use super::serving;
use super::tools::parse_tools;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The directory to edit files in, and the name docPaths know it by
    #[arg(long, value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) root: RootSpec,
    /// The tools that are served: core, all, or names separated by commas
    #[arg(long, value_name = "core|all|NAME,...", default_value = "all", value_parser = parse_tools)]
    pub(super) tools: Selection,
    /// Who owns the edits that are prepared: after a restart, the same owner can still apply them. Without it, they belong to
    /// this connection alone
    #[arg(long, value_name = "NAME")]
    pub(super) owner: Option<OwnerId>,
    /// Serve the review page at this address, and ask there about what policy leaves to you; `aptix review` shows its link
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = review_page::loopback)]
    review: Option<SocketAddr>,
}

/// Serves; `name` names the connection.
pub(super) async fn run(args: Args, homes: &HomeDirs, name: String) -> anyhow::Result<Exit> {
    let policies = PolicyFiles::new(&homes.config_home()?, Caller::Model);
    let directory = std::path::absolute(&args.root.dir)?;
    let review = match args.review {
        Some(address) => Some(review_page::bind(address, homes).await?),
        None => None,
    };
    let session = Session { name, owner: args.owner, tools: args.tools, directory, review };
    let streams = (tokio::io::stdin(), tokio::io::stdout());
    serving::run(vec![args.root], homes, |workspace, stop| serve(workspace, policies, session, streams, stop)).await
}
