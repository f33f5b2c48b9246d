//! No sweep takes a blob that a batch or a file names: histories of uploads in parts, batches, plans, reports, reads, retention, sweeps
//! beside all of these, and starts, held against a plain reference. A history that fails is made shorter and printed with its seed.

mod forgetful;
mod history;
mod world;

use self::history::{Step, random};
use self::world::{Kind, World};

/// Steps of a history.
const STEPS: usize = 45;

/// What is wrong with a history, if anything is.
async fn play(kind: Kind, steps: &[Step]) -> Option<String> {
    let mut world = World::new(kind).await;
    for (number, step) in steps.iter().enumerate() {
        if let Err(why) = world.step(*step).await {
            return Some(format!("step {number}, {step:?}: {why}"));
        }
    }
    world.end().await.err().map(|why| format!("at the end: {why}"))
}

/// The same; a history whose tasks may go on in more than one way is played more than once.
async fn fails(kind: Kind, steps: &[Step]) -> Option<String> {
    for _ in 0..3 {
        let why = play(kind, steps).await;
        if why.is_some() {
            return why;
        }
    }
    None
}

/// Leaves out what the failure does not need.
async fn shortened(kind: Kind, mut steps: Vec<Step>, mut why: String) -> (Vec<Step>, String) {
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < steps.len() {
            let fewer = [&steps[..at], steps.get(at + size..).unwrap_or_default()].concat();
            match fails(kind, &fewer).await {
                Some(other) => (steps, why) = (fewer, other),
                None => at += size,
            }
        }
        size /= 2;
    }
    (steps, why)
}

/// The first history that fails, made shorter.
async fn first_failure(kind: Kind, seeds: std::ops::Range<u64>) -> Option<(u64, Vec<Step>, String)> {
    for seed in seeds {
        let steps = random(seed, STEPS);
        if let Some(why) = play(kind, &steps).await {
            let (steps, why) = shortened(kind, steps, why).await;
            return Some((seed, steps, why));
        }
    }
    None
}

async fn hold(kind: Kind, seeds: std::ops::Range<u64>) {
    if let Some((seed, steps, why)) = first_failure(kind, seeds).await {
        panic!("history {seed} fails: {why}; the shortest that does: {steps:#?}");
    }
}

#[tokio::test]
async fn no_named_blob_is_ever_swept_in_memory() {
    hold(Kind::Memory, 0..40).await;
}

#[tokio::test]
async fn no_named_blob_is_ever_swept() {
    hold(Kind::Embedded, 0..24).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn no_named_blob_is_ever_swept_in_a_database() {
    if crate::cluster::Database::new().is_some() {
        hold(Kind::Postgres, 0..4).await;
    }
}

#[cfg(feature = "s3")]
#[tokio::test]
async fn no_named_blob_is_ever_swept_in_a_bucket() {
    if crate::cluster::Database::with_bucket().is_some() {
        hold(Kind::Bucket, 0..2).await;
    }
}

/// The control: a store that does not know what files name.
#[tokio::test]
async fn a_store_that_forgets_what_files_name_is_found() {
    let (_, steps, why) = first_failure(Kind::Forgetful, 0..40).await.unwrap();
    assert!(why.contains("is lost"), "{why}");
    assert!(steps.len() <= 5, "the history is short: {steps:?}");
}
