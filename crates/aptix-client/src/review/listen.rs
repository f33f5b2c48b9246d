//! Serves the page on loopback: so many connections, none of which may dawdle.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::door::Door;
use super::past::Past;
use super::routes::{Site, routes};
use crate::policy::files::PolicyFiles;
use crate::workspace::roots::workspace::Workspace;

/// What a link is for, in front of it.
pub(crate) const WHERE: &str = "review in a browser";
/// Connections at one time.
const CONNECTIONS: usize = 64;
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);
/// The wait after the system has refused a connection.
const REFUSED: Duration = Duration::from_millis(100);

/// The review page of a process.
#[derive(Debug)]
pub struct Page {
    board: Arc<Board>,
    listener: TcpListener,
    door: Arc<Door>,
    policies: Arc<PolicyFiles>,
}

impl Page {
    /// Takes an address of this machine, which only programs on this machine reach; port 0 is any that is free. `policies` are
    /// those of the person who takes batches back.
    ///
    /// # Errors
    /// When the address is not one of loopback, or is taken.
    pub async fn bind(address: SocketAddr, policies: PolicyFiles) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let message =
                format!("{address} can be reached from other machines; expected 127.0.0.1:PORT or [::1]:PORT");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let listener = TcpListener::bind(address).await?;
        let door = Arc::new(Door::new(listener.local_addr()?));
        Ok(Self { board: Arc::default(), listener, door, policies: Arc::new(policies) })
    }

    /// The questions that it shows.
    pub(crate) fn board(&self) -> Arc<Board> {
        Arc::clone(&self.board)
    }

    /// Says where the page is, and serves it with the history of a workspace until this is dropped.
    pub async fn serve(&self, workspace: Arc<Workspace>) -> Infallible {
        let (door, local) = (Arc::clone(&self.door), Arc::clone(&workspace));
        let announced = tokio::task::spawn_blocking(move || {
            door.keep_links(&local);
            door.announce(WHERE);
        });
        if let Err(error) = announced.await {
            tracing::error!(%error, "the link to the review page was not shown");
        }
        let stop = CancellationToken::new();
        let _stopped_with_this = stop.clone().drop_guard();
        let past = Past::new(workspace, Arc::clone(&self.policies), Arc::clone(&self.board), stop);
        let site = Site { board: Arc::clone(&self.board), door: Arc::clone(&self.door), past: Arc::new(past) };
        let (routes, places) = (routes(Arc::new(site)), Arc::new(Semaphore::new(CONNECTIONS)));
        let mut connections = JoinSet::new();
        loop {
            // The semaphore is not closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return std::future::pending().await };
            while connections.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let routes = routes.clone();
                    connections.spawn(async move {
                        serve_one(stream, routes).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the review page takes no connection now");
                    tokio::time::sleep(REFUSED).await;
                }
            }
        }
    }
}

async fn serve_one(stream: TcpStream, routes: axum::Router) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    // A browser that breaks off is no event.
    let _ = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)).await;
}
