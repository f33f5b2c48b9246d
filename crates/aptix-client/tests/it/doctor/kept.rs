//! What is kept about a root: who can read it, batches cut short, damage, times that the clock has not reached.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::{defect, defects, doctor, mend, only_in, set_mode};
use crate::faults::{self, Fault, FaultyDisk, Receipt};

/// A place with a history of one batch.
fn used() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&workspace, &faults::batch(1, 1), Receipt::None).unwrap();
    place
}

/// The directory that is kept about its root.
fn state(place: &Path) -> PathBuf {
    only_in(place.join("state/aptix/roots"))
}

#[test]
fn what_is_kept_has_to_be_closed_to_others() {
    let place = used();
    let state = state(place.path());
    set_mode(&state, 0o755);
    let open = defect(&doctor(place.path(), &[]), "state", "problem", "is open to others");
    mend(place.path(), &open.hint);
    assert_eq!(defects(doctor(place.path(), &[])), []);
    let above = place.path().join("state/aptix");
    set_mode(&above, 0o770);
    let exposed = defect(&doctor(place.path(), &[]), "state", "warning", "another user can replace");
    mend(place.path(), &exposed.hint);
    assert_eq!(defects(doctor(place.path(), &[])), []);
}

#[test]
fn a_batch_that_was_cut_short_is_found_and_left_to_the_next_command() {
    let mut ways = 0;
    for last in (0..40).step_by(3) {
        let place = tempfile::tempdir().unwrap();
        faults::lay_out(place.path());
        let Ok((workspace, _)) = faults::open(place.path(), Fault::StopAfter(last)) else { continue };
        if faults::commit(&workspace, &faults::batch(1, 1), Receipt::None).is_ok() {
            continue;
        }
        drop(workspace);
        let record = state(place.path()).join("journal");
        let records = || std::fs::read_dir(&record).map_or(0, Iterator::count);
        if records() == 0 {
            continue;
        }
        let found = doctor(place.path(), &[]);
        let cut_short = defect(&found, "unfinished", "warning", "or was cut short");
        assert_eq!(records(), 1, "it is left as it is");
        mend(place.path(), &cut_short.hint);
        assert_eq!(defects(doctor(place.path(), &[])), []);
        ways += 1;
    }
    assert!(ways > 1, "{ways}");
}

#[test]
fn damage_is_found_where_it_is() {
    let place = used();
    let state = state(place.path());
    let history = only_in(state.join("history"));
    std::fs::write(&history, "torn").unwrap();
    let damaged = defect(&doctor(place.path(), &[]), "history", "warning", "its batch cannot be undone");
    mend(place.path(), &damaged.hint);
    assert_eq!(defects(doctor(place.path(), &[])), []);

    std::fs::create_dir(state.join("damaged")).unwrap();
    assert_eq!(defects(doctor(place.path(), &[])), [], "an empty directory");
    std::fs::write(state.join("damaged/note"), "x").unwrap();
    let aside = defect(&doctor(place.path(), &[]), "damaged", "warning", "moved aside");
    mend(place.path(), &aside.hint);

    std::fs::write(state.join("journal/committed"), "torn").unwrap();
    let record = defect(&doctor(place.path(), &[]), "state", "problem", "journal/committed cannot be used");
    assert!(record.hint.contains("remove the record"), "{record:?}");
}

#[test]
fn a_clock_that_is_behind_the_newest_batch_is_found() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let disk = FaultyDisk::new(Fault::None);
    disk.skew.store(48, Ordering::SeqCst);
    let (workspace, _) = faults::open_on(place.path(), disk).unwrap();
    faults::commit(&workspace, &faults::batch(1, 0), Receipt::None).unwrap();
    let clock = defect(&doctor(place.path(), &[]), "clock", "warning", "before the newest batch");
    assert!(clock.hint.contains("timedatectl"), "{clock:?}");
}
