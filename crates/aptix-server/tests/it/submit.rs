//! Submitting and reading back: ids, keys, idempotence, pages, withdrawal.

use std::collections::HashSet;
use std::sync::Arc;

use aptix_model::id_block;
use aptix_model::limits::Limits;
use aptix_model::record::BatchRecord;
use aptix_model::wire::v1;
use aptix_server::dispatcher::Settings;
use aptix_server::options::Options;
use aptix_server::store::Store;
use aptix_server::store::memory::MemoryStore;
use tonic::Code;

use crate::place::{Place, durable};
use crate::server::{
    Server, applied, assert_refused, create_file, create_text, edit_of, failed, line_patch, next, next_event, refusal,
    submit,
};
use crate::store_contract;

type Operation = v1::file_patch::Action;

fn change_ids(file: &v1::FilePatch) -> Vec<String> {
    match &file.action {
        Some(Operation::LinePatch(patch)) => patch.changes.iter().map(|change| change.change_id.clone()).collect(),
        _ => Vec::new(),
    }
}

/// TUL-002-5.1.2, TUL-002-7.1.1, TUL-002-7.1.2, TUL-002-7.1.3, TUL-002-8.6.3, TUL-002-10.2, TUL-002-10.5: a batch of
/// several files is stored, and the answer has all three kinds of ids, each once, although the request has none.
/// TUL-002-7.2.1, TUL-002-7.2.2, TUL-002-10.6: keys and descriptions come back.
#[tokio::test]
async fn a_batch_of_several_files_comes_back_with_ids_and_keys() {
    let server = Server::start();
    let mut client = server.connect().await;
    let files = vec![line_patch("app/a.txt"), create_text("src/New.txt", "text\n"), line_patch("app/b.txt")];
    let mut without_keys = create_text("plain.txt", "");
    without_keys.key.clear();
    without_keys.label = "why".to_owned();
    let files: Vec<_> = files.into_iter().chain([without_keys]).collect();
    let batch = client.submit(submit("w", "r1", files.clone())).await.unwrap();
    assert_eq!((batch.revision, batch.state()), (1, v1::BatchState::Approved));
    assert_eq!(batch.request_id, "r1");
    assert!(batch.create_time.is_some());
    let edit = batch.edit.as_ref().unwrap();
    let mut ids: Vec<_> = edit.files.iter().flat_map(change_ids).collect();
    assert_eq!(ids.len(), 4);
    ids.extend(edit.files.iter().map(|file| file.file_patch_id.clone()));
    ids.push(batch.batch_id.clone());
    assert!(ids.iter().all(|id| id.len() == 36));
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 9, "no id occurs twice");
    let mut echoed = edit.files.clone();
    for file in &mut echoed {
        file.file_patch_id.clear();
        if let Some(Operation::LinePatch(patch)) = &mut file.action {
            patch.changes.iter_mut().for_each(|change| change.change_id.clear());
        }
    }
    assert_eq!(echoed, files);
    assert_eq!((edit.key.as_str(), edit.label.as_str()), ("batch-key", "test"));
    assert_eq!(batch.origin.as_ref().unwrap().turn_id, "turn-1");
    assert_eq!(client.get("w", &batch.batch_id).await.unwrap(), batch);
}

/// TUL-002-10.5: ids in a request are not those of the answer, which has its own; so has every later answer.
#[tokio::test]
async fn ids_in_a_request_are_replaced_by_the_server_s() {
    let server = Server::start();
    let mut client = server.connect().await;
    let given = "01900000-0000-7000-8000-000000000001";
    let mut file = line_patch("app/a.txt");
    file.file_patch_id = given.to_owned();
    if let Some(Operation::LinePatch(patch)) = &mut file.action {
        patch.changes.iter_mut().for_each(|change| change.change_id = given.to_owned());
    }
    let mut request = submit("w", "r1", vec![file]);
    edit_of(&mut request).key.clear();
    let batch = client.submit(request.clone()).await.unwrap();
    let files = &batch.edit.as_ref().unwrap().files;
    let mut ids = change_ids(&files[0]);
    ids.extend([files[0].file_patch_id.clone(), batch.batch_id.clone()]);
    assert!(ids.iter().all(|id| id.len() == 36 && id != given), "{ids:?}");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4, "no id occurs twice");
    assert_eq!(client.submit(request).await.unwrap(), batch, "a repeated request");
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    assert_eq!(next_event(&mut feed).await.unwrap().batch.as_ref(), Some(&batch));
}

