//! A disk with less free than its reserve: new batches and blobs are refused, all else goes on, and the health of the services says so.

use std::sync::Arc;

use aptix_model::token::{Role, Scope};
use aptix_model::wire::v1;
use aptix_server::identity::Registry;
use aptix_server::options::Options;
use aptix_server::store::Space;
use aptix_server::store::Store;
use aptix_server::store::memory::MemoryStore;
use tokio::time::timeout;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt as _;

use crate::identity::{admin, make, new, with};
use crate::server::{Clients, SOON, Server, applied, create_text, submit};

const MIB: u64 = 1 << 20;

pub(crate) async fn health(clients: &Clients, service: &str) -> ServingStatus {
    let request = HealthCheckRequest { service: service.to_owned() };
    HealthClient::new(clients.channel.clone()).check(request).await.unwrap().into_inner().status()
}

#[track_caller]
fn assert_low<T: std::fmt::Debug>(answer: Result<T, Status>) {
    let refused = answer.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.get_details_retry_info().is_some_and(|retry| retry.retry_delay.is_some()), "{refused:?}");
    assert!(refused.message().contains("the server's disk has 1048576 bytes free"), "{refused:?}");
}

/// What is under way ends: a known request is answered, and the agent reports, with the blobs of its report.
#[tokio::test]
async fn new_work_is_refused_before_the_disk_is_full_and_nothing_else() {
    let store = Arc::new(MemoryStore::default());
    let space = |free| Some(Space { free, size: 100 << 30 });
    store.set_space(space(1 << 30));
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut clients = server.connect().await;
    clients.upload("w", b"").await.unwrap();
    let (epoch, _feed) = clients.lease("w", "agent", 0).await.unwrap();
    let first = submit("w", "1", vec![create_text("a", "")]);
    let batch = clients.submit(first.clone()).await.unwrap();
    let writers = ["aptix.v1.BatchService", "aptix.v1.ToolService"];
    let others = ["", "aptix.v1.AgentService", "aptix.v1.FileService", "aptix.v1.WorkspaceService"];
    store.set_space(space(MIB));
    timeout(SOON, async { while health(&clients, writers[0]).await != ServingStatus::NotServing {} }).await.unwrap();
    assert_eq!(health(&clients, writers[1]).await, ServingStatus::NotServing);
    for service in others {
        assert_eq!(health(&clients, service).await, ServingStatus::Serving, "{service}");
    }
    assert_low(clients.submit(submit("w", "2", vec![create_text("b", "")])).await);
    assert_low(clients.upload("w", b"new").await);
    assert_eq!(clients.submit(first).await.unwrap().batch_id, batch.batch_id, "a retry is answered");
    assert_eq!(clients.upload("w", b"").await.unwrap().size_bytes, 0, "a blob that is there takes no room");
    clients.report("w", &batch.batch_id, epoch, applied(&[("app", "a", b"")])).await.unwrap();
    assert_eq!(clients.get("w", &batch.batch_id).await.unwrap().state(), v1::BatchState::Applied);

    store.set_space(space(1 << 30));
    timeout(SOON, async { while health(&clients, writers[0]).await != ServingStatus::Serving {} }).await.unwrap();
    clients.submit(submit("w", "2", vec![create_text("b", "")])).await.unwrap();
}

/// The status of the server names what does not serve, and the room there is.
#[tokio::test]
async fn the_status_says_which_services_a_low_disk_stops() {
    let store = Arc::new(MemoryStore::default());
    store.set_space(Some(Space { free: MIB, size: 100 << 30 }));
    let store = store as Arc<dyn Store>;
    let registry = Registry::load(Arc::clone(&store)).await.unwrap();
    let operator = make(&registry, new("operator", Role::Operator, Scope::All, None)).await;
    let server = Server::over(store, Options::default());
    let mut admin = admin(&server.connect().await);
    let request = with(&operator, v1::GetServerStatusRequest {});
    let status = admin.get_server_status(request).await.unwrap().into_inner();
    let not_serving = status.services.iter().filter(|health| !health.is_serving).map(|health| health.service.as_str());
    assert_eq!(not_serving.collect::<Vec<_>>(), ["aptix.v1.BatchService", "aptix.v1.ToolService"]);
    let disk = status.contents.and_then(|contents| contents.disk);
    assert_eq!(disk.map(|disk| (disk.free_bytes, disk.reserve_bytes)), Some((MIB, 256 * MIB)));
    assert_eq!((status.needs_tokens, status.tokens), (true, 1));
}

/// A small disk has a small reserve.
#[tokio::test]
async fn at_most_a_twentieth_of_a_disk_is_reserved() {
    let store = Arc::new(MemoryStore::default());
    store.set_space(Some(Space { free: 51 * MIB, size: 1000 * MIB }));
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut clients = server.connect().await;
    clients.submit(submit("w", "1", vec![create_text("a", "")])).await.unwrap();
    store.set_space(Some(Space { free: 49 * MIB, size: 1000 * MIB }));
    let writer = "aptix.v1.BatchService";
    timeout(SOON, async { while health(&clients, writer).await != ServingStatus::NotServing {} }).await.unwrap();
}
