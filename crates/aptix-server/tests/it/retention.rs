//! What is kept of batches that ended, by the limits of a workspace: held against each store.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::FileEdit;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision};
use aptix_model::record::{BatchRecord, Reverting, Source};
use aptix_model::report::{FileReport, FileStatus, Report};
use aptix_model::state::BatchState;
use aptix_server::fleet::{Fleet, FleetOptions};
use aptix_server::retention::{Retainer, RetentionRules};
use aptix_server::store::embedded::{EmbeddedStore, verify::verify};
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::retention::{Age, HeldBy, Limits, Retained, Retention, content_digest};
use aptix_server::store::{Appended, BatchSelector, Store, StoreError, Transition, Transitioned};

use crate::store_contract::{append, batch, prepared, step, workspace};
use crate::until::until;

/// Runs a promise against every store; the one on disk is without damage afterwards, also to a start.
macro_rules! promised {
    ($($name:ident,)+) => {
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::$name(std::sync::Arc::new(super::MemoryStore::default())).await;
            })+
        }
        mod embedded {
            $(#[tokio::test] async fn $name() {
                let dir = tempfile::tempdir().unwrap();
                let store = std::sync::Arc::new(super::EmbeddedStore::open(dir.path()).unwrap());
                super::$name(std::sync::Arc::clone(&store)).await;
                super::check(dir.path(), store).await;
            })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test] async fn $name() {
                let Some(database) = crate::cluster::Database::new() else { return };
                let store = std::sync::Arc::new(database.open().await);
                super::$name(std::sync::Arc::clone(&store)).await;
                let kept = super::kept(&store).await;
                super::Store::close(&*store).await.unwrap();
                drop(store);
                let store = std::sync::Arc::new(database.open().await);
                assert_eq!(super::kept(&store).await, kept, "another start finds the same");
            })+
        }
    };
}

promised! {
    content_goes_and_the_record_of_it_stays,
    the_newest_content_is_kept_by_number_and_by_bytes,
    age_counts_the_time_that_was_served,
    events_go_from_the_oldest_and_readers_are_told,
    what_is_open_holds_its_newest_event,
    a_batch_that_another_one_names_stays_as_long_as_that,
    lists_and_steps_end_where_events_do,
    a_request_is_known_as_long_as_its_record,
    a_rehearsal_changes_nothing,
}

async fn check(dir: &std::path::Path, store: Arc<EmbeddedStore>) {
    let kept = kept(&store).await;
    store.close().await.unwrap();
    drop(store);
    assert_eq!(verify(dir).unwrap().damages, Vec::<String>::new());
    let store = Arc::new(EmbeddedStore::open(dir).unwrap());
    assert_eq!(self::kept(&store).await, kept, "another start finds the same");
}

/// The batches that are listed, and the events from the oldest that is kept.
async fn kept(store: &Arc<impl Store>) -> (Vec<Option<BatchRecord>>, Vec<u64>) {
    let mut batches = Vec::new();
    for entry in store.batches(workspace("w"), None, 1000).await.unwrap() {
        batches.push(store.batch(workspace("w"), BatchSelector::Id(entry.unwrap().batch)).await.unwrap());
    }
    let mut after = Revision(0);
    let events = loop {
        match store.events(workspace("w"), after, 1000).await {
            Err(StoreError::Compacted { oldest }) => after = Revision(oldest.0 - 1),
            events => break events.unwrap(),
        }
    };
    (batches, events.into_iter().map(|event| event.unwrap().revision.0).collect())
}

fn order(limits: Limits, now: Age) -> Retention {
    Retention { workspace: workspace("w"), limits, now, is_rehearsal: false }
}

async fn retain(store: &Arc<impl Store>, limits: Limits) -> Retained {
    store.retain(order(limits, Age(0))).await.unwrap()
}

async fn end(store: &Arc<impl Store>, record: &BatchRecord, to: BatchState) -> BatchRecord {
    let report = Report { diff: "-old\n+new\n".to_owned(), ..Report::applied(vec![applied()]) };
    let step = Transition { report: Some(report), ..step(record, to) };
    let Ok(Transitioned::Done(record)) = store.transition(step).await else { panic!("the step is taken") };
    record
}

fn applied() -> FileReport {
    FileReport {
        sha256_before: Some(Sha256Digest::EMPTY),
        ..FileReport::new("a.txt".to_owned(), "app/a.txt".to_owned(), FileStatus::Modified)
    }
}

