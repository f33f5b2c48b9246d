//! What the commands have in common that serve a workspace until they are told to stop.

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

/// Opens a workspace, or says why not.
pub(super) async fn open(roots: Vec<RootSpec>, state_home: PathBuf) -> anyhow::Result<Result<Workspace, Exit>> {
    let opened = tokio::task::spawn_blocking(move || Workspace::open(&roots, &state_home, Box::new(SystemDisk)));
    Ok(opened.await?.map_err(|error| {
        output::say(&format!("error: {}", Visible(&error.failure().to_string())));
        Exit::from(&error)
    }))
}

/// Serves; a signal is passed on. A second one does not make it stop sooner: what is in hand is finished first.
pub(super) async fn until_told<T>(stop: &CancellationToken, served: impl Future<Output = T>) -> io::Result<T> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        ended = served => Ok(ended),
        never = told => match never {},
    }
}
