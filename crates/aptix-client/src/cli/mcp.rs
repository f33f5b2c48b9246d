//! `aptix mcp`: the tools, served on stdin and stdout over one workspace.

use std::net::SocketAddr;
use std::path::PathBuf;

use aptix_model::id::OwnerId;
use aptix_model::tools::catalogue::Selection;

use crate::mcp::opening::{Open, Opened, Opening};
use crate::mcp::serve_error::ServeError;
use crate::mcp::server::{Session, serve};
use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::review_page;
use super::serving;
use super::stdio::{self, Stdio};
use super::tools::parse_tools;
use super::wall;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory to edit files in, and the name docPaths know it by; may be repeated. Without one, the roots that the client
    /// names, or the working directory if it names none
    #[arg(long = "root", value_name = "[NAME=]DIR")]
    pub(super) roots: Vec<RootSpec>,
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
    let review = match args.review {
        Some(address) => Some(review_page::bind(address, homes).await?),
        None => None,
    };
    let session = Session { name, owner: args.owner, tools: args.tools, review };
    let (state_home, config_home) = (homes.state_home()?, homes.config_home()?);
    let Stdio { input, output, written } = stdio::open()?;
    let opening = if args.roots.is_empty() {
        let open: Open = Box::new(move |roots| {
            // Nothing worked on files before.
            wall::raise(&roots, &state_home, &config_home);
            Box::pin(open(roots, state_home))
        });
        Opening::OfClient { usual: RootSpec { name: None, dir: ".".into() }, open }
    } else {
        match open(args.roots, state_home).await {
            Ok(opened) => Opening::Done(Box::new(opened)),
            Err(error) => return not_served(error),
        }
    };
    let served = serving::until_stopped(|stop| serve(opening, policies, session, (input, output), stop)).await?;
    written.wait();
    served.map_or_else(not_served, |()| Ok(Exit::Done))
}

/// Opens the workspace over these roots.
async fn open(roots: Vec<RootSpec>, state_home: PathBuf) -> Result<Opened, ServeError> {
    let opened = tokio::task::spawn_blocking(move || {
        let workspace = Workspace::open(&roots, &state_home, Box::new(SystemDisk))?;
        let absolute = |root: &RootSpec| std::path::absolute(&root.dir).unwrap_or_else(|_| root.dir.clone());
        Ok(Opened { directories: roots.iter().map(absolute).collect(), workspace })
    });
    opened.await?
}

fn not_served(error: ServeError) -> anyhow::Result<Exit> {
    match error {
        ServeError::Open(error) => Ok(serving::not_opened(error)),
        error => Err(error.into()),
    }
}
