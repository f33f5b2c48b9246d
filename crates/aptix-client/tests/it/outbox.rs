//! What waits for the server: receipts and contents, until they are acknowledged.

use std::path::Path;

use aptix_client::workspace::outbox;
use aptix_model::id::BatchId;

use crate::faults::{self, BATCH, Fault, Receipt};

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    place
}

fn open(place: &Path) -> aptix_client::workspace::Workspace {
    faults::open(place, Fault::None).unwrap().0
}

#[test]
fn a_receipt_and_the_new_contents_outlive_the_process_until_they_are_acknowledged() {
    // TUL-004-6.2.3
    let place = place();
    let report = faults::commit(&open(place.path()), &faults::batch(2, 1), Receipt::Kept).unwrap();

    let workspace = open(place.path());
    let batch: BatchId = BATCH.parse().unwrap();
    assert_eq!(outbox::waiting(&workspace).unwrap(), [batch]);
    assert_eq!(outbox::find(&workspace, batch).unwrap().unwrap().receipt, b"3 files");
    assert!(!outbox::is_done(&workspace, batch).unwrap());
    for file in &report.files {
        let kept = outbox::content(&workspace, batch, file.written.unwrap().sha256).unwrap().unwrap();
        assert_eq!(kept, std::fs::read(place.path().join("ws").join(&file.path)).unwrap());
    }
    outbox::acknowledge(&workspace, batch).unwrap();
    outbox::acknowledge(&workspace, batch).unwrap();
    assert!(outbox::waiting(&workspace).unwrap().is_empty());
    assert!(outbox::is_done(&open(place.path()), batch).unwrap());
    assert!(outbox::content(&workspace, batch, report.files[0].written.unwrap().sha256).unwrap().is_none());
    crate::scenarios::assert_no_debris(place.path(), "acknowledged");
}

#[test]
fn a_refusal_waits_like_a_receipt() {
    let place = place();
    let batch: BatchId = BATCH.parse().unwrap();
    outbox::put(&open(place.path()), batch, b"no").unwrap();
    let workspace = open(place.path());
    assert_eq!(outbox::find(&workspace, batch).unwrap().unwrap().receipt, b"no");
    outbox::acknowledge(&workspace, batch).unwrap();
}

#[test]
fn a_batch_that_changes_nothing_leaves_a_receipt_all_the_same() {
    let place = place();
    let workspace = open(place.path());
    let batch = faults::batch(0, 1);
    faults::commit(&workspace, &batch, Receipt::None).unwrap();
    let mut same = batch;
    if let aptix_model::batch::FileEdit::CreateFile(create) = &mut same.files[0].edit {
        create.overwrite = true;
    }
    let report = faults::commit(&workspace, &same, Receipt::Kept).unwrap();
    assert_eq!(report.files[0].status, aptix_model::report::FileStatus::Unchanged);
    assert_eq!(outbox::waiting(&workspace).unwrap().len(), 1);
}

#[test]
fn a_damaged_receipt_is_an_error_and_not_nothing() {
    let place = place();
    let workspace = open(place.path());
    outbox::put(&workspace, BATCH.parse().unwrap(), b"no").unwrap();
    let path = workspace.roots()[0].state().path().join("outbox").join(BATCH);
    std::fs::write(&path, b"").unwrap();
    let error = outbox::find(&workspace, BATCH.parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn only_so_many_ended_batches_are_remembered() {
    let place = place();
    let workspace = open(place.path());
    let batches: Vec<BatchId> =
        (0..4).map(|number| format!("018f6d2e-7c1a-7b3e-9d55-{number:012}").parse().unwrap()).collect();
    for batch in &batches {
        outbox::put(&workspace, *batch, b"no").unwrap();
        outbox::acknowledge(&workspace, *batch).unwrap();
    }
    outbox::forget_done(&workspace, 2).unwrap();
    let done: Vec<_> = batches.iter().map(|batch| outbox::is_done(&workspace, *batch).unwrap()).collect();
    assert_eq!(done, [false, false, true, true]);
}
