//! The index of the history: what it says is what the entries say, whatever became of it, and it saves looking at them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::present::log::{Query, log};
use aptix_client::undo::acknowledge;
use aptix_client::workspace::keep::history::entries;
use aptix_client::workspace::keep::history::find::Wanted;
use aptix_client::workspace::keep::history::prune::Retention;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_engine::digest::sha256;
use aptix_model::batch::Batch;
use aptix_model::id::Uuid;
use serde_json::Value;

use crate::command_line::{aptix, text};
use crate::faults::{self, Fault, FaultyDisk};
use crate::looks::looks;
use crate::skip::skip;
use crate::tree;

/// Opens roots of a place by their names.
fn open(place: &Path, roots: &[&str]) -> Workspace {
    let roots: Vec<_> =
        roots.iter().map(|root| format!("{root}={}", place.join(root).display()).parse().unwrap()).collect();
    Workspace::open(&roots, &place.join("state"), Box::new(FaultyDisk::new(Fault::None))).unwrap()
}

fn commit(workspace: &Workspace, batch: &Batch) {
    let policy = Policy::unstated(Caller::Shell);
    let options = ApplyOptions { ..faults::options(&policy, Mode::Commit) };
    apply(workspace, batch, options, &mut |_| Decision::Apply).unwrap();
}

/// A batch that makes a file, or writes it anew.
fn file(path: &str) -> Batch {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let text = format!("version {}\n", COUNT.fetch_add(1, Ordering::SeqCst));
    faults::batch_of([faults::write(path, &text, true)])
}

/// A place with roots, in one of which so many files were made, a batch each.
fn used(roots: &[&str], batches: usize) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    roots.iter().for_each(|root| std::fs::create_dir(place.path().join(root)).unwrap());
    let workspace = open(place.path(), &roots[..1]);
    (0..batches).for_each(|number| commit(&workspace, &file(&format!("f{number}"))));
    place
}

fn state(place: &Path, root: &str) -> PathBuf {
    open(place, &[root]).roots()[0].state().path().to_owned()
}

fn index(place: &Path, root: &str) -> PathBuf {
    state(place, root).join("index/history-1")
}

fn batches(workspace: &Workspace, most: Option<usize>) -> Vec<Value> {
    let log = serde_json::to_value(log(workspace, Query { most, ..Query::default() }).unwrap()).unwrap();
    log["batches"].as_array().unwrap().clone()
}

/// The newest batches of roots, found by the index, are those that all entries show; returns how many there are.
#[track_caller]
fn assert_agrees(place: &Path, roots: &[&str], what: &str) -> usize {
    let workspace = open(place, roots);
    // This one lists the directory.
    let all = batches(&workspace, None);
    for most in [0, 1, 2, 3, all.len(), all.len() + 1] {
        assert_eq!(batches(&workspace, Some(most)), all[..most.min(all.len())], "{what}, {most} of {}", all.len());
    }
    all.len()
}

/// What the last line of the index says of all entries is so, without anything having been repaired.
#[track_caller]
fn assert_current(place: &Path, what: &str) {
    let state = state(place, "ws");
    let bytes = std::fs::read_to_string(state.join("index/history-1")).unwrap();
    let last: Value = serde_json::from_str(bytes.lines().last().unwrap().split_once(' ').unwrap().1).unwrap();
    let history = state.join("history");
    let entries = std::fs::read_dir(&history).unwrap().map(|entry| entry.unwrap());
    let sizes = entries.filter(|entry| Uuid::try_parse(entry.file_name().to_str().unwrap()).is_ok());
    let sum: u64 = sizes.map(|entry| entry.metadata().unwrap().len()).sum();
    assert_eq!(last["totals"]["bytes"], sum, "{what}");
    let stamp = history.metadata().unwrap();
    let stamp = [stamp.ino().into(), stamp.ctime().into(), Value::from(stamp.ctime_nsec())];
    assert_eq!(last["totals"]["dir"], Value::from(stamp.to_vec()), "{what}");
}

