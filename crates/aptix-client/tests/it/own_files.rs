//! Files of Aptix's own: any number of writers at once, and what becomes of one that is damaged.

use std::path::Path;
use std::sync::Arc;

use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_client::workspace::keep::notes::{self, Noted};
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::id::Revision;

use crate::faults::{self, Fault, FaultyDisk};

/// Notes positions from many threads at once; how many could not be.
fn note_at_once(place: &Path, disk: FaultyDisk) -> usize {
    let workspace = faults::open_on(place, disk).unwrap().0;
    let id = "w".parse().unwrap();
    let note = |number: u64| {
        let noted = Noted { revision: Revision(number), cursor: None };
        notes::put_position(&workspace, "http://localhost:1", &id, noted)
    };
    let failed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| scope.spawn(move || (0..25).filter(|number| note(thread * 25 + number).is_err()).count()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let found = notes::position(&workspace, "http://localhost:1", &id).unwrap();
    if failed == 0 {
        assert!(found.unwrap().revision.0 < 200);
    }
    failed
}

#[test]
fn writers_at_once_never_meet() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    assert_eq!(note_at_once(place.path(), FaultyDisk::new(Fault::None)), 0);
    let state = faults::open(place.path(), Fault::None).unwrap().0.roots()[0].state().path().to_owned();
    assert_eq!(std::fs::read_dir(state.join("tmp")).unwrap().count(), 0, "nothing is left");
    // With one temporary name for all of them, they do.
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    assert!(note_at_once(place.path(), FaultyDisk::new(Fault::None).with_one_name()) > 0, "the control is not caught");
}

#[test]
fn what_a_dead_process_was_writing_is_swept_and_what_a_living_one_writes_is_not() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let workspace = faults::open(place.path(), Fault::None).unwrap().0;
    let tmp = workspace.roots()[0].state().path().join("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    let [dead, living] = ["1", "2"].map(|digit| tmp.join(format!(".{}.aptix-own", digit.repeat(32))));
    std::fs::write(&dead, "half").unwrap();
    std::fs::write(&living, "half").unwrap();
    let held = std::fs::File::open(&living).unwrap();
    held.lock().unwrap();
    faults::open(place.path(), Fault::None).unwrap();
    assert!(!dead.exists() && living.exists());
    drop(held);
    faults::open(place.path(), Fault::None).unwrap();
    assert!(!living.exists());
}

/// Two processes that answer "always" at the same time: both answers are kept.
#[test]
fn what_several_processes_add_to_a_policy_at_once_is_all_kept() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let open = || Arc::new(faults::open(place.path(), Fault::None).unwrap().0);
    let files = || PolicyFiles::new(&place.path().join("config"), Caller::Shell);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (workspace, files): (Arc<Workspace>, _) = (open(), files());
            scope.spawn(move || {
                for number in 0..5 {
                    files.allow(&workspace, &[(0, format!("file-{thread}-{number}"))]).unwrap();
                }
            });
        }
    });
    let text = std::fs::read_to_string(files().own()).unwrap();
    let missing: Vec<_> = (0..20)
        .map(|number| format!("file-{}-{}", number / 5, number % 5))
        .filter(|name| !text.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?} are not in\n{text}");
    assert_eq!(std::fs::read_dir(files().own().parent().unwrap()).unwrap().count(), 1, "nothing else is left there");
}
