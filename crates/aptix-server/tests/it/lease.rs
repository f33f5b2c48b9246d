//! Who holds a workspace's lease: the agent with its secret, and none that only knows ids and epochs.

use aptix_model::wire::v1;
use tokio_util::bytes::Bytes;
use tonic::{Code, Status};

use crate::until::until;

use crate::server::{
    Server, assert_refused, create_text, failed, hello, line_patch, next, part_chunk, refusal, serve_here, sha256,
    submit,
};

fn watch(agent: &str, lease_secret: Bytes) -> v1::Hello {
    v1::Hello { lease_secret, ..hello("w", agent) }
}

/// The holder takes over from itself at once, and its older stream is notified; no other agent does, whatever id it names.
#[tokio::test]
async fn a_lease_is_taken_over_with_its_secret_alone() {
    let server = Server::start();
    let (mut holder, mut other) = (server.connect().await, server.connect().await);
    let (first, mut old) = holder.lease("w", "agent-a", 0).await.unwrap();
    let secret = holder.secret("w");
    assert!(secret.len() >= 16, "{} bytes", secret.len());
    for agent in ["agent-a", "agent-b"] {
        for secret in [Bytes::new(), vec![0; 32].into(), secret.slice(..31)] {
            let status = other.serve(watch(agent, secret)).await.map(drop).unwrap_err();
            assert_held(&status);
        }
    }
    let (second, new) = holder.lease("w", "agent-a", 0).await.unwrap();
    assert_eq!(second, first + 1);
    assert_ne!(holder.secret("w"), secret, "each lease has a secret of its own");
    assert_refused(next(&mut old).await, Code::Aborted, "LEASE_LOST", "SUPERSEDED");
    assert_held(&other.serve(watch("agent-a", secret)).await.map(drop).unwrap_err());
    drop(new);
    // The lease is free once the server has seen the stream go.
    let leased = until(async || other.lease("w", "agent-b", 0).await.inspect_err(assert_held).ok());
    assert_eq!(leased.await.0, second + 1);
}

/// Says since when the workspace is served, and nothing that would help to serve it.
#[track_caller]
fn assert_held(status: &Status) {
    assert_eq!(refusal(status), (Code::FailedPrecondition, "LEASE_LOST".to_owned(), "LEASE_HELD".to_owned()));
    let said = format!("{status:?}");
    assert!(!said.contains("agent-a") && !said.contains("epoch"), "{said}");
    let since = status.message().split("since ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
    assert!(since.starts_with("20") && since.ends_with('Z') && since.len() == 20, "{since:?} in {}", status.message());
}

/// The epoch is a small number: a report that guesses it is refused, and does not get the right one.
#[tokio::test]
async fn a_report_needs_the_secret_of_the_lease() {
    let server = Server::start();
    let (mut holder, mut other) = (server.connect().await, server.connect().await);
    let batch = holder.submit(submit("w", "r1", vec![line_patch("app/a.txt")])).await.unwrap();
    let (epoch, feed) = holder.lease("w", "agent", 0).await.unwrap();
    drop(feed);
    for secret in [Bytes::new(), vec![0; 32].into()] {
        other.secrets.insert("w".to_owned(), secret);
        for guess in 0..4 {
            let status = other.report("w", &batch.batch_id, guess, failed("SHA_MISMATCH")).await.unwrap_err();
            assert_eq!(refusal(&status), (Code::FailedPrecondition, "LEASE_LOST".to_owned(), String::new()));
            assert!(!status.message().contains(&format!("newest of the workspace is {epoch}")), "{}", status.message());
        }
    }
    holder.report("w", &batch.batch_id, epoch, failed("SHA_MISMATCH")).await.unwrap();
}

/// An agent that has lost its lease uploads nothing more under it; an author has none, and needs none.
#[tokio::test]
async fn an_upload_under_a_lease_needs_the_newest_one() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (_, feed) = client.lease("w", "agent", 0).await.unwrap();
    let old = client.secret("w");
    drop(feed);
    client.lease("w", "agent", 0).await.unwrap();
    let upload = |lease_secret: Bytes| {
        let blob = v1::BlobRef { sha256: sha256(b"text"), size_bytes: 4 };
        let start = v1::UploadBlobStart { workspace_id: "w".to_owned(), blob: Some(blob), lease_secret, offset: 0 };
        let start = v1::UploadBlobRequest { part: Some(v1::upload_blob_request::Part::Start(start)) };
        vec![start, part_chunk(b"text".to_vec())]
    };
    assert_refused(client.upload_parts(upload(old)).await, Code::FailedPrecondition, "LEASE_LOST", "");
    client.upload_parts(upload(client.secret("w"))).await.unwrap();
    client.upload_parts(upload(Bytes::new())).await.unwrap();
    client.submit(submit("w", "r1", vec![create_text("a", "")])).await.unwrap();
}

/// Nothing that is logged or answered to anybody else has the secret in it.
#[test]
fn a_secret_is_not_shown() {
    use aptix_server::dispatcher::approvals::Approvals;
    use aptix_server::dispatcher::feed::Delivery;
    use aptix_server::dispatcher::{Dispatcher, Settings};
    use aptix_server::store::memory::MemoryStore;
    use tokio_stream::StreamExt;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let dispatcher =
            Dispatcher::new(std::sync::Arc::new(MemoryStore::default()), Settings::default(), Approvals::default());
        let mut feed = serve_here(&dispatcher, None).await.unwrap();
        let Some(Ok(lease @ Delivery::Lease(..))) = feed.next().await else { panic!("the lease comes first") };
        assert_eq!(format!("{lease:?}"), "Lease(1, a secret)");
    });
}
