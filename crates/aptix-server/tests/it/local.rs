//! Batches of the workstation itself: stored as ended, once, with their files, and linked with what they take back.

use std::sync::Arc;

use aptix_model::wire::v1;
use aptix_model::wire::v1::file_patch::{Action, Target};
use aptix_model::wire::v1::file_selector::File;
use aptix_server::options::Options;
use aptix_server::store::Store;
use aptix_server::store::memory::MemoryStore;
use tonic::{Code, Status};

use crate::place::{Place, durable};
use crate::server::{
    Clients, Server, applied, assert_refused, create_text, edit_of, fields, next_event, sha256, submit,
};

const FIRST: &str = "018f6d2e-7c1a-7b3e-9d55-012345680000";
const SECOND: &str = "018f6d2e-7c1a-7b3e-9d55-0123456a0000";
const THIRD: &str = "018f6d2e-7c1a-7b3e-9d55-0123456c0000";

/// A batch of the workstation that changed these files of the root `app`.
pub(crate) fn local(id: &str, epoch: u64, files: &[(&str, &[u8])]) -> v1::ReportLocalBatchRequest {
    let reports: Vec<_> = files.iter().map(|(path, content)| ("app", *path, *content)).collect();
    let patch = |(path, _): &(&str, &[u8])| v1::FilePatch {
        label: format!("label of {path}"),
        target: Some(Target::Path((*path).to_owned())),
        action: Some(Action::LocalChange(v1::LocalChange {})),
        ..v1::FilePatch::default()
    };
    let files = files.iter().map(patch).collect();
    v1::ReportLocalBatchRequest {
        workspace_id: "w".to_owned(),
        lease_epoch: epoch,
        batch_id: id.to_owned(),
        edit: Some(v1::Edit { label: "by hand".to_owned(), files, ..v1::Edit::default() }),
        report: Some(applied(&reports)),
        actor: Some(v1::Actor { kind: v1::ActorKind::Person.into(), name: "laptop".to_owned() }),
        ..v1::ReportLocalBatchRequest::default()
    }
}

pub(crate) async fn report(client: &mut Clients, request: v1::ReportLocalBatchRequest) -> Result<v1::Batch, Status> {
    let request = v1::ReportLocalBatchRequest { lease_secret: client.secret("w"), ..request };
    Ok(client.agent.report_local_batch(request).await?.into_inner().batch.expect("the answer has the batch"))
}

async fn paths(client: &mut Clients) -> Vec<String> {
    let request = v1::ListFilesRequest { workspace_id: "w".to_owned(), ..v1::ListFilesRequest::default() };
    let files = client.files.list_files(request).await.unwrap().into_inner().files;
    files.into_iter().map(|file| file.path).collect()
}

#[tokio::test]
async fn a_local_batch_is_kept_in_memory() {
    is_kept_once_with_its_files(Arc::new(MemoryStore::default())).await;
}

durable! {
    a_local_batch_is_kept_durably,
}

/// What is written is read by a store that is opened again.
async fn a_local_batch_is_kept_durably(place: Place) {
    is_kept_once_with_its_files(place.open().await).await;
    let server = Server::over(place.open().await, Options::default());
    let mut client = server.connect().await;
    let batch = client.get("w", SECOND).await.unwrap();
    let linked = (batch.source(), batch.reverts.as_str(), batch.author.unwrap().name);
    assert_eq!(linked, (v1::BatchSource::Local, FIRST, "laptop".to_owned()));
    assert_eq!(client.get("w", FIRST).await.unwrap().reverted_by, SECOND);
    server.stop().await.unwrap();
}

