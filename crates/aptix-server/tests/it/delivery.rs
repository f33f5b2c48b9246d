//! From a stored batch to its agent and back: feeds, leases, reports, cloud files.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::Origin;
use aptix_model::id::Revision;
use aptix_model::wire::v1;
use aptix_model::wire::v1::file_selector::File;
use aptix_model::wire::v1::serve_response::Message;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::dispatcher::feed::Delivery;
use aptix_server::dispatcher::lease::secret_digest;
use aptix_server::dispatcher::stream::{FeedEnd, WatchError};
use aptix_server::dispatcher::submit::Submission;
use aptix_server::dispatcher::{Dispatcher, Settings};
use aptix_server::options::Options;
use aptix_server::quota::CallQuota;
use aptix_server::store::embedded::EmbeddedStore;
use prost::Message as _;
use tokio_stream::StreamExt;
use tonic::Code;

use crate::place::{Place, durable};
use crate::server::{
    SOON, Server, applied, assert_refused, create_text, edit_of, failed, line_patch, next, next_event, refusal,
    serve_here, sha256, submit, two_changes,
};
use crate::until::until;

/// TUL-002-8.6.4, TUL-002-8.6.7, TUL-002-8.6.8: the stored batch is handed to the agent; the new file is uploaded, and
/// with the report it becomes the cloud file. TUL-004-3.2.5, TUL-004-6.1.4.1: request and result stay readable, with the turn they
/// belong to.
#[tokio::test]
async fn a_batch_goes_to_its_agent_and_its_files_become_cloud_files() {
    let server = Server::start();
    let (mut author, mut agent) = (server.connect().await, server.connect().await);
    let (epoch, mut feed) = agent.lease("w", "agent", 0).await.unwrap();
    assert_eq!(epoch, 1);
    let files = vec![line_patch("app/src/a.txt"), create_text("New.txt", "text\n")];
    let batch = author.submit(submit("w", "r1", files)).await.unwrap();
    let event = next_event(&mut feed).await.unwrap();
    assert_eq!((event.revision, event.batch.as_ref()), (1, Some(&batch)));
    let who = |kind: v1::ActorKind, name: &str| Some(v1::Actor { kind: kind.into(), name: name.to_owned() });
    assert_eq!((event.kind(), event.state()), (v1::EventKind::Submitted, v1::BatchState::Approved));
    assert_eq!((event.time, event.actor), (batch.create_time, who(v1::ActorKind::Author, "")));

    let mut report = applied(&[("app", "src/A.txt", b"first\nnew\n"), ("app", "New.txt", b"text\n")]);
    report.files[0].changes = two_changes();
    let answer = agent.report("w", &batch.batch_id, epoch, report.clone()).await;
    let status = answer.unwrap_err();
    assert_eq!(refusal(&status), (Code::FailedPrecondition, "BLOB_MISSING".to_owned(), String::new()));
    assert!(status.message().contains(&sha256(b"text\n")), "{}", status.message());
    agent.upload("w", b"first\nnew\n").await.unwrap();
    agent.upload("w", b"text\n").await.unwrap();
    let ended = agent.report("w", &batch.batch_id, epoch, report.clone()).await.unwrap();
    assert_eq!((ended.state(), ended.revision, ended.edit), (v1::BatchState::Applied, 2, None));

    let event = next_event(&mut feed).await.unwrap();
    assert_eq!((event.kind(), event.state()), (v1::EventKind::Reported, v1::BatchState::Applied));
    assert_eq!((event.time, event.actor.clone()), (ended.update_time, who(v1::ActorKind::Agent, "agent")));
    assert_eq!((event.revision, event.batch.unwrap().state()), (2, v1::BatchState::Applied));
    let whole = author.get("w", &batch.batch_id).await.unwrap();
    assert_eq!((whole.report, whole.edit), (Some(report), batch.edit));
    let origin = whole.origin.unwrap();
    assert_eq!((origin.session_id.as_str(), origin.turn_id.as_str()), ("session-1", "turn-1"));

    let read = author.read("w", File::DocPath("app/src/a.txt".to_owned())).await.unwrap();
    assert_eq!(
        (read.file.as_ref().unwrap().source(), read.content.as_deref()),
        (v1::Source::Cloud, Some(b"first\nnew\n".as_slice()))
    );
    let file = read.file.unwrap();
    assert_eq!((file.path.as_str(), file.revision), ("src/A.txt", Some(2)));
    assert_eq!(author.read("w", File::Path("New.txt".to_owned())).await.unwrap().file.unwrap().size_bytes, 5);
    let list = v1::ListFilesRequest { workspace_id: "w".to_owned(), page_size: 1, ..v1::ListFilesRequest::default() };
    let page = author.files.list_files(list.clone()).await.unwrap().into_inner();
    assert_eq!(page.files[0].path, "New.txt");
    let list = v1::ListFilesRequest { page_token: page.next_page_token, ..list };
    let page = author.files.list_files(list).await.unwrap().into_inner();
    assert_eq!((page.files[0].path.as_str(), page.next_page_token.as_str()), ("src/A.txt", ""));
}

