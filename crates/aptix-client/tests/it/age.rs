//! The age clock: what is kept for a while expires by the time that has passed, whatever the wall clock is set to.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use aptix_client::workspace::keep::clipboards;
use aptix_client::workspace::keep::history::entries;
use aptix_client::workspace::keep::history::prune::Retention;
use aptix_client::workspace::roots::workspace::Workspace;

use crate::faults::{self, Fault, FaultyDisk, Receipt};

const TEN_YEARS: i64 = 10 * 365 * 24;

/// A place with a history of one batch, and something on a clipboard.
fn used() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let disk = FaultyDisk::new(Fault::None);
    commit(&open(place.path(), disk.clone()), 0);
    crate::clipboards::take_up(&open(place.path(), disk), "s", "a.txt");
    place
}

fn open(place: &Path, disk: FaultyDisk) -> Workspace {
    faults::open_on(place, disk).unwrap_or_else(|error| panic!("{error}")).0
}

/// Makes a new file.
fn commit(workspace: &Workspace, number: usize) {
    let mut batch = faults::batch(0, 1);
    batch.files[0].target = aptix_model::batch::Target::Path(format!("new-{number}.txt"));
    faults::commit(workspace, &batch, Receipt::None).unwrap();
}

/// The disk of a system with a clock that is wrong by hours.
fn wrong(hours: i64) -> FaultyDisk {
    let disk = FaultyDisk::new(Fault::None);
    disk.skew.store(hours, Ordering::SeqCst);
    disk
}

fn entries(workspace: &Workspace) -> usize {
    workspace.maintain(|| Some(Retention::DEFAULT)).unwrap();
    entries::list(workspace).unwrap().len()
}

fn state(place: &Path) -> PathBuf {
    let mut roots = std::fs::read_dir(place.join("state/aptix/roots")).unwrap();
    roots.next().unwrap().unwrap().path()
}

#[test]
fn a_wall_clock_that_is_set_forward_loses_no_history_and_no_clipboard() {
    for boots in [false, true] {
        let place = used();
        let disk = if boots { wrong(TEN_YEARS).booted() } else { wrong(TEN_YEARS) };
        let workspace = open(place.path(), disk);
        assert_eq!(clipboards::read(&workspace, "s").unwrap().len(), 1, "booted: {boots}");
        commit(&workspace, 1);
        assert_eq!(entries(&workspace), 3, "booted: {boots}");
        // It is set right again.
        let workspace = open(place.path(), wrong(0));
        commit(&workspace, 2);
        assert_eq!((entries(&workspace), clipboards::read(&workspace, "s").unwrap().len()), (4, 1), "booted: {boots}");
    }
}

#[test]
fn a_wall_clock_that_is_set_back_keeps_nothing_for_longer_and_revives_nothing() {
    let place = used();
    let after = |days, hours| open(place.path(), wrong(hours).later(days));
    assert_eq!(clipboards::read(&after(6, -TEN_YEARS), "s").unwrap().len(), 1);
    for hours in [0, -8 * 24, -TEN_YEARS] {
        assert!(clipboards::read(&after(8, hours), "s").unwrap().is_empty(), "{hours} hours");
    }
    assert_eq!(entries(&after(29, -TEN_YEARS)), 2);
    assert_eq!(entries(&after(31, -TEN_YEARS)), 0);
    assert_eq!(entries(&after(31, 0)), 0);
}

#[test]
fn what_has_expired_after_a_start_of_the_system_stays_so_though_the_clock_is_set_back() {
    let place = used();
    let almost = open(place.path(), FaultyDisk::new(Fault::None).later(6));
    assert_eq!(entries(&almost), 2);
    let booted = |hours| open(place.path(), wrong(hours).booted());
    // At most a day counts of the time in between: six and one.
    let later = booted(10 * 24);
    assert!(clipboards::read(&later, "s").unwrap().is_empty());
    assert_eq!(entries(&later), 2);
    assert!(clipboards::read(&booted(-TEN_YEARS), "s").unwrap().is_empty());
}

#[test]
fn what_an_earlier_version_kept_ages_from_the_first_look_on() {
    let place = used();
    let state = state(place.path());
    std::fs::remove_dir_all(state.join("age")).unwrap();
    let mut stripped = 0;
    for part in ["history", "clipboards"] {
        for entry in std::fs::read_dir(state.join(part)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            // As bytes that are text, each: what is packed need not be UTF-8.
            let text: String = bytes.iter().copied().map(char::from).collect();
            let old = if part == "history" {
                let (head, rest) = text.split_once(",\"age\":").unwrap();
                format!("{head}{}", rest.trim_start_matches(|digit: char| digit.is_ascii_digit()))
            } else {
                // Before there was a seal either.
                text.splitn(4, '\n').nth(3).unwrap().to_owned()
            };
            std::fs::write(&path, old.chars().map(|byte| u8::try_from(byte).unwrap()).collect::<Vec<_>>()).unwrap();
            stripped += 1;
        }
    }
    assert_eq!(stripped, 3);
    let after = |days| open(place.path(), FaultyDisk::new(Fault::None).later(days));
    assert_eq!((entries(&after(40)), clipboards::read(&after(40), "s").unwrap().len()), (2, 1));
    assert_eq!((entries(&after(46)), clipboards::read(&after(46), "s").unwrap().len()), (2, 1));
    assert_eq!((entries(&after(69)), clipboards::read(&after(69), "s").unwrap().len()), (2, 0));
    assert_eq!(entries(&after(71)), 0);
}

#[test]
fn an_age_clock_that_is_lost_damaged_or_put_back_lets_nothing_expire_early() {
    for damage in ["lost", "cut", "altered", "of an earlier time"] {
        let place = used();
        let after = |days| open(place.path(), FaultyDisk::new(Fault::None).later(days));
        let clock = state(place.path()).join("age/clock");
        let first = std::fs::read(&clock).unwrap();
        let workspace = after(20);
        commit(&workspace, 1);
        assert_eq!(entries(&workspace), 3, "{damage}");
        match damage {
            "lost" => std::fs::remove_file(&clock).unwrap(),
            "cut" => std::fs::write(&clock, &first[..first.len() / 2]).unwrap(),
            "altered" => {
                let text = String::from_utf8(first).unwrap();
                std::fs::write(&clock, text.replace("\"age\":", "\"age\":9999999999")).unwrap();
            }
            _ => std::fs::write(&clock, first).unwrap(),
        }
        assert_eq!(entries(&after(29)), 3, "{damage}");
        // At the latest it has expired so long after the loss was seen.
        assert_eq!(entries(&after(60)), 0, "{damage}");
    }
}

#[test]
fn one_edit_after_another_writes_the_age_clock_once() {
    let place = used();
    let clock = state(place.path()).join("age/clock");
    let first = std::fs::read(&clock).unwrap();
    let (workspace, count) = faults::open_on(place.path(), FaultyDisk::new(Fault::None)).unwrap();
    commit(&workspace, 1);
    let before = count.load(Ordering::SeqCst);
    commit(&workspace, 2);
    let each = count.load(Ordering::SeqCst) - before;
    commit(&workspace, 3);
    assert_eq!(count.load(Ordering::SeqCst) - before, each * 2);
    assert_eq!(std::fs::read(&clock).unwrap(), first);
    commit(&open(place.path(), FaultyDisk::new(Fault::None).later(1)), 4);
    assert_ne!(std::fs::read(&clock).unwrap(), first, "a day later it is");
}
