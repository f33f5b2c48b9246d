//! The store in PostgreSQL while the database accepts connections and does not answer, or does not confirm a commit.

use std::cell::Cell;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::fleet::FleetOptions;
use aptix_server::options::{Changeable, Options};
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::postgres::address::Address;
use aptix_server::store::{Appended, Store, StoreError};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::cluster::{Cluster, Database, USER};
use crate::disk_reserve::health;
use crate::postgres_store::{connect, run};
use crate::server::{Server, assert_refused, create_text, submit};
use crate::store_contract::{append, batch};
use crate::until::until;

const SOON: Duration = Duration::from_secs(60);

/// A cluster with a database for a store.
fn cluster() -> Option<Cluster> {
    let cluster = Cluster::start()?;
    cluster.create_database("store");
    Some(cluster)
}

/// The store of a cluster, whose writes may take a second.
async fn open(cluster: &Cluster) -> Arc<PostgresStore> {
    let address = Address::parse(&cluster.address("store")).unwrap();
    Arc::new(PostgresStore::open(&address.with_write_limit(Duration::from_secs(1))).await.unwrap())
}

/// Has commits wait for a standby that there is not, or for none.
fn wait_for_standby(cluster: &Cluster, standby: &str) {
    cluster.sql("postgres", &format!("ALTER SYSTEM SET synchronous_standby_names = '{standby}'"));
    cluster.sql("postgres", "SELECT pg_reload_conf()");
}

/// Appends batches until one is refused: a setting comes into force in a moment, and until then writes are taken.
async fn refused(store: &PostgresStore, first: u128) -> (u128, Result<Appended, StoreError>) {
    let next = Cell::new(first);
    until(async || {
        let number = next.replace(next.get() + 1);
        match timeout(SOON, store.append(batch(number, "w", &format!("r{number}")))).await.unwrap() {
            Ok(Appended::New(_)) => None,
            ended => Some((number, ended)),
        }
    })
    .await
}

/// A write that PostgreSQL does not finish is refused in a bounded time, the store reports that it takes none, and it takes writes again
/// by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_hangs_ends_and_the_store_reports_it() {
    let Some(cluster) = cluster() else { return };
    let store = open(&cluster).await;
    append(&store, batch(1, "w", "r1")).await;
    for (first, is_frozen) in [(100, false), (200, true)] {
        let mut frozen = None;
        if is_frozen {
            frozen = Some(cluster.freeze());
        } else {
            wait_for_standby(&cluster, "absent");
        }
        let (number, hung) = refused(&store, first).await;
        assert!(matches!(hung, Err(StoreError::ReadOnly { .. })), "{hung:?}");
        timeout(SOON, store.failed()).await.unwrap();
        if is_frozen {
            drop(frozen.take());
        } else {
            wait_for_standby(&cluster, "");
        }
        timeout(SOON, store.healed()).await.unwrap();
        let again = store.append(batch(number, "w", &format!("r{number}"))).await;
        assert!(matches!(again, Ok(Appended::New(_) | Appended::Known(_))), "{again:?}");
    }
}

/// A commit whose wait for the standby is cancelled is not acknowledged, also where the role asks for no warnings.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_the_standby_may_lack_is_not_acknowledged() {
    let Some(cluster) = cluster() else { return };
    let address = format!("{}&options=-cclient_min_messages%3Derror", cluster.address("store"));
    let store = Arc::new(PostgresStore::open(&Address::parse(&address).unwrap()).await.unwrap());
    append(&store, batch(1, "w", "r1")).await;
    wait_for_standby(&cluster, "absent");
    let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let cancelled = until(async || (cluster.sql("postgres", cancel) != "0").then_some(()));
    let appended = async {
        let (appended, ()) = tokio::join!(refused(&store, 2), cancelled);
        appended
    };
    let (_, appended) = timeout(SOON, appended).await.unwrap();
    assert!(matches!(appended, Err(StoreError::ReadOnly { .. })), "{appended:?}");
}

/// Of the warnings of PostgreSQL only that of a cancelled wait for the standby refuses a write.
#[tokio::test(flavor = "multi_thread")]
async fn a_warning_of_something_else_refuses_no_write() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (Arc::new(database.open().await), JoinSet::new());
    append(&store, batch(1, "w", "r1")).await;
    let client = connect(&database, &mut tasks).await;
    let warn = "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'x'; RETURN NULL; END $$; \
        CREATE TRIGGER warn AFTER INSERT ON batches EXECUTE FUNCTION warn()";
    run(&client, warn).await;
    append(&store, batch(2, "w", "r2")).await;
}

