//! The trace that a caller names: kept with the batch, also over a restart, and handed to the agent.

use std::sync::Arc;

use aptix_model::wire::v1;
use aptix_server::options::Options;
use aptix_server::store::Store;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::memory::MemoryStore;
use serde_json::json;
use tonic::Request;

use crate::server::{Clients, Server, create_text, next_event, submit};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

/// A call whose metadata names these spans.
fn below<T>(parents: &[&str], message: T) -> Request<T> {
    let mut request = Request::new(message);
    for parent in parents {
        request.metadata_mut().append("traceparent", parent.parse().unwrap());
    }
    request
}

async fn submitted(client: &mut Clients, request: &str, parents: &[&str]) -> v1::Batch {
    let call = below(parents, submit("w", request, vec![create_text(request, "")]));
    client.batches.submit_batch(call).await.unwrap().into_inner().batch.unwrap()
}

/// The trace of a submit comes to the agent, also after the server was started again; a repeat does not change it.
#[tokio::test]
async fn a_batch_keeps_the_trace_of_its_submit() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut client = server.connect().await;
    assert_eq!(submitted(&mut client, "r1", &[PARENT]).await.traceparent, PARENT);
    assert_eq!(submitted(&mut client, "r1", &[OTHER]).await.traceparent, PARENT, "a repeat");
    drop(client);
    server.stop().await.unwrap();
    drop(store);
    let server = Server::over(Arc::new(EmbeddedStore::open(dir.path()).unwrap()), Options::default());
    let mut client = server.connect().await;
    let (_, mut feed) = client.lease("w", "laptop", 0).await.unwrap();
    assert_eq!(next_event(&mut feed).await.unwrap().batch.unwrap().traceparent, PARENT);
}

/// A trace that is malformed, or named twice, is ignored, and the call is carried out.
#[tokio::test]
async fn a_malformed_trace_is_ignored() {
    let server = Server::over(Arc::new(MemoryStore::default()), Options::default());
    let mut client = server.connect().await;
    let malformed = PARENT.to_uppercase();
    for (request, parents) in [("none", &[][..]), ("malformed", &[malformed.as_str()]), ("two", &[PARENT, OTHER])] {
        let batch = submitted(&mut client, request, parents).await;
        assert_eq!((batch.state(), batch.traceparent.as_str()), (v1::BatchState::Approved, ""), "{request}");
    }
}

/// The batch of a tool's call has the trace of the call.
#[tokio::test]
async fn a_batch_of_a_tool_has_the_trace_of_the_call() {
    let server = Server::start();
    let mut client = server.connect().await;
    let call = v1::CallToolRequest {
        workspace_id: "w".to_owned(),
        tool: "workspace_create_file".to_owned(),
        arguments: json!({ "path": "a.txt", "content": "a" }).to_string().into_bytes().into(),
        request_id: "r".to_owned(),
        wait: Some(prost_types::Duration::default()),
        ..v1::CallToolRequest::default()
    };
    let answer = client.tools.call_tool(below(&[PARENT], call)).await.unwrap().into_inner();
    assert_eq!(client.get("w", &answer.batch_id).await.unwrap().traceparent, PARENT);
}
