//! Prepared batches over a real server and a real agent: planned, kept over restarts of both, applied as planned or moved.

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::prepare_batch_request::Content;
use tonic::transport::{Channel, Endpoint};

use crate::processes::{Machine, Server, eventually, wait_until_served};

/// Calls the server of a test.
struct Caller {
    runtime: tokio::runtime::Runtime,
    batches: BatchServiceClient<Channel>,
}

impl Caller {
    fn of(server: &Server) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let channel = runtime.block_on(Endpoint::from_shared(server.url()).unwrap().connect()).unwrap();
        Self { runtime, batches: BatchServiceClient::new(channel) }
    }

    fn prepare(&mut self, request: &str, document: &str) -> v1::Batch {
        let document = v1::Document { dialect: String::new(), text: document.as_bytes().to_vec().into() };
        let request = v1::PrepareBatchRequest {
            workspace_id: "demo".to_owned(),
            request_id: request.to_owned(),
            owner: "ann".to_owned(),
            content: Some(Content::Document(document)),
            view: v1::BatchView::Full.into(),
            ..v1::PrepareBatchRequest::default()
        };
        let answer = self.runtime.block_on(self.batches.prepare_batch(request)).unwrap();
        answer.into_inner().batch.unwrap()
    }

    fn apply(&mut self, batch: &v1::Batch) {
        let request = v1::ApplyPreparedRequest {
            workspace_id: "demo".to_owned(),
            batch_id: batch.batch_id.clone(),
            owner: "ann".to_owned(),
            request_id: format!("apply-{}", batch.batch_id),
            ..v1::ApplyPreparedRequest::default()
        };
        self.runtime.block_on(self.batches.apply_prepared(request)).unwrap();
    }

    fn ended(&mut self, batch: &v1::Batch) -> v1::Batch {
        let mut ended = None;
        eventually("the batch ends", || {
            let request = v1::GetBatchRequest {
                workspace_id: "demo".to_owned(),
                batch: Some(v1::get_batch_request::Batch::BatchId(batch.batch_id.clone())),
                view: v1::BatchView::Full.into(),
            };
            let batch = self.runtime.block_on(self.batches.get_batch(request)).unwrap().into_inner().batch.unwrap();
            let is_open = [v1::BatchState::Prepared, v1::BatchState::Approved].contains(&batch.state());
            ended = (!is_open).then_some(batch);
            ended.is_some()
        });
        ended.unwrap()
    }
}

fn replace(old: &str, new: &str) -> String {
    let patch = serde_json::json!({ "operation": "replace", "oldText": old, "newText": new });
    serde_json::json!({ "path": "a.txt", "patches": [patch] }).to_string()
}

/// Plans outlive both processes. Of two for one file both are applied, the second where its place is now; one whose own place
/// changed is refused, and writes nothing.
#[test]
fn plans_survive_restarts_and_move_with_their_places() {
    let machine = Machine::new();
    machine.put("a.txt", "one\ntwo\nthree\n");
    let server = machine.server();
    let agent = machine.agent(&server);
    wait_until_served(&server);
    let mut caller = Caller::of(&server);
    let first = caller.prepare("r1", &replace("one", "1\n1.5"));
    let second = caller.prepare("r2", &replace("three", "3"));
    let stale = caller.prepare("r3", &replace("one", "uno"));
    let plan = second.preparation.clone().unwrap().plan.unwrap();
    assert!(plan.report.clone().unwrap().diff.contains("-three\n+3\n"), "{plan:?}");
    assert_eq!(&plan.files[0].places[0].old[..], b"three\n", "{plan:?}");
    assert_eq!(machine.files(), [("a.txt".to_owned(), "one\ntwo\nthree\n".to_owned())], "nothing is written yet");

    let address = server.address.clone();
    drop((agent, server, caller));
    let server = machine.server_at(&address);
    let mut caller = Caller::of(&server);
    // Nobody serves: what is let go ahead waits for the next agent.
    caller.apply(&first);
    let _agent = machine.agent(&server);
    let applied = caller.ended(&first);
    assert_eq!(applied.state(), v1::BatchState::Applied, "{applied:?}");
    assert!(applied.report.unwrap().files[0].warnings.is_empty());
    caller.apply(&second);
    let moved = caller.ended(&second);
    assert_eq!(moved.state(), v1::BatchState::Applied, "{moved:?}");
    assert_eq!(moved.report.unwrap().files[0].warnings[0].code, "REBASED");
    caller.apply(&stale);
    let refused = caller.ended(&stale);
    assert_eq!(refused.report.unwrap().failures[0].reason, "FILE_CHANGED");
    assert_eq!(machine.files(), [("a.txt".to_owned(), "1\n1.5\ntwo\n3\n".to_owned())]);
    assert_eq!(
        caller.prepare("r1", &replace("one", "1\n1.5")).state(),
        v1::BatchState::Applied,
        "a repeat plans nothing"
    );
}
