//! State directories left by earlier versions, which had durability mode `journal` and another form of records. The files
//! beside this one are from such a version: `ahead` with one batch and after it was settled, and the record of that batch.

use std::path::{Path, PathBuf};

use aptix_client::workspace::keep::history::entries;
use aptix_model::reason::Reason;

use crate::faults::{self, Fault, Receipt};
use crate::tree;

const PENDING: &[u8] = include_bytes!("earlier_mode/ahead-pending");
const SETTLED: &[u8] = include_bytes!("earlier_mode/ahead-settled");
const RECORD: &[u8] = include_bytes!("earlier_mode/record");

/// A root whose journal has these files; the journal.
fn lay_out(place: &Path, files: &[(&str, &[u8])]) -> PathBuf {
    faults::lay_out(place);
    let (workspace, _) = faults::open(place, Fault::None).unwrap();
    let journal = workspace.roots()[0].state().path().join("journal");
    files.iter().for_each(|(name, bytes)| std::fs::write(journal.join(name), bytes).unwrap());
    journal
}

#[test]
fn a_state_with_nothing_pending_opens_and_is_cleaned() {
    // A first block that was torn was never durable, and the batch never done.
    let mut torn = PENDING.to_vec();
    torn[64 + 73] ^= 1;
    for ahead in [SETTLED, &torn, b"", &SETTLED[..63], &PENDING[..64], &[0; 4096]] {
        let place = tempfile::tempdir().unwrap();
        let journal = lay_out(place.path(), &[("ahead", ahead), ("spare", RECORD)]);
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        assert!(!journal.join("ahead").exists() && !journal.join("spare").exists());
        faults::commit(&workspace, &faults::batch(1, 0), Receipt::None).unwrap();
        assert_eq!(entries::list(&workspace).unwrap().len(), 1);
    }
}

#[test]
fn a_pending_batch_refuses_the_root_by_name_and_says_what_to_do() {
    let journal_files: [&[(&str, &[u8])]; 5] = [
        &[("ahead", PENDING), ("spare", RECORD)],
        &[("ahead", SETTLED), ("committed", RECORD)],
        &[("staging", RECORD)],
        &[("undoing", RECORD)],
        &[("finishing", RECORD)],
    ];
    for files in journal_files {
        let place = tempfile::tempdir().unwrap();
        let journal = lay_out(place.path(), files);
        // A record is acted on only in the journal of a root that it names.
        let own = std::fs::canonicalize(place.path().join("ws")).unwrap();
        for (name, bytes) in files.iter().filter(|(name, _)| !matches!(*name, "ahead" | "spare")) {
            std::fs::write(journal.join(name), record_of(&own, bytes)).unwrap();
        }
        let (before, state) = (tree::read(&place.path().join("ws")), tree::read(&place.path().join("state")));
        let failure = faults::open(place.path(), Fault::None).unwrap_err().failure();
        let (name, _) = files.iter().find(|(_, bytes)| *bytes != SETTLED).unwrap();
        let path = journal.join(name).display().to_string();
        assert_eq!(failure.reason, Reason::NeedsOperator, "{failure}");
        assert!(failure.message.contains(&path) && failure.message.contains("mode `journal`"), "{failure}");
        let hint = failure.hint.unwrap();
        assert!(hint.contains("version that was used before") && hint.contains(&path), "{hint}");
        tree::assert_same(&tree::read(&place.path().join("ws")), &before, name);
        if !files.iter().any(|(_, bytes)| *bytes == SETTLED) {
            tree::assert_same(&tree::read(&place.path().join("state")), &state, name);
        }
    }
}

#[test]
fn a_batch_that_another_process_writes_ahead_stops_the_next_commit() {
    let place = tempfile::tempdir().unwrap();
    let journal = lay_out(place.path(), &[]);
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    std::fs::write(journal.join("ahead"), PENDING).unwrap();
    let refusal = faults::commit(&workspace, &faults::batch(1, 0), Receipt::None).unwrap_err();
    assert_eq!(refusal.failures[0].reason, Reason::NeedsOperator, "{:?}", refusal.failures);
}

/// The record, as the earlier version would have written it for another root.
fn record_of(root: &Path, record: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(record).unwrap();
    let (head, body) = text.split_once('\n').unwrap();
    let mut lines = body.splitn(2, '\n');
    let mut json: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    json["roots"][0]["path"]["Unix"] = root.as_os_str().as_encoded_bytes().into();
    let body = format!("{json}\n{}", lines.next().unwrap());
    let magic = head.split_once(' ').unwrap().0;
    format!("{magic} {}\n{body}", aptix_engine::digest::sha256(body.as_bytes())).into_bytes()
}

/// A record in the form of earlier versions is acted on as one of this version.
#[test]
fn a_commit_that_an_earlier_version_left_half_way_is_carried_on() {
    let place = tempfile::tempdir().unwrap();
    let record = faults::die_while_publishing(place.path());
    let bytes = std::fs::read(&record).unwrap();
    let text = std::str::from_utf8(&bytes).unwrap();
    let body = text.splitn(3, '\n').nth(2).unwrap().replacen("\"history\":", "\"ahead\":null,\"history\":", 1);
    assert!(body.contains("\"ahead\":null"), "{body}");
    let digest = aptix_engine::digest::sha256(body.as_bytes());
    std::fs::write(&record, format!("aptix-journal-6 {digest}\n{body}")).unwrap();
    let before = tree::read(&place.path().join("ws"));
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    assert_ne!(tree::read(&place.path().join("ws")), before, "it was between old and new");
    assert_eq!(entries::list(&workspace).unwrap().len(), 1);
    assert!(!record.exists());
    crate::scenarios::assert_no_debris(place.path(), "carried on");
}
