//! Clients that send a byte at a time, and clients that all come back at once.

use std::collections::BTreeSet;

use aptix_model::wire::v1;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tokio_util::bytes::Bytes;
use tonic::transport::Endpoint;
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt as _;

use super::raw::Raw;
use super::{Quiet, WINDOW, machine, silent_connections};

/// Connections whose head trickles, and calls whose message does, on so many connections.
const HEADS: usize = 200;
const BODIES: usize = 240;
const BODY_CONNECTIONS: usize = 4;
/// The most memory that each may take, in a build without optimisation. Each message is announced with 4 MiB.
const MOST: u64 = 64 << 10;

/// How a client begins: the preface, settings, and a frame of headers that is never whole.
const HEAD: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x40\x01\x04\0\0\0\x01";

/// The quiet client sets the pace: a byte of each comes between two of its rounds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_a_byte_at_a_time_takes_little_memory() {
    let (_machine, server) = machine("", 4096);
    let mut quiet = Quiet::connect(&server).await;
    quiet.rounds(3).await;
    let before = server.memory();
    let mut heads = silent_connections(&server, HEADS).await;
    let mut bodies = Vec::new();
    for _ in 0..BODY_CONNECTIONS {
        let mut raw = Raw::connect(&server.address, WINDOW).await.unwrap();
        for _ in 0..BODIES / BODY_CONNECTIONS {
            // Those that are too many are cut off.
            let _ = raw.begin("BatchService/SubmitBatch", Some(&[0, 0, 0x40, 0, 0])).await;
        }
        bodies.push(raw);
    }
    for byte in HEAD {
        quiet.rounds(1).await;
        for head in &mut heads {
            let _ = head.write_all(&[*byte]).await;
        }
        for (_, sender) in bodies.iter_mut().flat_map(|raw| &mut raw.open) {
            let _ = sender.send_data(Bytes::from_static(b"x"), false);
        }
    }
    quiet.rounds(1).await;
    let (most, now) = ((HEADS + BODIES) as u64 * MOST, server.memory());
    assert!(now <= before + most, "{} bytes more, at most {most}", now.saturating_sub(before));
}

/// Watchers that a storm brings, and streams that the workspace may have.
const WATCHERS: usize = 300;
const STREAMS: usize = 40;
const STORMS: usize = 4;

async fn watch(address: String) -> Result<Streaming<v1::WatchWorkspaceResponse>, Status> {
    let channel =
        Endpoint::from_shared(address).unwrap().connect().await.map_err(|error| Status::from_error(error.into()))?;
    let request = v1::WatchWorkspaceRequest { workspace_id: "w".to_owned(), ..Default::default() };
    Ok(WorkspaceServiceClient::new(channel).watch_workspace(request).await?.into_inner())
}

/// All come at once, again and again. Those that are too many are refused, and are told to come back at different times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storms_of_watchers_are_spread_and_take_little_memory() {
    let room = "connections_per_caller = 20000\nstreams = 20000\nstreams_per_caller = 20000";
    let (_machine, server) = machine(&format!("{room}\nstreams_per_workspace = {STREAMS}"), 4096);
    let mut quiet = Quiet::connect(&server).await;
    quiet.rounds(3).await;
    let mut after_first = None;
    for _ in 0..STORMS {
        let mut storm = JoinSet::from_iter((0..WATCHERS).map(|_| watch(server.url())));
        let (mut served, mut delays, mut refused) = (Vec::new(), BTreeSet::new(), 0);
        while let Some(answer) = storm.join_next().await {
            match answer.unwrap() {
                Ok(stream) => served.push(stream),
                Err(status) => {
                    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
                    let delay = status.get_details_retry_info().and_then(|info| info.retry_delay);
                    delays.insert(delay.expect("it is told when to come back"));
                    refused += 1;
                }
            }
        }
        assert!(served.len() <= STREAMS, "{} streams", served.len());
        assert!(delays.len() * 2 > refused, "{} times for {refused} watchers", delays.len());
        let (least, last) = (delays.first().unwrap(), delays.last().unwrap());
        assert!(*last - *least >= *least / 2, "they are spread over {least:?} to {last:?}");
        quiet.rounds(1).await;
        drop(served);
        let most = after_first.get_or_insert(server.memory() + WATCHERS as u64 * MOST);
        assert!(server.memory() <= *most, "{} bytes, at most {most}", server.memory());
    }
}
