//! Batches that wait for a person at the server: which ones, who frees or ends them, and when their time is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::record::{APPROVAL_MILLIS, UnixMillis};
use aptix_model::wire::v1;
use aptix_server::dispatcher::Settings;
use aptix_server::dispatcher::approvals::{Approval, Approvals};
use aptix_server::options::Options;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::{BatchSelector, Due};
use tonic::{Code, Status};

use crate::place::every_store;
use crate::server::{Clients, Server, assert_refused, create_text, next_event, submit};

fn asking(workspaces: &[(&str, Approval)]) -> Approvals {
    let workspaces: BTreeMap<_, _> = workspaces.iter().map(|(id, approval)| (id.parse().unwrap(), *approval)).collect();
    Approvals { usual: Approval::Never, workspaces }
}

pub(crate) async fn approve(client: &mut Clients, workspace: &str, id: &str) -> Result<v1::Batch, Status> {
    let request = v1::ApproveBatchRequest {
        workspace_id: workspace.to_owned(),
        batch_id: id.to_owned(),
        reason: "read it".to_owned(),
        reviewer: "Rita".to_owned(),
        ..v1::ApproveBatchRequest::default()
    };
    client.batches.approve_batch(request).await.map(|answer| answer.into_inner().batch.unwrap())
}

fn file(path: &str, action: v1::file_patch::Action) -> v1::FilePatch {
    v1::FilePatch { action: Some(action), ..create_text(path, "") }
}

fn renamed(path: &str, to: &str) -> v1::FilePatch {
    let patch = v1::GitPatch { kind: v1::GitKind::Rename.into(), rename_to: to.to_owned(), ..v1::GitPatch::default() };
    file(path, v1::file_patch::Action::GitPatch(patch))
}

/// Each workspace asks about what it is set to, by what the paths and the edits of a batch show.
#[tokio::test]
async fn a_workspace_asks_about_what_it_is_set_to() {
    let ask = asking(&[("a", Approval::Always), ("s", Approval::Sensitive), ("d", Approval::Deletions)]);
    let server = Server::asking(Arc::new(MemoryStore::default()), Options::default(), ask);
    let mut client = server.connect().await;
    let delete = || file("a.txt", v1::file_patch::Action::DeleteFile(v1::DeleteFile {}));
    let cases = [
        ("plain", create_text("a.txt", "text"), "a"),
        ("sensitive", create_text(".github/workflows/ci.yml", "x: 1"), "as"),
        ("secret", create_text("server.key", "x"), "as"),
        ("moved", renamed("a.txt", ".vscode/tasks.json"), "as"),
        ("deleted", delete(), "ad"),
    ];
    for (name, patch, asked) in cases {
        for workspace in ["a", "s", "d", "free"] {
            let request = submit(workspace, &format!("{name}-{workspace}"), vec![patch.clone()]);
            let tried = v1::SubmitBatchRequest { validate_only: true, ..request.clone() };
            let expected = match asked.contains(workspace) {
                true => v1::BatchState::PendingApproval,
                false => v1::BatchState::Approved,
            };
            for request in [tried, request] {
                let answer = client.batches.submit_batch(request).await.unwrap().into_inner().batch.unwrap();
                assert_eq!(answer.state(), expected, "{name} in {workspace}");
            }
        }
    }
}

