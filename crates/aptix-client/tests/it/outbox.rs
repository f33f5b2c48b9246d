//! What waits for the server: receipts and contents, until they are acknowledged; and how the log of them survives.

use std::path::{Path, PathBuf};

use aptix_client::workspace::keep::outbox::{self, Owed};
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::id::{BatchId, HistoryId};
use rustix::io::Errno;

use crate::faults::{self, BATCH, Fault, FaultyDisk, Receipt};

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    place
}

fn open(place: &Path) -> Workspace {
    faults::open(place, Fault::None).unwrap().0
}

fn id(number: usize) -> BatchId {
    format!("018f6d2e-7c1a-7b3e-9d55-{number:012}").parse().unwrap()
}

fn history(number: usize) -> Option<HistoryId> {
    Some(format!("018f6d2e-7c1a-7b3e-9d55-ffff{number:08}").parse().unwrap())
}

fn state(workspace: &Workspace) -> PathBuf {
    workspace.roots()[0].state().path().to_owned()
}

fn log(workspace: &Workspace) -> PathBuf {
    state(workspace).join("outbox/log")
}

fn owed(workspace: &Workspace, batch: BatchId) -> Option<Owed> {
    outbox::find(workspace, batch).unwrap().map(|pending| pending.owed)
}

fn receipt(text: &str) -> Option<Owed> {
    Some(Owed::Receipt(text.as_bytes().to_vec()))
}

/// How many things are set aside.
fn set_aside(workspace: &Workspace) -> usize {
    std::fs::read_dir(state(workspace).join("damaged")).map_or(0, Iterator::count)
}

#[test]
fn a_receipt_and_the_new_contents_outlive_the_process_until_they_are_acknowledged() {
    // TUL-004-6.2.3
    let place = place();
    let report = faults::commit(&open(place.path()), &faults::batch(2, 1), Receipt::Kept).unwrap();

    let workspace = open(place.path());
    let batch: BatchId = BATCH.parse().unwrap();
    assert_eq!(outbox::waiting(&workspace).unwrap(), [batch]);
    assert_eq!(owed(&workspace, batch), receipt("3 files"));
    assert!(!outbox::is_done(&workspace, batch).unwrap());
    for file in &report.files {
        let kept = outbox::content(&workspace, batch, file.written.unwrap().sha256).unwrap().unwrap();
        assert_eq!(kept, std::fs::read(place.path().join("ws").join(&file.path)).unwrap());
    }
    outbox::acknowledge(&workspace, batch, history(1)).unwrap();
    outbox::acknowledge(&workspace, batch, history(1)).unwrap();
    assert!(outbox::waiting(&workspace).unwrap().is_empty());
    assert!(outbox::is_done(&open(place.path()), batch).unwrap());
    assert!(outbox::content(&workspace, batch, report.files[0].written.unwrap().sha256).unwrap().is_none());
    // A report that comes too late does not bring it back.
    outbox::put(&workspace, batch, b"late").unwrap();
    assert!(outbox::waiting(&open(place.path())).unwrap().is_empty());
    crate::scenarios::assert_no_debris(place.path(), "acknowledged");
}

#[test]
fn contents_are_kept_for_a_batch_that_cannot_be_cleared_away_for_lack_of_room() {
    for last in 1..300 {
        let place = place();
        let Ok((workspace, _)) = faults::open(place.path(), Fault::StopAfter(last)) else { continue };
        let committed = faults::commit(&workspace, &faults::batch(1, 0), Receipt::Kept);
        if !state(&workspace).join("journal/finishing").exists() {
            continue;
        }
        drop(workspace);
        let fault = Fault::WithoutAny(&["displace", "rename"], Errno::NOSPC);
        let Ok((full, _)) = faults::open(place.path(), fault) else { continue };
        outbox::adopt::adopt(&full).unwrap();
        drop(full);
        let (workspace, batch) = (open(place.path()), BATCH.parse().unwrap());
        assert_eq!(owed(&workspace, batch), receipt("1 files"));
        let digest = committed.unwrap().files[0].written.unwrap().sha256;
        assert!(outbox::content(&workspace, batch, digest).unwrap().is_some());
        return;
    }
    panic!("no stop leaves a batch to be cleared away");
}