/// TUL-002-7.1.4: file patches and changes are found again under their ids. TUL-002-4.1.2, TUL-002-4.2.1, TUL-002-5.1.1,
/// TUL-002-7.2.3: a key finds nothing, and two batches may have one.
#[tokio::test]
async fn parts_are_found_by_id_and_never_by_key() {
    let server = Server::start();
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r1", vec![create_text("n", ""), line_patch("app/a.txt")])).await.unwrap();
    let files = batch.edit.clone().unwrap().files;
    let ask = |workspace: &str, id: &str| v1::GetChangeRequest { workspace_id: workspace.into(), id: id.into() };
    let file = client.batches.get_change(ask("w", &files[1].file_patch_id)).await.unwrap().into_inner();
    assert_eq!((file.file_index, file.change_index, file.batch_id.as_str()), (1, None, batch.batch_id.as_str()));
    assert_eq!(file.file.as_ref(), Some(&files[1]));
    let changes = change_ids(&files[1]);
    let change = client.batches.get_change(ask("w", &changes[1])).await.unwrap().into_inner();
    assert_eq!((change.file_index, change.change_index), (1, Some(1)));
    assert_eq!(change_ids(&change.file.unwrap()), changes[1..]);
    for id in [batch.batch_id.as_str(), "01900000-0000-7000-8000-000000000001"] {
        assert_refused(client.batches.get_change(ask("w", id)).await, Code::NotFound, "NOT_FOUND", "");
    }
    assert_refused(client.batches.get_change(ask("v", &changes[1])).await, Code::NotFound, "NOT_FOUND", "");
    for key in [files[1].key.as_str(), "replace"] {
        let by_key = client.batches.get_change(ask("w", key)).await;
        assert_refused(by_key, Code::InvalidArgument, "INVALID_REQUEST", "ID_FORMAT");
    }
    assert_refused(client.get("w", "batch-key").await, Code::InvalidArgument, "INVALID_REQUEST", "ID_FORMAT");
    let twin = client.submit(submit("w", "r2", vec![line_patch("app/a.txt")])).await.unwrap();
    let edits = [client.get("w", &batch.batch_id).await, client.get("w", &twin.batch_id).await];
    let edits = edits.map(|found| found.unwrap().edit.unwrap());
    assert_eq!(
        edits.each_ref().map(|edit| (edit.key.as_str(), edit.files.len())),
        [("batch-key", 2), ("batch-key", 1)]
    );
}