/// Stores batches that are applied one after the other, each with two events.
async fn ended(store: &Arc<impl Store>, numbers: std::ops::RangeInclusive<u128>) -> Vec<BatchRecord> {
    let mut records = Vec::new();
    for number in numbers {
        let record = append(store, batch(number, "w", &format!("r{number}"))).await;
        records.push(end(store, &record, BatchState::Applied).await);
    }
    records
}

async fn found(store: &Arc<impl Store>, id: BatchId) -> Option<BatchRecord> {
    store.batch(workspace("w"), BatchSelector::Id(id)).await.unwrap()
}

const CONTENT: Limits = Limits { content_batches: Some(0), ..NONE };
const NONE: Limits = Limits {
    content_age: None,
    content_batches: None,
    content_bytes: None,
    record_age: None,
    record_events: None,
    record_least: Duration::ZERO,
};
const EVENTS: Limits = Limits { record_events: Some(1), ..NONE };

/// Who, when, why, names, ids and digests stay.
async fn content_goes_and_the_record_of_it_stays(store: Arc<impl Store>) {
    let before = ended(&store, 1..=1).await.remove(0);
    let open = append(&store, batch(2, "w", "r2")).await;
    let retained = retain(&store, CONTENT).await;
    assert_eq!((retained.contents, retained.records, retained.events), (1, 0, 0));
    let after = found(&store, before.id).await.unwrap();
    assert_eq!(after.removed_content, Some(content_digest(&before.batch)));
    assert_eq!(after.batch.files[0].edit, FileEdit::LocalChange);
    let report = after.report.clone().unwrap();
    assert_eq!((report.diff.as_str(), report.diff_omitted, report.files), ("", true, vec![applied()]));
    let same =
        BatchRecord { batch: before.batch.clone(), report: before.report.clone(), removed_content: None, ..after };
    assert_eq!(same, before, "nothing else changed");
    assert_eq!(found(&store, open.id).await, Some(open), "what is open is whole");
    assert_eq!(retain(&store, CONTENT).await.contents, 0, "it went");
    assert_eq!(store.steps(workspace("w"), before.id, before.revision).await.unwrap().len(), 2);
    // Ids of parts behind one with changes stay the same.
    assert_eq!(found(&store, before.id).await.unwrap().ids, before.ids);
}

async fn the_newest_content_is_kept_by_number_and_by_bytes(store: Arc<impl Store>) {
    let records = ended(&store, 1..=5).await;
    let has_content = async |store: &Arc<_>| {
        let mut kept = Vec::new();
        for record in &records {
            kept.push(found(store, record.id).await.unwrap().removed_content.is_none());
        }
        kept
    };
    assert_eq!(retain(&store, Limits { content_batches: Some(5), ..NONE }).await.contents, 0);
    assert_eq!(retain(&store, Limits { content_batches: Some(3), ..NONE }).await.contents, 2);
    assert_eq!(has_content(&store).await, [false, false, true, true, true]);
    assert_eq!(retain(&store, Limits { content_bytes: Some(1 << 30), ..NONE }).await.contents, 0);
    let all = Retention { is_rehearsal: true, ..order(CONTENT, Age(0)) };
    let bytes = store.retain(all).await.unwrap().content_bytes;
    assert_eq!(retain(&store, Limits { content_bytes: Some(bytes - 1), ..NONE }).await.contents, 1);
    assert_eq!(has_content(&store).await, [false, false, false, true, true]);
    ended(&store, 6..=6).await;
    assert_eq!(retain(&store, Limits { content_batches: Some(1), ..NONE }).await.contents, 2);
}

/// The times that events record do not count: the clock of the machine may have been wrong.
async fn age_counts_the_time_that_was_served(store: Arc<impl Store>) {
    let day = Duration::from_secs(24 * 3600);
    let limits = Limits { content_age: Some(day), record_age: Some(3 * day), ..NONE };
    let began = store.grow_older(None).await.unwrap();
    assert_eq!(began, Age(0));
    let pass = async |now| store.retain(order(limits, now)).await.unwrap();
    ended(&store, 1..=2).await;
    assert_eq!(pass(began).await.contents, 0, "their times are those of years ago");
    ended(&store, 3..=3).await;
    let restarted = store.grow_older(None).await.unwrap();
    assert_eq!(restarted, began, "a start with a clock that was set forward makes nothing old");
    let later = store.grow_older(Some(day)).await.unwrap();
    assert_eq!(pass(later).await.contents, 2, "a clock that was set forward while it was served counts for nothing");
    assert_eq!(store.grow_older(Some(day)).await.unwrap(), later.after(day), "nor one that was set back");
    assert_eq!(pass(later.after(day)).await.contents, 1);
    let retained = pass(later.after(2 * day)).await;
    assert_eq!((retained.events, retained.records, retained.oldest), (4, 2, Revision(5)));
}

