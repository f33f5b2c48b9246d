//! A data directory that was copied: two servers with the same past, and then with different events under the same
//! revisions. A cursor of one of them is not valid in the other.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use aptix_model::wire::v1;
use aptix_server::options::Options;
use aptix_server::store::Store;
use aptix_server::store::embedded::EmbeddedStore;
use tonic::Code;

use crate::server::{Clients, Server, applied, assert_refused, create_text, hello, next, next_event, submit};

struct Twin {
    _server: Server,
    client: Clients,
}

impl Twin {
    async fn over(directory: &Path) -> Self {
        let server = Server::over(Arc::new(EmbeddedStore::open(directory).unwrap()), Options::default());
        Self { client: server.connect().await, _server: server }
    }

    async fn submit(&mut self, request: &str) -> v1::Batch {
        self.client.submit(submit("w", request, vec![create_text(&format!("{request}.txt"), "")])).await.unwrap()
    }

    /// The cursor after each event from the first.
    async fn cursors(&mut self, count: usize) -> Vec<v1::Cursor> {
        let (_, mut feed) = self.client.lease("w", "agent", 0).await.unwrap();
        let mut cursors = Vec::new();
        while cursors.len() < count {
            cursors.push(next_event(&mut feed).await.unwrap().cursor.unwrap());
        }
        cursors
    }

    async fn resume(&mut self, cursor: v1::Cursor) -> Result<u64, tonic::Status> {
        let lease_secret = self.client.secret("w");
        let hello = v1::Hello { cursor: Some(cursor), lease_secret, ..hello("w", "agent") };
        let (_, mut feed) = self.client.serve(hello).await?;
        Ok(next_event(&mut feed).await?.revision)
    }

    async fn page(&mut self, page_token: String) -> Result<v1::ListBatchesResponse, tonic::Status> {
        let request = v1::ListBatchesRequest {
            workspace_id: "w".to_owned(),
            page_size: 2,
            page_token,
            ..v1::ListBatchesRequest::default()
        };
        Ok(self.client.batches.list_batches(request).await?.into_inner())
    }

    async fn files(&mut self, page_token: String) -> Result<v1::ListFilesResponse, tonic::Status> {
        let request = v1::ListFilesRequest {
            workspace_id: "w".to_owned(),
            page_size: 1,
            page_token,
            ..v1::ListFilesRequest::default()
        };
        Ok(self.client.files.list_files(request).await?.into_inner())
    }
}

/// Two directories with three batches each, of which two were applied; then each gets eight of its own.
async fn twins() -> (tempfile::TempDir, Twin, Twin) {
    let place = tempfile::tempdir().unwrap();
    let (one, other) = (place.path().join("one"), place.path().join("other"));
    let store = Arc::new(EmbeddedStore::open(&one).unwrap());
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut client = server.connect().await;
    let (epoch, feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"").await.unwrap();
    for request in ["a", "b", "c"] {
        let batch = client.submit(submit("w", request, vec![create_text(request, "")])).await.unwrap();
        if request != "c" {
            client.report("w", &batch.batch_id, epoch, applied(&[("app", request, b"")])).await.unwrap();
        }
    }
    drop((feed, client));
    server.stop().await.unwrap();
    drop(store);
    assert!(Command::new("cp").arg("-a").arg(&one).arg(&other).status().unwrap().success());
    let (mut first, mut second) = (Twin::over(&one).await, Twin::over(&other).await);
    for number in 0..8 {
        first.submit(&format!("first-{number}")).await;
        second.submit(&format!("second-{number}")).await;
    }
    (place, first, second)
}

