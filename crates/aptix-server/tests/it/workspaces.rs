//! Workspaces for readers: which there are, what they count, and their events, filtered.

use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::watch_workspace_response::Message;
use aptix_server::dispatcher::Settings;
use aptix_server::options::Options;
use tonic::{Code, Status, Streaming};

use crate::place::{Place, durable};
use crate::server::{
    Clients, Server, applied, assert_refused, create_text, failed, fields, line_patch, next, refusal, submit,
};
use crate::until::until;

type Events = Streaming<v1::WatchWorkspaceResponse>;

fn asked(after_revision: u64, filter: v1::EventFilter) -> v1::WatchWorkspaceRequest {
    let filter = Some(filter);
    v1::WatchWorkspaceRequest { workspace_id: "w".to_owned(), after_revision, filter, ..Default::default() }
}

async fn watch(client: &mut Clients, request: v1::WatchWorkspaceRequest) -> Result<Events, Status> {
    Ok(client.workspaces.watch_workspace(request).await?.into_inner())
}

async fn event(events: &mut Events) -> v1::BatchEvent {
    match next(events).await.unwrap().message {
        Some(Message::Event(event)) => event,
        other => panic!("expected an event, found {other:?}"),
    }
}

/// Three batches of two sessions: one applied, one failed, one cancelled. Their events are 1 to 6.
async fn three_batches(client: &mut Clients) -> Vec<v1::Batch> {
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"text\n").await.unwrap();
    let mut batches = Vec::new();
    for (request, file) in [("a", create_text("src/A.txt", "text\n")), ("b", line_patch("app/b.txt"))] {
        batches.push(client.submit(submit("w", request, vec![file])).await.unwrap());
    }
    let mut other = submit("w", "c", vec![create_text("c.txt", "text\n")]);
    other.origin = Some(v1::Origin { session_id: "session-2".to_owned(), ..v1::Origin::default() });
    batches.push(client.submit(other).await.unwrap());
    let report = applied(&[("app", "src/A.txt", b"text\n")]);
    client.report("w", &batches[0].batch_id, epoch, report).await.unwrap();
    let nearest = vec![v1::Excerpt { start_line: 1, end_line: 1, text: "line".to_owned() }];
    let mut report = failed("TEXT_NOT_FOUND");
    report.failures[0].nearest = nearest;
    client.report("w", &batches[1].batch_id, epoch, report).await.unwrap();
    let cancel = v1::CancelBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: batches[2].batch_id.clone(),
        ..Default::default()
    };
    client.batches.cancel_batch(cancel).await.unwrap();
    batches
}

/// One stream has the events of all batches that pass its filter, and takes no lease.
#[tokio::test]
async fn a_reader_gets_the_events_that_pass_its_filter() {
    let server = Server::start();
    let mut client = server.connect().await;
    three_batches(&mut client).await;
    let kinds = |kinds: &[v1::EventKind]| v1::EventFilter {
        kinds: kinds.iter().map(|kind| (*kind).into()).collect(),
        ..Default::default()
    };
    let states = |states: &[v1::BatchState]| v1::EventFilter {
        states: states.iter().map(|state| (*state).into()).collect(),
        ..Default::default()
    };
    let sessions = |session: &str| v1::EventFilter { session_ids: vec![session.to_owned()], ..Default::default() };
    let paths = |paths: &[&str]| v1::EventFilter {
        doc_paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..Default::default()
    };
    let both = v1::EventFilter { doc_paths: vec!["app/b.txt".to_owned()], ..kinds(&[v1::EventKind::Reported]) };
    let cases: [(v1::EventFilter, &[u64]); 13] = [
        (v1::EventFilter::default(), &[1, 2, 3, 4, 5, 6]),
        (kinds(&[v1::EventKind::Submitted, v1::EventKind::Cancelled]), &[1, 2, 3, 6]),
        (kinds(&[v1::EventKind::Local]), &[]),
        (states(&[v1::BatchState::Applied, v1::BatchState::Failed]), &[4, 5]),
        (states(&[v1::BatchState::Partial, v1::BatchState::Cancelled]), &[6]),
        (states(&[v1::BatchState::Partial]), &[]),
        (sessions("session-2"), &[3, 6]),
        (sessions("session"), &[]),
        (paths(&["app/src/a.txt"]), &[1, 4]),
        // A path belongs to any root until it is reported.
        (paths(&["other/src/"]), &[]),
        (paths(&["app/"]), &[1, 2, 3, 4, 5, 6]),
        (paths(&["app/b.txt", "other/c.txt", "app/src"]), &[2, 3, 5, 6]),
        (both, &[5]),
    ];
    for (filter, expected) in cases {
        let mut events = watch(&mut client, asked(0, filter.clone())).await.unwrap();
        for revision in expected {
            let event = event(&mut events).await;
            assert_eq!((event.revision, event.cursor.unwrap().revision), (*revision, *revision), "{filter:?}");
        }
        // The next one that passes shows that none was left.
        let mut last = watch(&mut client, asked(6, filter)).await.unwrap();
        tokio::select! {
            biased;
            message = next(&mut last) => panic!("nothing is left, found {message:?}"),
            () = std::future::ready(()) => {}
        }
    }
}

