//! Decisions about one batch that come second, at once or again after an answer was lost: the first one stands, is recorded once,
//! and the later ones hear who took it.

use std::collections::BTreeMap;
use std::sync::Arc;

use aptix_model::wire::v1;
use aptix_server::dispatcher::approvals::{Approval, Approvals};
use aptix_server::options::Options;
use aptix_server::store::Store;
use aptix_server::store::memory::MemoryStore;
use tokio::task::JoinSet;
use tonic::{Code, Status};

use crate::place::every_store;
use crate::server::{Clients, Server, assert_refused, create_text, submit};

fn approval(id: &str, reviewer: &str) -> v1::ApproveBatchRequest {
    let (workspace_id, batch_id) = ("w".to_owned(), id.to_owned());
    let (reason, reviewer) = ("read it".to_owned(), reviewer.to_owned());
    v1::ApproveBatchRequest { workspace_id, batch_id, reason, reviewer, ..v1::ApproveBatchRequest::default() }
}

fn rejection(id: &str, reviewer: &str) -> v1::RejectBatchRequest {
    let (workspace_id, batch_id) = ("w".to_owned(), id.to_owned());
    v1::RejectBatchRequest { workspace_id, batch_id, reason: "no tests".to_owned(), reviewer: reviewer.to_owned() }
}

fn withdrawal(id: &str) -> v1::CancelBatchRequest {
    let (workspace_id, batch_id) = ("w".to_owned(), id.to_owned());
    v1::CancelBatchRequest { workspace_id, batch_id, reason: "out of date".to_owned(), author: "ann".to_owned() }
}

async fn held(client: &mut Clients, request: &str) -> String {
    let batch = client.submit(submit("w", request, vec![create_text("a.txt", request)])).await.unwrap();
    assert_eq!(batch.state(), v1::BatchState::PendingApproval);
    batch.batch_id
}

/// The state of a batch, and how often each kind of decision is in its record.
async fn recorded(client: &mut Clients, id: &str) -> (v1::BatchState, [usize; 3]) {
    let get = v1::GetBatchRequest {
        workspace_id: "w".to_owned(),
        batch: Some(v1::get_batch_request::Batch::BatchId(id.to_owned())),
        ..v1::GetBatchRequest::default()
    };
    let answer = client.batches.get_batch(get).await.unwrap().into_inner();
    let count = |kind| answer.steps.iter().filter(|step| step.kind() == kind).count();
    let kinds = [v1::EventKind::Approved, v1::EventKind::Rejected, v1::EventKind::Cancelled];
    (answer.batch.as_ref().unwrap().state(), kinds.map(count))
}

/// Who decided, and why, as an answer has it.
fn by(decision: Option<v1::BatchStep>) -> (String, String) {
    let step = decision.unwrap();
    (step.actor.unwrap().name, step.reason)
}

#[track_caller]
fn refused_with<T: std::fmt::Debug>(answer: Result<T, Status>, words: &str) {
    assert!(answer.as_ref().unwrap_err().message().contains(words), "expected {words:?}: {answer:?}");
    assert_refused(answer, Code::FailedPrecondition, "INVALID_STATE", "");
}

fn asking(store: Arc<dyn Store>) -> Server {
    let ask = Approvals { usual: Approval::Always, workspaces: BTreeMap::new() };
    Server::asking(store, Options::default(), ask)
}

/// Whoever decides first is named to everybody who decides later, whether their call agrees or not.
#[tokio::test]
async fn later_decisions_hear_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    for store in every_store(dir.path()).await {
        let server = asking(store);
        let mut client = server.connect().await;
        let id = held(&mut client, "approved").await;
        for reviewer in ["Rita", "Sam", "Rita"] {
            let answer = client.batches.approve_batch(approval(&id, reviewer)).await.unwrap().into_inner();
            assert_eq!(answer.batch.unwrap().state(), v1::BatchState::Approved);
            assert_eq!(by(answer.decision), ("Rita".to_owned(), "read it".to_owned()));
        }
        assert_eq!(recorded(&mut client, &id).await, (v1::BatchState::Approved, [1, 0, 0]));
        // Not applied yet, it can still be rejected; approving it is too late then.
        let answer = client.batches.reject_batch(rejection(&id, "Sam")).await.unwrap().into_inner();
        assert_eq!(by(answer.decision), ("Sam".to_owned(), "no tests".to_owned()));
        refused_with(client.batches.approve_batch(approval(&id, "Rita")).await, "rejected by Sam: no tests");
        refused_with(client.batches.cancel_batch(withdrawal(&id)).await, "rejected by Sam: no tests");

        let id = held(&mut client, "rejected").await;
        for reviewer in ["Rita", "Sam"] {
            let answer = client.batches.reject_batch(rejection(&id, reviewer)).await.unwrap().into_inner();
            assert_eq!(by(answer.decision), ("Rita".to_owned(), "no tests".to_owned()));
        }
        refused_with(client.batches.approve_batch(approval(&id, "Sam")).await, "rejected by Rita: no tests");

        let id = held(&mut client, "cancelled").await;
        client.batches.cancel_batch(withdrawal(&id)).await.unwrap();
        refused_with(client.batches.approve_batch(approval(&id, "Rita")).await, "cancelled by ann: out of date");
        refused_with(client.batches.reject_batch(rejection(&id, "Rita")).await, "cancelled by ann: out of date");
        assert_eq!(recorded(&mut client, &id).await, (v1::BatchState::Cancelled, [0, 0, 1]));
        drop(client);
        server.stop().await.unwrap();
    }
}

