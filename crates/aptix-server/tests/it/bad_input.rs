//! Calls that no caller should make: each is refused by name, with the field at fault.

use aptix_model::wire::v1;
use aptix_model::wire::v1::create_file::Content;
use aptix_model::wire::v1::file_selector::File;
use tonic::Code;

use crate::server::{Server, assert_refused, create_file, create_text, edit_of, fields, line_patch, refusal, submit};

const ABSENT: &str = "01900000-0000-7000-8000-000000000000";

/// TUL-002-9.2: what a submit can have wrong with it.
#[tokio::test]
async fn a_submit_names_what_is_wrong_with_it() {
    let server = Server::start();
    let mut client = server.connect().await;
    let good = || submit("w", "r1", vec![line_patch("app/a.txt")]);
    let edited = |edit: &dyn Fn(&mut v1::SubmitBatchRequest)| {
        let mut request = good();
        edit(&mut request);
        request
    };
    let file = |edit: &dyn Fn(&mut v1::FilePatch)| edited(&|request| edit(&mut edit_of(request).files[0]));
    let created = |content: Option<Content>| {
        let create = v1::CreateFile { content, overwrite: false, content_format: None };
        file(&|patch| patch.action = Some(v1::file_patch::Action::CreateFile(create.clone())))
    };
    let no_operation = |patch: &mut v1::FilePatch| {
        if let Some(v1::file_patch::Action::LinePatch(patch)) = &mut patch.action {
            patch.changes[1].operation = None;
        }
    };
    let bad_blob = v1::BlobRef { sha256: "abc".to_owned(), size_bytes: 1 };
    let big_origin = v1::Origin { turn_id: "x".repeat((64 << 10) + 1), ..v1::Origin::default() };
    let cases = [
        ("workspaceId", "ID_FORMAT", edited(&|request| request.workspace_id = "a/b".to_owned())),
        ("workspaceId", "ID_FORMAT", edited(&|request| request.workspace_id.clear())),
        ("requestId", "REQUEST_ID", edited(&|request| request.request_id.clear())),
        ("requestId", "REQUEST_ID", edited(&|request| request.request_id = "x".repeat(1 << 20))),
        ("requestId", "REQUEST_ID", edited(&|request| request.request_id = "a\nb".to_owned())),
        ("content", "MISSING", edited(&|request| request.content = None)),
        ("origin.turnId", "TEXT", edited(&|request| request.origin = Some(big_origin.clone()))),
        ("files[0].target", "MISSING", file(&|patch| patch.target = None)),
        ("files[0].action", "MISSING", file(&|patch| patch.action = None)),
        ("files[0].changes[1].operation", "MISSING", file(&no_operation)),
        ("files[0].createFile", "MISSING", created(None)),
        ("files[0].createFile.blob.sha256", "SHA_FORMAT", created(Some(Content::Blob(bad_blob)))),
        ("files[0].createFile.text", "FILE", created(Some(Content::Text("x".repeat((1 << 20) + 1))))),
    ];
    for (field, detail, request) in cases {
        let status = client.submit(request).await.unwrap_err();
        let (code, _, found) = refusal(&status);
        assert_eq!((code, found.as_str()), (Code::InvalidArgument, detail), "{field}: {}", status.message());
        assert_eq!(fields(&status), [field]);
        assert!(status.message().len() < 1000);
    }
    let everything = v1::SubmitBatchRequest::default();
    assert_eq!(fields(&client.submit(everything).await.unwrap_err()), ["workspaceId", "requestId", "content"]);
}

/// A blob larger than a created file may be is refused, uploaded or not.
#[tokio::test]
async fn a_created_file_has_a_limit_however_it_comes() {
    let server = Server::start();
    let mut client = server.connect().await;
    let blob = v1::BlobRef { sha256: crate::server::sha256(b""), size_bytes: (10 << 20) + 1 };
    let answer = client.submit(submit("w", "r1", vec![create_file("a", Content::Blob(blob))])).await;
    assert_refused(answer, Code::InvalidArgument, "TOO_LARGE", "FILE");
}