/// A batch that renames a file passes by the file's new path as by its old one, also before it is reported.
#[tokio::test]
async fn a_filter_by_files_finds_where_a_file_is_renamed_to() {
    let server = Server::start();
    let mut client = server.connect().await;
    let rename = v1::ContextPatch { move_to: Some("lib/New.txt".to_owned()), chunks: Vec::new() };
    let patch = v1::FilePatch {
        target: Some(v1::file_patch::Target::Path("src/Old.txt".to_owned())),
        action: Some(v1::file_patch::Action::ContextPatch(rename)),
        ..v1::FilePatch::default()
    };
    client.submit(submit("w", "r", vec![patch])).await.unwrap();
    for doc_path in ["app/src/old.txt", "app/lib/new.txt", "app/lib/"] {
        let filter = v1::EventFilter { doc_paths: vec![doc_path.to_owned()], ..Default::default() };
        let mut events = watch(&mut client, asked(0, filter)).await.unwrap();
        assert_eq!(event(&mut events).await.revision, 1, "{doc_path}");
    }
}

/// Without the wish for all of it a batch comes without content; either way marked where something is left out.
#[tokio::test]
async fn a_view_decides_how_much_of_a_batch_comes() {
    let server = Server::start();
    let mut client = server.connect().await;
    let whole = three_batches(&mut client).await;
    let basic = |batch: &v1::Batch| {
        assert!(batch.content_omitted);
        let file = &batch.edit.as_ref().unwrap().files[0];
        assert!(
            file.action.is_none() && !file.key.is_empty() && !file.file_patch_id.is_empty() && file.target.is_some()
        );
        let report = batch.report.as_ref();
        assert!(
            report.is_none_or(|report| report.diff.is_empty() && report.failures.iter().all(|f| f.nearest.is_empty()))
        );
        assert_eq!(batch.author.as_ref().unwrap().kind(), v1::ActorKind::Author);
    };
    for (view, is_full) in
        [(v1::BatchView::Unspecified, false), (v1::BatchView::Basic, false), (v1::BatchView::Full, true)]
    {
        let which = Some(v1::get_batch_request::Batch::BatchId(whole[1].batch_id.clone()));
        let get = v1::GetBatchRequest { workspace_id: "w".to_owned(), batch: which, view: view.into() };
        let list = v1::ListBatchesRequest { workspace_id: "w".to_owned(), view: view.into(), ..Default::default() };
        let states = v1::WatchBatchRequest {
            workspace_id: "w".to_owned(),
            batch_id: whole[1].batch_id.clone(),
            view: view.into(),
            ..Default::default()
        };
        let again = v1::SubmitBatchRequest { view: view.into(), ..submit("w", "b", vec![line_patch("app/b.txt")]) };
        let dry = v1::SubmitBatchRequest { validate_only: true, ..again.clone() };
        let all = v1::WatchWorkspaceRequest { view: view.into(), ..asked(4, v1::EventFilter::default()) };
        let mut events = watch(&mut client, all).await.unwrap();
        let found = [
            event(&mut events).await.batch.unwrap(),
            client.batches.get_batch(get).await.unwrap().into_inner().batch.unwrap(),
            client.batches.list_batches(list).await.unwrap().into_inner().batches.swap_remove(1),
            next(&mut client.batches.watch_batch(states).await.unwrap().into_inner()).await.unwrap().batch.unwrap(),
            client.submit(again).await.unwrap(),
        ];
        for batch in found {
            assert_eq!((&batch.batch_id, batch.state()), (&whole[1].batch_id, v1::BatchState::Failed));
            if is_full {
                assert!(!batch.content_omitted);
                assert_eq!((&batch.edit, batch.report.unwrap().failures[0].nearest.len()), (&whole[1].edit, 1));
            } else {
                basic(&batch);
            }
        }
        let dry = client.submit(dry).await.unwrap();
        assert_eq!((dry.content_omitted, dry.edit.unwrap().files[0].action.is_some()), (!is_full, is_full));
    }
    let unknown = v1::GetBatchRequest {
        workspace_id: "w".to_owned(),
        batch: Some(v1::get_batch_request::Batch::BatchId(whole[0].batch_id.clone())),
        view: 7,
    };
    assert_refused(client.batches.get_batch(unknown).await, Code::InvalidArgument, "INVALID_REQUEST", "UNKNOWN_ENUM");
}