async fn events_go_from_the_oldest_and_readers_are_told(store: Arc<impl Store>) {
    let records = ended(&store, 1..=3).await;
    let mut digests = Vec::new();
    for revision in 1..=6 {
        digests.push(store.digest(workspace("w"), Revision(revision)).await.unwrap());
    }
    let retained = retain(&store, Limits { record_events: Some(3), ..NONE }).await;
    assert_eq!((retained.events, retained.records, retained.oldest), (3, 1, Revision(4)));
    assert_eq!((found(&store, records[0].id).await, found(&store, records[1].id).await.is_some()), (None, true));
    for after in 0..3 {
        let events = store.events(workspace("w"), Revision(after), 1).await;
        assert_eq!(events, Err(StoreError::Compacted { oldest: Revision(4) }), "{after}");
        assert_eq!(store.digest(workspace("w"), Revision(after)).await, Ok(None));
    }
    for revision in 3..=6_u64 {
        let digest = store.digest(workspace("w"), Revision(revision)).await.unwrap();
        assert_eq!(digest, digests[revision as usize - 1], "that of the last one that went is known");
    }
    assert_eq!(store.events(workspace("w"), Revision(3), 10).await.unwrap().len(), 3);
    let counts = store.counts(workspace("w")).await.unwrap().unwrap();
    assert_eq!((counts.newest, counts.digest, counts.open_batches), (Revision(6), digests[5], 0));
    let retained = retain(&store, Limits { record_events: Some(0), ..NONE }).await;
    assert_eq!((retained.events, retained.oldest), (2, Revision(6)), "the newest event stays");
    let next = ended(&store, 4..=4).await.remove(0);
    assert_eq!(next.revision, Revision(8));
}

/// Nobody acts on it, and its agent still gets it; all content before and behind it goes.
async fn what_is_open_holds_its_newest_event(store: Arc<impl Store>) {
    ended(&store, 1..=1).await;
    let open = append(&store, batch(2, "w", "r2")).await;
    ended(&store, 3..=4).await;
    let retained = retain(&store, Limits { content_batches: Some(0), ..EVENTS }).await;
    assert_eq!(retained.held_by, Some(HeldBy::Open(open.revision, open.id)));
    assert_eq!((retained.contents, retained.events, retained.oldest), (3, 2, open.revision));
    assert_eq!(found(&store, open.id).await, Some(open.clone()));
    end(&store, &open, BatchState::Applied).await;
    let retained = retain(&store, EVENTS).await;
    assert_eq!((retained.held_by, retained.oldest), (None, Revision(8)));
    assert!(found(&store, open.id).await.is_some(), "its newest event is kept");
    assert_eq!(retained.records, 2);
}

async fn a_batch_that_another_one_names_stays_as_long_as_that(store: Arc<impl Store>) {
    let first = ended(&store, 1..=1).await.remove(0);
    let revert = |number, of| {
        let author = aptix_model::actor::Actor::unnamed(aptix_model::actor::ActorKind::Author);
        let source = Source::Revert(Reverting { of, author, reason: None });
        BatchRecord { source, ..batch(number, "w", &format!("r{number}")) }
    };
    ended(&store, 2..=3).await;
    let second = append(&store, revert(4, first.id)).await;
    assert_eq!(retain(&store, EVENTS).await.records, 2, "an open batch takes the first one back");
    assert!(found(&store, first.id).await.is_some());
    end(&store, &second, BatchState::Applied).await;
    assert_eq!(retain(&store, EVENTS).await.records, 0);
    assert_eq!(found(&store, first.id).await.unwrap().reverted_by, Some(second.id));
    ended(&store, 5..=5).await;
    assert_eq!(retain(&store, EVENTS).await.records, 2, "both go together");
    assert_eq!(found(&store, first.id).await, None);
}

