//! Large files: of a small change the history keeps the changed passages, and undo, redo and diffs are as with a whole file.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use aptix_engine::digest::sha256;
use serde_json::{Value, json};

use crate::command_line::{aptix, text};
use crate::shown::{Files, by_git};

/// So many bytes of lines of which none is like another.
fn large(bytes: usize, end: &str) -> Vec<u8> {
    let line = |number: usize| format!("{} line {number}{end}", number.wrapping_mul(2_654_435_761) % 1_000_003);
    let mut text = String::new();
    (1..)
        .map(line)
        .take_while(|line| {
            text.len() + line.len() <= bytes && {
                text.push_str(line);
                true
            }
        })
        .for_each(drop);
    text.into_bytes()
}

fn run(place: &Path, arguments: &[&str], document: &str, code: i32) -> Value {
    let output = aptix(place, &[arguments, &["--json"]].concat(), document);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The newest entry of the history.
fn entry(place: &Path) -> PathBuf {
    let root = std::fs::read_dir(place.join("state/aptix/roots")).unwrap().next().unwrap().unwrap().path();
    std::fs::read_dir(root.join("history")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap()
}

fn bytes_of_entry(place: &Path) -> u64 {
    std::fs::metadata(entry(place)).unwrap().len()
}

fn place_with(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("ws/f.txt");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, content).unwrap();
    (place, file)
}

fn replace(old: &str, new: &str) -> String {
    json!({ "command": "str_replace", "path": "f.txt", "old_str": old, "new_str": new }).to_string()
}

#[test]
fn one_changed_line_of_a_file_of_ten_megabytes_takes_less_than_16_kib() {
    let before = large(10_000_000, "\n");
    let (place, file) = place_with(&before);
    run(place.path(), &["apply"], &replace(" line 200000\n", " line 200,000\n"), 0);
    let after = std::fs::read(&file).unwrap();
    assert_ne!(after, before);
    for (command, left) in [(&["undo"][..], &before), (&["undo", "--redo"], &after), (&["undo"], &before)] {
        let bytes = bytes_of_entry(place.path());
        assert!(bytes < 16 << 10, "{bytes} bytes before {command:?}");
        run(place.path(), command, "", 0);
        assert!(std::fs::read(&file).unwrap() == *left, "{command:?}");
    }
    assert!(bytes_of_entry(place.path()) < 16 << 10);
    // A change that is large beside the file keeps the file.
    let half = String::from_utf8(before[..400_000].to_vec()).unwrap();
    std::fs::write(&file, &half).unwrap();
    let document = json!({ "path": "f.txt", "content": half.replace("line", "row"), "overwrite": true }).to_string();
    run(place.path(), &["apply"], &document, 0);
    assert!(bytes_of_entry(place.path()) > 50_000);
    run(place.path(), &["undo"], "", 0);
    assert!(std::fs::read_to_string(&file).unwrap() == half);
}

/// Diffs that change a text in several places, made with the lines that are there.
fn diff(content: &[u8], places: &[usize], end: &str) -> Vec<u8> {
    let lines: Vec<_> = content.split_inclusive(|byte| *byte == b'\n').collect();
    let mut diff = b"--- a/f.txt\n+++ b/f.txt\n".to_vec();
    for (added, place) in places.iter().enumerate() {
        diff.extend(format!("@@ -{},3 +{},4 @@\n", place + 1, place + 1 + added).bytes());
        for (mark, line) in [(" ", lines[*place]), ("-", lines[place + 1])] {
            diff.extend([mark.as_bytes(), line].concat());
        }
        diff.extend(format!("+first {place}{end}+second {place}{end}").bytes());
        diff.extend([b" ", lines[place + 2]].concat());
    }
    diff
}

#[test]
fn git_takes_the_diffs_of_what_is_kept_and_undo_and_redo_are_exact() {
    let without_end = |mut text: Vec<u8>| {
        text.truncate(text.len() - 1);
        text
    };
    let latin = |text: Vec<u8>| text.split(|byte| *byte == b'i').collect::<Vec<_>>().join(&b"\xe9"[..]);
    let cases = [
        ("line feeds", large(300_000, "\n"), "\n"),
        ("carriage returns", large(300_000, "\r\n"), "\r\n"),
        ("no final newline", without_end(large(300_000, "\n")), "\n"),
        ("another encoding", latin(large(300_000, "\n")), "\n"),
    ];
    for (what, before, end) in cases {
        let (place, file) = place_with(&before);
        let count = before.split_inclusive(|byte| *byte == b'\n').count();
        let document = diff(&before, &[0, 40, 47, 55, 5_000, count - 8], end);
        let output = aptix(place.path(), &["apply", "--json"], &document);
        assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output.stdout));
        assert!(bytes_of_entry(place.path()) < 8 << 10, "{what}");
        let after = std::fs::read(&file).unwrap();
        let files = |bytes: &[u8]| Files::from([("f.txt".to_owned(), (bytes.to_vec(), false))]);
        // JSON has no room for other encodings; what is printed is as it is.
        if what != "another encoding" {
            let shown = run(place.path(), &["log", "-p"], "", 0)["batches"][0]["diff"].as_str().unwrap().to_owned();
            assert_eq!(shown.matches("\n@@ ").count(), 5, "{what}: {shown}");
            assert!(by_git(&files(&before), &shown) == files(&after), "{what}: {shown}");
            let planned = run(place.path(), &["undo", "--dry-run"], "", 0)["diff"].as_str().unwrap().to_owned();
            assert!(by_git(&files(&after), &planned) == files(&before), "{what}: {planned}");
        }
        for left in [&before, &after, &before] {
            let redo: &[&str] = if *left == after { &["undo", "--redo"] } else { &["undo"] };
            run(place.path(), redo, "", 0);
            assert!(std::fs::read(&file).unwrap() == *left, "{what}");
        }
    }
}

