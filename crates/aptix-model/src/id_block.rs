//! The ids of a batch are one block: the batch's own is a `UUIDv7` whose last bits are zero, and its file patches and
//! changes count on from there, in the batch's order. So an id leads to its batch without an index, and blocks never
//! overlap, because no batch has more entries than the last bits can count. The server and the history of a workstation
//! name their batches alike.

use alloc::vec::Vec;

use crate::batch::Batch;
use crate::id::{BatchId, ChangeId, FilePatchId, Uuid};
use crate::record::FileIds;

/// How many of an id's last bits count within its batch: room for 131,071 file patches and changes.
const COUNTING_BITS: u32 = 17;
const COUNTING: u128 = (1 << COUNTING_BITS) - 1;

/// How many file patches and changes a batch can have.
pub const ENTRIES: usize = (1 << COUNTING_BITS) - 1;

/// The id of the batch whose block an id is in: that of a file patch, of a change, or a new `UUIDv7`.
#[must_use]
pub fn batch_id(id: Uuid) -> BatchId {
    BatchId(Uuid::from_u128(id.as_u128() & !COUNTING))
}

/// The ids of a batch's file patches and changes.
#[must_use]
pub fn of(id: BatchId, batch: &Batch) -> Vec<FileIds> {
    counted(id, batch.files.iter().map(|patch| patch.edit.change_count()))
}

/// The ids of the file patches and changes of a batch whose files have so many changes.
pub fn counted(id: BatchId, change_counts: impl Iterator<Item = usize>) -> Vec<FileIds> {
    let mut next = id.0.as_u128();
    let mut mint = || {
        next = next.wrapping_add(1);
        Uuid::from_u128(next)
    };
    let file = |count| {
        let file = FilePatchId(mint());
        FileIds { file, changes: (0..count).map(|_| ChangeId(mint())).collect() }
    };
    change_counts.map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Change, FileEdit, FilePatch, LinePatch, Operation, Target};

    #[test]
    fn ids_differ_and_lead_back_to_their_batch() {
        let change =
            Change { key: None, description: None, operation: Operation::Insert { after_line: 0, new_lines: vec![] } };
        let edit = FileEdit::LinePatch(LinePatch { original_sha256: String::new(), changes: vec![change; 3] });
        let file = FilePatch { target: Target::Path("a".to_owned()), key: None, label: None, edit };
        let batch = Batch { files: vec![file; 2], ..Batch::default() };
        let id = batch_id(Uuid::from_u128(u128::MAX));
        let ids = of(id, &batch);
        let mut all: Vec<_> = ids
            .iter()
            .flat_map(|file| std::iter::once(file.file.0).chain(file.changes.iter().map(|change| change.0)))
            .collect();
        assert!(all.iter().all(|entry| batch_id(*entry) == id && *entry != id.0));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 8);
    }
}
