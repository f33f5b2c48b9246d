//! A server that is asked to end, as a service manager does: it finishes what it has begun, its callers move over to the next one, and
//! nothing is lost.

use aptix_model::wire::v1;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::crash::restarts_lose_nothing;
use crate::processes::{connected, served, wait_until_served};

/// How often the server is asked to end while batches come.
const RESTARTS: usize = 15;

#[test]
fn a_server_asked_to_end_under_load_finishes_its_calls_and_agents_move_over() {
    let logged = restarts_lose_nothing(RESTARTS, |server| assert!(server.terminate(), "it ends well"));
    let ends = |message: &str| logged.lines().filter(|line| line.ends_with(message)).count();
    assert_eq!((ends(": shutting down"), ends(": stopped")), (RESTARTS + 1, RESTARTS + 1), "each ends in order");
    for wrong in ["cut off", "not closed in time", "panicked"] {
        assert!(!logged.contains(wrong), "{wrong}: {logged}");
    }
}

/// Streams end with `UNAVAILABLE` and when to come back; connections without a call end with `GOAWAY`, and no error.
#[test]
fn streams_end_with_a_reason_and_connections_with_goaway() {
    let (_machine, server, _agent) = served("auto");
    wait_until_served(&server);
    let (runtime, channel) = connected(&server);
    let mut tasks = JoinSet::new();
    let (mut events, mut calls) = runtime.block_on(async {
        let request = v1::WatchWorkspaceRequest { workspace_id: "demo".to_owned(), ..Default::default() };
        let events = WorkspaceServiceClient::new(channel).watch_workspace(request).await.unwrap().into_inner();
        let stream = TcpStream::connect(&server.address).await.unwrap();
        let (calls, connection) = h2::client::handshake(stream).await.unwrap();
        tasks.spawn(connection);
        (events, calls)
    });
    let ended = std::thread::spawn(|| server.terminate());
    let end = runtime.block_on(async {
        loop {
            match events.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the stream ended without a reason"),
                Err(end) => return end,
            }
        }
    });
    assert_eq!(end.code(), Code::Unavailable, "{end:?}");
    let details = end.get_error_details();
    assert!(details.error_info().is_some() && details.retry_info().is_some(), "{details:?}");
    runtime.block_on(tasks.join_next()).unwrap().unwrap().unwrap();
    let request = http::Request::new(());
    let refused = calls.send_request(request, true).unwrap_err();
    assert!(refused.is_go_away() && refused.reason() == Some(h2::Reason::NO_ERROR), "{refused:?}");
    assert!(ended.join().unwrap());
}