async fn is_kept_once_with_its_files(store: Arc<dyn Store>) {
    let server = Server::over(store, Options::default());
    let mut client = server.connect().await;
    let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"new").await.unwrap();
    let first = local(FIRST, epoch, &[("a.txt", b"new"), ("b.txt", b"never uploaded")]);
    let stored = report(&mut client, first.clone()).await.unwrap();
    assert_eq!(
        (stored.state(), stored.source(), stored.revision),
        (v1::BatchState::Applied, v1::BatchSource::Local, 1)
    );
    assert_eq!(report(&mut client, first.clone()).await.unwrap(), stored, "the same again is a no-op");
    let mut by_another = first.clone();
    by_another.actor = Some(v1::Actor { kind: v1::ActorKind::Agent.into(), name: "desktop".to_owned() });
    by_another.reason = "no more known".to_owned();
    assert_eq!(report(&mut client, by_another).await.unwrap(), stored, "the first actor and reason stay");
    let unleased = v1::ReportLocalBatchRequest { lease_epoch: 99, ..first };
    assert_eq!(report(&mut client, unleased).await.unwrap(), stored, "also without the lease");
    let event = next_event(&mut feed).await.unwrap();
    assert_eq!((event.kind(), event.state()), (v1::EventKind::Local, v1::BatchState::Applied));
    assert_eq!(event.actor.unwrap().name, "laptop");

    assert_eq!(paths(&mut client).await, ["a.txt"], "a file without content is no cloud file");
    assert_eq!(client.read("w", File::DocPath("app/a.txt".to_owned())).await.unwrap().content(), b"new");
    assert_eq!(crate::audit::steps(&mut client, FIRST).await, ["LOCAL APPLIED PERSON(laptop)"]);
    let whole = client.get("w", FIRST).await.unwrap();
    let edit = whole.edit.unwrap();
    assert_eq!((edit.label.as_str(), edit.files[0].label.as_str()), ("by hand", "label of a.txt"));
    assert_eq!(edit.files[0].action, Some(Action::LocalChange(v1::LocalChange {})));
    assert_eq!(whole.report.unwrap().files[1].sha256, Some(sha256(b"never uploaded")));

    // The undo of an undo puts the first batch back in effect, and one more takes it back again.
    let mut gone = local(SECOND, epoch, &[("a.txt", b"")]);
    FIRST.clone_into(&mut gone.reverts);
    let file = &mut gone.report.as_mut().unwrap().files[0];
    (file.status, file.sha256, file.size_bytes) = (v1::FileStatus::Deleted.into(), None, None);
    report(&mut client, gone).await.unwrap();
    assert_eq!(paths(&mut client).await, [""; 0], "a file that was deleted is none any more");
    assert_eq!(client.get("w", FIRST).await.unwrap().state(), v1::BatchState::Applied);
    let mut reverted_by = Vec::new();
    for (id, reverts) in [(THIRD, SECOND), ("018f6d2e-7c1a-7b3e-9d55-0123456e0000", THIRD)] {
        let by = [FIRST, SECOND].map(|id| id.to_owned());
        for id in by {
            reverted_by.push(client.get("w", &id).await.unwrap().reverted_by);
        }
        let redo =
            v1::ReportLocalBatchRequest { reverts: reverts.to_owned(), ..local(id, epoch, &[("a.txt", b"new")]) };
        report(&mut client, redo).await.unwrap();
    }
    assert_eq!(reverted_by, [SECOND, "", "", THIRD]);
    assert_eq!(client.get("w", FIRST).await.unwrap().reverted_by, SECOND);
    drop(feed);
    server.stop().await.unwrap();
}

/// What is withheld leaves the cloud files, and comes without a digest.
#[tokio::test]
async fn a_withheld_file_is_no_cloud_file_any_more() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"new").await.unwrap();
    report(&mut client, local(FIRST, epoch, &[("a.txt", b"new")])).await.unwrap();
    let mut withheld = local(SECOND, epoch, &[("a.txt", b"new")]);
    let file = &mut withheld.report.as_mut().unwrap().files[0];
    (file.withheld, file.sha256_before) = ("ignored".to_owned(), None);
    let status = report(&mut client, withheld.clone()).await.unwrap_err();
    assert_eq!((status.code(), fields(&status)), (Code::InvalidArgument, vec!["report.files[0].sha256".to_owned()]));
    let file = &mut withheld.report.as_mut().unwrap().files[0];
    (file.sha256, file.size_bytes) = (None, None);
    report(&mut client, withheld).await.unwrap();
    assert_eq!(paths(&mut client).await, [""; 0]);
}

