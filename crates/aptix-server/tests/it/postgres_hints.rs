//! What servers on one PostgreSQL database learn of each other by NOTIFY alone, and that a notification that is lost costs one look.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::token::{Role, Scope};
use aptix_model::wire::v1;
use aptix_server::dispatcher::approvals::{Approval, Approvals};
use aptix_server::fleet::FleetOptions;
use aptix_server::identity::Registry;
use aptix_server::options::{Changeable, Options};
use aptix_server::store::Store;
use aptix_server::store::fleet::Hint;
use aptix_server::store::postgres::PostgresStore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::Client;
use tonic::{Code, Request, Status, Streaming};

use crate::approvals::approve;
use crate::cluster::Database;
use crate::identity::{admin, make, new, with};
use crate::postgres_refusals::{limit_connections, with_plain_owner};
use crate::postgres_store::{connect, run};
use crate::server::{Clients, SOON, Server, create_text, next, next_event, submit};
use crate::until::until;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

/// How often a server looks at what others changed, if it does.
const POLL: Duration = Duration::from_secs(2);

/// Looks within which an event comes that no notification told of.
const LOOKS: u32 = 4;

/// How long a notification is waited for before another one is sent.
const MOMENT: Duration = Duration::from_millis(500);

/// Connections that a server has at least for its calls when it can make no other.
const KEPT: usize = 8;

type Watching = Streaming<v1::WatchWorkspaceResponse>;

/// One of several servers.
struct Node {
    store: Arc<PostgresStore>,
    client: Clients,
    _server: Server,
}

/// A server that looks this often at what others changed. A person has to approve the batches of the workspace `asked`.
async fn node(database: &Database, poll: Duration) -> Node {
    let store = Arc::new(database.open().await);
    let workspaces = BTreeMap::from([("asked".parse().unwrap(), Approval::Always)]);
    let fleet = FleetOptions { poll, ..FleetOptions::default() };
    let changeable = Changeable { fleet, ..Approvals { usual: Approval::Never, workspaces }.into() };
    // Without heartbeats to fall back on, every event has to wake its waiters.
    let mut options = Options::default();
    options.dispatch.heartbeat = NEVER;
    let server = Server::asking(Arc::clone(&store) as Arc<dyn Store>, options, changeable);
    let client = server.connect().await;
    Node { store, client, _server: server }
}

fn request(workspace: &str, id: &str) -> v1::SubmitBatchRequest {
    submit(workspace, id, vec![create_text("a.txt", "1")])
}

fn events() -> v1::WatchWorkspaceRequest {
    v1::WatchWorkspaceRequest { workspace_id: "w".to_owned(), ..Default::default() }
}

async fn watch(client: &Clients, request: Request<v1::WatchWorkspaceRequest>) -> Result<Watching, Status> {
    Ok(client.workspaces.clone().watch_workspace(request).await?.into_inner())
}

async fn next_watched(watching: &mut Watching) -> Result<v1::BatchEvent, Status> {
    let watched = async {
        loop {
            if let Some(v1::watch_workspace_response::Message::Event(event)) = next(watching).await?.message {
                return Ok(event);
            }
        }
    };
    timeout(SOON, watched).await.expect("the reader is woken in time")
}

/// Submits at one server until another one hears of a batch: from then on the one tells what it stores, and the other one listens.
/// Answers the newest revision.
async fn heard(client: &mut Clients, other: &PostgresStore) -> u64 {
    let (mut hints, mut number) = (other.hints().unwrap(), 0);
    loop {
        number += 1;
        let stored = client.submit(request("w", &format!("heard{number}"))).await.unwrap();
        let told = Hint::Event("w".parse().unwrap(), stored.batch_id.parse().unwrap());
        let heard = async { while hints.recv().await.unwrap() != told {} };
        if timeout(MOMENT, heard).await.is_ok() {
            return stored.revision;
        }
    }
}

/// Makes a token for readers at a server; answers its secret.
async fn create_token(client: &Clients, operator: &str, name: &str) -> String {
    let (name, role, workspace_id) = (name.to_owned(), v1::Role::Reader.into(), "*".to_owned());
    let request = v1::CreateTokenRequest { name, role, workspace_id, ..Default::default() };
    admin(client).create_token(with(operator, request)).await.unwrap().into_inner().secret
}