/// The same request id gives the same answer; with other content it is refused and nothing is stored.
#[tokio::test]
async fn a_request_id_identifies_one_batch() {
    let server = Server::start();
    let mut client = server.connect().await;
    let request = submit("w", "r1", vec![line_patch("app/a.txt")]);
    let first = client.submit(request.clone()).await.unwrap();
    assert_eq!(client.submit(request.clone()).await.unwrap(), first);
    let mut other = request.clone();
    edit_of(&mut other).label = "another".to_owned();
    assert_refused(client.submit(other).await, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    let mut elsewhere = request;
    elsewhere.workspace_id = "v".to_owned();
    let elsewhere = client.submit(elsewhere).await.unwrap();
    assert_ne!(elsewhere.batch_id, first.batch_id);
    let by_request = v1::GetBatchRequest {
        workspace_id: "w".to_owned(),
        batch: Some(v1::get_batch_request::Batch::RequestId("r1".to_owned())),
        view: v1::BatchView::Full.into(),
    };
    assert_eq!(client.batches.get_batch(by_request).await.unwrap().into_inner().batch, Some(first));
}

durable! {
    a_stored_batch_is_answered_although_it_would_be_refused_now,
}

/// A retry is answered with the stored batch although the server, restarted with smaller limits, would not store it now.
async fn a_stored_batch_is_answered_although_it_would_be_refused_now(place: Place) {
    let server = Server::over(place.open().await, Options::default());
    let request = submit("w", "r1", vec![line_patch("app/a.txt")]);
    let stored = server.connect().await.submit(request.clone()).await.unwrap();
    server.stop().await.unwrap();

    let limits = Limits { text_bytes: "batch-key".len() - 1, ..Limits::DEFAULT };
    let dispatch = Settings { limits, ..Settings::default() };
    let options = Options { dispatch, ..Options::default() };
    let server = Server::over(place.open().await, options);
    let mut client = server.connect().await;
    let mut twin = client.clone();
    let (one, two) = tokio::join!(client.submit(request.clone()), twin.submit(request.clone()));
    assert_eq!((one.unwrap(), two.unwrap()), (stored.clone(), stored.clone()));

    let mut other = request.clone();
    edit_of(&mut other).label = "another".to_owned();
    assert_refused(client.submit(other).await, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    let mut elsewhere = request.clone();
    elsewhere.origin = None;
    assert_refused(client.submit(elsewhere).await, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    let mut shapeless = request.clone();
    edit_of(&mut shapeless).files[0].action = None;
    assert_refused(client.submit(shapeless).await, Code::InvalidArgument, "INVALID_REQUEST", "MISSING");
    let unknown = v1::SubmitBatchRequest { request_id: "r2".to_owned(), ..request.clone() };
    assert_refused(client.submit(unknown).await, Code::InvalidArgument, "TOO_LARGE", "TEXT");
    let validated = v1::SubmitBatchRequest { validate_only: true, ..request };
    assert_refused(client.submit(validated).await, Code::InvalidArgument, "TOO_LARGE", "TEXT");
    let list = v1::ListBatchesRequest { workspace_id: "w".to_owned(), ..v1::ListBatchesRequest::default() };
    let listed = client.batches.list_batches(list).await.unwrap().into_inner().batches;
    assert_eq!(listed.iter().map(|batch| &batch.batch_id).collect::<Vec<_>>(), [&stored.batch_id]);
}

/// The same holds for a batch that does not fit into a message with its ids, and for one whose blob is not there.
#[tokio::test]
async fn a_stored_batch_is_answered_whatever_the_server_would_refuse_it_for() {
    let store = Arc::new(MemoryStore::default());
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut client = server.connect().await;
    let mut large = line_patch("app/a.txt");
    if let Some(Operation::LinePatch(patch)) = &mut large.action {
        let change = v1::Change { key: String::new(), ..patch.changes[0].clone() };
        patch.changes = vec![change; 60_000];
    }
    let blob = v1::BlobRef { sha256: "0".repeat(64), size_bytes: 1 };
    let absent = create_file("a", v1::create_file::Content::Blob(blob));
    for (number, file, code, reason, detail) in [
        (1, large, Code::InvalidArgument, "TOO_LARGE", "DOCUMENT"),
        (2, absent, Code::FailedPrecondition, "BLOB_MISSING", ""),
    ] {
        let request = submit("w", &format!("r{number}"), vec![file]);
        assert_refused(client.submit(request.clone()).await, code, reason, detail);
        let record = store_contract::batch(number, "w", &request.request_id);
        let batch = edit_of(&mut request.clone()).clone().try_into().unwrap();
        let origin = request.origin.clone().unwrap().into();
        let record = BatchRecord { ids: id_block::of(record.id, &batch), batch, origin, ..record };
        let stored = store_contract::append(&store, record).await;
        assert_eq!(client.submit(request).await.unwrap().batch_id, stored.id.to_string());
    }
}

/// Fifty concurrent submits with one request id store one batch, and all get its answer.
#[tokio::test]
async fn concurrent_submits_with_one_request_id_store_one_batch() {
    let server = Server::start();
    let client = server.connect().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let mut client = client.clone();
        tasks.spawn(async move { client.submit(submit("w", "same", vec![line_patch("app/a.txt")])).await.unwrap() });
    }
    let answers = tasks.join_all().await;
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let list = v1::ListBatchesRequest { workspace_id: "w".to_owned(), ..v1::ListBatchesRequest::default() };
    assert_eq!(client.clone().batches.list_batches(list).await.unwrap().into_inner().batches.len(), 1);
}

/// A batch that is only validated is answered without ids, and nothing is stored.
#[tokio::test]
async fn validation_alone_stores_nothing() {
    let server = Server::start();
    let mut client = server.connect().await;
    let mut request = submit("w", "r1", vec![line_patch("app/a.txt")]);
    request.validate_only = true;
    let answer = client.submit(request).await.unwrap();
    assert_eq!((answer.batch_id.as_str(), answer.revision), ("", 0));
    assert_eq!(change_ids(&answer.edit.unwrap().files[0]), ["", ""]);
    let status = client.get("w", "01900000-0000-7000-8000-000000000000").await.unwrap_err();
    assert_eq!(refusal(&status).0, Code::NotFound);

    // A request id that is taken is reported before the real call is made.
    client.submit(submit("w", "r1", vec![line_patch("app/a.txt")])).await.unwrap();
    let again = v1::SubmitBatchRequest { validate_only: true, ..submit("w", "r1", vec![line_patch("app/a.txt")]) };
    assert_eq!(client.submit(again).await.unwrap().batch_id, "");
    let other = v1::SubmitBatchRequest { validate_only: true, ..submit("w", "r1", vec![line_patch("app/b.txt")]) };
    assert_refused(client.submit(other).await, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
}

/// Pages are newest first, without content, and end; a foreign token or size is refused.
#[tokio::test]
async fn batches_are_listed_in_pages() {
    let server = Server::start();
    let mut client = server.connect().await;
    for number in 0..7 {
        client.submit(submit("w", &format!("r{number}"), vec![create_text("a", "text")])).await.unwrap();
    }
    let mut request =
        v1::ListBatchesRequest { workspace_id: "w".to_owned(), page_size: 3, ..v1::ListBatchesRequest::default() };
    let mut seen = Vec::new();
    loop {
        let page = client.batches.list_batches(request.clone()).await.unwrap().into_inner();
        assert!(page.batches.len() <= 3);
        assert!(page.batches.iter().all(|batch| batch.edit.as_ref().unwrap().files[0].action.is_none()));
        seen.extend(page.batches.into_iter().map(|batch| batch.request_id));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(seen, ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]);
    let large = v1::ListBatchesRequest { page_size: i32::MAX, page_token: String::new(), ..request };
    let page = client.batches.list_batches(large).await.unwrap().into_inner();
    assert_eq!(page.batches.len(), 7, "a size above the limit is lowered");
    for (page_size, token) in [(-1, ""), (3, "x"), (3, "b-1"), (3, "b01"), (3, "fpath")] {
        let request = v1::ListBatchesRequest {
            workspace_id: "w".to_owned(),
            page_size,
            page_token: token.to_owned(),
            ..v1::ListBatchesRequest::default()
        };
        assert_refused(client.batches.list_batches(request).await, Code::InvalidArgument, "INVALID_REQUEST", "PAGE");
    }
}

/// A batch can be withdrawn until it has ended, again and again; its watchers are notified.
#[tokio::test]
async fn a_batch_is_withdrawn_once_and_stays_withdrawn() {
    let server = Server::start();
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r1", vec![line_patch("app/a.txt")])).await.unwrap();
    let watch = v1::WatchBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: batch.batch_id.clone(),
        view: v1::BatchView::Full.into(),
        ..v1::WatchBatchRequest::default()
    };
    let mut states = client.batches.watch_batch(watch).await.unwrap().into_inner();
    assert_eq!(next(&mut states).await.unwrap().batch.unwrap().state(), v1::BatchState::Approved);
    let cancel =
        v1::CancelBatchRequest { workspace_id: "w".to_owned(), batch_id: batch.batch_id.clone(), ..Default::default() };
    let answer = client.batches.cancel_batch(cancel.clone()).await.unwrap().into_inner().batch.unwrap();
    assert_eq!((answer.state(), answer.revision), (v1::BatchState::Cancelled, 2));
    assert_eq!(client.batches.cancel_batch(cancel.clone()).await.unwrap().into_inner().batch, Some(answer));
    assert_eq!(next(&mut states).await.unwrap().batch.unwrap().state(), v1::BatchState::Cancelled);
    assert_eq!(states.message().await.unwrap(), None, "the stream ends with the batch");

    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    let late = client.report("w", &batch.batch_id, epoch, failed("SHA_MISMATCH")).await;
    assert_refused(late, Code::FailedPrecondition, "RESULT_FINAL", "");

    let batch = client.submit(submit("w", "r2", vec![create_text("n", "")])).await.unwrap();
    client.upload("w", b"").await.unwrap();
    client.report("w", &batch.batch_id, epoch, applied(&[("app", "n", b"")])).await.unwrap();
    let cancel = v1::CancelBatchRequest { batch_id: batch.batch_id, ..cancel };
    assert_refused(client.batches.cancel_batch(cancel).await, Code::FailedPrecondition, "INVALID_STATE", "");
}

/// Quotes of the answer are delivered with its batch when the content is. They are no files: they have no ids, are no part of
/// the batch, and what leaves out its content leaves them out.
#[tokio::test]
async fn quotes_come_back_with_the_whole_batch_alone() {
    let server = Server::start();
    let mut client = server.connect().await;
    let quote = |text: &str| v1::FilePatch {
        target: Some(v1::file_patch::Target::Path("src/q.txt".to_owned())),
        action: Some(Operation::Quote(v1::Quote {
            first_line: 3,
            last_line: 5,
            names: vec![v1::QuoteName { path: "src/q.txt".to_owned(), is_path: true }],
            is_announced: false,
            text: text.to_owned(),
        })),
        ..v1::FilePatch::default()
    };
    for (request, text) in [("small", "x\n".to_owned()), ("large", "x\n".repeat(50_000))] {
        let files = vec![create_text("n", ""), line_patch("app/a.txt"), quote(&text), quote("y\n")];
        let batch = client.submit(submit("w", request, files.clone())).await.unwrap();
        assert_eq!(client.get("w", &batch.batch_id).await.unwrap(), batch);
        let echoed = batch.edit.unwrap().files;
        assert_eq!(echoed[2..], files[2..], "without ids");
        let part = |id: &str| v1::GetChangeRequest { workspace_id: "w".to_owned(), id: id.to_owned() };
        let file = client.batches.get_change(part(&echoed[1].file_patch_id)).await.unwrap().into_inner();
        assert_eq!((file.file_index, file.file.as_ref()), (1, Some(&echoed[1])));
        let change = client.batches.get_change(part(&change_ids(&echoed[1])[0])).await.unwrap().into_inner();
        assert_eq!(change.file.unwrap().target, echoed[1].target);
        let watch = v1::WatchBatchRequest {
            workspace_id: "w".to_owned(),
            batch_id: batch.batch_id.clone(),
            view: v1::BatchView::Full.into(),
            ..v1::WatchBatchRequest::default()
        };
        let found = next(&mut client.batches.watch_batch(watch).await.unwrap().into_inner()).await.unwrap();
        let found = found.batch.unwrap();
        let kept = if found.content_omitted { 2 } else { 4 };
        assert_eq!((found.content_omitted, found.edit.unwrap().files.len()), (request == "large", kept));
    }
    let list = v1::ListBatchesRequest { workspace_id: "w".to_owned(), ..v1::ListBatchesRequest::default() };
    for listed in client.batches.list_batches(list).await.unwrap().into_inner().batches {
        assert_eq!(listed.edit.unwrap().files.len(), 2);
    }
    let misplaced = client.submit(submit("w", "order", vec![quote("x\n"), create_text("n", "")])).await;
    assert_refused(misplaced, Code::InvalidArgument, "INVALID_REQUEST", "UNEXPECTED_FIELD");
    let alone = client.submit(submit("w", "alone", vec![quote("x\n")])).await;
    assert_refused(alone, Code::InvalidArgument, "INVALID_REQUEST", "EMPTY");
}