/// A feed resumes after any revision: nothing comes twice, nothing is missing, and heartbeats say how far it is.
#[tokio::test]
async fn a_feed_resumes_anywhere_without_gap() {
    let dispatch = Settings { heartbeat: Duration::from_millis(20), ..Settings::default() };
    let server = Server::with(Options { dispatch, ..Options::default() });
    let mut client = server.connect().await;
    for number in 0..150 {
        client.submit(submit("w", &format!("r{number}"), vec![create_text("a", "")])).await.unwrap();
    }
    for after in [0, 1, 149, 150] {
        let (_, mut feed) = client.lease("w", "agent", after).await.unwrap();
        for expected in after + 1..=150 {
            assert_eq!(next_event(&mut feed).await.unwrap().revision, expected);
        }
        match next(&mut feed).await.unwrap().message {
            Some(Message::Heartbeat(heartbeat)) => assert_eq!(heartbeat.revision, 150),
            other => panic!("expected a heartbeat, found {other:?}"),
        }
    }
    let answer = client.lease("w", "agent", 151).await.map(drop);
    assert_refused(answer, Code::InvalidArgument, "INVALID_REQUEST", "FUTURE_REVISION");
}

/// An agent that reads nothing is disconnected with the reason; other workspaces do not notice.
#[tokio::test]
async fn a_slow_receiver_is_cut_off_and_resumes() {
    let dispatch = Settings { slow_after: Duration::from_millis(100), ..Settings::default() };
    let server = Server::with(Options { dispatch, ..Options::default() });
    let (mut author, mut slow, mut quick) = (server.connect().await, server.connect().await, server.connect().await);
    let (_, mut stuck) = slow.lease("slow", "agent", 0).await.unwrap();
    let (_, mut feed) = quick.lease("quick", "agent", 0).await.unwrap();
    for number in 0..200 {
        let files = vec![create_text("a", &"x".repeat(60_000))];
        author.submit(submit("slow", &format!("r{number}"), files)).await.unwrap();
    }
    author.submit(submit("quick", "r", vec![create_text("a", "")])).await.unwrap();
    assert_eq!(next_event(&mut feed).await.unwrap().revision, 1);
    // Another agent can serve the workspace once the server gave the slow one up.
    until(async || match quick.lease("slow", "other", 0).await.map(drop) {
        Ok(()) => Some(()),
        Err(status) => {
            assert_eq!(refusal(&status).2, "LEASE_HELD");
            None
        }
    })
    .await;
    let mut seen = 0;
    let status = loop {
        match next_event(&mut stuck).await {
            Ok(event) => {
                seen += 1;
                assert_eq!(event.revision, seen);
            }
            Err(status) => break status,
        }
    };
    assert_eq!(refusal(&status), (Code::ResourceExhausted, "RESOURCE_EXHAUSTED".into(), "SLOW_CONSUMER".into()));
    assert!(seen < 200);
}

/// Two files whose keys are equal are not guessed between.
#[tokio::test]
async fn a_key_of_two_files_is_ambiguous() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"").await.unwrap();
    for (request, path) in [("r1", "Read.me"), ("r2", "READ.ME")] {
        let batch = client.submit(submit("w", request, vec![create_text(path, "")])).await.unwrap();
        client.report("w", &batch.batch_id, epoch, applied(&[("app", path, b"")])).await.unwrap();
    }
    let answer = client.read("w", File::DocPath("app/read.me".to_owned())).await;
    assert_refused(answer, Code::FailedPrecondition, "AMBIGUOUS_PATH", "CASE_COLLISION");
    assert_eq!(client.read("w", File::Path("READ.ME".to_owned())).await.unwrap().file.unwrap().path, "READ.ME");
}