/// A batch that is submitted, approved or withdrawn at one server wakes those who wait for it at another one, without a look.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_server_stores_wakes_the_readers_of_another_by_notify_alone() {
    let Some(database) = Database::new() else { return };
    let (b, mut a) = (node(&database, NEVER).await, node(&database, NEVER).await);
    let newest = heard(&mut a.client, &b.store).await;
    let mut watching = watch(&b.client, Request::new(events())).await.unwrap();
    let (mut client, mut feed) = until(async || {
        let mut client = b.client.clone();
        let (_, feed) = client.lease("w", "agent", 0).await.ok()?;
        Some((client, feed))
    })
    .await;
    while next_watched(&mut watching).await.unwrap().revision < newest {}
    while next_event(&mut feed).await.unwrap().revision < newest {}
    let stored = a.client.submit(request("w", "last")).await.unwrap();
    assert_eq!(next_watched(&mut watching).await.unwrap().revision, stored.revision);
    assert_eq!(next_event(&mut feed).await.unwrap().revision, stored.revision);

    let held = a.client.submit(request("asked", "held")).await.unwrap();
    let (workspace_id, batch_id) = (held.workspace_id, held.batch_id);
    let states =
        v1::WatchBatchRequest { workspace_id: workspace_id.clone(), batch_id: batch_id.clone(), ..Default::default() };
    let mut states = client.batches.watch_batch(states).await.unwrap().into_inner();
    let mut state = async || next(&mut states).await.unwrap().batch.unwrap().state();
    assert_eq!(state().await, v1::BatchState::PendingApproval);
    approve(&mut a.client, &workspace_id, &batch_id).await.unwrap();
    assert_eq!(state().await, v1::BatchState::Approved);
    let cancel = v1::CancelBatchRequest { workspace_id, batch_id, ..Default::default() };
    a.client.batches.cancel_batch(cancel).await.unwrap();
    assert_eq!(state().await, v1::BatchState::Cancelled);
}

/// A token that is made at one server is accepted at another one, and refused there once it was revoked, its open streams too.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_one_server_count_at_another_by_notify_alone() {
    let Some(database) = Database::new() else { return };
    let registry = Registry::load(Arc::new(database.open().await) as Arc<dyn Store>).await.unwrap();
    registry.create_workspace("w".parse().unwrap()).await.unwrap();
    let operator = make(&registry, new("operator", Role::Operator, Scope::All, None)).await;
    let (b, a) = (node(&database, NEVER).await, node(&database, NEVER).await);
    let (mut hints, mut number) = (b.store.hints().unwrap(), 0);
    // Until the one tells what it makes, and the other one listens.
    loop {
        number += 1;
        create_token(&a.client, &operator, &format!("heard{number}")).await;
        let heard = async { while hints.recv().await.unwrap() != Hint::Tokens {} };
        if timeout(MOMENT, heard).await.is_ok() {
            break;
        }
    }
    let secret = create_token(&a.client, &operator, "reader").await;
    let mut watching = until(async || watch(&b.client, with(&secret, events())).await.ok()).await;
    let revoke = v1::RevokeTokenRequest { name: "reader".to_owned() };
    admin(&a.client).revoke_token(with(&operator, revoke)).await.unwrap();
    let ended = next_watched(&mut watching).await.unwrap_err();
    assert_eq!(ended.code(), Code::Unauthenticated, "{ended:?}");
    let refused = watch(&b.client, with(&secret, events())).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
}

/// Ends the connection on which a server listens, and lets its role make no other; it has idle ones for its calls.
async fn deafen(side: &Client, store: &Arc<PostgresStore>, role: &str) {
    run(side, "BEGIN; LOCK TABLE tokens IN ACCESS EXCLUSIVE MODE").await;
    let mut reading = JoinSet::new();
    for _ in 0..KEPT {
        let store = Arc::clone(store);
        reading.spawn(async move { store.tokens().await });
    }
    let waiting = "SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
        WHERE d.datname = current_database() AND l.relation = 'tokens'::regclass AND NOT l.granted";
    until(async || (side.query(waiting, &[]).await.unwrap().len() >= KEPT).then_some(())).await;
    run(side, "ROLLBACK").await;
    reading.join_all().await;
    limit_connections(side, role, 0).await;
    // The connection is asked for signs of life by an empty SELECT.
    let listening =
        format!("FROM pg_stat_activity WHERE usename = '{role}' AND (query LIKE 'LISTEN%' OR query = 'SELECT')");
    run(side, &format!("SELECT pg_terminate_backend(pid) {listening}")).await;
    let listening = format!("SELECT {listening}");
    until(async || side.query(&listening, &[]).await.unwrap().is_empty().then_some(())).await;
}

/// An event that a server does not hear of reaches its readers when it looks; where it does not look, when it listens again.
#[tokio::test(flavor = "multi_thread")]
async fn a_notification_that_is_lost_costs_one_look() {
    for poll in [POLL, NEVER] {
        let Some(database) = Database::new() else { return };
        let mut tasks = JoinSet::new();
        let side = connect(&database, &mut tasks).await;
        let (owned, role) = with_plain_owner(&database, &side).await;
        let b = node(&owned, poll).await;
        let mut a = node(&database, NEVER).await;
        let newest = heard(&mut a.client, &b.store).await;
        let mut watching = watch(&b.client, Request::new(events())).await.unwrap();
        while next_watched(&mut watching).await.unwrap().revision < newest {}
        deafen(&side, &b.store, &role).await;
        let mut hints = b.store.hints().unwrap();
        let stored = a.client.submit(request("w", "lost")).await.unwrap();
        let seen = timeout(LOOKS * POLL, next_watched(&mut watching)).await;
        assert!(hints.try_recv().is_err(), "it hears nothing");
        assert_eq!(seen.is_ok(), poll == POLL, "{poll:?}: {seen:?}");
        let event = match seen {
            Ok(event) => event,
            Err(_) => {
                limit_connections(&side, &role, -1).await;
                next_watched(&mut watching).await
            }
        };
        assert_eq!(event.unwrap().revision, stored.revision);
    }
}
