//! The store in PostgreSQL while the database refuses writes, has no room for another connection, or takes too long for a statement: what
//! callers are answered, what health reports, and that it passes by itself.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::id::Revision;
use aptix_model::record::BatchRecord;
use aptix_model::wire::v1;
use aptix_server::options::Options;
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::postgres::address::Address;
use aptix_server::store::{Appended, BatchSelector, Store, StoreError};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::Client;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_types::StatusExt as _;

use crate::cluster::{Cluster, Database, USER, open};
use crate::disk_reserve::health;
use crate::postgres_store::{SOON, connect, run};
use crate::server::{Clients, Server, assert_refused, create_text, submit};
use crate::store_contract::{append, batch, workspace};
use crate::until::until;

/// Parameter of an address whose host is used also while it takes no writes.
const ANY: &str = "&target_session_attrs=any";

/// The server as a whole, and a service that takes batches.
const SERVICES: [&str; 2] = ["", "aptix.v1.BatchService"];

fn request(id: &str) -> v1::SubmitBatchRequest {
    submit("w", id, vec![create_text("a.txt", "1")])
}

async fn health_becomes(client: &Clients, status: ServingStatus) {
    for service in SERVICES {
        until(async || (health(client, service).await == status).then_some(())).await;
    }
}

/// Whether the store refuses writes until the database takes them.
async fn has_failed(store: &PostgresStore) -> bool {
    timeout(Duration::ZERO, store.failed()).await.is_ok()
}

/// Has connections that are made from now on take no writes, or take them again.
async fn set_read_only(side: &Client, is_read_only: bool) {
    let setting = match is_read_only {
        true => "SET default_transaction_read_only = on",
        false => "RESET default_transaction_read_only",
    };
    let alter = format!("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I {setting}', current_database()); END $$");
    run(side, &alter).await;
}

/// Ends every connection to the database but this one.
async fn end_connections(side: &Client) {
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    run(side, end).await;
}

/// The database as its new owner reaches it, a plain role, and the name of the role: limits that do not apply to superusers apply to it.
/// The owner opens the store first, so that it owns the tables.
pub(crate) async fn with_plain_owner(database: &Database, side: &Client) -> (Database, String) {
    let role: String = side.query_one("SELECT current_database()", &[]).await.unwrap().get(0);
    run(side, &format!("CREATE ROLE {role} LOGIN; ALTER DATABASE {role} OWNER TO {role}")).await;
    let address = database.address.replacen(&format!("//{USER}@"), &format!("//{role}@"), 1);
    assert_ne!(address, database.address);
    (Database { address, blobs: None }, role)
}

/// Limits how many connections a role may have, -1 for any number; those that are open stay.
pub(crate) async fn limit_connections(side: &Client, role: &str, most: i32) {
    run(side, &format!("ALTER ROLE {role} CONNECTION LIMIT {most}")).await;
}

/// A server on a database of its own that has one batch, and a connection beside it.
struct Scene {
    client: Clients,
    stored: v1::Batch,
    side: Client,
    _server: Server,
    _connection: JoinSet<()>,
}

impl Scene {
    /// With these parameters in the address of the store; `None` where the test is skipped.
    async fn new(parameters: &str) -> Option<Self> {
        let (database, mut connection) = (Database::new()?, JoinSet::new());
        let side = connect(&database, &mut connection).await;
        let store = open(&format!("{}{parameters}", database.address)).await;
        let server = Server::over(Arc::new(store), Options::default());
        let mut client = server.connect().await;
        let stored = client.submit(request("stored")).await.unwrap();
        Some(Self { client, stored, side, _server: server, _connection: connection })
    }

    /// A submit is refused, and the server reports that it does not serve.
    async fn assert_refuses(&mut self, id: &str) {
        let refused = timeout(SOON, self.client.submit(request(id))).await.unwrap();
        assert_refused(refused, Code::Unavailable, "UNAVAILABLE", "READ_ONLY");
        health_becomes(&self.client, ServingStatus::NotServing).await;
    }

    /// What was stored is read as it was, while the server reports that it does not serve. A read may find its connection closed.
    async fn assert_reads(&self) {
        let read = until(async || self.client.clone().get("w", &self.stored.batch_id).await.ok()).await;
        assert_eq!(read, self.stored);
        assert_eq!(health(&self.client, "").await, ServingStatus::NotServing);
    }