/// Of two reviewers at once one approves, and both hear of the same one. Beside a rejection the batch ends rejected, and an approval
/// that came second hears of it.
#[tokio::test]
async fn of_decisions_at_once_one_is_the_first() {
    let dir = tempfile::tempdir().unwrap();
    for store in every_store(dir.path()).await {
        let server = asking(store);
        let mut client = server.connect().await;
        for round in 0..20 {
            let (mut one, mut other) = (client.batches.clone(), client.batches.clone());
            let id = held(&mut client, &format!("two-{round}")).await;
            let (first, second) =
                tokio::join!(one.approve_batch(approval(&id, "Rita")), other.approve_batch(approval(&id, "Sam")));
            let [first, second] = [first, second].map(|answer| by(answer.unwrap().into_inner().decision));
            assert_eq!(first, second);
            assert_eq!(recorded(&mut client, &id).await, (v1::BatchState::Approved, [1, 0, 0]));

            let id = held(&mut client, &format!("against-{round}")).await;
            let (approved, rejected) =
                tokio::join!(one.approve_batch(approval(&id, "Rita")), other.reject_batch(rejection(&id, "Sam")));
            assert_eq!(by(rejected.unwrap().into_inner().decision).0, "Sam");
            let approvals = usize::from(approved.is_ok());
            assert_eq!(recorded(&mut client, &id).await, (v1::BatchState::Rejected, [approvals, 1, 0]));
            if approved.is_err() {
                refused_with(approved, "rejected by Sam: no tests");
            }
        }
        drop((client, server));
    }
}

/// What is kept of a decision is bounded, and so is what others are shown of it.
#[tokio::test]
async fn a_decision_with_a_long_text_is_refused_or_cut_for_others() {
    let server = asking(Arc::new(MemoryStore::default()));
    let mut client = server.connect().await;
    let id = held(&mut client, "long").await;
    let (most, more) = ("x".repeat(64 << 10), "x".repeat((64 << 10) + 1));
    for request in [
        v1::ApproveBatchRequest { reason: more.clone(), ..approval(&id, "Rita") },
        v1::ApproveBatchRequest { reviewer: more.clone(), ..approval(&id, "Rita") },
    ] {
        let refused = client.batches.approve_batch(request).await;
        assert_refused(refused, Code::InvalidArgument, "TOO_LARGE", "TEXT");
    }
    let rejection = v1::RejectBatchRequest { reason: most, ..rejection(&id, "Rita") };
    client.batches.reject_batch(rejection).await.unwrap();
    let refused = client.batches.approve_batch(approval(&id, "Sam")).await.unwrap_err();
    assert!(refused.message().len() < 1000 && refused.message().contains("xxx..."), "{refused:?}");
    assert_eq!(recorded(&mut client, &id).await, (v1::BatchState::Rejected, [0, 1, 0]));
}

/// A call that is given up before its answer, and made again: the batch is approved once.
#[tokio::test]
async fn an_approval_whose_answer_is_lost_is_made_again() {
    let server = asking(Arc::new(MemoryStore::default()));
    let mut client = server.connect().await;
    for round in 0..20 {
        let id = held(&mut client, &format!("r{round}")).await;
        let (mut batches, request) = (client.batches.clone(), approval(&id, "Rita"));
        let mut lost = JoinSet::new();
        lost.spawn(async move { batches.approve_batch(request).await });
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        lost.shutdown().await;
        let again = client.batches.approve_batch(approval(&id, "Rita")).await.unwrap().into_inner();
        assert_eq!(by(again.decision).0, "Rita");
        assert_eq!(recorded(&mut client, &id).await, (v1::BatchState::Approved, [1, 0, 0]));
    }
}
