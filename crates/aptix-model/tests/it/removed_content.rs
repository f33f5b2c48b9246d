//! A batch whose content retention removed, on the wire.

use aptix_model::batch::FileEdit;
use aptix_model::digest::Sha256Digest;
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;
use aptix_model::wire::{View, v1};

use crate::wire::record;

/// It says so in each view, has no actions, and is read as what it is.
#[test]
fn a_batch_without_its_content_makes_the_journey() {
    let mut removed = BatchRecord { state: BatchState::Applied, ..record() };
    let ids: Vec<_> = removed.ids.iter().map(|ids| ids.file).collect();
    removed.remove_content(Sha256Digest::EMPTY);
    for view in [View::Basic, View::Full] {
        let message = view.message(removed.clone());
        assert!(message.content_omitted);
        assert_eq!(message.removed_content_sha256, Sha256Digest::EMPTY.to_string());
        let edit = message.edit.unwrap();
        assert!(edit.files.iter().all(|file| file.action.is_none() && file.target.is_some()));
        assert_eq!(message.report.unwrap().diff, "");
    }
    let read = BatchRecord::try_from(v1::Batch::from(removed.clone())).unwrap();
    assert_eq!(read.removed_content, removed.removed_content);
    assert_eq!(read.ids.iter().map(|ids| ids.file).collect::<Vec<_>>(), ids, "file patches keep their ids");
    assert!(read.batch.files.iter().all(|file| file.edit == FileEdit::LocalChange));
    let whole = BatchRecord::try_from(v1::Batch::from(record())).unwrap();
    assert_eq!((whole.removed_content, whole), (None, record()));
}
