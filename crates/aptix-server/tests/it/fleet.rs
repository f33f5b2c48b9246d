//! Several servers on one store: readers and agents of each learn of what the others do, a lease has one holder among all, and an agent
//! is asked through the server that it is connected to.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::token::{Role, Scope};
use aptix_model::wire::v1;
use aptix_model::wire::v1::file_selector::File;
use aptix_model::wire::v1::fleet_service_client::FleetServiceClient;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::fleet::FleetOptions;
use aptix_server::identity::{NewToken, Registry};
use aptix_server::options::{Changeable, Options};
use aptix_server::quota::{Allowance, QuotaRules};
use aptix_server::serve::serve;
use aptix_server::store::Store;
use aptix_server::store::memory::shared::SharedMemory;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::{Code, Request, Status};

use crate::identity::make;
use crate::live_files::Disk;
use crate::server::{Clients, Feed, Server, applied, assert_refused, create_text, hello, next, next_event, submit};
use crate::until::until;

/// How long the servers of these tests believe that another one lives.
const LIFETIME: Duration = Duration::from_millis(1500);

/// What a report says of the file that the batches of these tests create.
const CREATED: (&str, &str, &[u8]) = ("app", "a.txt", b"1");

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

/// One of several servers.
struct Node {
    server: Arc<Server>,
    store: Arc<SharedMemory>,
    /// Lets the other servers reach this one.
    bridge: JoinHandle<()>,
    client: Clients,
}

impl Node {
    /// A server on a store, which looks at what others did this often.
    async fn start(store: Arc<SharedMemory>, poll: Duration) -> Self {
        Self::with(store, poll, QuotaRules::default()).await
    }

    /// The same, which holds callers to these limits.
    #[expect(clippy::disallowed_methods, reason = "the handle is kept, and ended with the node")]
    async fn with(store: Arc<SharedMemory>, poll: Duration, quotas: QuotaRules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Some(format!("http://{}", listener.local_addr().unwrap()));
        let fleet = FleetOptions { address, lifetime: LIFETIME, poll, ..FleetOptions::default() };
        let changeable = Changeable { fleet, quotas: quotas.into(), ..Approvals::default().into() };
        // Without heartbeats to fall back on, every event has to wake its waiters.
        let mut options = Options::default();
        options.dispatch.heartbeat = NEVER;
        let server = Arc::new(Server::asking(Arc::clone(&store) as Arc<dyn Store>, options, changeable));
        let bridged = Arc::clone(&server);
        let bridge = tokio::spawn(async move {
            let mut bridges = tokio::task::JoinSet::new();
            while let Ok((mut outer, _)) = listener.accept().await {
                let mut inner = bridged.stream().await;
                bridges.spawn(async move { tokio::io::copy_bidirectional(&mut outer, &mut inner).await });
            }
        });
        let client = server.connect().await;
        Self { server, store, bridge, client }
    }