/// While only events come that do not pass, the reader hears how far it is, and goes on from there.
#[tokio::test]
async fn events_that_do_not_pass_still_move_a_reader_on() {
    let dispatch = Settings { heartbeat: Duration::from_millis(20), ..Settings::default() };
    let server = Server::with(Options { dispatch, ..Options::default() });
    let mut client = server.connect().await;
    three_batches(&mut client).await;
    let filter = v1::EventFilter { session_ids: vec!["nobody".to_owned()], ..Default::default() };
    let mut events = watch(&mut client, asked(0, filter)).await.unwrap();
    let mut author = client.clone();
    let busy = async {
        for number in 0.. {
            author.submit(submit("w", &format!("busy-{number}"), vec![create_text("a", "")])).await.unwrap();
        }
    };
    let heard = async {
        let mut before = 0;
        while before < 20 {
            match next(&mut events).await.unwrap().message {
                Some(Message::Heartbeat(heartbeat)) => {
                    assert!(heartbeat.revision >= before.max(6), "{} after {before}", heartbeat.revision);
                    before = heartbeat.revision;
                }
                other => panic!("no event passes, found {other:?}"),
            }
        }
    };
    tokio::select! {
        () = heard => {}
        () = busy => {}
    }
}

/// A reader that takes nothing is cut off with the reason, and resumes with its last cursor.
#[tokio::test]
async fn a_slow_reader_is_cut_off_and_resumes() {
    let dispatch = Settings { slow_after: Duration::from_millis(100), streams: 1, ..Settings::default() };
    let server = Server::with(Options { dispatch, ..Options::default() });
    let (mut author, mut reader) = (server.connect().await, server.connect().await);
    author.submit(submit("w", "first", vec![create_text("a", "")])).await.unwrap();
    let whole = |after| v1::WatchWorkspaceRequest {
        after,
        view: v1::BatchView::Full.into(),
        ..asked(0, v1::EventFilter::default())
    };
    let mut stuck = watch(&mut reader, whole(None)).await.unwrap();
    for number in 0..200 {
        let files = vec![create_text("a", &"x".repeat(60_000))];
        author.submit(submit("w", &format!("r{number}"), files)).await.unwrap();
    }
    // There is room for one stream: another one opens once the server gave the slow reader up.
    let is_full = |status: &Status| assert_eq!(status.code(), Code::ResourceExhausted);
    until(async || watch(&mut author, whole(None)).await.inspect_err(is_full).ok()).await;
    let mut last = None;
    let cut = loop {
        match next(&mut stuck).await {
            Ok(v1::WatchWorkspaceResponse { message: Some(Message::Event(event)) }) => last = event.cursor,
            Ok(other) => panic!("expected an event, found {other:?}"),
            Err(status) => break status,
        }
    };
    assert_eq!(refusal(&cut), (Code::ResourceExhausted, "RESOURCE_EXHAUSTED".into(), "SLOW_CONSUMER".into()));
    let seen = last.as_ref().unwrap().revision;
    // The stream that was opened meanwhile is on its way out.
    let mut events = until(async || watch(&mut reader, whole(last.clone())).await.ok()).await;
    assert_eq!(event(&mut events).await.revision, seen + 1);
}