#[test]
fn an_undo_keeps_later_edits_and_refuses_those_beside_its_own() {
    let before = String::from_utf8(large(300_000, "\n")).unwrap();
    let (place, file) = place_with(before.as_bytes());
    run(place.path(), &["apply"], &replace(" line 5000\n", " row 5000\n"), 0);
    let after = std::fs::read_to_string(&file).unwrap();
    for now in [after.replace(" line 5002\n", " edited\n"), after.replace(" row 5000\n", " line 5000 again\n")] {
        std::fs::write(&file, &now).unwrap();
        let refused = run(place.path(), &["undo"], "", 1);
        let error = &refused["errors"][0];
        assert_eq!((&error["code"], &error["path"]), (&json!("EXPECTED_MISMATCH"), &json!("f.txt")), "{refused}");
        assert!(error["message"].as_str().unwrap().contains("left at line 5000, \"988586 row 5000\""), "{refused}");
        assert!(error["hint"].as_str().unwrap().contains("newest first"), "{refused}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), now);
    }
    // A copy of everything: which of the two is the batch's own?
    std::fs::write(&file, [after.as_str(), &after].concat()).unwrap();
    let refused = run(place.path(), &["undo"], "", 1);
    assert!(refused["errors"][0]["message"].as_str().unwrap().contains("more than once"), "{refused}");
    let edited =
        |text: &str| format!("above\n{}below\n", text.replace(" line 4990\n", "").replace(" line 7\n", "7\n7\n"));
    std::fs::write(&file, edited(&after)).unwrap();
    run(place.path(), &["undo"], "", 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), edited(&before));
    run(place.path(), &["undo", "--redo"], "", 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), edited(&after));
    // Turned back by hand.
    std::fs::write(&file, edited(&before)).unwrap();
    let refused = run(place.path(), &["undo"], "", 1);
    assert_eq!(refused["errors"][0]["code"], "ALREADY_APPLIED", "{refused}");
}

