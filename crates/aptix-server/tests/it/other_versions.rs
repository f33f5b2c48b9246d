//! Agents and clients of other versions: a call that this version does not have is refused by name, and an agent that can do less
//! is asked for less.

use aptix_model::wire::v1;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Status};

use crate::live_files::read;
use crate::server::{Clients, Server, applied, assert_refused, create_text, next_event, submit};

/// Calls a method as the client of a version that has it.
async fn call(client: &Clients, path: &'static str) -> Status {
    let mut grpc = tonic::client::Grpc::new(client.channel.clone());
    grpc.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<v1::GetBatchRequest, v1::GetBatchResponse>::default();
    let request = tonic::Request::new(v1::GetBatchRequest::default());
    grpc.server_streaming(request, PathAndQuery::from_static(path), codec).await.map(drop).unwrap_err()
}

#[tokio::test]
async fn a_method_that_does_not_exist_is_refused_by_name_with_what_to_do() {
    let server = Server::start();
    let client = server.connect().await;
    let version = env!("CARGO_PKG_VERSION");
    for path in ["/aptix.v1.AgentService/WatchBatches", "/aptix.v1.BatchService/SubmitBatches"] {
        let status = call(&client, path).await;
        let expected = format!(
            "UNIMPLEMENTED: aptix-server {version} has no method {path}\nhint: run a client of version {version}, or update the older of the two"
        );
        assert_eq!(status.message(), expected);
        assert_refused::<()>(Err(status), Code::Unimplemented, "UNIMPLEMENTED", "");
    }
    let status = call(&client, "/aptix.v2.BatchService/SubmitBatch").await;
    assert_refused::<()>(Err(status), Code::Unimplemented, "UNIMPLEMENTED", "");
}

/// An agent that names no version and no feature, as the first ones did: it is sent batches and is asked nothing.
#[tokio::test]
async fn an_agent_without_features_is_served_and_asked_nothing() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    assert_refused(
        read(&mut client, "a", None, v1::Source::Active).await,
        Code::Unavailable,
        "UNAVAILABLE",
        "NO_AGENT",
    );
    let batch = client.submit(submit("w", "r", vec![create_text("src/A.txt", "text")])).await.unwrap();
    let event = next_event(&mut feed).await.unwrap();
    assert_eq!(event.batch.map(|sent| sent.batch_id), Some(batch.batch_id.clone()));
    client.upload("w", b"text").await.unwrap();
    let report = applied(&[("app", "src/A.txt", b"text")]);
    let ended = client.report("w", &batch.batch_id, epoch, report).await.unwrap();
    assert_eq!(ended.state(), v1::BatchState::Applied);
    let workspace = client.workspaces.get_workspace(v1::GetWorkspaceRequest { workspace_id: "w".to_owned() }).await;
    let serving = workspace.unwrap().into_inner().workspace.unwrap().serving.unwrap();
    assert_eq!((serving.version.as_str(), serving.features.len()), ("", 0));
}
