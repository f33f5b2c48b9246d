//! What `aptix agent` and `aptix mcp` have in common: they serve a workspace until a signal stops them.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;

use aptix_model::failure::Visible;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::Exit;
use super::output;

/// Opens a workspace, or prints why not.
pub(super) async fn open(roots: Vec<RootSpec>, state_home: PathBuf) -> anyhow::Result<Result<Workspace, Exit>> {
    let opened = tokio::task::spawn_blocking(move || Workspace::open(&roots, &state_home, Box::new(SystemDisk)));
    Ok(opened.await?.map_err(|error| {
        output::say(&format!("error: {}", Visible(&error.failure().to_string())));
        Exit::from(&error)
    }))
}

/// Serves until it ends; a signal stops it. A second signal does not stop it sooner: what is in hand is finished first.
pub(super) async fn until_stopped<T>(stop: &CancellationToken, served: impl Future<Output = T>) -> io::Result<T> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stopped = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        ended = served => Ok(ended),
        never = stopped => match never {},
    }
}