#[test]
fn a_copy_of_a_passage_is_not_taken_for_the_one_that_was_half_edited() {
    let before = String::from_utf8(large(300_000, "\n")).unwrap();
    let line = |text: &str, last: &str| text.find(last).unwrap() + last.len();
    let cases = [("replaced", " row 5000\n"), ("taken away", "\n")];
    for (what, new) in cases {
        let (place, file) = place_with(before.as_bytes());
        let old = &before[line(&before, " line 4999\n")..line(&before, " line 5000\n")];
        let new = if new == "\n" { String::new() } else { old.replace(" line 5000\n", new) };
        run(place.path(), &["apply"], &replace(old, &new), 0);
        let after = std::fs::read_to_string(&file).unwrap();
        let copy = &after[line(&after, " line 4990\n")..line(&after, " line 5010\n")];
        for beside in [" line 4998\n", " line 5002\n"] {
            let now = [&after.replace(beside, " edited\n"), "copied\n", copy].concat();
            std::fs::write(&file, &now).unwrap();
            let refused = run(place.path(), &["undo"], "", 1);
            assert_eq!(refused["errors"][0]["code"], "EXPECTED_MISMATCH", "{what}, {beside}: {refused}");
            assert!(refused["errors"][0]["message"].as_str().unwrap().contains("more than once"), "{refused}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), now, "{what}, {beside}");
        }
        // A block that is moved whole is found.
        let moved = [&after.replace(copy, ""), "moved\n", copy].concat();
        std::fs::write(&file, &moved).unwrap();
        run(place.path(), &["undo"], "", 0);
        let undone = std::fs::read_to_string(&file).unwrap();
        assert!(undone.ends_with(&before[line(&before, " line 4990\n")..line(&before, " line 5010\n")]), "{what}");
    }
}

#[test]
fn a_large_file_that_is_moved_or_made_executable_is_not_kept_whole() {
    let bytes: Vec<u8> = large(300_000, "\n").into_iter().chain([0, 0xff, 0xfe, b'\n', 0]).collect();
    let (place, file) = place_with(&bytes);
    let there = file.with_file_name("g.bin");
    let document = "diff --git a/f.txt b/g.bin\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from f.txt\n\
                    rename to g.bin\n";
    run(place.path(), &["apply"], document, 0);
    assert!(bytes_of_entry(place.path()) < 4 << 10);
    assert!(!file.exists() && std::fs::metadata(&there).unwrap().permissions().mode() & 0o100 != 0);
    let shown = run(place.path(), &["log", "-p"], "", 0)["batches"][0]["diff"].as_str().unwrap().to_owned();
    assert!(shown.contains("new mode 100755") && shown.contains("rename to g.bin"), "{shown}");
    // Another process has moved it back: nothing but the mode is left.
    std::fs::rename(&there, &file).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run(place.path(), &["undo"], "", 1);
    assert_eq!(refused["errors"][0]["code"], "ALREADY_APPLIED", "{refused}");
    std::fs::rename(&file, &there).unwrap();
    std::fs::set_permissions(&there, std::fs::Permissions::from_mode(0o755)).unwrap();
    run(place.path(), &["undo"], "", 0);
    assert!(!there.exists() && std::fs::read(&file).unwrap() == bytes);
    assert!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o100 == 0);
}

#[test]
fn damaged_passages_are_refused_by_name_and_change_nothing() {
    let before = large(300_000, "\n");
    let (place, file) = place_with(&before);
    run(place.path(), &["apply"], &replace(" line 5000\n", " row 5000\n"), 0);
    let after = std::fs::read(&file).unwrap();
    let entry = entry(place.path());
    let kept = std::fs::read(&entry).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        std::fs::write(&entry, bytes).unwrap();
        let refused = run(place.path(), &["undo"], "", 1);
        let message = refused["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains("damaged") && message.contains(entry.to_str().unwrap()), "{what}: {refused}");
        assert!(std::fs::read(&file).unwrap() == after, "{what}");
    };
    let mut flipped = kept.clone();
    *flipped.last_mut().unwrap() ^= 1;
    refused(&flipped, "a bit");
    refused(&kept[..kept.len() - 1], "the end");
    // With a right checksum, and passages that do not make the file that it states.
    let body = kept.split_inclusive(|byte| *byte == b'\n').skip(1).collect::<Vec<_>>().concat();
    let find = |part: &str| body.windows(part.len()).position(|window| window == part.as_bytes()).unwrap();
    let [digest, other] = [&before[..], b"another"].map(|bytes| format!("\"digest\":\"{}\"", sha256(bytes)));
    let at = find(&digest);
    let other = [&body[..at], other.as_bytes(), &body[at + digest.len()..]].concat();
    refused(&[format!("aptix-history-1 {}\n", sha256(&other)).as_bytes(), &other].concat(), "another file");
    std::fs::write(&entry, &kept).unwrap();
    run(place.path(), &["undo"], "", 0);
    assert!(std::fs::read(&file).unwrap() == before);
}

/// What may be shown depends on how a file began: of a private key that stays known.
#[test]
fn a_file_that_begins_as_a_private_key_does_is_kept_whole() {
    let lines = String::from_utf8(large(300_000, "\n")).unwrap();
    let (place, _) = place_with(format!("-----BEGIN PRIVATE KEY-----\n{lines}").as_bytes());
    run(place.path(), &["apply", "--yes"], &replace(" line 5000\n", " row 5000\n"), 0);
    assert!(bytes_of_entry(place.path()) > 50_000);
}