/// Whatever names a workspace, a batch or a file that is not there is answered alike.
#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let server = Server::start();
    let mut client = server.connect().await;
    client.submit(submit("w", "r1", vec![create_text("a", "")])).await.unwrap();
    for workspace in ["w", "unknown"] {
        let workspace_id = workspace.to_owned();
        let not_found = |status: tonic::Status| assert_eq!(refusal(&status).0, Code::NotFound);
        not_found(client.get(workspace, ABSENT).await.unwrap_err());
        let watch = v1::WatchBatchRequest {
            workspace_id: workspace_id.clone(),
            batch_id: ABSENT.to_owned(),
            view: v1::BatchView::Full.into(),
            ..v1::WatchBatchRequest::default()
        };
        not_found(client.batches.watch_batch(watch).await.map(drop).unwrap_err());
        let cancel = v1::CancelBatchRequest {
            workspace_id: workspace_id.clone(),
            batch_id: ABSENT.to_owned(),
            ..Default::default()
        };
        not_found(client.batches.cancel_batch(cancel).await.unwrap_err());
        let change = v1::GetChangeRequest { workspace_id: workspace_id.clone(), id: ABSENT.to_owned() };
        not_found(client.batches.get_change(change).await.unwrap_err());
        not_found(client.read(workspace, File::DocPath("app/a".to_owned())).await.unwrap_err());
        not_found(client.read(workspace, File::Path("a".to_owned())).await.unwrap_err());
        not_found(client.report(workspace, ABSENT, 1, crate::server::failed("X")).await.unwrap_err());
    }
    let list = v1::ListBatchesRequest { workspace_id: "unknown".to_owned(), ..v1::ListBatchesRequest::default() };
    assert_refused(client.batches.list_batches(list).await, Code::NotFound, "NOT_FOUND", "");
    let list = v1::ListFilesRequest { workspace_id: "unknown".to_owned(), ..v1::ListFilesRequest::default() };
    assert_refused(client.files.list_files(list.clone()).await, Code::NotFound, "NOT_FOUND", "");
    let list = v1::ListFilesRequest { workspace_id: "w".to_owned(), ..list };
    assert!(client.files.list_files(list).await.unwrap().into_inner().files.is_empty());
}

/// Malformed reads are refused, not answered with nothing.
#[tokio::test]
async fn a_read_names_what_is_wrong_with_it() {
    let server = Server::start();
    let mut client = server.connect().await;
    let get = v1::GetBatchRequest { workspace_id: "w".to_owned(), batch: None, view: v1::BatchView::Full.into() };
    assert_refused(client.batches.get_batch(get).await, Code::InvalidArgument, "INVALID_REQUEST", "MISSING");
    for id in ["", "no", &"0".repeat(32), &format!("{{{ABSENT}}}")] {
        assert_refused(client.get("w", id).await, Code::InvalidArgument, "INVALID_REQUEST", "ID_FORMAT");
    }
    let read = v1::ReadFileRequest { workspace_id: "w".to_owned(), file: None, ..v1::ReadFileRequest::default() };
    assert_refused(client.files.read_file(read).await, Code::InvalidArgument, "INVALID_REQUEST", "MISSING");
    for (path, detail) in [("../a", "TRAVERSAL"), ("/a", "ABSOLUTE"), ("a\0b", "NUL"), ("", "EMPTY")] {
        let answer = client.read("w", File::Path(path.to_owned())).await;
        assert_refused(answer, Code::InvalidArgument, "INVALID_PATH", detail);
    }
    let answer = client.read("w", File::DocPath("app/A".to_owned())).await;
    assert_refused(answer, Code::InvalidArgument, "INVALID_PATH", "NOT_LOWERCASE");
    let ask = |sha256: Vec<String>| v1::FindMissingBlobsRequest { workspace_id: "w".to_owned(), sha256 };
    let status = client.files.find_missing_blobs(ask(vec!["x".to_owned(), "y".to_owned()])).await.unwrap_err();
    assert_eq!(fields(&status), ["sha256[0]", "sha256[1]"]);
    let many = ask(vec!["0".repeat(64); 10_001]);
    assert_refused(client.files.find_missing_blobs(many).await, Code::InvalidArgument, "TOO_LARGE", "");
    for agent in ["", "a b", &"a".repeat(65)] {
        let answer = client.lease("w", agent, 0).await.map(drop);
        assert_refused(answer, Code::InvalidArgument, "INVALID_REQUEST", "ID_FORMAT");
    }
}
