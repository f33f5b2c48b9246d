//! `aptix review`: serves the review page of a workspace until a signal stops it.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::anyhow;
use tokio_util::sync::CancellationToken;

use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::review::Page;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::serving;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory whose batches are shown; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    /// The address of the page, which only this machine reaches
    #[arg(long, value_name = "127.0.0.1:PORT", default_value = "127.0.0.1:0", value_parser = loopback)]
    listen: SocketAddr,
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

pub(super) async fn run(args: Args, homes: &HomeDirs) -> anyhow::Result<Exit> {
    let page = bind(args.listen, homes).await?;
    let serve = |workspace: Workspace, stop: CancellationToken| async move {
        tokio::select! {
            never = page.serve(Arc::new(workspace)) => match never {},
            () = stop.cancelled() => anyhow::Ok(()),
        }
    };
    serving::run(args.roots, homes, serve).await
}
