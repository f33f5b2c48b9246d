//! The health of the server and of each of its services, as `grpc.health.v1` answers it.

use std::convert::Infallible;
use std::future::pending;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::admin::AdminServer;
use super::agent::AgentServer;
use super::batch::BatchServer;
use super::file::FileServer;
use super::session::SessionServer;
use super::tool::ToolServer;
use super::workspace::WorkspaceServer;
use crate::metrics::Metric;
use crate::store::{Space, Store};

/// The services that take new batches: they are not healthy either while the disk has less free than its reserve.
const WRITERS: [&str; 2] = [BatchServer::NAME, ToolServer::NAME];

/// All others, and the server as a whole.
const OTHERS: [&str; 6] =
    ["", AdminServer::NAME, AgentServer::NAME, FileServer::NAME, SessionServer::NAME, WorkspaceServer::NAME];

/// Reports the health of each service.
pub(crate) struct Health {
    reporter: HealthReporter,
    low_disk: watch::Receiver<Option<Space>>,
    closing: CancellationToken,
}

impl Health {
    /// Reports through this reporter until the server takes no new work.
    pub(crate) fn new(
        reporter: HealthReporter,
        low_disk: watch::Receiver<Option<Space>>,
        closing: CancellationToken,
    ) -> Self {
        Self { reporter, low_disk, closing }
    }

    /// Reports each change: whether the store takes writes, and whether the disk has its reserve.
    pub(crate) async fn run(&self, store: &dyn Store) -> Infallible {
        let mut low_disk = self.low_disk.clone();
        loop {
            Metric::StoreHealthy.set(&[], 1.0);
            self.report(true).await;
            tokio::select! {
                () = store.failed() => {}
                changed = low_disk.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return pending().await,
                },
            }
            Metric::StoreHealthy.set(&[], 0.0);
            tracing::error!("the store takes no writes: the server is not healthy until it does");
            self.report(false).await;
            store.healed().await;
            tracing::info!("the server is healthy again");
        }
    }

    /// Reports that nothing is served any more.
    pub(crate) async fn stop(&self) {
        self.set(WRITERS, false).await;
        self.set(OTHERS, false).await;
    }

    /// Reports how it is now, while the store takes writes or not.
    pub(crate) async fn report(&self, takes_writes: bool) {
        let has_room = self.low_disk.borrow().is_none();
        self.set(OTHERS, takes_writes).await;
        self.set(WRITERS, takes_writes && has_room).await;
    }

    async fn set<const COUNT: usize>(&self, services: [&'static str; COUNT], is_serving: bool) {
        let status =
            if is_serving && !self.closing.is_cancelled() { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in services {
            self.reporter.set_service_status(service, status).await;
        }
    }
}
