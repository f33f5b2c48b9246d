//! Lists of batches with a filter: what fits, how the pages go on, and what each page costs.

use aptix_model::wire::v1;
use tonic::{Code, Status};

use crate::local::{self, local};
use crate::server::{Clients, Server, applied, assert_refused, create_text, submit};

const LOCAL: &str = "018f6d2e-7c1a-7b3e-9d55-012345680000";

fn asked(filter: &v1::BatchFilter) -> v1::ListBatchesRequest {
    v1::ListBatchesRequest { workspace_id: "w".to_owned(), filter: Some(filter.clone()), ..Default::default() }
}

async fn list(client: &mut Clients, request: v1::ListBatchesRequest) -> Result<v1::ListBatchesResponse, Status> {
    client.batches.list_batches(request).await.map(tonic::Response::into_inner)
}

/// The ids of all batches that fit, over pages of one batch.
async fn all(client: &mut Clients, filter: &v1::BatchFilter) -> Vec<String> {
    let (mut found, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListBatchesRequest { page_size: 1, page_token, ..asked(filter) };
        let page = list(client, request).await.unwrap();
        assert!(page.batches.len() <= 1);
        found.extend(page.batches.into_iter().map(|batch| batch.batch_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return found;
        }
    }
}

fn by(kind: v1::ActorKind, name: &str) -> v1::BatchFilter {
    let author = v1::Actor { kind: kind.into(), name: name.to_owned() };
    v1::BatchFilter { authors: vec![author], ..Default::default() }
}

/// A batch of session s1 that was applied, an open one of session s2, and one of the workstation.
async fn three_batches(client: &mut Clients) -> [v1::Batch; 3] {
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"text\n").await.unwrap();
    let mut stored = Vec::new();
    for (request, session, path) in [("a", "s1", "src/A.txt"), ("b", "s2", "lib/b.txt")] {
        let origin = Some(v1::Origin { session_id: session.to_owned(), ..Default::default() });
        let request = v1::SubmitBatchRequest { origin, ..submit("w", request, vec![create_text(path, "text\n")]) };
        stored.push(client.submit(request).await.unwrap());
    }
    let report = applied(&[("app", "src/A.txt", b"text\n")]);
    client.report("w", &stored[0].batch_id, epoch, report).await.unwrap();
    let by_hand = local::report(client, local(LOCAL, epoch, &[("lib/c.txt", b"text\n")])).await.unwrap();
    [stored.remove(0), stored.remove(0), by_hand]
}

#[tokio::test]
async fn a_list_has_the_batches_that_fit_every_field_of_its_filter() {
    let server = Server::start();
    let mut client = server.connect().await;
    let batches = three_batches(&mut client).await;
    let [first, open, by_hand] = &batches;
    let states = |state: v1::BatchState| v1::BatchFilter { states: vec![state.into()], ..Default::default() };
    let sessions = |ids: &[&str]| v1::BatchFilter {
        session_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..Default::default()
    };
    let paths = |path: &str| v1::BatchFilter { doc_paths: vec![path.to_owned()], ..Default::default() };
    let later = |batch: &v1::Batch| {
        let mut time = batch.create_time.unwrap();
        time.seconds += 1;
        time
    };
    let (now, soon) = (first.create_time, Some(later(by_hand)));
    let cases = [
        (v1::BatchFilter::default(), vec![by_hand, open, first]),
        (states(v1::BatchState::Applied), vec![by_hand, first]),
        (states(v1::BatchState::Approved), vec![open]),
        (states(v1::BatchState::Partial), vec![]),
        (sessions(&["s1"]), vec![first]),
        (sessions(&["s1", "s2", "s3"]), vec![open, first]),
        (paths("app/src/a.txt"), vec![first]),
        (paths("app/lib/"), vec![by_hand, open]),
        (by(v1::ActorKind::Author, ""), vec![open, first]),
        (by(v1::ActorKind::Unspecified, "laptop"), vec![by_hand]),
        (by(v1::ActorKind::Person, "laptop"), vec![by_hand]),
        (by(v1::ActorKind::Person, "Laptop"), vec![]),
        (v1::BatchFilter { session_ids: vec!["s1".to_owned()], ..states(v1::BatchState::Approved) }, vec![]),
        (v1::BatchFilter { created_from: now, created_before: soon, ..Default::default() }, vec![by_hand, open, first]),
        (v1::BatchFilter { created_from: soon, ..Default::default() }, vec![]),
        (v1::BatchFilter { created_before: now, ..Default::default() }, vec![]),
    ];
    for (filter, expected) in cases {
        let expected: Vec<_> = expected.into_iter().map(|batch| batch.batch_id.clone()).collect();
        assert_eq!(all(&mut client, &filter).await, expected, "{filter:?}");
    }
}

