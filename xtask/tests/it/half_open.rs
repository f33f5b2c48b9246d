//! Connections that are half open, as when a cable is pulled: both ends notice by their keep-alive, and what the dead one held is
//! free for others.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use tokio::time::{Duration, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use crate::processes::{Machine, Server, create_request, eventually, wait_until_served};

/// The keep-alive of a watcher: that of the agent.
const PING: Duration = Duration::from_secs(10);
/// Nothing that is waited for takes longer, unless it is broken.
const SOON: Duration = Duration::from_secs(120);

/// Passes connections on to a server until it falls silent: then all of them stay open, and nothing passes any more.
struct Proxy {
    url: String,
    is_silent: Arc<AtomicBool>,
}

impl Proxy {
    fn before(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (to, is_silent) = (server.address.clone(), Arc::new(AtomicBool::new(false)));
        let silence = Arc::clone(&is_silent);
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for client in listener.incoming() {
                let client = client.unwrap();
                if !silence.load(Ordering::SeqCst) {
                    let server = TcpStream::connect(&to).unwrap();
                    for (from, to) in [(&client, &server), (&server, &client)] {
                        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                        let silence = Arc::clone(&silence);
                        std::thread::spawn(move || pass(from, to, &silence));
                    }
                    held.push(server);
                }
                // No connection is closed before the end of the test.
                held.push(client);
            }
        });
        Self { url, is_silent }
    }

    fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, silence: &AtomicBool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !silence.load(Ordering::SeqCst) && to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

async fn connect(url: &str) -> Channel {
    let endpoint = Endpoint::from_shared(url.to_owned()).unwrap();
    let endpoint = endpoint.http2_keep_alive_interval(PING).keep_alive_timeout(PING).keep_alive_while_idle(true);
    endpoint.connect().await.unwrap()
}

async fn watch(channel: &Channel) -> Result<Streaming<v1::WatchWorkspaceResponse>, Status> {
    let request = v1::WatchWorkspaceRequest { workspace_id: "w".to_owned(), ..Default::default() };
    Ok(WorkspaceServiceClient::new(channel.clone()).watch_workspace(request).await?.into_inner())
}

/// The only stream that a workspace may have is held by one that is half open, and so is a lease.
#[test]
fn a_half_open_connection_is_noticed_by_both_ends() {
    let (machine, other) = (Machine::new(), Machine::new());
    let server = machine.server_with("streams_per_workspace = 1", 4096);
    let proxy = Proxy::before(&server);
    let _agent = machine.agent_at(&proxy.url, "auto", |_| ());
    wait_until_served(&server);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (direct, _through_proxy, mut watcher) = runtime.block_on(async {
        let direct = connect(&server.url()).await;
        BatchServiceClient::new(direct.clone()).submit_batch(create_request("r1", "text")).await.unwrap();
        let through_proxy = connect(&proxy.url).await;
        let mut watcher = watch(&through_proxy).await.unwrap();
        timeout(SOON, watcher.message()).await.unwrap().unwrap().expect("an event comes");
        (direct, through_proxy, watcher)
    });
    // The control: nobody else is served while the connections work.
    let refused = runtime.block_on(watch(&direct)).unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    let _second = other.agent(&server);
    eventually("another agent is refused", || other.logged("agent.log").contains("waiting before connecting"));
    assert!(!other.logged("agent.log").contains("epoch=2"), "{}", other.logged("agent.log"));

    proxy.fall_silent();
    let ended = runtime.block_on(async {
        loop {
            match timeout(SOON, watcher.message()).await.expect("the watcher notices") {
                Ok(Some(_)) => {}
                ended => return ended,
            }
        }
    });
    assert!(ended.is_err(), "the stream ended in order");
    eventually("the agent notices", || machine.logged("agent.log").contains("waiting before connecting"));
    eventually("the lease is free for another agent", || other.logged("agent.log").contains("epoch=2"));
    eventually("the stream is free for another watcher", || runtime.block_on(watch(&direct)).is_ok());
}
