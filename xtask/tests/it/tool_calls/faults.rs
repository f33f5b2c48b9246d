//! Whole files where the system fails, or other processes read and write them at the same time.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;

use super::answer::{Answer, lacking};
use super::play::{Call, WayIn};
use super::{each_way, play_on};
use crate::processes::{Machine, eventually};

/// The programs may write no more than this into one file, as if the disk were full.
const MOST: u64 = 64 << 10;

/// Bytes of a file that is replaced over and over.
const LENGTH: usize = 100_000;

#[test]
fn a_write_that_fails_is_answered_alike() {
    play_on(|| Machine::new().with_modes().with_files_of_at_most(MOST), include_str!("faults.txt"));
}

fn create(way: &mut dyn WayIn, path: &str, content: &str) -> Answer {
    let arguments = json!({ "path": path, "content": content, "overwrite": true }).to_string();
    way.send(&Call { by: "ann", tool: "workspace_create_file", arguments: &arguments });
    way.wait(0)
}

/// Does something over and over beside `main`, and until that has ended.
fn meanwhile(step: impl Fn() + Sync, main: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                step();
            }
        });
        main();
        is_over.store(true, Ordering::Relaxed);
    });
}

/// TUL-004-5.1.5.3, TUL-004-5.4.1: whoever reads a file while it is replaced finds one of its contents whole.
#[test]
fn a_file_is_replaced_in_one_step() {
    let texts = ["a", "b"].map(|letter| letter.repeat(LENGTH));
    each_way(Machine::new, |way| {
        way.machine().put("a.txt", &texts[0]);
        let file = way.machine().path("project/a.txt");
        let (reads, torn) = (AtomicU64::new(0), AtomicU64::new(0));
        let read = || {
            // A look at the length is so fast that it meets even a moment without the file.
            let is_there = (0..100).all(|_| fs::metadata(&file).is_ok_and(|found| found.len() == LENGTH as u64));
            let is_whole = is_there && fs::read_to_string(&file).is_ok_and(|found| texts.contains(&found));
            reads.fetch_add(1, Ordering::Relaxed);
            torn.fetch_add(u64::from(!is_whole), Ordering::Relaxed);
        };
        let mut codes = BTreeSet::new();
        meanwhile(read, || codes.extend((0..10).map(|round| create(way, "a.txt", &texts[1 - round % 2]).code())));
        assert_eq!(codes, [String::new()].into(), "{}", way.name());
        assert_eq!(torn.into_inner(), 0, "{}, of {reads:?} reads", way.name());
    });
}

/// TUL-004-5.3.4: bytes that are not those that were written are never published, and the result is `HashFailed`.
#[test]
fn a_file_that_another_process_changes_as_it_is_written_is_not_created() {
    let text = "x".repeat(2 << 20);
    each_way(Machine::new, |way| {
        let project = way.machine().path("project");
        let mut refused = None;
        let attempt = || {
            remove(&project.join("new.txt"));
            let answer = create(way, "new.txt", &text);
            let is_in_time = answer.code() == "HashFailed HASH_FAILED";
            refused = is_in_time.then_some(answer);
            is_in_time
        };
        meanwhile(|| spoil_staged(&project), || eventually("the other process is in time", attempt));
        let expected = json!({ "success": false, "path": "new.txt", "sizeBytes": 0, "hash": "", "created": false });
        let refused = refused.unwrap().structured;
        assert_eq!(lacking(&refused, &expected, way.name()), None, "{refused}");
        assert_eq!(way.machine().files(), [], "{}", way.name());
    });
}

/// Removes what an attempt created that the other process was too late for.
#[expect(clippy::disallowed_methods, reason = "a test's own file")]
fn remove(file: &Path) {
    let _ = fs::remove_file(file);
}

/// Adds a byte to each file that is about to get its name.
fn spoil_staged(project: &Path) {
    let is_staged = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".aptix-tmp");
    for staged in fs::read_dir(project).unwrap().flatten().filter(is_staged) {
        // It may be gone already.
        if let Ok(mut file) = fs::File::options().append(true).open(staged.path()) {
            let _ = file.write_all(b"!");
        }
    }
}
