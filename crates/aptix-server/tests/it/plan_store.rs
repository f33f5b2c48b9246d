//! What every store promises of plans that tools know by an id: one newest batch, whatever took which place.

use std::sync::Arc;

use aptix_model::batch_event::EventKind;
use aptix_model::id::{BatchId, FilePatchId, Uuid};
use aptix_model::id_block;
use aptix_model::record::{BatchRecord, Preparation, Source};
use aptix_model::state::BatchState;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::embedded::verify::verify;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::{Appended, BatchSelector, Store, Transition, Transitioned};

use crate::store_contract::{append, prepared, step, workspace};

/// The plan of a first batch with this number, by the id that its file patch has.
fn hunk(number: u128) -> FilePatchId {
    FilePatchId(Uuid::from_u128((number << 17) | 1))
}

/// A batch that takes the place of another one under the id of the plan.
fn taking(number: u128, request: &str, former: &BatchRecord, hunk: FilePatchId) -> BatchRecord {
    let batch = prepared(number, request, 900, Some(former.id));
    let preparation = Preparation { hunk: Some(hunk), ..batch.preparation().unwrap().clone() };
    BatchRecord { source: Source::Prepared(Box::new(preparation)), ..batch }
}

/// A batch with an id as the server mints them, so that the id of its file patch leads to it.
fn first(number: u128, request: &str) -> BatchRecord {
    let (id, batch) = (BatchId(Uuid::from_u128(number << 17)), prepared(number, request, 900, None));
    BatchRecord { id, ids: id_block::of(id, &batch.batch), ..batch }
}

fn freed(batch: &BatchRecord, request: &str) -> Transition {
    let freed = Some(request.parse().unwrap());
    Transition { kind: EventKind::Freed, freed, report: None, ..step(batch, BatchState::Approved) }
}

async fn newest(store: &Arc<impl Store>, hunk: FilePatchId) -> Option<BatchRecord> {
    store.batch(workspace("w"), BatchSelector::Hunk(hunk)).await.unwrap()
}

async fn taken(store: &Arc<impl Store>, step: Transition) -> BatchRecord {
    match store.transition(step).await {
        Ok(Transitioned::Done(batch)) => batch,
        other => panic!("{other:?}"),
    }
}

/// Takes plans through their life, up to where the store may be opened again.
async fn live(store: &Arc<impl Store>) -> BatchRecord {
    let plan = hunk(1);
    assert_eq!(newest(store, plan).await, None);
    let one = append(store, first(1, "r1")).await;
    assert_eq!(newest(store, plan).await.as_ref(), Some(&one));
    let two = append(store, taking(2, "r2", &one, plan)).await;
    assert_eq!(newest(store, plan).await.as_ref(), Some(&two));
    let late = store.append(taking(3, "r3", &one, plan)).await;
    assert!(matches!(late, Ok(Appended::NotReplaced(Some(former))) if former.state == BatchState::Cancelled));

    // What was refused stays as it ended, and its place is taken once.
    let two = taken(store, freed(&two, "a1")).await;
    assert!(matches!(store.append(taking(4, "r4", &two, plan)).await, Ok(Appended::NotReplaced(Some(_)))));
    let two = taken(store, step(&two, BatchState::Failed)).await;
    let three = append(store, taking(5, "r5", &two, plan)).await;
    assert_eq!(store.batch(workspace("w"), BatchSelector::Id(two.id)).await, Ok(Some(two.clone())));
    assert!(matches!(store.append(taking(6, "r6", &two, plan)).await, Ok(Appended::NotReplaced(Some(_)))));
    assert!(matches!(store.append(prepared(7, "r7", 900, Some(two.id))).await, Ok(Appended::NotReplaced(Some(_)))));

    // A request lets one batch be applied.
    let other = append(store, first(8, "r8")).await;
    assert_eq!(store.transition(freed(&other, "a1")).await, Ok(Transitioned::Reused(two.id)));
    assert_eq!(store.transition(freed(&other, "r1")).await, Ok(Transitioned::Reused(one.id)));
    let other = taken(store, freed(&other, "r8")).await;
    assert_eq!(store.batch(workspace("w"), BatchSelector::Request("a1".parse().unwrap())).await, Ok(Some(two)));
    let known = store.append(prepared(9, "a1", 900, None)).await;
    assert!(matches!(known, Ok(Appended::Known(_))), "{known:?}");
    assert_eq!(newest(store, hunk(8)).await, Some(other));
    three
}

#[tokio::test]
async fn a_plan_has_one_newest_batch_in_memory() {
    live(&Arc::new(MemoryStore::default())).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_plan_has_one_newest_batch_in_a_database() {
    let Some(database) = crate::cluster::Database::new() else { return };
    let store = Arc::new(database.open().await);
    let last = live(&store).await;
    store.close().await.unwrap();
    drop(store);
    let store = Arc::new(database.open().await);
    assert_eq!(newest(&store, hunk(1)).await, Some(last), "also after a restart");
}

#[tokio::test]
async fn a_plan_has_one_newest_batch_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let last = live(&store).await;
    store.close().await.unwrap();
    drop(store);
    let found = verify(dir.path()).unwrap();
    assert_eq!(found.damages, Vec::<String>::new());
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    assert_eq!(newest(&store, hunk(1)).await, Some(last), "also after a restart");
}