/// Everything that is wrong with a request is named, and nothing is streamed.
#[tokio::test]
async fn a_watch_that_makes_no_sense_is_refused() {
    let server = Server::start();
    let mut client = server.connect().await;
    let unknown = watch(&mut client, asked(0, v1::EventFilter::default())).await;
    assert_refused(unknown.map(drop), Code::NotFound, "NOT_FOUND", "");
    three_batches(&mut client).await;
    let future = watch(&mut client, asked(7, v1::EventFilter::default())).await;
    assert_refused(future.map(drop), Code::InvalidArgument, "INVALID_REQUEST", "FUTURE_REVISION");
    let bad = v1::EventFilter {
        states: vec![99],
        kinds: vec![1, 0],
        session_ids: vec!["x".repeat(1000); 101],
        doc_paths: vec!["app".to_owned(), "App/a".to_owned(), "app/../x".to_owned(), "app/ok/".to_owned()],
    };
    let refused = watch(&mut client, asked(0, bad)).await.map(drop).unwrap_err();
    let expected = [
        "filter",
        "filter.states[0]",
        "filter.kinds[1]",
        "filter.sessionIds",
        "filter.docPaths[0]",
        "filter.docPaths[1]",
        "filter.docPaths[2]",
    ];
    assert_eq!(fields(&refused), expected);
}

async fn page(client: &mut Clients, page_size: i32, page_token: String) -> Result<v1::ListWorkspacesResponse, Status> {
    let request = v1::ListWorkspacesRequest { page_size, page_token };
    Ok(client.workspaces.list_workspaces(request).await?.into_inner())
}

/// A workspace without the agent that serves it.
fn unserved(workspace: v1::Workspace) -> v1::Workspace {
    v1::Workspace { serving: None, last_served_time: None, ..workspace }
}

/// Every workspace, by pages of two: its id, its newest revision, its open batches.
async fn all(client: &mut Clients) -> Vec<(String, u64, u64)> {
    let (mut listed, mut token) = (Vec::new(), String::new());
    loop {
        let page = page(client, 2, token).await.unwrap();
        assert!(page.workspaces.len() <= 2);
        for workspace in page.workspaces {
            let get = v1::GetWorkspaceRequest { workspace_id: workspace.workspace_id.clone() };
            let got = client.workspaces.get_workspace(get).await.unwrap().into_inner().workspace.unwrap();
            // That the feed of a lease was dropped may be noticed in between.
            assert_eq!(unserved(got), unserved(workspace.clone()));
            let newest = workspace.cursor.map_or(0, |cursor| cursor.revision);
            listed.push((workspace.workspace_id, newest, workspace.open_batches.unwrap()));
        }
        if page.next_page_token.is_empty() {
            return listed;
        }
        token = page.next_page_token;
    }
}

durable! {
    workspaces_are_listed_with_what_they_count,
}

/// Workspaces are listed by id, page by page, with what they count; also after the server was started again.
async fn workspaces_are_listed_with_what_they_count(place: Place) {
    let server = Server::over(place.open().await, Options::default());
    let mut client = server.connect().await;
    three_batches(&mut client).await;
    client.upload("only-a-blob", b"x").await.unwrap();
    for (workspace, batches) in [("a", 2), ("w.1", 1), ("w-2", 3)] {
        for number in 0..batches {
            client.submit(submit(workspace, &format!("r{number}"), vec![create_text("a", "")])).await.unwrap();
        }
    }
    client.lease("b", "agent", 0).await.unwrap();
    let expected = [("a", 2, 2), ("b", 0, 0), ("w", 6, 0), ("w-2", 3, 3), ("w.1", 1, 1)];
    let expected = expected.map(|(name, newest, open)| (name.to_owned(), newest, open));
    assert_eq!(all(&mut client).await, expected);
    let get = v1::GetWorkspaceRequest { workspace_id: "only-a-blob".to_owned() };
    assert_refused(client.workspaces.get_workspace(get).await, Code::NotFound, "NOT_FOUND", "");
    for token in ["x", "w", "b3", "w/"] {
        let refused = page(&mut client, 0, token.to_owned()).await;
        assert_refused(refused, Code::InvalidArgument, "INVALID_REQUEST", "PAGE");
    }
    drop(client);
    server.stop().await.unwrap();

    let server = Server::over(place.open().await, Options::default());
    let mut client = server.connect().await;
    assert_eq!(all(&mut client).await, expected);
    let get = v1::GetWorkspaceRequest { workspace_id: "w-2".to_owned() };
    let after = client.workspaces.get_workspace(get).await.unwrap().into_inner().workspace.unwrap().cursor;
    let request = v1::WatchWorkspaceRequest { workspace_id: "w-2".to_owned(), after, ..Default::default() };
    let mut events = watch(&mut client, request).await.unwrap();
    client.submit(submit("w-2", "later", vec![create_text("a", "")])).await.unwrap();
    assert_eq!(event(&mut events).await.revision, 4, "the cursor of a workspace begins a watch");
    assert_eq!(all(&mut client).await[3], ("w-2".to_owned(), 4, 4));
}