#[test]
fn a_content_that_was_altered_is_not_sent() {
    let place = place();
    let report = faults::commit(&open(place.path()), &faults::batch(1, 0), Receipt::Kept).unwrap();
    let (workspace, digest) = (open(place.path()), report.files[0].written.unwrap().sha256);
    std::fs::write(state(&workspace).join(format!("outbox/{BATCH}.d/{digest}")), "other\n").unwrap();
    assert_eq!(outbox::content(&workspace, BATCH.parse().unwrap(), digest).unwrap(), None);
}

#[test]
fn a_refusal_waits_like_a_receipt_and_a_fuller_one_takes_its_place() {
    let place = place();
    let workspace = open(place.path());
    [(1, "no"), (2, "two"), (1, "no, because")]
        .iter()
        .for_each(|(number, text)| outbox::put(&workspace, id(*number), text.as_bytes()).unwrap());
    let other = open(place.path());
    assert_eq!(outbox::waiting(&other).unwrap(), [id(1), id(2)], "in the order in which they ended");
    assert_eq!(owed(&other, id(1)), receipt("no, because"));
    outbox::acknowledge(&other, id(1), None).unwrap();
    assert_eq!(outbox::waiting(&workspace).unwrap(), [id(2)], "each process sees what others did");
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
fn receipts_of_many_threads_and_processes_at_once_are_each_their_own() {
    let place = place();
    let workspaces = [open(place.path()), open(place.path())];
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let workspace = &workspaces[thread % 2];
            scope.spawn(move || {
                for number in (thread * 20)..(thread * 20 + 20) {
                    outbox::put(workspace, id(number), format!("receipt {number}").as_bytes()).unwrap();
                    if number % 3 == 0 {
                        outbox::acknowledge(workspace, id(number), history(1)).unwrap();
                    }
                }
            });
        }
    });
    let workspace = open(place.path());
    for number in 0..160 {
        let (waits, text) = (number % 3 != 0, format!("receipt {number}"));
        assert_eq!(owed(&workspace, id(number)), receipt(&text).filter(|_| waits), "{number}");
        assert_eq!(outbox::is_done(&workspace, id(number)).unwrap(), !waits, "{number}");
    }
}

/// With any one bit of the log flipped, every batch is either owed as it was, or known to have ended.
#[test]
fn a_flipped_bit_costs_one_report_at_most_and_is_reported() {
    let place = place();
    let workspace = open(place.path());
    for number in 0..4 {
        outbox::put(&workspace, id(number), format!("receipt {number}").as_bytes()).unwrap();
    }
    outbox::acknowledge(&workspace, id(1), history(1)).unwrap();
    let log = log(&workspace);
    let whole = std::fs::read(&log).unwrap();
    drop(workspace);
    let mut lost_last = 0;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 16;
        std::fs::write(&log, &flipped).unwrap();
        let workspace = open(place.path());
        let found: Vec<_> = (0..4).map(|number| owed(&workspace, id(number))).collect();
        let as_it_was =
            [0, 2, 3].iter().filter(|number| found[**number] == receipt(&format!("receipt {number}"))).count();
        assert!(as_it_was >= 2, "byte {at}: {found:?}");
        for (number, owed) in found.iter().enumerate().filter(|(_, owed)| matches!(owed, Some(Owed::Receipt(_)))) {
            assert_eq!(*owed, receipt(&format!("receipt {number}")), "byte {at}");
        }
        let ends = outbox::is_done(&workspace, id(1)).unwrap();
        let is_in_last = !ends;
        lost_last += usize::from(is_in_last);
        // The head of the entry that says that a batch has ended is the last one, and looks as if it was cut short.
        assert!(!is_in_last || at >= whole.len() - 160, "byte {at}: the batch is not known to have ended");
        std::fs::remove_dir_all(state(&workspace).join("damaged")).unwrap_or_default();
    }
    assert!(lost_last < 160, "{lost_last}");
}

