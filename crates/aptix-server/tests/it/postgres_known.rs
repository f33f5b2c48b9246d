//! Groups of writes that decide by what their server committed last: what they cost, and that whatever another writer changed meanwhile is
//! noticed.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::{Batch, BlobRef, Content, CreateFile, FileEdit, FilePatch};
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{Revision, Uuid};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::session::SessionMode;
use aptix_model::state::BatchState;
use aptix_model::token::{Ended, Ending};
use aptix_server::store::fleet::Hint;
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::retention::{Age, Limits, Retention};
use aptix_server::store::session::ModeChange;
use aptix_server::store::{Appended, BatchSelector, LeaseProof, Store, StoreError, Transition, Transitioned, UploadId};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::cluster::Database;
use crate::fleet_store::member;
use crate::postgres_store::{SOON, connect, end, run};
use crate::store_contract::{append, batch, step, workspace};
use crate::until::until;

/// What a write cost: how often PostgreSQL was waited for. A group costs one by rows that are known, two by rows that are read, and three
/// where the known ones turned out to be out of date.
pub(crate) async fn trips<T>(store: &PostgresStore, write: impl Future<Output = T>) -> (T, u64) {
    let before = store.asked().round_trips;
    let written = write.await;
    (written, store.asked().round_trips - before)
}

pub(crate) async fn take(store: &PostgresStore, step: Transition) -> BatchRecord {
    match store.transition(step).await {
        Ok(Transitioned::Done(batch)) => batch,
        other => panic!("the step is taken, and not {other:?}"),
    }
}

/// Two stores on one database that hear nothing of each other, and a connection beside them.
pub(crate) struct Shared {
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) other: Arc<PostgresStore>,
    pub(crate) client: Client,
    pub(crate) connection: JoinSet<()>,
}

impl Shared {
    pub(crate) async fn new() -> Option<Self> {
        let (database, mut connection) = (Database::new()?, JoinSet::new());
        let (store, other) = (Arc::new(database.open().await), Arc::new(database.open().await));
        let client = connect(&database, &mut connection).await;
        Some(Self { store, other, client, connection })
    }
}

/// Writes in workspaces that the server wrote in before, in whatever sessions, wait for PostgreSQL once a group: it comes with the commit.
#[tokio::test]
async fn a_group_in_known_workspaces_takes_one_round_trip() {
    let Some(database) = Database::new() else { return };
    let store = Arc::new(database.open().await);
    append(&store, batch(1000, "v", "first")).await;
    append(&store, batch(1001, "w", "first")).await;
    let before = store.asked();
    let mut tasks = JoinSet::new();
    for number in 0..64_u128 {
        let store = Arc::clone(&store);
        let name = ["v", "w"][number as usize % 2];
        let mut batch = batch(number + 1, name, &format!("r{number}"));
        batch.origin.session_id = Some(format!("session-{}", number / 8));
        tasks.spawn(async move { append(&store, batch).await });
    }
    tasks.join_all().await;
    let after = store.asked();
    let commits = after.commits - before.commits;
    assert!((1..=4).contains(&commits), "{before:?} {after:?}");
    assert_eq!(after.round_trips - before.round_trips, commits);
    assert_eq!(after.other_commits, before.other_commits);
}

/// A batch and each of its steps take one round trip, also what changes nothing.
#[tokio::test]
async fn a_batch_and_its_steps_take_one_round_trip_each() {
    let Some(database) = Database::new() else { return };
    let store = Arc::new(database.open().await);
    let (first, cost) = trips(&store, append(&store, batch(1, "w", "r1"))).await;
    assert_eq!(cost, 2, "nothing is known of the workspace");
    let (stored, cost) = trips(&store, append(&store, batch(2, "w", "r2"))).await;
    assert_eq!((stored.revision, cost), (Revision(2), 1));
    let (delivered, cost) = trips(&store, take(&store, step(&stored, BatchState::Preparing))).await;
    assert_eq!((delivered.revision, cost), (Revision(3), 1));
    let (refused, cost) = trips(&store, store.transition(step(&stored, BatchState::Applied))).await;
    assert_eq!((refused, cost), (Ok(Transitioned::OtherState(delivered.clone())), 1));
    let (applied, cost) = trips(&store, take(&store, step(&delivered, BatchState::Applied))).await;
    assert_eq!((applied.revision, cost), (Revision(4), 1));
    assert_eq!(store.batch(workspace("w"), BatchSelector::Id(applied.id)).await, Ok(Some(applied)));
    let (_, cost) = trips(&store, take(&store, step(&first, BatchState::Applied))).await;
    assert_eq!(cost, 1, "an older batch is still known");
}

