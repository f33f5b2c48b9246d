//! The groups of writes of the store in PostgreSQL: what one write cannot do to the others of its group.

use std::sync::Arc;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch::Batch;
use aptix_model::id::BatchId;
use aptix_model::record::{BatchRecord, Reverting, Source};
use aptix_model::state::BatchState;
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::{Appended, BatchSelector, Store, StoreError, Transition, Transitioned};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cluster::Database;
use crate::postgres_store::{SOON, connect, end, run};
use crate::store_contract::{append, batch, step, workspace};

/// A batch whose content takes so many bytes.
fn sized(record: BatchRecord, bytes: usize) -> BatchRecord {
    let batch = Batch { label: Some("x".repeat(bytes)), ..record.batch };
    BatchRecord { batch, ..record }
}

/// A batch that takes another one back.
fn revert(number: u128, name: &str, of: BatchId) -> BatchRecord {
    let author = Actor::unnamed(ActorKind::Author);
    let source = Source::Revert(Reverting { of, author, reason: None });
    BatchRecord { source, ..batch(number, name, &format!("r{number}")) }
}

/// Steps that are asked for at once.
async fn step_all(store: &Arc<PostgresStore>, steps: Vec<Transition>) -> Vec<BatchRecord> {
    let mut tasks = JoinSet::new();
    for step in steps {
        let store = Arc::clone(store);
        tasks.spawn(async move { store.transition(step).await });
    }
    let taken = tasks.join_all().await.into_iter().map(|taken| match taken {
        Ok(Transitioned::Done(batch)) => batch,
        other => panic!("the step is taken, and not {other:?}"),
    });
    taken.collect()
}

/// The writes of other workspaces share commits while another transaction holds the row of one of their group.
#[tokio::test]
async fn a_locked_workspace_alone_is_set_apart() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (Arc::new(database.open().await), JoinSet::new());
    append(&store, batch(1, "w", "r0")).await;
    let client = connect(&database, &mut tasks).await;
    run(&client, "BEGIN; SELECT FROM workspaces WHERE name = 'w' FOR UPDATE").await;
    let before = store.asked();
    let mut waiting = JoinSet::new();
    for number in 0..40_u128 {
        let store = Arc::clone(&store);
        let name = if number == 20 { "w".to_owned() } else { format!("v{number}") };
        waiting.spawn(async move { store.append(batch(number + 2, &name, "r1")).await });
    }
    for _ in 0..39 {
        let stored = timeout(SOON, waiting.join_next()).await.unwrap().unwrap().unwrap();
        assert!(matches!(stored, Ok(Appended::New(_))), "{stored:?}");
    }
    run(&client, "ROLLBACK").await;
    assert!(timeout(SOON, waiting.join_next()).await.unwrap().unwrap().unwrap().is_ok());
    let commits = store.asked().commits - before.commits;
    assert!(commits <= 10, "{commits} commits of 40 writes");
}

/// A write that PostgreSQL refuses fails none that shares its group, in its workspace or another one.
#[tokio::test]
async fn a_refused_write_fails_alone() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (Arc::new(database.open().await), JoinSet::new());
    append(&store, batch(1, "w", "r0")).await;
    let client = connect(&database, &mut tasks).await;
    run(&client, "ALTER TABLE batches ADD CONSTRAINT refused CHECK (request <> 'refused')").await;
    let mut waiting = JoinSet::new();
    for number in 0..40_u128 {
        let store = Arc::clone(&store);
        let request = if number == 20 { "refused".to_owned() } else { format!("r{number}") };
        let name = ["v", "w"][number as usize % 2];
        waiting.spawn(async move { (number, store.append(batch(number + 2, name, &request)).await) });
    }
    for (number, stored) in waiting.join_all().await {
        match stored {
            Ok(Appended::New(_)) => assert_ne!(number, 20),
            Err(StoreError::Failed { cause, .. }) if cause.contains("refused") => assert_eq!(number, 20),
            other => panic!("{number}: {other:?}"),
        }
    }
    append(&store, batch(100, "v", "after")).await;
}

/// A revert is linked to the batch that it takes back, also where its group has no memory left for that batch.
#[tokio::test]
async fn a_revert_is_linked_in_a_group_without_memory_left() {
    let Some(database) = Database::new() else { return };
    let store = Arc::new(database.open().await);
    let large = |number| sized(batch(number, "w", &format!("r{number}")), 4 << 20);
    let mut steps = Vec::new();
    for number in 1..=9 {
        steps.push(step(&append(&store, large(number)).await, BatchState::Applied));
    }
    // The last one by id: of its content the group reads nothing when its report is repeated beside those before it.
    let target = append(&store, large(100)).await;
    let report = step(&target, BatchState::Applied);
    end(&store, &target).await;
    let revert = append(&store, revert(50, "w", target.id)).await;
    let mut repeated = JoinSet::new();
    let theirs = Arc::clone(&store);
    repeated.spawn(async move { theirs.transition(report).await });
    steps.push(step(&revert, BatchState::Applied));
    step_all(&store, steps).await;
    assert!(repeated.join_all().await[0].is_ok());
    let found = store.batch(workspace("w"), BatchSelector::Id(target.id)).await.unwrap().unwrap();
    assert_eq!(found.reverted_by, Some(revert.id));
}

/// Chains of reverts that take more memory together than a group has are followed in several groups, each to its end.
#[tokio::test]
async fn long_chains_of_reverts_are_followed_to_their_ends() {
    let Some(database) = Database::new() else { return };
    let store = Arc::new(database.open().await);
    let (mut steps, mut ends) = (Vec::new(), Vec::new());
    for chain in 0..3_u128 {
        let name = format!("w{chain}");
        let first = append(&store, sized(batch(100 * chain + 1, &name, "r1"), 4 << 20)).await;
        let mut last = end(&store, &first).await.id;
        for number in 2..=6 {
            let made = append(&store, sized(revert(100 * chain + number, &name, last), 4 << 20)).await;
            last = end(&store, &made).await.id;
        }
        let made = append(&store, revert(100 * chain + 7, &name, last)).await;
        steps.push(step(&made, BatchState::Applied));
        ends.push((name, last, made.id));
    }
    step_all(&store, steps).await;
    for (name, reverted, by) in ends {
        let found = store.batch(workspace(&name), BatchSelector::Id(reverted)).await.unwrap().unwrap();
        assert_eq!(found.reverted_by, Some(by), "{name}");
    }
}