#[test]
fn committing_pruning_and_undoing_keep_the_index_current() {
    let place = used(&["ws"], 3);
    assert_current(place.path(), "committed");
    let workspace = open(place.path(), &["ws"]);
    faults::take_back(&workspace, Wanted::Newest).unwrap();
    assert_current(place.path(), "undone");
    acknowledge(&workspace).unwrap();
    assert_current(place.path(), "acknowledged");
    faults::take_back(&workspace, Wanted::NewestUndo).unwrap();
    assert_current(place.path(), "done again");
    assert_eq!(assert_agrees(place.path(), &["ws"], "done again"), 5);
    let all = batches(&workspace, None);
    let newest = batches(&workspace, Some(1));
    assert_eq!((&newest[0]["redoes"], &all[0]["undoes"]), (&all[2]["batchId"], &all[1]["batchId"]));
    let bytes = 2 * std::fs::read_dir(state(place.path(), "ws").join("history"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .max()
        .unwrap();
    drop(workspace);
    open(place.path(), &["ws"]).maintain(|| Some(Retention { bytes, ..Retention::DEFAULT })).unwrap();
    assert_current(place.path(), "pruned");
    assert_eq!(assert_agrees(place.path(), &["ws"], "pruned"), 2);
    let later = FaultyDisk::new(Fault::None).later(40);
    let (later, _) = faults::open_on(place.path(), later).unwrap();
    later.maintain(|| Some(Retention::DEFAULT)).unwrap();
    assert_current(place.path(), "aged");
    assert_eq!(assert_agrees(place.path(), &["ws"], "aged"), 0);
    commit(&later, &file("last"));
    assert_current(place.path(), "begun anew");
    assert_eq!(assert_agrees(place.path(), &["ws"], "begun anew"), 1);
}

/// Something that becomes of an index, or of the entries, while nobody looks.
type Damage = (&'static str, fn(&Path));

/// Changes the bytes of the index.
fn edit(place: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let path = index(place, "ws");
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// Damages of the file.
const DAMAGED: &[Damage] = &[
    ("missing", |place| std::fs::remove_file(index(place, "ws")).unwrap()),
    ("empty", |place| edit(place, Vec::clear)),
    ("torn", |place| edit(place, |bytes| bytes.truncate(bytes.len() - 1))),
    ("torn in a line", |place| edit(place, |bytes| bytes.truncate(bytes.len() - 40))),
    ("followed by zeros", |place| edit(place, |bytes| bytes.extend([0; 4096]))),
    ("altered at its end", |place| edit(place, |bytes| *bytes.iter_mut().rev().nth(9).unwrap() ^= 1)),
    ("altered at its beginning", |place| edit(place, |bytes| bytes[30] ^= 1)),
    ("of another version", |place| edit(place, |bytes| *bytes = b"aptix-index-9\n".to_vec())),
    ("a directory", |place| {
        std::fs::remove_file(index(place, "ws")).unwrap();
        std::fs::create_dir(index(place, "ws")).unwrap();
    }),
];

fn history(place: &Path) -> PathBuf {
    state(place, "ws").join("history")
}

fn copy_history(place: &Path) {
    let to = place.join("copy");
    std::fs::create_dir(&to).unwrap();
    for entry in std::fs::read_dir(history(place)).unwrap().map(|entry| entry.unwrap()) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn put_copy_back(place: &Path) {
    std::fs::remove_dir_all(history(place)).unwrap();
    std::fs::rename(place.join("copy"), history(place)).unwrap();
}

/// Whole files that are not the index of these entries.
const MISPLACED: &[Damage] = &[
    ("older than the entries", |place| {
        let old = std::fs::read(index(place, "ws")).unwrap();
        commit(&open(place, &["ws"]), &file("more"));
        std::fs::write(index(place, "ws"), old).unwrap();
    }),
    ("newer than the entries, which were restored", |place| {
        copy_history(place);
        commit(&open(place, &["ws"]), &file("more"));
        put_copy_back(place);
    }),
    ("with a directory that was copied", |place| {
        copy_history(place);
        put_copy_back(place);
    }),
    ("with an entry that was removed", |place| {
        let entry = std::fs::read_dir(history(place)).unwrap().next().unwrap().unwrap();
        std::fs::remove_file(entry.path()).unwrap();
    }),
    ("that of another root", |place| {
        std::fs::create_dir(place.join("other")).unwrap();
        commit(&open(place, &["other"]), &file("other"));
        std::fs::copy(index(place, "other"), index(place, "ws")).unwrap();
    }),
];

#[test]
fn an_index_that_cannot_be_believed_is_made_anew_and_loses_and_invents_no_entry() {
    for (what, damage) in DAMAGED.iter().chain(MISPLACED) {
        for commits in [false, true] {
            let place = used(&["ws"], 6);
            damage(place.path());
            let before = tree::read(&state(place.path(), "ws").join("history"));
            let known = batches(&open(place.path(), &["ws"]), None).len();
            if commits {
                commit(&open(place.path(), &["ws"]), &file("another"));
            }
            let found = assert_agrees(place.path(), &["ws"], what);
            assert_eq!(found, known + usize::from(commits), "{what}");
            if *what != "a directory" {
                assert_current(place.path(), what);
            }
            let mut after = tree::read(&state(place.path(), "ws").join("history"));
            after.retain(|name, _| before.contains_key(name));
            tree::assert_same(&after, &before, what);
        }
    }
}

#[test]
fn an_index_that_lies_costs_no_entry_its_place() {
    // An entry is lost, and nothing in the directory shows it.
    let place = used(&["ws"], 6);
    let dir = state(place.path(), "ws").join("history");
    let index = index(place.path(), "ws");
    let first = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
    std::fs::remove_file(&first).unwrap();
    let stamp = dir.metadata().unwrap();
    let bytes = std::fs::read_to_string(&index).unwrap();
    let mut last: Value = serde_json::from_str(bytes.lines().last().unwrap().split_once(' ').unwrap().1).unwrap();
    last.as_object_mut().unwrap().remove("entry");
    last["totals"]["dir"] = serde_json::json!([stamp.ino(), stamp.ctime(), stamp.ctime_nsec()]);
    let (json, name) = (last.to_string(), state(place.path(), "ws").file_name().unwrap().to_str().unwrap().to_owned());
    let sum = sha256(format!("{name}\n{json}").as_bytes()).to_string();
    std::fs::write(&index, format!("{bytes}{} {json}\n", &sum[..16])).unwrap();
    assert_eq!(assert_agrees(place.path(), &["ws"], "removed"), 5);
    assert_current(place.path(), "removed");
}

#[test]
fn a_process_that_stops_anywhere_leaves_an_index_that_agrees() {
    let (place, _) = faults::laid_out();
    let (workspace, count) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&workspace, &faults::batch(1, 1), faults::Receipt::Kept).unwrap();
    let operations = count.load(Ordering::SeqCst);
    let mut known = std::collections::BTreeSet::new();
    for last in 0..=operations {
        let (place, _) = faults::laid_out();
        let disk = FaultyDisk::new(Fault::StopAfter(last));
        commit(&open(place.path(), &["ws"]), &file("before"));
        let (workspace, _) = match faults::open_on(place.path(), disk) {
            Ok(opened) => opened,
            Err(_) => continue,
        };
        let _ = faults::commit(&workspace, &faults::batch(1, 1), faults::Receipt::Kept);
        known.insert(assert_agrees(place.path(), &["ws"], &format!("stopped after {last} of {operations}")));
        commit(&open(place.path(), &["ws"]), &file("after"));
        assert_agrees(place.path(), &["ws"], &format!("stopped after {last} of {operations}, and went on"));
        assert_current(place.path(), "went on");
    }
    assert_eq!(known, [1, 2].into(), "both ends are met");
}

#[test]
fn an_index_that_cannot_be_written_hinders_nothing() {
    let place = used(&["ws"], 3);
    std::fs::remove_file(index(place.path(), "ws")).unwrap();
    // Nothing can be made in its directory.
    let dir = state(place.path(), "ws").join("index");
    std::fs::remove_dir(&dir).unwrap();
    std::fs::write(&dir, "").unwrap();
    commit(&open(place.path(), &["ws"]), &file("more"));
    assert_eq!(assert_agrees(place.path(), &["ws"], "no directory"), 4);
}

#[test]
fn processes_that_commit_and_look_at_once_agree_on_every_entry() {
    let place = used(&["ws"], 0);
    std::thread::scope(|scope| {
        for process in 0..4 {
            let place = place.path();
            scope.spawn(move || {
                for batch in 0..5 {
                    let document = format!(r#"{{"path":"f{process}-{batch}","content":"x\n"}}"#);
                    let output = aptix(place, &["apply", "--json"], document);
                    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
                    let seen = aptix(place, &["log", "--json", "-n", "3"], "");
                    let seen: Value = serde_json::from_slice(&seen.stdout).unwrap();
                    assert!(!seen["batches"].as_array().unwrap().is_empty());
                }
            });
        }
    });
    assert_eq!(assert_agrees(place.path(), &["ws"], "at once"), 20);
    assert_current(place.path(), "at once");
}

#[test]
fn batches_over_several_roots_are_found_from_each_of_them() {
    for damage in ["none", "index of the keeper", "index of the other", "history of the other"] {
        let place = used(&["a", "b", "c"], 2);
        let of = |root: &str| file(&format!("{root}/x"));
        commit(&open(place.path(), &["b"]), &file("alone"));
        assert_agrees(place.path(), &["b"], "looked before");
        commit(&open(place.path(), &["a", "b"]), &of("b"));
        let both = Batch { files: [of("a").files, of("b").files].concat(), ..Batch::default() };
        commit(&open(place.path(), &["a", "b"]), &both);
        commit(&open(place.path(), &["a", "b"]), &of("a"));
        match damage {
            "index of the keeper" => std::fs::remove_file(index(place.path(), "a")).unwrap(),
            "index of the other" => std::fs::remove_file(index(place.path(), "b")).unwrap(),
            "history of the other" => std::fs::remove_dir_all(state(place.path(), "b").join("history")).unwrap(),
            _ => {}
        }
        let alone = usize::from(damage != "history of the other");
        for (roots, count) in [(&["a"][..], 4), (&["b"], 2 + alone), (&["c"], 0), (&["a", "b"], 5 + alone)] {
            assert_eq!(assert_agrees(place.path(), roots, damage), count, "{damage}: {roots:?}");
        }
    }
}

/// Adds entries to a history as earlier versions wrote them, all like the newest one that it has.
fn add_earlier(place: &Path, count: u64) {
    let history = state(place, "ws").join("history");
    let newest = std::fs::read_dir(&history).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    let name = newest.file_name().unwrap().to_str().unwrap();
    let body = &bytes[bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1..];
    let id = format!("\"id\":\"{name}\",");
    let at = body.windows(id.len()).position(|window| window == id.as_bytes()).unwrap();
    let body = [&body[..at], &body[at + id.len()..]].concat();
    let entry = [format!("aptix-history-1 {}\n", sha256(&body)).as_bytes(), &body].concat();
    let first = Uuid::try_parse(name).unwrap().as_u128() - (1 << 90);
    for number in 0..count {
        let name = Uuid::from_u128(first + u128::from(number)).to_string();
        std::fs::write(history.join(name), &entry).unwrap();
    }
}

#[test]
fn committing_and_listing_the_newest_look_at_as_many_files_however_many_entries_there_are() {
    let count = |entries| {
        let place = used(&["ws"], 25);
        add_earlier(place.path(), entries);
        // The first one makes the index anew.
        assert_eq!(batches(&open(place.path(), &["ws"]), Some(1)).len(), 1);
        assert_eq!(entries::list(&open(place.path(), &["ws"])).unwrap().len() as u64, 25 + entries);
        let document = |name| format!(r#"{{"path":"{name}","content":"x\n"}}"#);
        looks(place.path(), &["apply"], &document("once"))?;
        let applied = looks(place.path(), &["apply"], &document("twice"))?;
        Some((applied, looks(place.path(), &["log", "-n", "20"], "")?))
    };
    let (Some(few), Some(many)) = (count(0), count(3000)) else {
        skip("there is no strace, or it may not trace");
        return;
    };
    // The end of a short file is found by one more read.
    let are_near = |few: usize, many: usize| few.abs_diff(many) < 20;
    assert!(are_near(few.0, many.0) && are_near(few.1, many.1), "system calls of apply and log: {few:?}, {many:?}");
}

#[test]
fn a_log_of_a_path_reads_no_entry_that_is_about_other_files() {
    let count = |entries| {
        let place = used(&["ws"], entries);
        // The first one looks where else there are entries.
        looks(place.path(), &["log", "-n", "1"], "")?;
        looks(place.path(), &["log", "f3"], "")
    };
    let (Some(few), Some(many)) = (count(10), count(110)) else {
        skip("there is no strace, or it may not trace");
        return;
    };
    assert!(many < few + 50, "system calls of a log of one file among 10 and among 110: {few}, {many}");
}

#[test]
fn a_state_that_is_brought_back_is_looked_at_again() {
    let place = used(&["a", "b"], 1);
    let both = Batch { files: [file("a/x").files, file("b/x").files].concat(), ..Batch::default() };
    commit(&open(place.path(), &["a", "b"]), &both);
    let (keeper, aside) = (state(place.path(), "a"), place.path().join("aside"));
    std::fs::rename(&keeper, &aside).unwrap();
    commit(&open(place.path(), &["b"]), &file("alone"));
    assert_eq!(assert_agrees(place.path(), &["b"], "without the keeper"), 1);
    std::fs::rename(&aside, &keeper).unwrap();
    assert_eq!(assert_agrees(place.path(), &["b"], "with the keeper"), 2);
    // While no state comes or goes, one look shows it.
    let lines = || std::fs::read(index(place.path(), "b")).unwrap();
    let before = lines();
    batches(&open(place.path(), &["b"]), Some(1));
    assert_eq!(lines(), before);
}