    /// The server reports by itself that it serves again, and stores the batch that it refused once.
    async fn assert_heals(&mut self, id: &str) {
        health_becomes(&self.client, ServingStatus::Serving).await;
        let stored = until(async || self.client.clone().submit(request(id)).await.ok()).await;
        assert_eq!(stored.revision, 2);
        assert_eq!(self.client.submit(request(id)).await.unwrap().batch_id, stored.batch_id);
        let kept = self.side.query("SELECT FROM batches", &[]).await.unwrap();
        assert_eq!(kept.len(), 2, "that from before, and that which was refused");
    }
}

/// As after a failover to a standby every connection has ended, and new ones take no writes. With `any` what was stored is read all the
/// same; by default a host that takes no writes is passed over.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_takes_no_writes_is_reported_and_used_again() {
    for parameters in ["", ANY] {
        let Some(mut scene) = Scene::new(parameters).await else { return };
        set_read_only(&scene.side, true).await;
        end_connections(&scene.side).await;
        scene.assert_refuses("r").await;
        if parameters == ANY {
            scene.assert_reads().await;
        }
        set_read_only(&scene.side, false).await;
        end_connections(&scene.side).await;
        scene.assert_heals("r").await;
    }
}

/// A connection that takes no writes is not kept for the next one: no other is made while it is there.
#[tokio::test]
async fn a_connection_that_takes_no_writes_is_given_up() {
    for parameters in ["", ANY] {
        let Some(database) = Database::new() else { return };
        let mut tasks = JoinSet::new();
        let side = connect(&database, &mut tasks).await;
        let store = Arc::new(open(&format!("{}{parameters}", database.address)).await);
        set_read_only(&side, true).await;
        let refused = store.append(batch(1, "w", "r1")).await;
        assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
        set_read_only(&side, false).await;
        timeout(SOON, store.healed()).await.unwrap();
        append(&store, batch(1, "w", "r1")).await;
    }
}

/// Has no table take another page for a batch, or for what the store tries while it takes no writes.
const FILL: &str = "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$; \
    CREATE TRIGGER fill BEFORE INSERT ON batches EXECUTE FUNCTION fill(); \
    CREATE TRIGGER fill BEFORE INSERT ON chunks EXECUTE FUNCTION fill()";

/// A full disk refuses writes until there is room again; reads go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_database_is_reported_and_used_again() {
    let Some(mut scene) = Scene::new("").await else { return };
    run(&scene.side, FILL).await;
    scene.assert_refuses("r").await;
    scene.assert_reads().await;
    run(&scene.side, "DROP TRIGGER fill ON batches; DROP TRIGGER fill ON chunks").await;
    scene.assert_heals("r").await;
}

/// Where PostgreSQL has no room for another connection, the calls that need one are refused and may be made again; writes over the
/// connections that there are go on, and the server stays healthy.
#[tokio::test(flavor = "multi_thread")]
async fn no_room_for_a_connection_refuses_only_what_needs_one() {
    let Some(database) = Database::new() else { return };
    let mut tasks = JoinSet::new();
    let side = connect(&database, &mut tasks).await;
    let (owned, role) = with_plain_owner(&database, &side).await;
    let store = Arc::new(owned.open().await);
    let assert_no_room = |error: &StoreError| {
        assert!(matches!(error, StoreError::Busy { cause } if cause.contains("53300")), "{error:?}");
    };
    limit_connections(&side, &role, 0).await;
    assert_no_room(&store.append(batch(1, "w", "r1")).await.unwrap_err());
    assert!(!has_failed(&store).await);
    limit_connections(&side, &role, -1).await;
    let id = append(&store, batch(1, "w", "r1")).await.id.to_string();

    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut client = server.connect().await;
    // From then on it has a connection for its place among the servers.
    until(async || (side.query("SELECT FROM servers", &[]).await.unwrap().len() == 1).then_some(())).await;
    limit_connections(&side, &role, 0).await;
    run(&side, "BEGIN; LOCK TABLE tokens IN ACCESS EXCLUSIVE MODE").await;
    let mut reading = JoinSet::new();
    // A read that waits for the lock takes a connection that is idle, if there is one.
    let read = |reading: &mut JoinSet<()>| {
        let store = Arc::clone(&store);
        reading.spawn(async move { drop(store.tokens().await) });
    };
    let unwritten = until(async || {
        read(&mut reading);
        store.release_leases(Vec::new()).await.err()
    });
    assert_no_room(&unwritten.await);
    let unread = until(async || {
        read(&mut reading);
        client.clone().get("w", &id).await.err()
    });
    let unread = unread.await;
    assert!(unread.get_details_retry_info().is_some_and(|retry| retry.retry_delay.is_some()), "{unread:?}");
    assert_refused(Err::<(), _>(unread), Code::Unavailable, "UNAVAILABLE", "");
    assert!(!has_failed(&store).await);
    for revision in 2..5 {
        assert_eq!(client.submit(request(&format!("r{revision}"))).await.unwrap().revision, revision);
    }
    for service in SERVICES {
        assert_eq!(health(&client, service).await, ServingStatus::Serving, "{service}");
    }
    run(&side, "ROLLBACK").await;
    limit_connections(&side, &role, -1).await;
    store.release_leases(Vec::new()).await.unwrap();
    client.get("w", &id).await.unwrap();
}

