//! An undo that is killed and run again: one batch is undone, and nothing of the killed run stays.

use std::path::Path;
use std::sync::atomic::Ordering;

use aptix_client::undo::acknowledge;
use aptix_client::workspace::keep::history::find::Wanted;
use aptix_model::reason::Detail;
use rustix::io::Errno;

use crate::faults::{self, Fault, Receipt, take_back};
use crate::tree::{self, Tree};

/// A root in which two batches were applied, the later one with new directories; the trees before and after each.
fn two_batches(place: &Path) -> [Tree; 3] {
    faults::lay_out(place);
    let ws = place.join("ws");
    let (workspace, _) = faults::open(place, Fault::None).unwrap();
    let begin = tree::read(&ws);
    let first = faults::batch(1, 1);
    faults::commit(&workspace, &first, Receipt::None).unwrap();
    let middle = tree::read(&ws);
    let later = faults::batch_of(faults::batch(0, 2).files.split_off(1));
    faults::commit(&workspace, &later, Receipt::None).unwrap();
    [begin, middle, tree::read(&ws)]
}

/// One run of `aptix undo` whose disk stops after so many operations. Whether it came to its end, and whether all its
/// operations were made.
fn run(place: &Path, wanted: Wanted<'_>, last: usize) -> (bool, bool) {
    let Ok((workspace, count)) = faults::open(place, Fault::StopAfter(last)) else { return (false, false) };
    let is_done = take_back(&workspace, wanted).is_ok();
    let is_acknowledged = is_done && acknowledge(&workspace).is_ok();
    (is_acknowledged, count.load(Ordering::SeqCst) < last)
}

/// Stops a run after each operation in turn and runs it again: the tree is then as `after`, whatever the first run did.
fn stop_everywhere(wanted: Wanted<'_>, prepare: &[Wanted<'_>], state: impl Fn(&[Tree; 3]) -> [&Tree; 2]) {
    let (mut stopped, mut repeated) = (0, 0);
    for last in 0.. {
        let place = tempfile::tempdir().unwrap();
        let trees = two_batches(place.path());
        for wanted in prepare {
            assert_eq!(run(place.path(), *wanted, usize::MAX), (true, true));
        }
        let [before, after] = state(&trees);
        let ws = place.path().join("ws");
        let what = format!("{wanted:?}, stopped after {last}");
        let (is_acknowledged, is_whole) = run(place.path(), wanted, last);
        // The next command to open the root finds it whole, and no unused directory.
        drop(faults::open(place.path(), Fault::None).unwrap());
        let now = tree::read(&ws);
        let is_new = now == *after;
        tree::assert_same(&now, if is_new { after } else { before }, &what);
        if !is_acknowledged {
            stopped += 1;
            repeated += usize::from(is_new);
            assert_eq!(run(place.path(), wanted, usize::MAX), (true, true), "{what}");
            tree::assert_same(&tree::read(&ws), after, &format!("{what}, and run again"));
        }
        crate::scenarios::assert_no_debris(place.path(), &what);
        if is_whole {
            assert!(is_acknowledged && stopped > 20 && repeated > 3, "{stopped} and {repeated}");
            break;
        }
    }
}

#[test]
fn a_stopped_undo_that_is_run_again_undoes_one_batch() {
    stop_everywhere(Wanted::Newest, &[], |[_, middle, end]| [end, middle]);
}

#[test]
fn a_stopped_redo_that_is_run_again_redoes_one_batch() {
    let undone = [Wanted::Newest, Wanted::Newest];
    stop_everywhere(Wanted::NewestUndo, &undone, |[begin, middle, _]| [begin, middle]);
}

/// What is run again is what was noted: another batch that came in between, or another request, is its own.
#[test]
fn only_the_same_request_is_answered_with_what_is_done_already() {
    let place = tempfile::tempdir().unwrap();
    let [begin, middle, end] = two_batches(place.path());
    let ws = place.path().join("ws");
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    // The result was not acknowledged.
    take_back(&workspace, Wanted::Newest).unwrap();
    let undone = take_back(&workspace, Wanted::Newest).unwrap();
    assert_eq!(undone.report.files[0].warnings[0].code, "UNDO_COMPLETED");
    tree::assert_same(&tree::read(&ws), &middle, "the same request");
    take_back(&workspace, Wanted::NewestUndo).unwrap();
    tree::assert_same(&tree::read(&ws), &end, "another request");
    acknowledge(&workspace).unwrap();
    take_back(&workspace, Wanted::Newest).unwrap();
    let other = faults::batch_of(faults::batch(0, 2).files.split_off(1));
    faults::commit(&workspace, &other, Receipt::None).unwrap();
    let undone = take_back(&workspace, Wanted::Newest).unwrap();
    assert!(undone.report.files[0].warnings.is_empty(), "{:?}", undone.report);
    tree::assert_same(&tree::read(&ws), &middle, "the batch in between is undone");
    acknowledge(&workspace).unwrap();
    take_back(&workspace, Wanted::Newest).unwrap();
    tree::assert_same(&tree::read(&ws), &begin, "once it was acknowledged");
}

#[test]
fn an_undo_on_a_full_disk_is_refused_as_a_write() {
    for operation in ["create", "write", "sync", "rename"] {
        let place = tempfile::tempdir().unwrap();
        faults::lay_out(place.path());
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        faults::commit(&workspace, &faults::batch(1, 0), Receipt::None).unwrap();
        drop(workspace);
        let (workspace, _) = faults::open(place.path(), Fault::Without(operation, Errno::NOSPC)).unwrap();
        let failure = take_back(&workspace, Wanted::Newest).unwrap_err().failures.remove(0);
        assert_eq!(
            (failure.reason.code(), failure.detail),
            ("WRITE_FAILED", Some(Detail::NoSpace)),
            "{operation}: {failure}"
        );
    }
}