/// The newest entry as well: its batch would come again and be applied a second time.
#[test]
fn an_applied_batch_is_never_forgotten_for_a_flipped_bit_in_its_report() {
    let place = place();
    let workspace = open(place.path());
    let batch: BatchId = BATCH.parse().unwrap();
    faults::commit(&workspace, &faults::batch(1, 0), Receipt::Kept).unwrap();
    let log = log(&workspace);
    let whole = std::fs::read(&log).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 16;
        std::fs::write(&log, &flipped).unwrap();
        let found = owed(&open(place.path()), batch);
        assert!(found == Some(Owed::Lost) || found == receipt("1 files"), "byte {at}: {found:?}");
        assert_eq!(outbox::waiting(&open(place.path())).unwrap(), [batch], "byte {at}");
    }
}

#[test]
fn an_entry_that_was_cut_short_is_cut_off_and_nothing_else() {
    let place = place();
    let workspace = open(place.path());
    outbox::put(&workspace, id(0), b"receipt 0").unwrap();
    let log = log(&workspace);
    let before = std::fs::read(&log).unwrap();
    outbox::put(&workspace, id(1), b"receipt 1").unwrap();
    let whole = std::fs::read(&log).unwrap();
    for length in before.len()..whole.len() {
        std::fs::write(&log, &whole[..length]).unwrap();
        let workspace = open(place.path());
        assert_eq!(outbox::waiting(&workspace).unwrap(), [id(0)], "{length}");
        assert_eq!(std::fs::read(&log).unwrap(), before, "{length}");
        outbox::put(&workspace, id(2), b"receipt 2").unwrap();
        assert_eq!(outbox::waiting(&open(place.path())).unwrap(), [id(0), id(2)], "{length}");
        assert_eq!(set_aside(&workspace), 0, "{length}");
    }
}

#[test]
fn a_report_that_is_damaged_is_set_aside_and_its_batch_known_to_have_ended() {
    let place = place();
    let workspace = open(place.path());
    for number in 0..3 {
        outbox::put(&workspace, id(number), format!("receipt {number}").as_bytes()).unwrap();
    }
    let log = log(&workspace);
    let text = std::fs::read(&log).unwrap();
    let at = text.windows(9).position(|bytes| bytes == b"receipt 1").unwrap();
    let mut altered = text;
    altered[at] = b'R';
    std::fs::write(&log, altered).unwrap();
    for _ in 0..2 {
        let workspace = open(place.path());
        assert_eq!(outbox::waiting(&workspace).unwrap(), [id(0), id(1), id(2)]);
        assert_eq!(owed(&workspace, id(0)), receipt("receipt 0"));
        assert_eq!(owed(&workspace, id(1)), Some(Owed::Lost));
        assert_eq!(set_aside(&workspace), 1, "once");
    }
}

#[test]
fn a_log_that_cannot_be_used_is_set_aside_and_the_history_knows_what_was_applied() {
    for junk in
        [&b""[..], b"x", &[0; 500], b"aptix-outbox-1\n\0 of another root, as long as the beginning of a log: it is"]
    {
        let place = place();
        let workspace = open(place.path());
        faults::commit(&workspace, &faults::batch(1, 0), Receipt::Kept).unwrap();
        std::fs::write(log(&workspace), junk).unwrap();
        let workspace = open(place.path());
        assert!(outbox::waiting(&workspace).unwrap().is_empty());
        assert_eq!(set_aside(&workspace), 1);
        assert_eq!(owed(&workspace, BATCH.parse().unwrap()), Some(Owed::Lost), "it is not applied again");
        assert_eq!(owed(&workspace, id(7)), None);
        assert_eq!(outbox::waiting(&open(place.path())).unwrap(), [BATCH.parse().unwrap()]);
    }
    let place = place();
    let workspace = open(place.path());
    std::fs::create_dir_all(log(&workspace).join("x")).unwrap();
    outbox::put(&workspace, id(0), b"no").unwrap();
    assert_eq!(owed(&open(place.path()), id(0)), receipt("no"));
}

