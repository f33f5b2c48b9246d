//! What is known of the past: in which order, how much of it, and whose.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aptix_model::batch::Batch;
use serde_json::Value;

use crate::command_line::{aptix, text};
use crate::faults::{self, Fault, FaultyDisk, Receipt};

fn set_policy(place: &Path, policy: &str) {
    let file = place.join("config/aptix/policy.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, policy).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// What a command prints, as JSON.
fn json(place: &Path, arguments: &[&str], document: &str, code: i32) -> Value {
    let output = aptix(place, arguments, document);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a command says that is refused.
fn refused(place: &Path, arguments: &[&str]) -> String {
    let output = aptix(place, arguments, "");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

fn applied(place: &Path, document: &str) -> Value {
    json(place, &["apply", "--json"], document, 0)
}

/// What the newest batch is called.
fn newest(place: &Path) -> String {
    json(place, &["log", "--json"], "", 0)["batches"][0]["batchId"].as_str().unwrap().to_owned()
}

fn replace(path: &str, old: &str, new: &str) -> String {
    serde_json::json!({ "command": "str_replace", "path": path, "old_str": old, "new_str": new }).to_string()
}

fn rename(from: &str, to: &str) -> String {
    format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
}

/// The entries of all histories, by name.
fn entries(place: &Path) -> Vec<PathBuf> {
    let list = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let roots = list(place.join("state/aptix/roots"));
    let mut found: Vec<_> = roots.flat_map(|root| list(root.join("history"))).collect();
    found.sort_by_key(|path| path.file_name().map(OsStr::to_owned));
    found
}

#[test]
fn a_batch_in_a_root_whose_path_is_no_utf8_is_undone_in_that_root_alone() {
    let place = tempfile::tempdir().unwrap();
    let odd = place.path().join(OsStr::from_bytes(b"r\xff"));
    std::fs::create_dir_all(odd.join("ws")).unwrap();
    let state = place.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    std::os::unix::fs::symlink(&state, odd.join("state")).unwrap();
    applied(&odd, r#"{"path":"new/a.txt","content":"one\n"}"#);
    assert_eq!(json(&odd, &["log", "--json"], "", 0)["batches"][0]["files"][0]["path"], "new/a.txt");
    json(&odd, &["undo", "--json"], "", 0);
    assert!(!odd.join("ws/new").exists());
    let elsewhere = aptix(place.path(), &["log"], "");
    assert_eq!((text(&elsewhere.stdout), text(&elsewhere.stderr)), (String::new(), String::new()));
}

#[test]
fn damage_is_reported_in_its_own_root_alone_and_is_not_skipped() {
    let place = tempfile::tempdir().unwrap();
    let other = place.path().join("other");
    std::fs::create_dir_all(&other).unwrap();
    applied(place.path(), r#"{"path":"a.txt","content":"one\n"}"#);
    let first = newest(place.path());
    applied(place.path(), &replace("a.txt", "one", "two"));
    let entry = entries(place.path()).pop().unwrap();
    std::fs::write(&entry, "nothing of this is an entry").unwrap();
    let message = refused(place.path(), &["undo"]);
    assert!(message.contains("damaged") && message.contains(entry.to_str().unwrap()), "{message}");
    assert_eq!(std::fs::read_to_string(place.path().join("ws/a.txt")).unwrap(), "two\n");
    let root = other.to_str().unwrap();
    assert_eq!(text(&aptix(place.path(), &["log", "--root", root], "").stderr), "");
    // By its name the batch before can still be undone, if nothing is in the way.
    let message = refused(place.path(), &["undo", &first]);
    assert!(message.contains("EXPECTED_MISMATCH: a.txt: "), "{message}");
}

#[test]
fn what_came_last_is_what_is_undone_though_the_clock_was_set_back() {
    for (first, second) in [(40, 0), (1, 0), (0, 0)] {
        let place = tempfile::tempdir().unwrap();
        faults::lay_out(place.path());
        let disk = FaultyDisk::new(Fault::None);
        let days = Arc::clone(&disk.days);
        days.store(first, Ordering::SeqCst);
        let (workspace, _) = faults::open_on(place.path(), disk.clone()).unwrap();
        faults::commit(&workspace, &faults::batch(1, 0), Receipt::None).unwrap();
        days.store(second, Ordering::SeqCst);
        faults::commit(&workspace, &faults::batch(0, 1), Receipt::None).unwrap();
        // Another process does not know of these.
        let (another, _) = faults::open_on(place.path(), disk).unwrap();
        let last = Batch { files: faults::batch(0, 2).files.split_off(1), ..Batch::default() };
        faults::commit(&another, &last, Receipt::None).unwrap();
        let log = json(place.path(), &["log", "--json"], "", 0);
        let files = log["batches"].as_array().unwrap().iter().map(|batch| batch["files"][0]["path"].as_str().unwrap());
        assert_eq!(
            files.collect::<Vec<_>>(),
            ["deep/er/new.txt", "new.txt", "a.txt"],
            "{first} and {second} days ahead"
        );
        let times: Vec<_> = log["batches"].as_array().unwrap().iter().map(|batch| &batch["appliedUnixMs"]).collect();
        assert_eq!(times[0].as_u64() < times[2].as_u64(), first > second, "{times:?}");
        json(place.path(), &["undo", "--json"], "", 0);
        assert!(!place.path().join("ws/deep").exists() && place.path().join("ws/new.txt").exists());
    }
}

#[test]
fn what_came_last_and_was_too_much_is_named_and_nothing_older_is_undone_in_its_place() {
    let place = tempfile::tempdir().unwrap();
    set_policy(place.path(), "[history]\nbytes = 2000\n");
    applied(place.path(), r#"{"path":"f","content":"one\n"}"#);
    let first = newest(place.path());
    // Letters that are hard to compress.
    let mut state = 1_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    };
    let text_of = (0..10_000).map(|_| letter()).collect::<String>();
    let report = applied(place.path(), &serde_json::json!({ "path": "large", "content": text_of }).to_string());
    let warning = &report["files"][0]["warnings"][0];
    assert_eq!(warning["code"], "NOT_UNDOABLE");
    assert!(warning["message"].as_str().unwrap().contains("[history]"), "{warning}");
    let log = json(place.path(), &["log", "--json"], "", 0);
    let can: Vec<_> = log["batches"].as_array().unwrap().iter().map(|batch| &batch["canBeUndone"]).collect();
    assert_eq!(can, [false, true]);
    let large = newest(place.path());
    assert!(text(&aptix(place.path(), &["log"], "").stdout).contains("cannot be undone)  by "));
    let message = refused(place.path(), &["undo"]);
    assert!(message.contains(&large) && message.contains("`bytes` of `[history]`"), "{message}");
    assert!(place.path().join("ws/f").exists());
    json(place.path(), &["undo", "--json", &first], "", 0);
    assert!(!place.path().join("ws/f").exists());
    // What is many files and few bytes is as much.
    set_policy(place.path(), "[history]\nbytes = 700\n");
    let many: String = (0..8).map(|index| format!("*** Add File: n{index}\n+x\n")).collect();
    applied(place.path(), &format!("*** Begin Patch\n{many}*** End Patch\n"));
    let many = newest(place.path());
    assert_eq!(entries(place.path()).len(), 1, "the oldest is deleted first");
    assert!(refused(place.path(), &["undo"]).contains(&many));
    // What compresses well is counted as it is kept.
    set_policy(place.path(), "[history]\nbytes = 2000\n");
    applied(place.path(), &serde_json::json!({ "path": "plain", "content": "x".repeat(10_000) }).to_string());
    json(place.path(), &["undo", "--json"], "", 0);
}

#[test]
fn undoing_a_move_names_the_file_that_is_missing_and_sees_one_that_was_moved_back() {
    let place = tempfile::tempdir().unwrap();
    let at = |path: &str| place.path().join("ws").join(path);
    std::fs::create_dir_all(at("s")).unwrap();
    std::fs::create_dir_all(at("t")).unwrap();
    std::fs::write(at("s/f"), "one\n").unwrap();
    applied(place.path(), &rename("s/f", "t/g"));
    std::fs::rename(at("t/g"), at("t/h")).unwrap();
    let message = refused(place.path(), &["undo"]);
    assert!(message.contains("FILE_MISSING: t/g: "), "{message}");
    std::fs::write(at("s/f"), "another\n").unwrap();
    let message = refused(place.path(), &["undo"]);
    assert!(message.contains("FILE_MISSING: t/g: "), "{message}");
    std::fs::rename(at("t/h"), at("s/f")).unwrap();
    let message = refused(place.path(), &["undo"]);
    assert!(message.contains("ALREADY_APPLIED"), "{message}");
    // Moved back with what the batch made of it.
    std::fs::write(at("s/m"), "1\n2\n3\n4\n5\n").unwrap();
    let edit = "diff --git a/s/m b/t/m\nrename from s/m\nrename to t/m\n--- a/s/m\n+++ b/t/m\n@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n";
    applied(place.path(), edit);
    std::fs::rename(at("t/m"), at("s/m")).unwrap();
    json(place.path(), &["undo", "--json"], "", 0);
    assert_eq!(std::fs::read_to_string(at("s/m")).unwrap(), "1\n2\n3\n4\n5\n");
}

#[test]
fn undoing_what_a_later_batch_has_moved_or_deleted_names_that_batch() {
    let place = tempfile::tempdir().unwrap();
    applied(place.path(), r#"{"path":"f","content":"one\n"}"#);
    let made = newest(place.path());
    applied(place.path(), &replace("f", "one", "two"));
    let edited = newest(place.path());
    applied(place.path(), &rename("f", "g"));
    let moved = newest(place.path());
    for earlier in [&made, &edited] {
        let message = refused(place.path(), &["undo", earlier]);
        let expected = format!("FILE_MISSING: f: batch {moved}, which came later, moved it to \"g\"");
        assert!(message.contains(&expected) && message.contains(&format!("`aptix undo {moved}`")), "{message}");
    }
    applied(
        place.path(),
        "diff --git a/g b/g\ndeleted file mode 100644\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n",
    );
    let deleted = newest(place.path());
    let message = refused(place.path(), &["undo", &moved]);
    assert!(message.contains(&format!("FILE_MISSING: g: batch {deleted}, which came later, deleted it")), "{message}");
    for batch in [&deleted, &moved, &edited, &made] {
        json(place.path(), &["undo", "--json", batch], "", 0);
    }
    assert_eq!(std::fs::read_dir(place.path().join("ws")).unwrap().count(), 0);
}

#[test]
fn undoing_without_writing_says_what_would_happen() {
    let place = tempfile::tempdir().unwrap();
    applied(place.path(), r#"{"path":"made/f","content":"one\n"}"#);
    let before = crate::tree::read(place.path());
    let message = json(place.path(), &["undo", "--dry-run", "--json"], "", 0);
    assert_eq!((&message["state"], &message["dryRun"]), (&"PREPARED".into(), &true.into()));
    assert_eq!(message["batchId"], Value::Null);
    assert_eq!(message["files"][0]["status"], "deleted");
    crate::tree::assert_same(&crate::tree::read(place.path()), &before, "nothing is undone");
}

#[test]
fn lines_that_differ_in_how_they_end_are_shown_so() {
    let place = tempfile::tempdir().unwrap();
    applied(place.path(), r#"{"path":"f","content":"1\n2\n3\n"}"#);
    applied(place.path(), &replace("f", "2", "x"));
    std::fs::write(place.path().join("ws/f"), "1\r\nx\r\n3\r\n").unwrap();
    let message = refused(place.path(), &["undo"]);
    assert!(message.contains(r#"left "x"; now there is "1\r\nx\r\n3\r""#), "{message}");
}

#[test]
fn a_lowered_limit_does_not_prevent_undo() {
    let place = tempfile::tempdir().unwrap();
    applied(place.path(), r#"{"path":"f","content":"one\ntwo\nthree\n"}"#);
    applied(place.path(), &replace("f", "two", "2"));
    set_policy(place.path(), "[limits]\nfile_bytes = 3\n");
    json(place.path(), &["undo", "--json"], "", 0);
    assert_eq!(std::fs::read_to_string(place.path().join("ws/f")).unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn an_answer_names_the_batch_as_the_log_does() {
    let place = tempfile::tempdir().unwrap();
    let answered = applied(place.path(), r#"{"path":"f","content":"one\n"}"#);
    assert_eq!(answered["batchId"], newest(place.path()).as_str());
    assert!(answered["files"][0]["filePatchId"].is_string(), "{answered}");
    let undone = json(place.path(), &["undo", "--json", answered["batchId"].as_str().unwrap()], "", 0);
    assert_eq!(undone["batchId"], newest(place.path()).as_str());
    let log = json(place.path(), &["log", "--json"], "", 0);
    assert_eq!(log["batches"][0]["undoes"], answered["batchId"]);
    // What changes nothing is not known afterwards.
    let unchanged = json(place.path(), &["apply", "--json", "--dry-run"], r#"{"path":"g","content":"one\n"}"#, 0);
    assert_eq!(unchanged["batchId"], Value::Null);
}

#[test]
fn of_two_lines_far_apart_in_a_large_file_the_history_keeps_one_image_and_undoes_them_around_later_edits() {
    let mut number: u64 = 1;
    let mut word = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Six random bits a byte: little to compress.
        number.to_le_bytes().map(|byte| char::from(b'0' + (byte >> 2)))
    };
    let mut half =
        || (0..10_000).map(|_| (0..64).flat_map(|_| word()).chain(['\n']).collect::<String>()).collect::<String>();
    let (half, other) = (half(), half());
    let (place, ws) = faults::laid_out();
    let place = place.path();
    let file = ws.join("big");
    let text_of = |first: &str, middle: &str, last: &str| format!("{first}\n{half}{middle}\n{other}{last}");
    let before = text_of("first", "middle", "last");
    assert!(before.len() > 10_000_000);
    std::fs::write(&file, &before).unwrap();
    let block = |old: &str, new: &str| format!("big\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n");
    applied(place, &(block("first", "FIRST") + &block("last", "LAST")));
    assert!(std::fs::read_to_string(&file).unwrap() == text_of("FIRST", "middle", "LAST"));
    let entry = entries(place).pop().unwrap();
    let (kept, size) = (entry.metadata().unwrap().len(), before.len() as u64);
    assert!(kept < size + size / 50, "{kept} bytes are kept of a file of {size}");
    let diff = text(&aptix(place, &["log", "-p"], "").stdout);
    assert!(diff.contains("-first\n+FIRST\n") && diff.contains("-last\n") && diff.contains("+LAST\n"), "{diff:.2000}");
    // Another program edits the file between the two.
    std::fs::write(&file, text_of("FIRST", "theirs", "LAST")).unwrap();
    json(place, &["undo", "--json"], "", 0);
    assert!(std::fs::read_to_string(&file).unwrap() == text_of("first", "theirs", "last"));
    json(place, &["undo", "--redo", "--json"], "", 0);
    assert!(std::fs::read_to_string(&file).unwrap() == text_of("FIRST", "theirs", "LAST"));
    let mut bytes = std::fs::read(&entry).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&entry, bytes).unwrap();
    let batch = entry.file_name().unwrap().to_str().unwrap();
    let message = refused(place, &["undo", batch]);
    assert!(message.contains("damaged") && message.contains(batch), "{message}");
}