#[tokio::test]
async fn a_cursor_of_another_history_is_refused_though_its_revision_exists() {
    let (_place, mut first, mut second) = twins().await;
    let (ours, theirs) = (first.cursors(13).await, second.cursors(13).await);
    assert_eq!((&ours[..5], &ours[0].history_id), (&theirs[..5], &theirs[12].history_id), "the past is the same");
    for (index, cursor) in (0..12).zip(theirs) {
        let resumed = first.resume(cursor).await;
        if index < 5 {
            assert_eq!(resumed.unwrap(), index + 2);
        } else {
            assert_refused(resumed, Code::FailedPrecondition, "HISTORY_CHANGED", "");
        }
    }
    assert_eq!(first.resume(ours[9].clone()).await.unwrap(), 11);
    let made_up = [
        v1::Cursor { history_id: "018f6d2e-7c1a-7b3e-9d55-0123456789ab".to_owned(), ..ours[9].clone() },
        v1::Cursor { revision: 11, ..ours[9].clone() },
        v1::Cursor { revision: 0, ..ours[9].clone() },
        v1::Cursor { revision: 1 << 40, ..ours[9].clone() },
    ];
    for cursor in made_up {
        assert_refused(first.resume(cursor).await, Code::FailedPrecondition, "HISTORY_CHANGED", "");
    }
    let no_cursor = v1::Cursor { digest: "no".to_owned(), ..ours[9].clone() };
    assert_eq!(first.resume(no_cursor).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_list_continues_in_its_own_history_alone() {
    let (_place, mut first, mut second) = twins().await;
    let token = first.page(String::new()).await.unwrap().next_page_token;
    assert_eq!(first.page(token.clone()).await.unwrap().batches.len(), 2);
    assert_refused(second.page(token).await, Code::FailedPrecondition, "HISTORY_CHANGED", "");
    assert_eq!(second.page("b12".to_owned()).await.unwrap().batches[0].revision, 11, "a token of an earlier version");
    let token = first.files(String::new()).await.unwrap().next_page_token;
    assert_eq!(first.files(token.clone()).await.unwrap().files[0].path, "b");
    assert_refused(second.files(token).await, Code::FailedPrecondition, "HISTORY_CHANGED", "");
    assert_eq!(second.files("fapp/a".to_owned()).await.unwrap().files[0].path, "b");
}

/// A reader of a workspace's events, who takes no lease, is held to its history too.
#[tokio::test]
async fn a_reader_of_a_workspace_goes_on_in_its_own_history_alone() {
    let (_place, mut first, mut second) = twins().await;
    let cursors = first.cursors(10).await;
    let watch = |revision: usize| v1::WatchWorkspaceRequest {
        workspace_id: "w".to_owned(),
        after: Some(cursors[revision - 1].clone()),
        ..v1::WatchWorkspaceRequest::default()
    };
    for (of_first, revision, resumes) in [(true, 9, true), (false, 5, true), (false, 9, false)] {
        let twin = if of_first { &mut first } else { &mut second };
        let events = twin.client.workspaces.watch_workspace(watch(revision)).await;
        if resumes {
            let message = next(&mut events.unwrap().into_inner()).await.unwrap().message;
            let Some(v1::watch_workspace_response::Message::Event(event)) = message else { panic!("{message:?}") };
            assert_eq!(event.revision, revision as u64 + 1);
        } else {
            assert_refused(events.map(drop), Code::FailedPrecondition, "HISTORY_CHANGED", "");
        }
    }
}

/// The states of one batch go on behind a cursor, and are refused behind one of another history.
#[tokio::test]
async fn the_states_of_a_batch_go_on_behind_a_cursor() {
    let (_place, mut first, mut second) = twins().await;
    let batch = first.submit("watched").await;
    let watch = |after| v1::WatchBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: batch.batch_id.clone(),
        after,
        view: v1::BatchView::Full.into(),
    };
    let mut states = first.client.batches.watch_batch(watch(None)).await.unwrap().into_inner();
    let cursor = next(&mut states).await.unwrap().cursor.unwrap();
    let mut later = first.client.batches.watch_batch(watch(Some(cursor.clone()))).await.unwrap().into_inner();
    let cancel =
        v1::CancelBatchRequest { workspace_id: "w".to_owned(), batch_id: batch.batch_id.clone(), ..Default::default() };
    first.client.batches.cancel_batch(cancel).await.unwrap();
    let update = next(&mut later).await.unwrap();
    assert_eq!(update.batch.unwrap().state(), v1::BatchState::Cancelled);
    let mut ended = first.client.batches.watch_batch(watch(update.cursor)).await.unwrap().into_inner();
    assert_eq!(ended.message().await.unwrap(), None, "there are no more events");
    let other = second.submit("watched").await;
    let watch = v1::WatchBatchRequest { batch_id: other.batch_id, ..watch(Some(cursor)) };
    let refused = second.client.batches.watch_batch(watch).await;
    assert_refused(refused.map(drop), Code::FailedPrecondition, "HISTORY_CHANGED", "");
}