#[test]
fn a_log_of_a_later_version_is_left_alone_and_named() {
    let place = place();
    let workspace = open(place.path());
    std::fs::create_dir_all(state(&workspace).join("outbox")).unwrap();
    std::fs::write(log(&workspace), [b"aptix-outbox-2\n\0".as_slice(), &[1; 200]].concat()).unwrap();
    let error = outbox::waiting(&workspace).unwrap_err().to_string();
    assert!(error.contains("outbox/log") && error.contains("later version"), "{error}");
}

/// Each operation in turn is the last one that works.
#[test]
fn whatever_an_append_or_a_rewrite_is_stopped_at_nothing_that_was_durable_is_lost() {
    for last in 0.. {
        let place = place();
        let workspace = open(place.path());
        outbox::put(&workspace, id(0), b"receipt 0").unwrap();
        outbox::put(&workspace, id(1), b"receipt 1").unwrap();
        drop(workspace);
        let disk = FaultyDisk::new(Fault::StopAfter(last));
        let Ok((workspace, _)) = faults::open_on(place.path(), disk) else { continue };
        let put = outbox::put(&workspace, id(2), b"receipt 2");
        let acknowledged = put.is_ok() && outbox::acknowledge(&workspace, id(0), history(1)).is_ok();
        let set_aside = acknowledged && outbox::set_aside(&workspace, id(1), b"receipt 1").is_ok();
        let workspace = open(place.path());
        let found = owed(&workspace, id(2));
        assert!(found == receipt("receipt 2") || (put.is_err() && found.is_none()), "{last}: {found:?}");
        assert!(outbox::is_done(&workspace, id(0)).unwrap() || !acknowledged, "{last}");
        assert_eq!(owed(&workspace, id(0)).is_none(), outbox::is_done(&workspace, id(0)).unwrap(), "{last}");
        let found = owed(&workspace, id(1));
        assert!(found == Some(Owed::Lost) || (!set_aside && found == receipt("receipt 1")), "{last}: {found:?}");
        if set_aside {
            assert!(last > 5);
            break;
        }
    }
}

#[test]
fn ended_batches_are_known_however_often_the_log_was_written_anew_and_a_stop_loses_none() {
    let place = place();
    let workspace = open(place.path());
    outbox::put(&workspace, id(0), b"it waits").unwrap();
    let before = outbox_bytes(&workspace);
    for number in 1..=5_000 {
        outbox::acknowledge(&workspace, id(number), history(number % 2)).unwrap();
    }
    assert!(outbox_bytes(&workspace) < before + 4096 * 200, "the log is written anew");
    let other = open(place.path());
    for number in (1..=5_000).step_by(97).chain([4095, 4096, 4097, 5_000]) {
        assert!(outbox::is_done(&other, id(number)).unwrap(), "{number}");
    }
    assert!(!outbox::is_done(&other, id(0)).unwrap() && !outbox::is_done(&other, id(5_001)).unwrap());
    assert_eq!(owed(&other, id(0)), receipt("it waits"));
    let ended = ended_files(&workspace);
    assert_eq!(ended.len(), 2, "one for each history: {ended:?}");
    assert!(ended.iter().map(|(_, bytes)| bytes).sum::<u64>() < 17 * 5_000, "16 bytes each: {ended:?}");
}

fn outbox_bytes(workspace: &Workspace) -> u64 {
    log(workspace).metadata().unwrap().len()
}

fn ended_files(workspace: &Workspace) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(state(workspace).join("ended")).unwrap().map(Result::unwrap);
    let mut files: Vec<_> =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())).collect();
    files.sort();
    files
}

#[test]
fn a_damaged_list_of_ended_batches_is_set_aside_and_ends_nothing() {
    let place = place();
    let workspace = open(place.path());
    for number in 0..4096 {
        outbox::acknowledge(&workspace, id(number), history(1)).unwrap();
    }
    let (name, _) = ended_files(&workspace).pop().unwrap();
    let file = state(&workspace).join("ended").join(name);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    outbox::adopt::adopt(&workspace).unwrap();
    assert!(!file.exists());
    assert_eq!(set_aside(&workspace), 1);
    outbox::put(&workspace, id(5000), b"no").unwrap();
}