/// An agent gets the content of a batch that waits once a person has approved it, and cannot report it before. The steps keep who
/// approved it and why. Every other call gets its own refusal.
#[tokio::test]
async fn a_batch_waits_for_a_person_and_its_steps_say_for_whom() {
    let dir = tempfile::tempdir().unwrap();
    let ask = asking(&[("w", Approval::Always)]);
    let server = Server::asking(Arc::new(EmbeddedStore::open(dir.path()).unwrap()), Options::default(), ask.clone());
    let mut client = server.connect().await;
    let sent = submit("w", "r1", vec![create_text("a.txt", "text")]);
    let id = client.submit(sent.clone()).await.unwrap().batch_id;
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let event = next_event(&mut feed).await.unwrap();
    let held = event.batch.unwrap();
    assert_eq!((held.state(), held.edit), (v1::BatchState::PendingApproval, None), "its content stays at the server");
    drop(feed);
    drop(client);
    server.stop().await.unwrap();

    let server = Server::asking(Arc::new(EmbeddedStore::open(dir.path()).unwrap()), Options::default(), ask);
    let mut client = server.connect().await;
    assert_eq!(client.submit(sent).await.unwrap().state(), v1::BatchState::PendingApproval, "a repeat frees nothing");
    let approved = approve(&mut client, "w", &id).await.unwrap();
    assert_eq!(approved.state(), v1::BatchState::Approved);
    assert_eq!(approve(&mut client, "w", &id).await.unwrap(), approved, "approving it again changes nothing");
    let get = v1::GetBatchRequest {
        workspace_id: "w".to_owned(),
        batch: Some(v1::get_batch_request::Batch::BatchId(id.clone())),
        ..v1::GetBatchRequest::default()
    };
    let steps = client.batches.get_batch(get).await.unwrap().into_inner().steps;
    let found: Vec<_> = steps.iter().map(|step| (step.kind(), step.state())).collect();
    let (submitted, pending) = (v1::EventKind::Submitted, v1::BatchState::PendingApproval);
    assert_eq!(found, [(submitted, pending), (v1::EventKind::Approved, v1::BatchState::Approved)]);
    let actor = steps[1].actor.as_ref().unwrap();
    assert_eq!((actor.kind(), actor.name.as_str()), (v1::ActorKind::Person, "Rita"));
    assert_eq!(steps[1].reason, "read it");

    for (request, ends) in [("r2", "cancel"), ("r3", "reject")] {
        let id = client.submit(submit("w", request, vec![create_text("a.txt", "")])).await.unwrap().batch_id;
        let (workspace_id, batch_id) = ("w".to_owned(), id.clone());
        if ends == "cancel" {
            let request = v1::CancelBatchRequest { workspace_id, batch_id, ..Default::default() };
            client.batches.cancel_batch(request).await.unwrap();
        } else {
            let request = v1::RejectBatchRequest { workspace_id, batch_id, ..Default::default() };
            client.batches.reject_batch(request).await.unwrap();
        }
        let refused = approve(&mut client, "w", &id).await;
        let word = if ends == "cancel" { "CANCELLED" } else { "REJECTED" };
        assert!(refused.as_ref().unwrap_err().message().contains(word), "{refused:?}");
        assert_refused(refused, Code::FailedPrecondition, "INVALID_STATE", "");
    }
    let free = client.submit(submit("free", "r4", vec![create_text("a.txt", "")])).await.unwrap().batch_id;
    assert_refused(approve(&mut client, "free", &free).await, Code::FailedPrecondition, "INVALID_STATE", "");
    assert_refused(approve(&mut client, "w", &free).await, Code::NotFound, "NOT_FOUND", "");
}

/// A batch that nobody approved within a week ends, found when it is due or when somebody tries.
#[tokio::test]
async fn a_batch_that_nobody_approves_expires() {
    let dir = tempfile::tempdir().unwrap();
    for store in every_store(dir.path()).await {
        let dispatch = Settings { expiry_sweep: Duration::from_secs(3600), ..Settings::default() };
        let options = Options { dispatch, ..Options::default() };
        let ask = asking(&[("w", Approval::Always)]);
        let server = Server::asking(Arc::clone(&store), options, ask);
        let mut client = server.connect().await;
        let id = client.submit(submit("w", "r1", vec![create_text("a.txt", "")])).await.unwrap().batch_id;
        let which = BatchSelector::Id(id.parse().unwrap());
        let batch = store.batch("w".parse().unwrap(), which).await.unwrap().unwrap();
        let due = UnixMillis(batch.created.0 + APPROVAL_MILLIS);
        assert_eq!(store.due(UnixMillis(due.0 - 1), None, 10).await.unwrap(), []);
        assert_eq!(
            store.due(due, None, 10).await.unwrap(),
            [Due { key: (due, batch.id), workspace: "w".parse().unwrap() }]
        );
        // One that was stored more than a week ago.
        let old = aptix_model::record::BatchRecord {
            id: aptix_model::id_block::batch_id(aptix_model::id::Uuid::from_u128(7 << 40)),
            request_id: "old".parse().unwrap(),
            created: UnixMillis(1),
            updated: UnixMillis(1),
            ..batch
        };
        let old_id = old.id.to_string();
        store.append(old).await.unwrap();
        assert_refused(approve(&mut client, "w", &old_id).await, Code::FailedPrecondition, "INVALID_STATE", "");
        let ended = client.get("w", &old_id).await.unwrap();
        assert_eq!(ended.state(), v1::BatchState::Expired);
        assert_eq!(store.due(due, None, 10).await.unwrap().len(), 1, "what has ended is due no more");
        assert_eq!(approve(&mut client, "w", &id).await.unwrap().state(), v1::BatchState::Approved);
        assert_eq!(store.due(due, None, 10).await.unwrap(), []);
        server.stop().await.unwrap();
    }
}
