//! `aptix review`: shows the links of the review pages that run beside a workspace, or serves one until a signal stops it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use anyhow::anyhow;
use tokio_util::sync::CancellationToken;

use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::review::{Page, WHERE};
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::output;
use super::serving;

/// Any port of this machine that is free.
const ANY: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory whose batches are shown; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    /// Serve a page of its own at this address, which only this machine reaches, also beside an agent or MCP server that has one
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = loopback)]
    listen: Option<SocketAddr>,
}

/// An address of this machine that only programs on this machine reach.
pub(super) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: Option<SocketAddr> = text.parse().ok();
    address.filter(|address| address.ip().is_loopback()).ok_or_else(|| {
        "expected an address that only this machine reaches: 127.0.0.1:PORT, with port 0 for any that is free"
            .to_owned()
    })
}

/// Takes the address of the page.
pub(super) async fn bind(address: SocketAddr, homes: &HomeDirs) -> anyhow::Result<Page> {
    let policies = PolicyFiles::new(&homes.config_home()?, Caller::Shell);
    let page = Page::bind(address, policies).await;
    page.map_err(|error| anyhow!("the review page cannot be served at {address}: {error}"))
}

/// The links of the pages that run beside the roots of a workspace.
fn links(workspace: &Workspace) -> anyhow::Result<BTreeSet<String>> {
    let mut links = BTreeSet::new();
    for root in workspace.roots() {
        links.extend(root.state().review_links()?);
    }
    Ok(links)
}

pub(super) async fn run(args: Args, homes: &HomeDirs) -> anyhow::Result<Exit> {
    let serve = |workspace: Workspace, stop: CancellationToken| async move {
        let running = match args.listen {
            None => links(&workspace)?,
            Some(_) => BTreeSet::new(),
        };
        if !running.is_empty() {
            output::print(&running.iter().map(|link| format!("{WHERE}: {link}\n")).collect::<String>());
            return Ok(());
        }
        let page = bind(args.listen.unwrap_or(ANY), homes).await?;
        tokio::select! {
            never = page.serve(Arc::new(workspace)) => match never {},
            () = stop.cancelled() => anyhow::Ok(()),
        }
    };
    serving::run(args.roots, homes, serve).await
}