/// Each value of a workspace that a write decides by is compared; how many bytes it has is not, and stays right.
#[tokio::test]
async fn every_value_of_a_workspace_is_compared() {
    let Some(Shared { store, client, connection: _served, .. }) = Shared::new().await else { return };
    store.grant_lease(workspace("w"), Sha256Digest::EMPTY, vec!["app".to_owned()]).await.unwrap();
    append(&store, batch(1, "w", "r1")).await;
    let changes = [
        "known = false",
        "newest = newest + 10",
        "digest = sha256('x')",
        "digest = NULL",
        "epoch = epoch + 1",
        "secret = sha256('x')",
        "roots = NULL",
        "open_batches = open_batches + 1",
        "sessions = sessions + 1",
    ];
    for (number, change) in (10..).zip(changes) {
        run(&client, &format!("UPDATE workspaces SET {change} WHERE name = 'w'")).await;
        let newest = store.newest(workspace("w")).await.unwrap().map_or(0, |newest| newest.0);
        let (stored, cost) = trips(&store, append(&store, batch(number, "w", &format!("r{number}")))).await;
        assert_eq!(cost, 3, "{change}");
        assert!(newest == 0 || stored.revision == Revision(newest + 1), "{change}");
        let (_, cost) = trips(&store, append(&store, batch(number + 100, "w", &format!("s{number}")))).await;
        assert_eq!(cost, 1, "{change}");
    }
    let used = async || store.used_bytes(workspace("w")).await.unwrap();
    let before = used().await;
    append(&store, batch(1000, "w", "r1000")).await;
    let each = used().await - before;
    run(&client, "UPDATE workspaces SET used_bytes = used_bytes + 1000 WHERE name = 'w'").await;
    let (_, cost) = trips(&store, append(&store, batch(1001, "w", "r1001"))).await;
    assert_eq!((used().await - before, cost), (1000 + 2 * each, 1));
}

/// A workspace that is being deleted, and one that was, are as they would be without anything known.
#[tokio::test]
async fn a_deletion_is_noticed() {
    let Some(Shared { store, other, client, connection: _served }) = Shared::new().await else { return };
    append(&store, batch(1, "v", "r1")).await;
    run(&client, "UPDATE workspaces SET deleting = true WHERE name = 'v'").await;
    let (refused, cost) = trips(&store, store.append(batch(2, "v", "r2"))).await;
    assert!(matches!(refused, Err(StoreError::BeingDeleted { .. })), "{refused:?}");
    assert_eq!(cost, 3);
    append(&store, batch(3, "w", "r3")).await;
    other.begin_deletion(workspace("w"), Ended { at: UnixMillis(1), how: Ending::Revoked }).await.unwrap().unwrap();
    while !other.continue_deletion(workspace("w")).await.unwrap().unwrap().is_done {}
    let (stored, cost) = trips(&store, append(&store, batch(4, "w", "r4"))).await;
    assert_eq!((stored.revision, cost), (Revision(1), 3));
}