/// A key that two files had is one file's again once an edit by that key was applied: the agent found only one.
#[tokio::test]
async fn a_key_of_two_files_heals() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"").await.unwrap();
    for (request, path) in [("r1", "Read.me"), ("r2", "READ.ME"), ("r3", "other")] {
        let batch = client.submit(submit("w", request, vec![create_text(path, "")])).await.unwrap();
        client.report("w", &batch.batch_id, epoch, applied(&[("app", path, b"")])).await.unwrap();
    }
    let batch = client.submit(submit("w", "r4", vec![line_patch("app/read.me")])).await.unwrap();
    let mut report = applied(&[("app", "read.ME", b"")]);
    report.files[0].changes = two_changes();
    client.report("w", &batch.batch_id, epoch, report).await.unwrap();
    let read = client.read("w", File::DocPath("app/read.me".to_owned())).await.unwrap();
    assert_eq!(read.file.unwrap().path, "read.ME");
    let list = v1::ListFilesRequest { workspace_id: "w".to_owned(), ..v1::ListFilesRequest::default() };
    let files = client.files.list_files(list).await.unwrap().into_inner().files;
    assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["other", "read.ME"]);
}

/// Every path that a batch may name can be reported, read and listed, however deep and long it is.
#[tokio::test]
async fn the_deepest_and_the_longest_path_become_cloud_files() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"").await.unwrap();
    let longest = ("x".repeat(199) + "/").repeat(20) + &"x".repeat(95);
    for path in [["d"; 64].join("/"), longest] {
        for (request, target) in [("path", create_text(&path, "")), ("key", line_patch(&format!("app/{path}")))] {
            let by_key = request == "key";
            let request = format!("{request}-{}", path.len());
            let batch = client.submit(submit("w", &request, vec![target])).await.unwrap();
            let mut report = applied(&[("app", &path, b"")]);
            if by_key {
                report.files[0].changes = two_changes();
            }
            client.report("w", &batch.batch_id, epoch, report).await.unwrap();
        }
        for file in [File::DocPath(format!("app/{path}")), File::Path(path.clone())] {
            assert_eq!(client.read("w", file).await.unwrap().file.unwrap().revision.unwrap() % 2, 0);
        }
    }
    let list = v1::ListFilesRequest { workspace_id: "w".to_owned(), page_size: 1, ..v1::ListFilesRequest::default() };
    let page = client.files.list_files(list.clone()).await.unwrap().into_inner();
    let list = v1::ListFilesRequest { page_token: page.next_page_token, ..list };
    assert_eq!(client.files.list_files(list).await.unwrap().into_inner().files.len(), 1);
}

durable! {
    a_batch_is_delivered_although_its_author_has_disconnected,
}

/// A batch whose author disconnects before the answer is still delivered to the agent.
async fn a_batch_is_delivered_although_its_author_has_disconnected(place: Place) {
    let store = place.open().await;
    let settings = Settings { heartbeat: Duration::from_secs(3600), ..Settings::default() };
    let dispatcher = Dispatcher::new(store, settings, Approvals::default());
    let mut feed = serve_here(&dispatcher, None).await.unwrap();
    assert!(matches!(feed.next().await, Some(Ok(Delivery::Lease(1, _)))));
    let batch =
        aptix_model::batch::Batch::try_from(edit_of(&mut submit("w", "r", vec![line_patch("app/a")])).clone()).unwrap();
    let (workspace, request_id) = ("w".parse().unwrap(), "r".parse().unwrap());
    let submission = Submission {
        workspace,
        request_id,
        batch,
        origin: Origin::default(),
        sent: aptix_model::record::Sent::default(),
    };
    dispatcher.check(&submission).await.unwrap();
    let record = submission.into_record(dispatcher.now());
    let id = record.id;
    let unlimited = CallQuota::default();
    tokio::select! {
        biased;
        // Only a machine that leaves this thread at once for the writing one is done already.
        _ = dispatcher.keep(record, &unlimited, std::time::Instant::now()) => {}
        () = std::future::ready(()) => {}
    }
    match tokio::time::timeout(SOON, feed.next()).await.expect("the event comes in time") {
        Some(Ok(Delivery::Event(event))) => assert_eq!((event.revision, event.batch.unwrap().id), (Revision(1), id)),
        other => panic!("expected the batch, found {other:?}"),
    }
}