    /// Kills it: nothing is told to anybody.
    fn kill(&self) {
        self.bridge.abort();
        self.server.kill();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Two servers on one store.
async fn two(poll: Duration) -> (Node, Node) {
    let store = Arc::new(SharedMemory::default());
    let other = store.another();
    (Node::start(store, poll).await, Node::start(other, poll).await)
}

/// Begins to serve a workspace, once that is possible.
async fn served(client: &mut Clients, agent: &str) -> (u64, Feed) {
    let (epoch, feed, served) = until(async || {
        let mut client = client.clone();
        match client.lease("w", agent, 0).await {
            Ok((epoch, feed)) => Some((epoch, feed, client)),
            Err(status) => {
                assert!(matches!(status.code(), Code::Unavailable | Code::FailedPrecondition), "{status:?}");
                None
            }
        }
    })
    .await;
    *client = served;
    (epoch, feed)
}

fn watched(workspace: &str) -> v1::WatchWorkspaceRequest {
    v1::WatchWorkspaceRequest { workspace_id: workspace.to_owned(), ..Default::default() }
}

async fn next_watched(stream: &mut tonic::Streaming<v1::WatchWorkspaceResponse>) -> Result<v1::BatchEvent, Status> {
    loop {
        if let Some(v1::watch_workspace_response::Message::Event(event)) = next(stream).await?.message {
            return Ok(event);
        }
    }
}

/// A batch goes from one server to the agent of the other, and its report back to those who wait for it, over hints alone.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_server_stores_reaches_the_readers_of_the_others_at_once() {
    let (mut a, mut b) = two(NEVER).await;
    // A server looks once when it starts.
    until(async || (b.store.looks() > 0).then_some(())).await;
    let (epoch, mut feed) = served(&mut a.client, "agent").await;
    let first = b.client.submit(submit("w", "one", vec![create_text("a.txt", "1")])).await.unwrap();
    let event = next_event(&mut feed).await.unwrap();
    assert_eq!(event.batch.as_ref().unwrap().batch_id, first.batch_id);
    let mut watching = b.client.workspaces.watch_workspace(watched("w")).await.unwrap().into_inner();
    assert_eq!(next_watched(&mut watching).await.unwrap().revision, 1);
    let watch =
        v1::WatchBatchRequest { workspace_id: "w".to_owned(), batch_id: first.batch_id.clone(), ..Default::default() };
    let mut states = b.client.batches.watch_batch(watch).await.unwrap().into_inner();
    next(&mut states).await.unwrap();
    // Hints come in their order: before that of this batch comes that of the lease, for which it may look.
    a.client.submit(submit("w", "two", vec![create_text("b.txt", "2")])).await.unwrap();
    assert_eq!(next_watched(&mut watching).await.unwrap().revision, 2);
    let looks = b.store.looks();
    b.client.upload("w", b"1").await.unwrap();
    a.client.report("w", &first.batch_id, epoch, applied(&[CREATED])).await.unwrap();
    let state = next_watched(&mut watching).await.unwrap();
    assert_eq!((state.revision, state.state()), (3, v1::BatchState::Applied));
    assert_eq!(next(&mut states).await.unwrap().batch.unwrap().state(), v1::BatchState::Applied);
    assert_eq!(b.store.looks(), looks, "no hint was lost, so nothing had to be looked for");
}

/// The same where every hint is lost: within one look.
#[tokio::test(flavor = "multi_thread")]
async fn a_hint_that_is_lost_costs_one_look() {
    let (mut a, mut b) = two(Duration::from_millis(30)).await;
    a.store.silence(true);
    let (_, mut feed) = served(&mut a.client, "agent").await;
    for number in 1..=3 {
        let file = create_text(&format!("{number}.txt"), "1");
        b.client.submit(submit("w", &format!("r{number}"), vec![file])).await.unwrap();
        assert_eq!(next_event(&mut feed).await.unwrap().revision, number);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_has_one_holder_among_all_servers_and_goes_to_who_has_its_secret() {
    let (mut a, mut b) = two(NEVER).await;
    let (epoch, mut feed) = served(&mut a.client, "agent").await;
    let refused = async || b.client.clone().lease("w", "other", 0).await.map(drop).unwrap_err();
    let other = until(async || Some(refused().await).filter(|status| status.code() != Code::Unavailable)).await;
    assert_eq!(other.code(), Code::FailedPrecondition, "{other:?}");
    assert!(other.message().contains("another agent has served the workspace since"), "{other:?}");
    // The agent comes back to the other server: its former stream ends, and its former lease is good for nothing.
    let batch = a.client.submit(submit("w", "r", vec![create_text("a.txt", "1")])).await.unwrap();
    next_event(&mut feed).await.unwrap();
    b.client.secrets = a.client.secrets.clone();
    let (newer, _newer_feed) = b.client.lease("w", "agent", 0).await.unwrap();
    assert!(newer > epoch);
    let end = loop {
        if let Err(status) = next(&mut feed.stream).await {
            break status;
        }
    };
    assert!(end.message().contains("a newer stream of the same agent took over"), "{end:?}");
    a.client.upload("w", b"1").await.unwrap();
    let stale = a.client.report("w", &batch.batch_id, epoch, applied(&[CREATED])).await.unwrap_err();
    assert_eq!(stale.code(), Code::FailedPrecondition, "{stale:?}");
    b.client.report("w", &batch.batch_id, newer, applied(&[CREATED])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_a_server_that_died_is_free_once_the_others_believe_it() {
    let (mut a, mut b) = two(NEVER).await;
    let (epoch, _feed) = served(&mut a.client, "agent").await;
    let held = b.client.lease("w", "other", 0).await.map(drop).unwrap_err();
    assert_eq!(held.code(), Code::FailedPrecondition, "{held:?}");
    a.kill();
    let (newer, _newer_feed) = served(&mut b.client, "other").await;
    assert!(newer > epoch);
}

/// A lease that was granted, and whose agent never learnt of it, is held by nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_whose_answer_was_lost_is_free() {
    let (mut a, mut b) = two(NEVER).await;
    drop(served(&mut a.client, "agent").await);
    a.store.lose_lease();
    let lost = a.client.lease("w", "agent", 0).await.map(drop).unwrap_err();
    assert_eq!(lost.code(), Code::Unavailable, "{lost:?}");
    let before = tokio::time::Instant::now();
    served(&mut b.client, "other").await;
    assert!(before.elapsed() < LIFETIME, "{:?}", before.elapsed());
}

/// One that ends in order frees its leases at once, also where it could not be long enough dead.
#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_an_agent_that_goes_is_free_at_once() {
    let (mut a, mut b) = two(NEVER).await;
    let (_, feed) = served(&mut a.client, "agent").await;
    let before = tokio::time::Instant::now();
    drop(feed);
    served(&mut b.client, "other").await;
    assert!(before.elapsed() < LIFETIME, "{:?}", before.elapsed());
}

/// A server that cannot reach the store ends its feeds before another server grants the lease to another agent; and serves again
/// once it reaches it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_cut_off_from_the_store_lets_its_agents_go() {
    let (mut a, mut b) = two(NEVER).await;
    let (_, mut feed) = served(&mut a.client, "agent").await;
    a.store.cut(true);
    let end = next(&mut feed.stream).await.unwrap_err();
    assert_eq!(end.code(), Code::Unavailable, "{end:?}");
    assert!(end.message().contains("lost its place among the servers on its store"), "{end:?}");
    let (_, other) = served(&mut b.client, "other").await;
    let refused = a.client.serve(hello("v", "agent")).await.map(drop).unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    a.store.cut(false);
    drop(other);
    served(&mut a.client, "agent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_asked_through_the_server_that_it_is_connected_to() {
    let (mut a, mut b) = two(NEVER).await;
    drop(served(&mut a.client, "agent").await);
    let disk = Disk::default();
    disk.write("a.txt", b"now");
    let agent = disk.serve(&mut a.client).await;
    let path = || File::Path("a.txt".to_owned());
    let read = b.client.read("w", path()).await.unwrap();
    assert_eq!(read.content.unwrap(), "now");
    assert_eq!(read.file.unwrap().source(), v1::Source::Active);
    let workspace = v1::GetWorkspaceRequest { workspace_id: "w".to_owned() };
    let workspace = b.client.workspaces.get_workspace(workspace).await.unwrap().into_inner().workspace.unwrap();
    assert_eq!(workspace.serving.unwrap().version, "1.2.3");
    // What the agent cannot do is told as it is told there.
    let missing = b.client.read("w", File::Path("missing.txt".to_owned())).await.unwrap_err();
    let there = a.client.read("w", File::Path("missing.txt".to_owned())).await.unwrap_err();
    assert_eq!((missing.code(), missing.message()), (there.code(), there.message()));
    agent.abort();
}

/// While the servers cannot reach each other, the caller is told so, and the rest goes on.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_behind_a_server_that_cannot_be_reached_is_lost_for_now() {
    let (mut a, mut b) = two(NEVER).await;
    drop(served(&mut a.client, "agent").await);
    let disk = Disk::default();
    disk.write("a.txt", b"now");
    let agent = disk.serve(&mut a.client).await;
    a.bridge.abort();
    let lost = until(async || {
        let asked = b.client.clone().read("w", File::Path("a.txt".to_owned())).await.unwrap_err();
        asked.message().contains("cannot be asked").then_some(asked)
    })
    .await;
    assert_refused(Err::<(), _>(lost), Code::Unavailable, "UNAVAILABLE", "AGENT_LOST");
    b.client.submit(submit("w", "r", vec![create_text("b.txt", "1")])).await.unwrap();
    agent.abort();
}

/// A server that is cut off before it serves names what it could not read.
#[tokio::test]
async fn a_server_that_cannot_read_its_tokens_does_not_start() {
    let store = Arc::new(SharedMemory::default());
    store.cut(true);
    let incoming = tokio_stream::empty::<std::io::Result<DuplexStream>>();
    let options = (Options::default(), Approvals::default());
    let error = serve(store, options, incoming, std::future::pending()).await.unwrap_err();
    assert!(error.to_string().starts_with("failed to read the tokens in the store: "), "{error}");
}

/// Whether anybody may ask an agent directly.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_server_on_the_same_store_asks_an_agent() {
    let (a, _b) = two(NEVER).await;
    let registry = Registry::load(Arc::clone(&a.store) as Arc<dyn Store>).await.unwrap();
    let operator = NewToken {
        name: "operator".parse().unwrap(),
        role: Role::Operator,
        scope: Scope::All,
        expires: None,
        certificate: None,
    };
    let ask = || v1::AskAgentRequest { workspace_id: "w".to_owned(), question: None };
    let refused = FleetServiceClient::new(a.client.channel.clone()).ask_agent(ask()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    let secret = make(&registry, operator).await;
    let refused = until(async || {
        let mut request = Request::new(ask());
        request.metadata_mut().insert("authorization", format!("Bearer {secret}").parse().unwrap());
        let refused = FleetServiceClient::new(a.client.channel.clone()).ask_agent(request).await.unwrap_err();
        (refused.code() != Code::Unauthenticated).then_some(refused)
    })
    .await;
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    assert!(refused.message().contains("for the other servers on this server's store"), "{refused:?}");
}

/// A token that is made through one server is needed at the others, and one that is ended there is of no use here, nor are its streams.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_those_of_all_servers() {
    let (mut a, b) = two(NEVER).await;
    let elsewhere = Registry::load(Arc::clone(&b.store) as Arc<dyn Store>).await.unwrap();
    a.client.submit(submit("w", "r", vec![create_text("a.txt", "1")])).await.unwrap();
    let reader = NewToken {
        name: "reader".parse().unwrap(),
        role: Role::Reader,
        scope: Scope::All,
        expires: None,
        certificate: None,
    };
    let secret = make(&elsewhere, reader).await;
    let refused = until(async || a.client.clone().workspaces.watch_workspace(watched("w")).await.err()).await;
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
    let mut request = Request::new(watched("w"));
    request.metadata_mut().insert("authorization", format!("Bearer {secret}").parse().unwrap());
    let mut watching = a.client.workspaces.watch_workspace(request).await.unwrap().into_inner();
    next_watched(&mut watching).await.unwrap();
    elsewhere.revoke("reader".parse().unwrap()).await.unwrap();
    let end = next_watched(&mut watching).await.unwrap_err();
    assert_eq!(end.code(), Code::Unauthenticated, "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_that_another_server_deletes_ends_here_too() {
    for is_silent in [false, true] {
        let (mut a, b) = two(Duration::from_millis(30)).await;
        a.client.submit(submit("w", "r", vec![create_text("a.txt", "1")])).await.unwrap();
        let mut watching = a.client.workspaces.watch_workspace(watched("w")).await.unwrap().into_inner();
        next_watched(&mut watching).await.unwrap();
        let looks = a.store.looks();
        until(async || (a.store.looks() > looks + 1).then_some(())).await;
        a.store.silence(is_silent);
        let elsewhere = Registry::load(Arc::clone(&b.store) as Arc<dyn Store>).await.unwrap();
        elsewhere.begin_deletion("w".parse().unwrap()).await.unwrap();
        b.store.continue_deletion("w".parse().unwrap()).await.unwrap();
        // There is one of this name again, with as many events.
        b.client.clone().submit(submit("w", "r", vec![create_text("a.txt", "2")])).await.unwrap();
        let end = next_watched(&mut watching).await.unwrap_err();
        assert!(end.message().contains("is being deleted"), "{end:?}");
    }
}

/// What a workspace may use is counted for all servers together: streams until they end or their server dies, and batches of a day.
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_those_of_all_servers() {
    let workspace = Allowance { streams: 2, batches_per_day: 3, ..Allowance::default() };
    let rules = || QuotaRules { workspace, ..QuotaRules::default() };
    let store = Arc::new(SharedMemory::default());
    let poll = Duration::from_millis(50);
    let mut a = Node::with(Arc::clone(&store), poll, rules()).await;
    let b = Node::with(store.another(), poll, rules()).await;
    for request in ["one", "two", "three"] {
        a.client.submit(submit("w", request, vec![create_text("a.txt", "1")])).await.unwrap();
    }
    let number = std::cell::Cell::new(0);
    until(async || {
        // It may be stored if the other server was not heard yet.
        let request = format!("more{}", number.replace(number.get() + 1));
        let stored = b.client.clone().submit(submit("w", &request, vec![create_text("a.txt", "1")])).await;
        stored.is_err().then(|| assert_refused(stored, Code::ResourceExhausted, "OVER_LIMIT", ""))
    })
    .await;
    let watch = async |client: &Clients| client.clone().workspaces.watch_workspace(watched("w")).await;
    let mut open = vec![watch(&a.client).await.unwrap(), watch(&a.client).await.unwrap()];
    until(async || watch(&b.client).await.err()).await;
    drop(open.pop());
    let held = until(async || watch(&b.client).await.ok()).await;
    drop(open);
    until(async || watch(&b.client).await.ok()).await;
    // What a server had that died is counted no more.
    let mut again = vec![until(async || watch(&a.client).await.ok()).await];
    until(async || watch(&b.client).await.err()).await;
    a.kill();
    again.push(until(async || watch(&b.client).await.ok()).await);
    drop((held, again));
}