/// A host that accepts a connection and does not answer is passed over for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_host_does_not_hide_the_next_one() {
    let (Some(one), Some(two)) = (cluster(), cluster()) else { return };
    let _frozen = one.freeze();
    let host = |cluster: &Cluster| {
        let address = cluster.address("store");
        let (_, host) = address.split_once("host=").unwrap();
        host.split('&').next().unwrap().to_owned()
    };
    let address = format!("postgres://{USER}@/store?host={},{}&connect_timeout=1", host(&one), host(&two));
    let opened = timeout(SOON, PostgresStore::open(&Address::parse(&address).unwrap())).await;
    append(&Arc::new(opened.unwrap().unwrap()), batch(1, "w", "r1")).await;
}

/// While the database answers nothing, a caller is told so in a bounded time, and health says it; what it asked for is stored once when it
/// asks again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_a_slow_database_says_so_and_goes_on() {
    let Some(cluster) = cluster() else { return };
    let server = Server::over(open(&cluster).await, Options::default());
    let mut client = server.connect().await;
    let batch = |request: &str| submit("w", request, vec![create_text("a.txt", "1")]);
    client.submit(batch("before")).await.unwrap();
    let frozen = cluster.freeze();
    let refused = timeout(SOON, client.submit(batch("slow"))).await.unwrap();
    assert_refused(refused, Code::Unavailable, "UNAVAILABLE", "READ_ONLY");
    let writer = "aptix.v1.BatchService";
    until(async || (health(&client, writer).await == ServingStatus::NotServing).then_some(())).await;
    drop(frozen);
    until(async || (health(&client, writer).await == ServingStatus::Serving).then_some(())).await;
    assert_eq!(client.submit(batch("slow")).await.unwrap().revision, 2);
    assert_eq!(client.submit(batch("slow")).await.unwrap().revision, 2);
}

/// A server that writes nothing but its membership is not healthy either while the database does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_on_a_database_that_does_not_answer_is_not_healthy() {
    let Some(cluster) = cluster() else { return };
    let fleet = FleetOptions { lifetime: Duration::from_secs(3), ..FleetOptions::default() };
    let changeable = Changeable { fleet, ..Approvals::default().into() };
    // Its writes may take as long as they usually may.
    let store = PostgresStore::open(&Address::parse(&cluster.address("store")).unwrap()).await.unwrap();
    let server = Server::asking(Arc::new(store), Options::default(), changeable);
    let client = server.connect().await;
    let joined = async || (cluster.sql("store", "SELECT count(*) FROM servers") == "1").then_some(());
    until(joined).await;
    let frozen = cluster.freeze();
    until(async || (health(&client, "").await == ServingStatus::NotServing).then_some(())).await;
    drop(frozen);
    until(async || (health(&client, "").await == ServingStatus::Serving).then_some(())).await;
}

/// A server that is told to stop while it starts stops, also where the database does not answer what it asks first: as a process, which
/// asks for the tokens before it listens, and within, where it reads them once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_stops_while_it_starts_on_a_database_that_does_not_answer() {
    let Some(database) = Database::new() else { return };
    let (store, dir, mut tasks) = (Arc::new(database.open().await), tempfile::tempdir().unwrap(), JoinSet::new());
    let (holder, other) = (connect(&database, &mut tasks).await, connect(&database, &mut tasks).await);
    run(&holder, "BEGIN; LOCK TABLE tokens IN ACCESS EXCLUSIVE MODE").await;
    // Who waits for a lock and did not before: PostgreSQL may not notice that a client is gone which waits.
    let waits = async |before: &[i32]| {
        let sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waiting = other.query(sql, &[]).await.unwrap();
        let new: Vec<i32> = waiting.iter().map(|row| row.get(0)).filter(|pid| !before.contains(pid)).collect();
        (!new.is_empty()).then_some(new)
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    command
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dir.path())
        .env("APTIX_SERVER_STORE", &database.address);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let before = until(async || waits(&[]).await).await;
    let stop = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(stop.success());
    let ended = timeout(SOON, tokio::task::spawn_blocking(move || child.wait())).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.code(), Some(0));

    let server = Server::over(store, Options::default());
    until(async || waits(&before).await).await;
    server.stop().await.unwrap();
}