/// A page that finds nothing among the batches that one call looks at says where to go on.
#[tokio::test]
async fn a_page_looks_at_a_bounded_number_of_batches() {
    let server = Server::start();
    let mut client = server.connect().await;
    let origin = Some(v1::Origin { session_id: "s".to_owned(), ..Default::default() });
    let oldest = v1::SubmitBatchRequest { origin, ..submit("w", "oldest", vec![create_text("a.txt", "")]) };
    let oldest = client.submit(oldest).await.unwrap();
    for number in 0..1000 {
        client.submit(submit("w", &format!("r{number}"), vec![create_text("a.txt", "")])).await.unwrap();
    }
    let filter = v1::BatchFilter { session_ids: vec!["s".to_owned()], ..Default::default() };
    let page = list(&mut client, asked(&filter)).await.unwrap();
    assert!(page.batches.is_empty() && !page.next_page_token.is_empty());
    let request = v1::ListBatchesRequest { page_token: page.next_page_token, ..asked(&filter) };
    let page = list(&mut client, request).await.unwrap();
    assert_eq!((page.batches[0].batch_id.as_str(), page.next_page_token.as_str()), (oldest.batch_id.as_str(), ""));
}

/// Content counts too: no call reads more than a few large batches to leave them out.
#[tokio::test]
async fn a_page_looks_at_bounded_content() {
    let server = Server::start();
    let mut client = server.connect().await;
    let text = "x".repeat(1 << 20);
    let files: Vec<_> = ["a", "b", "c"].iter().map(|path| create_text(path, &text)).collect();
    for number in 0..23 {
        client.submit(submit("w", &format!("r{number}"), files.clone())).await.unwrap();
    }
    let filter = v1::BatchFilter { session_ids: vec!["s".to_owned()], ..Default::default() };
    let page = list(&mut client, asked(&filter)).await.unwrap();
    assert!(page.batches.is_empty());
    assert!(
        page.next_page_token.starts_with("b2~"),
        "22 of 23 batches have more than 64 MiB: {}",
        page.next_page_token
    );
}

#[tokio::test]
async fn a_list_goes_on_with_its_own_filter_alone() {
    let server = Server::start();
    let mut client = server.connect().await;
    three_batches(&mut client).await;
    let (filter, none) = (by(v1::ActorKind::Author, ""), v1::BatchFilter::default());
    let request = v1::ListBatchesRequest { page_size: 1, ..asked(&filter) };
    let filtered = list(&mut client, request).await.unwrap().next_page_token;
    let request = v1::ListBatchesRequest { page_size: 1, ..asked(&none) };
    let plain = list(&mut client, request).await.unwrap().next_page_token;
    let other = by(v1::ActorKind::Agent, "");
    for (token, filter) in [(&filtered, &none), (&filtered, &other), (&plain, &filter)] {
        let request = v1::ListBatchesRequest { page_token: token.clone(), ..asked(filter) };
        let refused = list(&mut client, request).await;
        assert!(refused.as_ref().unwrap_err().message().contains("another filter"), "{refused:?}");
        assert_refused(refused, Code::InvalidArgument, "INVALID_REQUEST", "PAGE");
    }
}

#[tokio::test]
async fn everything_wrong_with_a_filter_is_reported() {
    let server = Server::start();
    let mut client = server.connect().await;
    three_batches(&mut client).await;
    let filter = v1::BatchFilter {
        states: vec![99],
        doc_paths: vec!["../a".to_owned()],
        authors: vec![v1::Actor { kind: 99, name: String::new() }],
        session_ids: vec![String::new(); 101],
        ..Default::default()
    };
    let refused = list(&mut client, asked(&filter)).await.unwrap_err();
    for field in ["filter.states[0]", "filter.docPaths[0]", "filter.authors[0].kind", "filter.sessionIds"] {
        assert!(crate::server::fields(&refused).iter().any(|found| found.contains(field)), "{field}: {refused:?}");
    }
    let long = v1::BatchFilter { session_ids: vec!["x".repeat(65 << 10)], ..Default::default() };
    assert_refused(list(&mut client, asked(&long)).await, Code::InvalidArgument, "TOO_LARGE", "TEXT");
}