/// How long a write may take.
const LIMIT: Duration = Duration::from_secs(3);

/// While writes are refused none is sent to PostgreSQL: each is answered at once, also where PostgreSQL answers nothing.
#[tokio::test(flavor = "multi_thread")]
async fn no_write_is_sent_while_writes_are_refused() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.create_database("store");
    let address = Address::parse(&cluster.address("store")).unwrap().with_write_limit(LIMIT);
    let store = Arc::new(PostgresStore::open(&address).await.unwrap());
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut client = server.connect().await;
    client.submit(request("stored")).await.unwrap();
    let frozen = cluster.freeze();
    let hung = timeout(SOON, client.submit(request("hung"))).await.unwrap();
    assert_refused(hung, Code::Unavailable, "UNAVAILABLE", "READ_ONLY");
    health_becomes(&client, ServingStatus::NotServing).await;
    let before = store.asked();
    let at_once = async {
        for number in 0..20 {
            let refused = client.submit(request(&format!("refused{number}"))).await;
            assert_refused(refused, Code::Unavailable, "UNAVAILABLE", "READ_ONLY");
            let refused = store.release_leases(Vec::new()).await;
            assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
        }
    };
    timeout(LIMIT, at_once).await.expect("one that is sent takes as long as all of them may");
    assert_eq!(store.asked(), before);
    drop(frozen);
    health_becomes(&client, ServingStatus::Serving).await;
    let refused = BatchSelector::Request("refused0".parse().unwrap());
    assert_eq!(store.batch(workspace("w"), refused).await, Ok(None));
    client.submit(request("refused0")).await.unwrap();
}

/// Bounds every statement of a write by 2 s, and has the insert of one batch take longer.
const SLOW: &str = "CREATE OR REPLACE FUNCTION check_tables(known integer) RETURNS void LANGUAGE plpgsql AS $$ BEGIN \
        PERFORM set_config('statement_timeout', '2s', true); END $$; \
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF NEW.request = 'slow' THEN PERFORM pg_sleep_for('1 hour'); END IF; RETURN NEW; END $$; \
    CREATE TRIGGER slow BEFORE INSERT ON batches FOR EACH ROW EXECUTE FUNCTION slow()";

/// The batch whose insert takes longer.
const SLOW_ONE: u128 = 20;

/// One of the batches of two workspaces.
fn record(number: u128) -> BatchRecord {
    let request = if number == SLOW_ONE { "slow".to_owned() } else { format!("r{number}") };
    batch(number + 1, ["v", "w"][number as usize % 2], &request)
}

/// A statement that takes too long is refused as one that may be sent again, and so are at most the writes of its group: each of them is
/// stored once. The store takes writes all the while.
#[tokio::test]
async fn a_statement_that_takes_too_long_loses_no_other_write() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (Arc::new(database.open().await), JoinSet::new());
    let side = connect(&database, &mut tasks).await;
    run(&side, SLOW).await;
    let mut waiting = JoinSet::new();
    for number in 0..40 {
        let store = Arc::clone(&store);
        waiting.spawn(async move { (number, store.append(record(number)).await) });
    }
    let mut refused = Vec::new();
    for (number, stored) in waiting.join_all().await {
        match stored {
            Ok(Appended::New(_)) => assert_ne!(number, SLOW_ONE),
            Err(StoreError::Busy { cause }) if cause.contains("57014") => refused.push(number),
            other => panic!("{number}: {other:?}"),
        }
    }
    assert!(refused.contains(&SLOW_ONE), "{refused:?}");
    assert!(!has_failed(&store).await);
    for number in refused.into_iter().filter(|number| *number != SLOW_ONE) {
        append(&store, record(number)).await;
    }
    let again = store.append(record(SLOW_ONE)).await;
    assert!(matches!(&again, Err(StoreError::Busy { cause }) if cause.contains("57014")), "{again:?}");
    run(&side, "DROP TRIGGER slow ON batches").await;
    append(&store, record(SLOW_ONE)).await;
    for name in ["v", "w"] {
        assert_eq!(store.newest(workspace(name)).await, Ok(Some(Revision(20))), "{name}");
    }
}