/// Of two streams that are opened with one secret at the same instant, one takes the lease over, and has the newest epoch.
#[tokio::test(flavor = "multi_thread")]
async fn one_secret_takes_a_lease_over_once() {
    let dir = tempfile::tempdir().unwrap();
    let dispatcher =
        Dispatcher::new(Arc::new(EmbeddedStore::open(dir.path()).unwrap()), Settings::default(), Approvals::default());
    let open = async |held| {
        let mut feed = serve_here(&dispatcher, held).await?;
        match feed.next().await {
            Some(Ok(Delivery::Lease(epoch, secret))) => Ok((epoch, secret_digest(secret.bytes()), feed)),
            other => panic!("expected the lease, found {other:?}"),
        }
    };
    let (mut newest, mut held, mut older) = open(None).await.unwrap();
    for _ in 0..50 {
        let (granted, mut refused) = match tokio::join!(open(held), open(held)) {
            (Ok(granted), Err(refused)) | (Err(refused), Ok(granted)) => (granted, vec![refused]),
            (first, second) => panic!("{:?} and {:?}", first.map(|lease| lease.0), second.map(|lease| lease.0)),
        };
        assert!(matches!(refused.pop(), Some(WatchError::LeaseHeld(_))));
        assert_eq!(granted.0, newest + 1);
        let end = tokio::time::timeout(SOON, older.next()).await.expect("the older stream ends in time");
        assert!(matches!(end, Some(Err(FeedEnd::Superseded))), "{end:?}");
        (newest, held, older) = granted;
    }
}

/// On shutdown, the server reports that on every stream, accepts nothing more, and ends.
#[tokio::test]
async fn streams_are_notified_when_the_server_stops() {
    let mut server = Server::start();
    let mut client = server.connect().await;
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let batch = client.submit(submit("w", "r1", vec![create_text("a", "")])).await.unwrap();
    let watch = v1::WatchBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: batch.batch_id,
        view: v1::BatchView::Full.into(),
        ..v1::WatchBatchRequest::default()
    };
    let mut states = client.batches.watch_batch(watch).await.unwrap().into_inner();
    next(&mut states).await.unwrap();
    next_event(&mut feed).await.unwrap();
    server.tell_to_stop();
    assert_refused(next(&mut feed).await, Code::Unavailable, "UNAVAILABLE", "SHUTTING_DOWN");
    assert_refused(next(&mut states).await, Code::Unavailable, "UNAVAILABLE", "SHUTTING_DOWN");
    server.stop().await.unwrap();
}

/// What a person rejected is recorded as theirs; what an agent rejects by itself, and what else it reports, as the agent's.
#[tokio::test]
async fn a_rejection_is_recorded_as_the_persons() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, mut feed) = client.lease("w", "laptop", 0).await.unwrap();
    let rejected = v1::Report { outcome: v1::Outcome::Rejected.into(), ..failed("REJECTED") };
    let mut never = rejected.clone();
    never.failures[0].detail = "NEVER_APPROVES".to_owned();
    for (request, report, kind, name) in [
        ("r1", rejected, v1::ActorKind::Person, ""),
        ("r2", never, v1::ActorKind::Agent, "laptop"),
        ("r3", failed("TEXT_NOT_FOUND"), v1::ActorKind::Agent, "laptop"),
    ] {
        let batch = client.submit(submit("w", request, vec![line_patch("app/a.txt")])).await.unwrap();
        client.report("w", &batch.batch_id, epoch, report).await.unwrap();
        assert_eq!(next_event(&mut feed).await.unwrap().kind(), v1::EventKind::Submitted);
        let actor = next_event(&mut feed).await.unwrap().actor.unwrap();
        assert_eq!((actor.kind(), actor.name.as_str()), (kind, name), "{request}");
    }
}

/// However long the texts of an origin are, an event has at most 64 KiB; what it leaves out is marked, and kept.
#[tokio::test]
async fn an_event_is_small_whatever_its_origin_holds() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (_epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let [session_id, conversation_id, turn_id] = ["s", "c", "t"].map(|text| text.repeat(64 << 10));
    let origin = v1::Origin { session_id, conversation_id, turn_id };
    let request = v1::SubmitBatchRequest {
        origin: Some(origin.clone()),
        ..submit("w", "r", vec![create_text("a.txt", "text\n")])
    };
    let batch = client.submit(request).await.unwrap();
    let event = next_event(&mut feed).await.unwrap();
    assert!(event.encoded_len() <= 64 << 10, "{} bytes", event.encoded_len());
    let told = event.batch.unwrap();
    assert_eq!((told.content_omitted, told.origin, &told.batch_id), (true, None, &batch.batch_id));
    assert_eq!(client.get("w", &batch.batch_id).await.unwrap().origin, Some(origin));
}