async fn lists_and_steps_end_where_events_do(store: Arc<impl Store>) {
    let early = append(&store, batch(1, "w", "r1")).await;
    ended(&store, 2..=4).await;
    let early = end(&store, &early, BatchState::Cancelled).await;
    ended(&store, 5..=5).await;
    retain(&store, Limits { record_events: Some(4), ..NONE }).await;
    let listed = store.batches(workspace("w"), None, 10).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|entry| entry.unwrap().batch).collect();
    assert_eq!(listed.len(), 3, "one whose first event is gone is listed: {listed:?}");
    assert_eq!(listed.last(), Some(&early.id));
    let steps = store.steps(workspace("w"), early.id, early.revision).await.unwrap();
    assert_eq!(steps.iter().map(|step| step.revision).collect::<Vec<_>>(), [early.revision]);
}

/// A retry is answered, with and without content, until the record goes.
async fn a_request_is_known_as_long_as_its_record(store: Arc<impl Store>) {
    let record = ended(&store, 1..=1).await.remove(0);
    retain(&store, CONTENT).await;
    let Ok(Appended::Known(known)) = store.append(batch(1, "w", "r1")).await else { panic!("it is known") };
    assert_eq!((known.stored.id, known.stored.removed_content.is_some()), (record.id, true));
    ended(&store, 2..=2).await;
    let day = Duration::from_secs(24 * 3600);
    let least = Limits { record_least: day, ..EVENTS };
    assert_eq!(retain(&store, least).await.records, 0, "the request may be repeated for a day");
    assert_eq!(store.retain(order(least, Age(0).after(day))).await.unwrap().records, 1);
    assert_eq!(store.batch(workspace("w"), BatchSelector::Request(record.request_id.clone())).await, Ok(None));
    let again = append(&store, batch(9, "w", "r1")).await;
    assert_eq!(again.revision, Revision(5));
}

async fn a_rehearsal_changes_nothing(store: Arc<impl Store>) {
    let former = append(&store, prepared(1, "p1", u64::MAX, None)).await;
    append(&store, prepared(2, "p2", u64::MAX, Some(former.id))).await;
    ended(&store, 3..=5).await;
    let before = kept(&store).await;
    let limits = Limits { content_batches: Some(1), ..EVENTS };
    let rehearsal = Retention { is_rehearsal: true, ..order(limits, Age(0)) };
    let would = store.retain(rehearsal).await.unwrap();
    assert_eq!(kept(&store).await, before);
    assert_eq!((would.contents, would.events, would.records), (3, 2, 0));
    let did = retain(&store, limits).await;
    assert_eq!((did.contents, did.events, did.records), (would.contents, would.events, would.records));
}

/// A damaged record of what was removed ends the retention of its workspace alone, before anything goes; `verify` names it.
#[tokio::test]
async fn a_damaged_record_of_what_was_removed_stops_its_workspace_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    ended(&store, 1..=3).await;
    assert!(retain(&store, EVENTS).await.events > 0);
    store.close().await.unwrap();
    drop(store);
    let database = fjall::Database::builder(dir.path()).open().unwrap();
    let records = database.keyspace("records", fjall::KeyspaceCreateOptions::default).unwrap();
    records.insert(b"yw\0", "damaged").unwrap();
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    drop((records, database));
    let found = verify(dir.path()).unwrap().damages;
    assert!(
        found.iter().any(|damage| damage.contains("record yw") && damage.contains("events were removed")),
        "{found:?}"
    );

    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    ended(&store, 4..=5).await;
    for number in 11..=13 {
        let other = append(&store, batch(number, "x", &format!("r{number}"))).await;
        store.transition(step(&other, BatchState::Applied)).await.unwrap();
    }
    let before = kept(&store).await;
    let limits = Limits { content_batches: Some(0), ..EVENTS };
    let failed = store.retain(order(limits, Age(0))).await;
    assert!(matches!(failed, Err(StoreError::Corrupt { .. })), "{failed:?}");
    let rules = RetentionRules { usual: limits, ..RetentionRules::default() };
    let fleet = Fleet::of(&(Arc::clone(&store) as Arc<dyn Store>), FleetOptions::default());
    let retainer = Retainer::new(Arc::clone(&store) as Arc<dyn Store>, rules.into(), fleet);
    // "x" comes after the damaged workspace.
    let removed = until(async || match store.events(workspace("x"), Revision(0), 1).await {
        Err(StoreError::Compacted { .. }) => Some(()),
        _ => None,
    });
    tokio::select! {
        () = removed => {}
        never = retainer.run(Duration::from_millis(1)) => match never {},
    }
    assert_eq!(kept(&store).await, before, "nothing of the damaged one goes");
    store.close().await.unwrap();
}