/// What an earlier version kept is taken over by the first agent: receipts, contents, names of ended batches.
#[test]
fn the_outbox_of_an_earlier_version_is_taken_over() {
    let place = place();
    let workspace = open(place.path());
    let state = state(&workspace);
    let (old, done) = (state.join("outbox"), state.join("done"));
    [&old, &done].iter().for_each(|dir| std::fs::create_dir_all(dir).unwrap());
    let file = |named: usize, holds: usize| {
        let json = format!(
            r#"{{"boot":"b","roots":[],"ahead":null,"history":null,"batch":"{}","dirs":[],"files":[]}}"#,
            id(holds)
        );
        let body = format!("{json}\nreceipt {holds}");
        let digest = aptix_engine::digest::sha256(body.as_bytes());
        std::fs::write(old.join(id(named).to_string()), format!("aptix-journal-6 {digest}\n{body}")).unwrap();
    };
    // The second is the receipt of another batch, as two that were written at once could leave it.
    [(1, 1), (2, 3), (4, 4)].iter().for_each(|(named, holds)| file(*named, *holds));
    std::fs::write(old.join(id(5).to_string()), "damaged").unwrap();
    std::fs::write(old.join("next"), "half").unwrap();
    for batch in [id(1), id(9)] {
        std::fs::create_dir(old.join(format!("{batch}.d"))).unwrap();
        std::fs::write(old.join(format!("{batch}.d/x")), "content").unwrap();
    }
    (10..20).for_each(|number| std::fs::write(done.join(id(number).to_string()), "").unwrap());
    for _ in 0..2 {
        outbox::adopt::adopt(&workspace).unwrap();
        let workspace = open(place.path());
        assert_eq!(outbox::waiting(&workspace).unwrap(), [id(1), id(2), id(4), id(5)]);
        assert_eq!(owed(&workspace, id(1)), receipt("receipt 1"));
        assert_eq!(owed(&workspace, id(2)), Some(Owed::Lost), "never believed under another name");
        assert_eq!(owed(&workspace, id(4)), receipt("receipt 4"));
        assert_eq!(owed(&workspace, id(5)), Some(Owed::Lost));
        assert!((10..20).all(|number| outbox::is_done(&workspace, id(number)).unwrap()));
        assert_eq!(set_aside(&workspace), 2);
    }
    assert!(!done.exists());
    let mut left: Vec<_> =
        std::fs::read_dir(&old).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, [format!("{}.d", id(1)), "log".to_owned()]);
}

/// Each operation of a rewrite in turn is the last one that works.
#[test]
fn a_rewrite_that_is_stopped_loses_no_id_and_no_report() {
    let origin = place();
    let workspace = open(origin.path());
    outbox::put(&workspace, id(0), b"it waits").unwrap();
    for number in 1..4096 {
        outbox::acknowledge(&workspace, id(number), history(number % 2)).unwrap();
    }
    let state = state(&workspace);
    let before = std::fs::read(log(&workspace)).unwrap();
    drop(workspace);
    for last in 0.. {
        let _ = std::fs::remove_dir_all(state.join("ended"));
        std::fs::write(state.join("outbox/log"), &before).unwrap();
        let disk = FaultyDisk::new(Fault::StopAfter(last));
        let Ok((workspace, _)) = faults::open_on(origin.path(), disk) else { continue };
        let acknowledged = outbox::acknowledge(&workspace, id(4096), history(0)).is_ok();
        drop(workspace);
        let workspace = open(origin.path());
        let known = |number: &usize| outbox::is_done(&workspace, id(*number)).unwrap();
        let lost: Vec<_> = (1..4096).step_by(13).filter(|number| !known(number)).collect();
        assert!(lost.is_empty(), "{last}: {lost:?}");
        assert_eq!(owed(&workspace, id(0)), receipt("it waits"), "{last}");
        assert!(known(&4096) || !acknowledged, "{last}");
        if acknowledged {
            assert!(last > 10 && log(&workspace).metadata().unwrap().len() < 1000);
            assert_eq!(ended_files(&workspace).len(), 2);
            break;
        }
    }
}
