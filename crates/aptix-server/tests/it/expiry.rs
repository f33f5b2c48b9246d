//! Prepared batches expire although other records are damaged, and stay expired after a start with a clock that was set back.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::state::BatchState;
use aptix_model::wire::v1;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::dispatcher::approve::Consent;
use aptix_server::dispatcher::plan_name::PlanName;
use aptix_server::dispatcher::prepared::Freeing;
use aptix_server::dispatcher::{Dispatcher, Settings};
use aptix_server::options::Options;
use aptix_server::steady_clock::SteadyClock;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::{BatchSelector, Store};
use tonic::Code;

use crate::server::{Clients, Server, assert_refused};
use crate::store_contract::{append, batch, prepared, workspace};

const HOUR: u64 = 3_600_000;
const TEN_YEARS: u64 = 87_600 * HOUR;

#[expect(clippy::disallowed_methods, reason = "a test compares with the time of day")]
fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn apply(batch: &BatchRecord) -> v1::ApplyPreparedRequest {
    v1::ApplyPreparedRequest {
        workspace_id: "w".to_owned(),
        batch_id: batch.id.to_string(),
        owner: "ann".to_owned(),
        request_id: "apply".to_owned(),
        ..v1::ApplyPreparedRequest::default()
    }
}

/// However many prepared batches are damaged, those that expired after them end.
#[tokio::test]
async fn damaged_records_do_not_hold_up_the_end_of_other_batches() {
    const DAMAGED: u128 = 300;
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let store = Arc::new(EmbeddedStore::open(place.path()).unwrap());
    let mut damaged = Vec::new();
    for number in 1..=DAMAGED {
        damaged.push(append(&store, prepared(number, &format!("r{number}"), 100, None)).await);
    }
    let last = append(&store, prepared(DAMAGED + 1, "last", 200, None)).await;
    store.close().await.unwrap();
    drop(store);
    let database = fjall::Database::builder(place.path()).open().unwrap();
    let records = database.keyspace("records", fjall::KeyspaceCreateOptions::default).unwrap();
    for batch in damaged {
        records.insert([b"b", batch.id.0.as_bytes().as_slice()].concat(), "damaged").unwrap();
    }
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    drop((records, database));

    let dispatch = Settings { expiry_sweep: Duration::from_millis(10), ..Settings::default() };
    let store = Arc::new(EmbeddedStore::open(place.path()).unwrap());
    let server = Server::over(store, Options { dispatch, ..Options::default() });
    let mut client = server.connect().await;
    assert_eq!(ended(&mut client, &last).await, v1::BatchState::Expired);
}

/// The state in which a batch ends.
async fn ended(client: &mut Clients, batch: &BatchRecord) -> v1::BatchState {
    let watch = v1::WatchBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: batch.id.to_string(),
        ..v1::WatchBatchRequest::default()
    };
    let mut states = client.batches.watch_batch(watch).await.unwrap().into_inner();
    let end = async {
        let mut state = v1::BatchState::Unspecified;
        while let Some(message) = states.message().await.unwrap() {
            state = message.batch.map_or(state, |batch| batch.state());
        }
        state
    };
    tokio::time::timeout(Duration::from_secs(60), end).await.unwrap()
}

/// A start revives no batch with a clock that is behind what the store records, and shortens the life of none.
#[tokio::test]
async fn a_clock_that_is_set_back_revives_no_prepared_batch() {
    for (recorded, is_over) in [(2 * HOUR, true), (HOUR / 2, false)] {
        let store = Arc::new(MemoryStore::default());
        let waiting = append(&store, prepared(1, "prepared", now() + HOUR, None)).await;
        let later = UnixMillis(now() + recorded);
        append(&store, BatchRecord { created: later, updated: later, ..batch(2, "w", "later") }).await;
        let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
        let applied = server.connect().await.batches.apply_prepared(apply(&waiting)).await;
        if is_over {
            assert_refused(applied, Code::FailedPrecondition, "HUNK_EXPIRED", "");
            let stored = store.batch(workspace("w"), BatchSelector::Id(waiting.id)).await.unwrap().unwrap();
            assert_eq!(stored.state, BatchState::Expired, "a batch that was refused as expired is stored as such");
        } else {
            assert_eq!(applied.unwrap().into_inner().batch.unwrap().state(), v1::BatchState::Approved);
        }
    }
}

