//! The health of the server and of each of its services, as `grpc.health.v1` answers it.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_model::wire::v1;
use tokio::sync::watch;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health as HealthService, HealthServer};
use tonic_health::server::{HealthReporter, health_reporter};

use crate::metrics::Metric;
use crate::store::{Space, Store};

/// The services that take new batches: they are not healthy either while the disk has less free than its reserve.
const WRITERS: [&str; 2] = [v1::batch_service_server::SERVICE_NAME, v1::tool_service_server::SERVICE_NAME];

/// All others, and the server as a whole.
const OTHERS: [&str; 6] = [
    "",
    v1::admin_service_server::SERVICE_NAME,
    v1::agent_service_server::SERVICE_NAME,
    v1::file_service_server::SERVICE_NAME,
    v1::session_service_server::SERVICE_NAME,
    v1::workspace_service_server::SERVICE_NAME,
];

/// Reports the health of each service.
pub(crate) struct Health {
    reporter: HealthReporter,
    low_disk: watch::Receiver<Option<Space>>,
    takes_writes: AtomicBool,
    is_stopped: AtomicBool,
}

impl Health {
    /// Serves well from now on; with the service that answers for it.
    pub(crate) async fn begin(
        low_disk: watch::Receiver<Option<Space>>,
    ) -> (Arc<Self>, HealthServer<impl HealthService>) {
        let (reporter, service) = health_reporter();
        let (takes_writes, is_stopped) = (AtomicBool::new(true), AtomicBool::new(false));
        let health = Self { reporter, low_disk, takes_writes, is_stopped };
        health.report().await;
        (Arc::new(health), service)
    }

    /// Each service with whether it serves; the server as a whole has no name, and comes first.
    pub(crate) fn services(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let is_up = self.takes_writes.load(Ordering::Relaxed) && !self.is_stopped.load(Ordering::Relaxed);
        let has_room = self.low_disk.borrow().is_none();
        OTHERS.map(|service| (service, is_up)).into_iter().chain(WRITERS.map(|service| (service, is_up && has_room)))
    }

    /// Reports each change: whether the store takes writes, and whether the disk has its reserve.
    pub(crate) async fn run(&self, store: &dyn Store) -> Infallible {
        let mut low_disk = self.low_disk.clone();
        loop {
            Metric::StoreHealthy.set(&[], 1.0);
            self.takes_writes.store(true, Ordering::Relaxed);
            self.report().await;
            tokio::select! {
                () = store.failed() => {}
                changed = low_disk.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return pending().await,
                },
            }
            Metric::StoreHealthy.set(&[], 0.0);
            tracing::error!("the store takes no writes: the server is not healthy until it does");
            self.takes_writes.store(false, Ordering::Relaxed);
            self.report().await;
            store.healed().await;
            tracing::info!("the server is healthy again");
        }
    }

    /// Reports that nothing is served any more, from now on.
    pub(crate) async fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.report().await;
    }

    /// Reports how it is now.
    pub(crate) async fn report(&self) {
        for (service, is_serving) in self.services() {
            let status = if is_serving { ServingStatus::Serving } else { ServingStatus::NotServing };
            self.reporter.set_service_status(service, status).await;
        }
    }
}