/// A request that another server stored a batch for is known, and keeps its batch.
#[tokio::test]
async fn a_request_of_another_server_is_known() {
    let Some(Shared { store, other, client, connection: _served }) = Shared::new().await else { return };
    let first = append(&store, batch(1, "w", "r1")).await;
    let theirs = append(&other, batch(2, "w", "theirs")).await;
    let (known, cost) = trips(&store, store.append(batch(3, "w", "theirs"))).await;
    assert!(matches!(&known, Ok(Appended::Known(known)) if known.stored == theirs), "{known:?}");
    assert_eq!(cost, 4, "one more for the batch");
    // One that this server stored a batch for is not taken for a new one.
    let own = append(&store, batch(6, "w", "own")).await;
    let (known, cost) = trips(&store, store.append(batch(7, "w", "own"))).await;
    assert!(matches!(&known, Ok(Appended::Known(known)) if known.stored == own), "{known:?}");
    assert_eq!(cost, 3);
    // Also where nothing else changed with it.
    client.execute("INSERT INTO freed_requests VALUES ('w', 'r4', $1)", &[&first.id.0]).await.unwrap();
    let (known, cost) = trips(&store, store.append(batch(4, "w", "r4"))).await;
    assert!(matches!(&known, Ok(Appended::Known(known)) if known.stored == first), "{known:?}");
    assert_eq!(cost, 4);
    assert_eq!(append(&store, batch(5, "w", "r5")).await.revision, Revision(4));
    assert_eq!(store.batch(workspace("w"), BatchSelector::Request("r4".parse().unwrap())).await, Ok(Some(first)));
}

/// A batch that another writer took a step of, or removed, or removed the content of, is as that writer left it.
#[tokio::test]
async fn a_changed_batch_is_noticed() {
    let Some(Shared { store, other, client, connection: _served }) = Shared::new().await else { return };
    let stored = append(&store, batch(1, "w", "r1")).await;
    let theirs = take(&other, step(&stored, BatchState::Preparing)).await;
    let (refused, cost) = trips(&store, store.transition(step(&stored, BatchState::Applied))).await;
    assert_eq!((refused, cost), (Ok(Transitioned::OtherState(theirs.clone())), 3));
    // Retention removes the content of batches that ended.
    let kept = append(&store, batch(2, "w", "r2")).await;
    let limits = Limits {
        content_batches: Some(0),
        record_events: None,
        content_age: None,
        content_bytes: None,
        record_age: None,
        record_least: Duration::ZERO,
    };
    end(&other, &kept).await;
    let order = Retention { workspace: workspace("w"), limits, now: Age(0), is_rehearsal: false };
    assert_eq!(other.retain(order).await.unwrap().contents, 1);
    let (refused, cost) = trips(&store, store.transition(step(&kept, BatchState::Applied))).await;
    assert!(matches!(&refused, Ok(Transitioned::OtherState(left)) if left.removed_content.is_some()), "{refused:?}");
    assert_eq!(cost, 3);
    // Each value of a batch is compared, also where nothing else changed with it.
    let ended = "(SELECT progress FROM current_batches WHERE request = 'r2')";
    let changes = [
        (format!("SET progress = {ended}"), 3),
        ("SET has_content = false".to_owned(), 3),
        ("SET workspace = 'v'".to_owned(), 3),
        // Nothing is decided by it.
        ("SET damaged = true".to_owned(), 1),
    ];
    for (number, (change, expected)) in (10..).zip(changes) {
        let stored = append(&store, batch(number, "w", &format!("r{number}"))).await;
        let sql = format!("UPDATE batches {change} WHERE id = $1");
        client.execute(&sql, &[&stored.id.0]).await.unwrap();
        let (_, cost) = trips(&store, store.transition(step(&stored, BatchState::Applied))).await;
        assert_eq!(cost, expected, "{change}");
    }
    let stored = append(&store, batch(20, "w", "r20")).await;
    client.execute("DELETE FROM batches WHERE id = $1", &[&stored.id.0]).await.unwrap();
    let (unknown, cost) = trips(&store, store.transition(step(&stored, BatchState::Applied))).await;
    assert_eq!((unknown, cost), (Ok(Transitioned::Unknown), 3));
}

