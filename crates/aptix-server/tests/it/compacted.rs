//! Readers and authors over gRPC, once a workspace keeps content or events no longer.

use std::sync::Arc;

use aptix_model::wire::v1;
use aptix_server::options::Options;
use aptix_server::store::Store;
use aptix_server::store::retention::{Age, Limits, Retention};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::place::{Place, durable};
use crate::server::{Clients, Server, applied, assert_refused, create_text, hello, next, next_event, submit};

struct Scene {
    _place: Place,
    store: Arc<dyn Store>,
    _server: Server,
    client: Clients,
    epoch: u64,
}

impl Scene {
    /// Batches 1 to 3 are applied, with events 1 to 6, and batch 4 is open; answers the cursors after each event.
    async fn set(place: Place) -> (Self, Vec<v1::Cursor>) {
        let store = place.open().await;
        let server = Server::over(Arc::clone(&store), Options::default());
        let mut client = server.connect().await;
        client.upload("w", b"").await.unwrap();
        let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
        let mut scene = Self { _place: place, store, _server: server, client, epoch };
        for request in ["1", "2", "3"] {
            let batch = scene.submit(request).await.unwrap();
            scene.report(&batch.batch_id, request).await.unwrap();
        }
        scene.submit("4").await.unwrap();
        let mut cursors = Vec::new();
        while cursors.len() < 7 {
            cursors.push(next_event(&mut feed).await.unwrap().cursor.unwrap());
        }
        (scene, cursors)
    }

    async fn submit(&mut self, request: &str) -> Result<v1::Batch, Status> {
        self.client.submit(submit("w", request, vec![create_text(request, "")])).await
    }

    async fn report(&mut self, batch: &str, path: &str) -> Result<(), Status> {
        let report = v1::Report { diff: "+new\n".to_owned(), ..applied(&[("app", path, b"")]) };
        self.client.report("w", batch, self.epoch, report).await.map(drop)
    }

    async fn retain(&self, limits: Limits) {
        let order = Retention { workspace: "w".parse().unwrap(), limits, now: Age(0), is_rehearsal: false };
        self.store.retain(order).await.unwrap();
    }

    /// The revision of the first event after a position.
    async fn resume(&mut self, hello: v1::Hello) -> Result<u64, Status> {
        let lease_secret = self.client.secret("w");
        let (_, mut feed) = self.client.serve(v1::Hello { lease_secret, ..hello }).await?;
        Ok(next_event(&mut feed).await?.revision)
    }
}

fn assert_compacted<T: std::fmt::Debug>(answer: Result<T, Status>, oldest: &str) {
    let info = answer.as_ref().err().and_then(|status| status.get_details_error_info());
    assert_eq!(info.unwrap().metadata.get("oldest").map(String::as_str), Some(oldest));
    assert_refused(answer, Code::OutOfRange, "COMPACTED", "");
}

durable! {
    who_resumes_before_the_oldest_event_learns_which_that_is,
    what_is_repeated_after_its_content_went_changes_nothing,
    a_list_goes_on_where_events_went,
}

/// An agent or a reader that was away for too long learns where it can go on, and then gets what is open.
async fn who_resumes_before_the_oldest_event_learns_which_that_is(place: Place) {
    let (mut scene, cursors) = Scene::set(place).await;
    scene.retain(Limits { record_events: Some(3), ..Limits::default() }).await;
    let after = |after_revision| v1::Hello { after_revision, ..hello("w", "agent") };
    let behind = |cursor: &v1::Cursor| v1::Hello { cursor: Some(cursor.clone()), ..hello("w", "agent") };
    let watch = |after: &v1::Cursor| v1::WatchWorkspaceRequest {
        workspace_id: "w".to_owned(),
        after: Some(after.clone()),
        ..v1::WatchWorkspaceRequest::default()
    };
    for revision in 0..4 {
        assert_compacted(scene.resume(after(revision)).await, "5");
    }
    for cursor in &cursors[..3] {
        assert_compacted(scene.resume(behind(cursor)).await, "5");
        assert_compacted(scene.client.workspaces.watch_workspace(watch(cursor)).await.map(drop), "5");
    }
    // The error has the whole position before the oldest event, to which a restored server answers HISTORY_CHANGED.
    let refused = scene.resume(after(0)).await.unwrap_err().get_details_error_info().unwrap().metadata.clone();
    assert_eq!((&refused["history"], &refused["digest"]), (&cursors[3].history_id, &cursors[3].digest));
    assert_eq!(scene.resume(after(4)).await.unwrap(), 5);
    assert_eq!(scene.resume(behind(&cursors[3])).await.unwrap(), 5, "the digest of the last event that went is kept");
    assert_eq!(scene.resume(behind(&cursors[5])).await.unwrap(), 7, "what is open comes");
    let mut events = scene.client.workspaces.watch_workspace(watch(&cursors[3])).await.unwrap().into_inner();
    assert!(next(&mut events).await.is_ok());
    let other = v1::Cursor { digest: cursors[0].digest.clone(), ..cursors[3].clone() };
    assert_refused(scene.resume(behind(&other)).await, Code::FailedPrecondition, "HISTORY_CHANGED", "");
    let foreign = v1::Cursor { history_id: "018f6d2e-7c1a-7b3e-9d55-0123456789ab".to_owned(), ..cursors[0].clone() };
    assert_refused(scene.resume(behind(&foreign)).await, Code::FailedPrecondition, "HISTORY_CHANGED", "");
}

/// A retry finds its batch, and a report that comes again is the one that is kept; neither is taken for another one.
async fn what_is_repeated_after_its_content_went_changes_nothing(place: Place) {
    let (mut scene, _) = Scene::set(place).await;
    let before = scene.submit("1").await.unwrap();
    scene.retain(Limits { content_batches: Some(0), ..Limits::default() }).await;
    let after = scene.submit("1").await.unwrap();
    assert_eq!((&after.batch_id, after.revision), (&before.batch_id, before.revision));
    assert!(after.content_omitted && after.removed_content_sha256.len() == 64, "{after:?}");
    let file = after.edit.unwrap().files.remove(0);
    assert_eq!((file.action, &file.file_patch_id), (None, &before.edit.unwrap().files[0].file_patch_id));
    let report = after.report.unwrap();
    assert_eq!((report.diff.as_str(), report.diff_omitted, report.files.len()), ("", true, 1));
    let other = scene.client.submit(submit("w", "1", vec![create_text("1", "other")])).await;
    assert_refused(other, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    scene.report(&before.batch_id, "1").await.unwrap();
    let failed = scene.client.report("w", &before.batch_id, scene.epoch, crate::server::failed("FILE_CHANGED")).await;
    assert_refused(failed.map(drop), Code::FailedPrecondition, "RESULT_FINAL", "");
    let open = scene.submit("4").await.unwrap();
    assert_eq!(open.removed_content_sha256, "", "an open batch is whole");
}

/// A page of a list goes on although events went in between.
async fn a_list_goes_on_where_events_went(place: Place) {
    let (mut scene, _) = Scene::set(place).await;
    let mut page = v1::ListBatchesRequest { workspace_id: "w".to_owned(), page_size: 3, ..Default::default() };
    let first = scene.client.batches.list_batches(page.clone()).await.unwrap().into_inner();
    assert_eq!(first.batches.len(), 3);
    scene.retain(Limits { record_events: Some(1), ..Limits::default() }).await;
    page.page_token = first.next_page_token;
    let second = scene.client.batches.list_batches(page).await.unwrap().into_inner();
    assert_eq!((second.batches.len(), second.damaged.len(), second.next_page_token.as_str()), (0, 0, ""));
}