/// Whatever is no batch of the workstation that serves is refused, and stores nothing.
#[tokio::test]
async fn what_is_no_local_batch_is_refused() {
    let server = Server::start();
    let mut client = server.connect().await;
    let submitted = client.submit(submit("w", "r1", vec![create_text("c.txt", "")])).await.unwrap();
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    let good = local(FIRST, epoch, &[("a.txt", b"new")]);
    let edited = |edit: fn(&mut v1::ReportLocalBatchRequest)| {
        let mut request = good.clone();
        edit(&mut request);
        request
    };
    fn report_of(request: &mut v1::ReportLocalBatchRequest) -> &mut v1::Report {
        request.report.as_mut().unwrap()
    }
    let cases = [
        (edited(|request| request.batch_id.replace_range(35.., "1")), "batchId"),
        (edited(|request| request.edit = None), "edit"),
        (edited(|request| request.report = None), "report"),
        (edited(|request| request.actor = None), "actor"),
        (edited(|request| request.actor = Some(v1::Actor::default())), "actor.kind"),
        (edited(|request| request.reverts = "1".to_owned()), "reverts"),
        (edited(|request| request.edit.as_mut().unwrap().files.clear()), "edit.files"),
        (edited(|request| request.edit.as_mut().unwrap().files[0] = create_text("a.txt", "")), "edit.files[0]"),
        (edited(|request| request.edit.as_mut().unwrap().label = "x".repeat((64 << 10) + 1)), "edit"),
        (edited(|request| report_of(request).outcome = v1::Outcome::Rejected.into()), "report"),
        (edited(|request| report_of(request).files.clear()), "report.files"),
        (edited(|request| report_of(request).files[0].path = "b.txt".to_owned()), "report.files[0].docPath"),
        (local(FIRST, epoch, &[("a.txt", b"1"), ("a.txt", b"2")]), "report.files"),
    ];
    for (request, field) in cases {
        let status = report(&mut client, request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status:?}");
        assert!(fields(&status).iter().any(|named| named == field), "{field} in {:?}", fields(&status));
    }
    let stale = v1::ReportLocalBatchRequest { lease_epoch: epoch + 1, ..good.clone() };
    assert_refused(report(&mut client, stale).await, Code::FailedPrecondition, "LEASE_LOST", "");
    let taken = v1::ReportLocalBatchRequest { batch_id: submitted.batch_id.clone(), ..good.clone() };
    assert_refused(report(&mut client, taken).await, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    assert_refused(client.get("w", FIRST).await, Code::NotFound, "NOT_FOUND", "");
    report(&mut client, good.clone()).await.unwrap();
    let other = local(FIRST, epoch, &[("a.txt", b"other")]);
    assert_refused(report(&mut client, other).await, Code::AlreadyExists, "REQUEST_ID_REUSED", "");

    let mut request = submit("w", "r2", vec![create_text("a.txt", "")]);
    edit_of(&mut request).files[0].action = Some(Action::LocalChange(v1::LocalChange {}));
    assert_refused(client.submit(request).await, Code::InvalidArgument, "INVALID_REQUEST", "UNEXPECTED_FIELD");
}

/// A call is repeated until it is answered, also by a server that would refuse the batch now.
#[tokio::test]
async fn a_local_batch_is_answered_under_other_limits() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = Server::over(Arc::clone(&store), Options::default());
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    let files: [(&str, &[u8]); 2] = [("a.txt", b"new"), ("b.txt", b"x")];
    let stored = report(&mut client, local(FIRST, epoch, &files)).await.unwrap();
    let mut options = Options::default();
    options.dispatch.limits.files = 1;
    let server = Server::over(store, options);
    let mut client = server.connect().await;
    assert_eq!(report(&mut client, local(FIRST, epoch, &files)).await.unwrap(), stored);
    let other = report(&mut client, local(SECOND, epoch, &files)).await;
    assert_eq!(fields(&other.unwrap_err()), ["edit.files"]);
}