/// A lease that another server granted is the one that counts.
#[tokio::test]
async fn a_lease_of_another_server_is_noticed() {
    let Some(Shared { store, other, .. }) = Shared::new().await else { return };
    let secret = |byte| Sha256Digest::from_bytes([byte; 32]);
    let stored = append(&store, batch(1, "w", "r1")).await;
    assert_eq!(store.grant_lease(workspace("w"), secret(1), Vec::new()).await, Ok(1));
    let with = |epoch, byte| Transition {
        lease: Some(LeaseProof { epoch, secret: Some(secret(byte)) }),
        ..step(&stored, BatchState::Preparing)
    };
    assert_eq!(other.grant_lease(workspace("w"), secret(2), Vec::new()).await, Ok(2));
    let (refused, cost) = trips(&store, store.transition(with(1, 1))).await;
    assert_eq!((refused, cost), (Ok(Transitioned::OtherLease), 3));
    let taken = take(&store, with(2, 2)).await;
    let next = Transition { lease: with(2, 2).lease, ..step(&taken, BatchState::Applied) };
    let (taken, cost) = trips(&store, take(&store, next)).await;
    assert_eq!((taken.revision, cost), (Revision(3), 1));
}

/// A step that lets a batch go ahead is decided by its session, which is known with it, and compared.
#[tokio::test]
async fn a_restricted_session_lets_no_batch_go_ahead() {
    let Some(Shared { store, other, .. }) = Shared::new().await else { return };
    let [one, two] = [append(&store, batch(1, "w", "r1")).await, append(&store, batch(2, "w", "r2")).await];
    let (_, cost) = trips(&store, take(&store, step(&one, BatchState::Approved))).await;
    assert_eq!(cost, 1);
    end(&store, &one).await;
    other.set_mode(mode("m1", SessionMode::Restricted)).await.unwrap();
    let (refused, cost) = trips(&store, store.transition(step(&two, BatchState::Approved))).await;
    assert!(matches!(refused, Ok(Transitioned::Restricted(_))), "{refused:?}");
    assert_eq!(cost, 3);
}

/// What is asked of the session of the batches.
pub(crate) fn mode(request: &str, to: SessionMode) -> ModeChange {
    ModeChange {
        workspace: workspace("w"),
        session: "session".parse().unwrap(),
        owner: "ann".parse().unwrap(),
        request: request.parse().unwrap(),
        to,
        by: None,
        at: UnixMillis(1),
    }
}

/// A session that another server restricted writes nothing, and one that was forgotten begins anew.
#[tokio::test]
async fn a_changed_session_is_noticed() {
    let Some(Shared { store, other, client, connection: _served }) = Shared::new().await else { return };
    let stored = append(&store, batch(1, "w", "r1")).await;
    end(&store, &stored).await;
    other.set_mode(mode("m1", SessionMode::Restricted)).await.unwrap();
    let (refused, cost) = trips(&store, store.append(batch(2, "w", "r2"))).await;
    assert!(matches!(refused, Ok(Appended::Restricted(_))), "{refused:?}");
    assert_eq!(cost, 3);
    store.set_mode(mode("m2", SessionMode::Unrestricted)).await.unwrap();
    assert_eq!(trips(&store, append(&store, batch(3, "w", "r3"))).await.1, 1);
    run(&client, "DELETE FROM sessions").await;
    assert_eq!(trips(&store, append(&store, batch(4, "w", "r4"))).await.1, 3);
    let left = client.query("SELECT FROM sessions WHERE session = 'session'", &[]).await.unwrap();
    assert_eq!(left.len(), 1);
}

