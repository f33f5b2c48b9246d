//! What a batch reads of the store on disk, counted: a file that was edited often costs no more than any other.

use std::path::Path;
use std::sync::Arc;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Revision;
use aptix_model::path::DocPath;
use aptix_model::state::BatchState;
use aptix_server::store::embedded::{EmbeddedStore, Reads};
use aptix_server::store::{BatchSelector, Store, Transition, Transitioned, Twins};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::sample::file;
use crate::store_contract::{append, batch, step, with_empty_blob, workspace};

/// How often the file was edited.
const EDITS: u128 = 4_000;
/// How many batches wait for one flush.
const AT_ONCE: u128 = 200;

/// Stores a batch that edits a file, lets its agent read it, and stores that it is applied.
async fn edit(store: Arc<EmbeddedStore>, number: u128, path: &'static str) {
    let stored = append(&store, batch(number, "w", &format!("request-{number}"))).await;
    store.batch(workspace("w"), BatchSelector::Id(stored.id)).await.unwrap().unwrap();
    let blob = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 };
    let files = vec![file(path, Some(blob), Twins::MayExist)];
    let applied = store.transition(Transition { files, ..step(&stored, BatchState::Applied) }).await.unwrap();
    assert!(matches!(applied, Transitioned::Done(_)));
    let found = store.files_with_key(workspace("w"), DocPath::new(path).unwrap()).await.unwrap();
    assert_eq!(found.len(), 1);
}

/// What one more edit reads.
async fn reads_of_one(store: &Arc<EmbeddedStore>, number: u128, path: &'static str) -> Reads {
    let before = store.reads();
    edit(Arc::clone(store), number, path).await;
    let after = store.reads();
    Reads { records: after.records - before.records, ranges: after.ranges - before.ranges }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_for_a_file_that_was_edited_often_reads_as_much_as_one_for_a_file_edited_once() {
    // In memory where that is possible: nothing here has to last.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap();
    let store = with_empty_blob(EmbeddedStore::open(dir.path()).unwrap()).await;
    store.grant_lease(workspace("w"), Sha256Digest::EMPTY, vec!["main".to_owned()]).await.unwrap();
    edit(Arc::clone(&store), 1, "main/once.txt").await;
    for first in (2..EDITS + 2).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let mut edits = JoinSet::new();
        for number in first..(first + AT_ONCE).min(EDITS + 2) {
            edits.spawn(edit(Arc::clone(&store), number, "main/often.txt"));
        }
        edits.join_all().await;
    }
    let of_once = reads_of_one(&store, EDITS + 2, "main/once.txt").await;
    let of_often = reads_of_one(&store, EDITS + 3, "main/often.txt").await;
    assert_eq!(of_once, of_often);
    // A range passes every version of a file that the database still has, and is counted once.
    assert_eq!(of_often.ranges, 0);
    assert_eq!(store.newest(workspace("w")).await, Ok(Some(Revision(2 * (3 + EDITS as u64)))));
    store.close().await.unwrap();
}
