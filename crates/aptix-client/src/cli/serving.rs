//! What `aptix agent` and `aptix mcp` have in common: they serve a workspace until a signal stops them.

use std::convert::Infallible;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::present::text::failure_text;
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::open::OpenError;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::{Exit, Refused};
use super::home_dirs::HomeDirs;
use super::output;

/// Opens a workspace and serves it until that ends, or a signal stops it.
pub(super) async fn run<E: Into<anyhow::Error>, F: Future<Output = Result<(), E>>>(
    roots: Vec<RootSpec>,
    homes: &HomeDirs,
    serve: impl FnOnce(Workspace, CancellationToken) -> F,
) -> anyhow::Result<Exit> {
    let state_home = homes.state_home()?;
    let opened = tokio::task::spawn_blocking(move || Workspace::open(&roots, &state_home, Box::new(SystemDisk)));
    let workspace = match opened.await? {
        Ok(workspace) => workspace,
        Err(error) => return Ok(not_opened(error)),
    };
    until_stopped(|stop| serve(workspace, stop)).await?.map(|()| Exit::Done).map_err(Into::into)
}

/// Prints to stderr why a workspace was not opened, and what to do about it.
pub(super) fn not_opened(error: OpenError) -> Exit {
    let Refused { exit, refusal } = error.into();
    refusal.failures.iter().for_each(|failure| output::say(failure_text(failure).trim_end()));
    exit
}

/// Serves until that ends, or a signal stops it. A second signal does not stop it sooner: what is in hand is finished first.
pub(super) async fn until_stopped<F: Future>(serve: impl FnOnce(CancellationToken) -> F) -> std::io::Result<F::Output> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stopped = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        ended = serve(stop.clone()) => Ok(ended),
        never = stopped => match never {},
    }
}