/// The latest expiry shows what time it was at least when that batch was stored: no batch lives longer than seven days.
#[tokio::test]
async fn a_batch_that_expires_far_ahead_ends_those_that_expire_a_week_before() {
    let store = Arc::new(MemoryStore::default());
    let far = append(&store, prepared(1, "far", now() + 1000 * HOUR, None)).await;
    let near = append(&store, prepared(2, "near", now() + (1000 - 7 * 24 - 1) * HOUR, None)).await;
    let server = Server::over(store, Options::default());
    let mut client = server.connect().await;
    let refused = client.batches.apply_prepared(apply(&near)).await;
    assert_refused(refused, Code::FailedPrecondition, "HUNK_EXPIRED", "");
    client.batches.apply_prepared(apply(&far)).await.unwrap();
}

/// A batch that waits for a person, for up to seven days, does not shorten the life of others at a start.
#[tokio::test]
async fn a_batch_that_waits_for_a_person_ends_no_other_early() {
    let store = Arc::new(MemoryStore::default());
    let (at, state) = (UnixMillis(now()), BatchState::PendingApproval);
    append(&store, BatchRecord { created: at, updated: at, state, ..batch(1, "w", "waits") }).await;
    let waiting = append(&store, prepared(2, "prepared", now() + HOUR, None)).await;
    let server = Server::over(store, Options::default());
    let applied = server.connect().await.batches.apply_prepared(apply(&waiting)).await.unwrap();
    assert_eq!(applied.into_inner().batch.unwrap().state(), v1::BatchState::Approved);
}

/// What a clock reads: the time of day and the time that passed.
type Reading = Arc<Mutex<(u64, Duration)>>;

/// A dispatcher whose clock a test sets, with a prepared batch that expires in an hour and one that waits for a person for a week.
async fn with_clock() -> (Arc<Dispatcher>, Reading, [BatchRecord; 2]) {
    let start = batch(1, "w", "waits").updated.0;
    let store = Arc::new(MemoryStore::default());
    let waits = BatchRecord { state: BatchState::PendingApproval, ..batch(1, "w", "waits") };
    let batches = [append(&store, prepared(2, "prepared", start + HOUR, None)).await, append(&store, waits).await];
    let reading = Arc::new(Mutex::new((start, Duration::ZERO)));
    let read = Arc::clone(&reading);
    let clock = SteadyClock::of(move || {
        let (time_of_day, passed) = *read.lock().unwrap();
        (UnixMillis(time_of_day), passed)
    });
    let dispatcher = Dispatcher::with_clock(store, Settings::default(), (Approvals::default(), clock));
    dispatcher.recall_time().await.unwrap();
    (dispatcher, reading, batches)
}

/// A time of day that is ten years ahead for less than a minute ends no batch, neither in a sweep nor when its owner or a
/// reviewer uses it.
#[tokio::test]
async fn a_time_of_day_that_jumps_ahead_for_a_moment_expires_nothing() {
    let (dispatcher, reading, [plan, waits]) = with_clock().await;
    let (start, truth) = (reading.lock().unwrap().0, |seconds| Duration::from_secs(seconds));
    for seconds in [1, 30, 59] {
        *reading.lock().unwrap() = (start + TEN_YEARS, truth(seconds));
        assert_eq!(dispatcher.expire().await.unwrap(), 0, "after {seconds} s");
    }
    let applied = (PlanName::Batch(plan.id), freeing());
    let freed = dispatcher.free(workspace("w"), plan.id, applied).await.unwrap();
    assert_eq!(freed.state, BatchState::Approved);
    assert!(freed.updated.0 <= start + 59_000, "no record has the time of day that jumped");
    dispatcher.approve(workspace("w"), waits.id, Consent::default()).await.unwrap();
}

/// Where it stays ahead, as after the machine was suspended, batches whose time is over expire after a minute.
#[tokio::test]
async fn a_time_of_day_that_stays_ahead_expires_batches_after_a_minute() {
    let (dispatcher, reading, [plan, waits]) = with_clock().await;
    let start = reading.lock().unwrap().0;
    let mut ended = Vec::new();
    for seconds in [1, 31, 61, 91] {
        *reading.lock().unwrap() = (start + TEN_YEARS, Duration::from_secs(seconds));
        ended.push(dispatcher.expire().await.unwrap());
    }
    assert_eq!(ended, [0, 0, 2, 0]);
    // Set right again, it revives neither.
    *reading.lock().unwrap() = (start, Duration::from_secs(92));
    let applied = (PlanName::Batch(plan.id), freeing());
    dispatcher.free(workspace("w"), plan.id, applied).await.unwrap_err();
    dispatcher.approve(workspace("w"), waits.id, Consent::default()).await.unwrap_err();
}

fn freeing() -> Freeing {
    Freeing { owner: "ann".parse().unwrap(), request: "apply".parse().unwrap(), token: None }
}