/// A batch that names a blob is stored while the blob is there, and refused once it was swept.
#[tokio::test]
async fn a_swept_blob_is_noticed() {
    let Some(Shared { store, other, .. }) = Shared::new().await else { return };
    let blob = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 };
    let naming = |number: u128| {
        let record = batch(number, "w", &format!("r{number}"));
        let create = CreateFile { content: Content::Blob(blob), overwrite: false, content_format: None };
        let file = FilePatch { edit: FileEdit::CreateFile(create), ..record.batch.files[0].clone() };
        BatchRecord { batch: Batch { files: vec![file], ..record.batch }, ..record }
    };
    let upload = async |number| {
        store.commit_upload(UploadId(Uuid::from_u128(number)), workspace("w"), blob).await.unwrap();
    };
    append(&store, batch(1, "w", "r1")).await;
    upload(1).await;
    assert_eq!(other.sweep_blobs(UnixMillis(u64::MAX)).await, Ok(1));
    let (refused, cost) = trips(&store, store.append(naming(2))).await;
    assert!(
        matches!(&refused, Err(StoreError::Failed { cause, .. }) if cause.contains("upload it again")),
        "{refused:?}"
    );
    assert_eq!(cost, 3);
    upload(2).await;
    let (stored, cost) = trips(&store, append(&store, naming(3))).await;
    assert_eq!((stored.revision, cost), (Revision(2), 1), "an upload changes nothing that a batch is decided by");
    assert_eq!(other.sweep_blobs(UnixMillis(u64::MAX)).await, Ok(0), "the batch names it");
}

/// What another transaction commits while a group waits for its lock counts.
#[tokio::test]
async fn what_is_committed_during_the_wait_for_a_lock_counts() {
    let Some(Shared { store, client, connection: _served, .. }) = Shared::new().await else { return };
    let stored = append(&store, batch(1, "w", "r1")).await;
    run(&client, "BEGIN; UPDATE workspaces SET newest = newest + 1, epoch = 7 WHERE name = 'w'").await;
    let sql = "INSERT INTO freed_requests VALUES ('w', 'theirs', $1)";
    client.execute(sql, &[&stored.id.0]).await.unwrap();
    let mut waiting = JoinSet::new();
    for request in ["theirs", "r2"] {
        let store = Arc::clone(&store);
        waiting.spawn(async move { store.append(batch(u128::from(request == "r2") + 2, "w", request)).await });
    }
    let waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until(async || (!client.query(waits, &[]).await.unwrap().is_empty()).then_some(())).await;
    run(&client, "COMMIT").await;
    let mut revisions = Vec::new();
    while let Some(appended) = timeout(SOON, waiting.join_next()).await.unwrap() {
        match appended.unwrap() {
            Ok(Appended::New(batch)) => revisions.push(batch.revision),
            Ok(Appended::Known(known)) => assert_eq!(known.stored.id, stored.id),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(revisions, [Revision(3)]);
    assert_eq!(store.lease(workspace("w")).await.unwrap().epoch, 7);
}

/// After a group that may have been committed nothing is known.
#[tokio::test]
async fn nothing_is_known_after_an_unknown_outcome() {
    let Some(Shared { store, client, connection: _served, .. }) = Shared::new().await else { return };
    for name in ["v", "w"] {
        append(&store, batch(if name == "v" { 1 } else { 2 }, name, "r1")).await;
    }
    // A group that stays under way until its connection is ended.
    let pause = "SELECT pg_advisory_lock(1); \
        CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 \
            AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END'; \
        CREATE TRIGGER pause BEFORE INSERT ON batches FOR EACH ROW EXECUTE FUNCTION pause()";
    run(&client, pause).await;
    let (mut waiting, theirs) = (JoinSet::new(), Arc::clone(&store));
    waiting.spawn(async move { theirs.append(batch(3, "w", "r3")).await });
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event = 'advisory'";
    until(async || (!client.query(end, &[]).await.unwrap().is_empty()).then_some(())).await;
    let failed = timeout(SOON, waiting.join_next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(failed, Err(StoreError::ReadOnly { .. })), "{failed:?}");
    run(&client, "DROP TRIGGER pause ON batches").await;
    timeout(SOON, store.healed()).await.unwrap();
    for (number, name) in (4..).zip(["v", "w"]) {
        let (stored, cost) = trips(&store, append(&store, batch(number, name, "r3"))).await;
        assert_eq!((stored.revision, cost), (Revision(2), 2), "{name}");
    }
}

/// Revisions have no gap, and each batch ends once, where two servers write in one workspace at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_write_in_one_workspace_without_gaps() {
    let Some(Shared { store, other, .. }) = Shared::new().await else { return };
    let mut tasks = JoinSet::new();
    for number in 0..120_u128 {
        let stores = [Arc::clone(&store), Arc::clone(&other)];
        tasks.spawn(async move {
            let (one, two) = (&stores[number as usize % 2], &stores[number as usize / 2 % 2]);
            let stored = append(one, batch(number + 1, "w", &format!("r{number}"))).await;
            [stored.revision, take(two, step(&stored, BatchState::Applied)).await.revision]
        });
    }
    let mut revisions: Vec<_> = tasks.join_all().await.into_iter().flatten().map(|revision| revision.0).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=240).collect::<Vec<_>>());
    let counts = store.counts(workspace("w")).await.unwrap().unwrap();
    assert_eq!((counts.newest, counts.open_batches), (Revision(240), 0));
    assert_eq!(store.events(workspace("w"), Revision(0), 1000).await.unwrap().len(), 240);
}

/// Rows that another server reports as changed are read again: no group is sent that would be rolled back.
#[tokio::test]
async fn servers_that_take_turns_waste_no_round_trip() {
    let Some(database) = Database::new() else { return };
    let stores = [Arc::new(database.open().await), Arc::new(database.open().await)];
    let mut hints = stores.each_ref().map(|store| store.hints().unwrap());
    for (number, store) in (1..).zip(&stores) {
        store.join(member(number), Duration::from_secs(3600)).await.unwrap();
    }
    stores[0].renew(member(1).id, Duration::from_secs(3600)).await.unwrap().unwrap();
    // Each hears the other one some time after it was opened.
    let mut number = 1000;
    for turn in [0, 1] {
        loop {
            number += 1;
            let stored = append(&stores[turn], batch(number, "w", &format!("r{number}"))).await;
            let heard =
                async { while hints[1 - turn].recv().await.unwrap() != Hint::Event(workspace("w"), stored.id) {} };
            if timeout(Duration::from_millis(500), heard).await.is_ok() {
                break;
            }
        }
    }
    for number in 0..8 {
        let turn = number as usize % 2;
        let write = append(&stores[turn], batch(number, "w", &format!("r{number}")));
        let (stored, cost) = trips(&stores[turn], write).await;
        assert_eq!(cost, 2, "{number}");
        let told = Hint::Event(workspace("w"), stored.id);
        while timeout(SOON, hints[1 - turn].recv()).await.unwrap().unwrap() != told {}
    }
    let (_, cost) = trips(&stores[1], append(&stores[1], batch(100, "w", "r100"))).await;
    assert_eq!(cost, 1, "the last turn was its own");
}

/// Statements behind a BEGIN that failed would each be carried out alone: the comparison before them has them fail instead.
#[tokio::test]
async fn nothing_follows_a_comparison_outside_of_a_transaction() {
    let Some(Shared { client, connection: _served, .. }) = Shared::new().await else { return };
    let create = async |name: &str| client.execute("INSERT INTO workspaces (name) VALUES ($1)", &[&name]).await;
    let check = client.prepare("SELECT check_known(true)").await.unwrap();
    let inside = tokio::join!(
        biased;
        client.batch_execute("BEGIN; SET LOCAL aptix.grouped = 'on'"),
        client.execute(&check, &[]),
        create("inside"),
        client.batch_execute("COMMIT"),
    );
    assert!(inside.0.is_ok() && inside.1.is_ok() && inside.2.is_ok() && inside.3.is_ok(), "{inside:?}");
    let insert = client.prepare("INSERT INTO workspaces (name) VALUES ('outside')").await.unwrap();
    let outside = tokio::join!(biased; client.execute(&check, &[]), client.execute(&insert, &[]));
    let refused = outside.1.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "25006", "{refused}");
}
