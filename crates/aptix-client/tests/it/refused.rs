//! What is kept of batches that were refused here: which of them, for how long, and nothing of secrets.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aptix_client::workspace::keep::history::prune::Retention;
use aptix_engine::digest::sha256;
use serde_json::{Value, json};

use crate::command_line::{aptix, text};
use crate::faults::{self, Fault, FaultyDisk};
use crate::looks::{flushes, looks};
use crate::skip::skip;

fn ask(place: &Path, arguments: &[&str], document: &str, code: i32) -> Value {
    let output = aptix(place, arguments, document);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| text(&output.stdout).into())
}

fn replace(path: &str, old: &str, new: &str) -> String {
    json!({ "command": "str_replace", "path": path, "old_str": old, "new_str": new }).to_string()
}

fn refuse(place: &Path, document: &str) -> String {
    ask(place, &["apply", "--json"], document, 1)["batchId"].as_str().unwrap().to_owned()
}

/// The files of refused batches, oldest first.
fn kept(place: &Path) -> Vec<PathBuf> {
    let list = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut kept: Vec<_> = list(place.join("state/aptix/roots")).flat_map(|root| list(root.join("refused"))).collect();
    kept.sort();
    kept
}

fn listed(place: &Path, arguments: &[&str]) -> Vec<(String, String)> {
    let log = ask(place, &[&["log", "--json"], arguments].concat(), "", 0);
    let row = |row: &Value| (row["batchId"].as_str().unwrap().to_owned(), row["state"].as_str().unwrap().to_owned());
    log["batches"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn a_log_lists_what_was_refused_where_that_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let apply = |name: &str| {
        let document = json!({ "path": name, "content": "one\n" }).to_string();
        ask(place, &["apply", "--json"], &document, 0)["batchId"].as_str().unwrap().to_owned()
    };
    let first = apply("a/f");
    let refused = refuse(place, &replace("a/f", "two", "three"));
    let last = apply("b");
    let missing = refuse(place, &replace("b", "two", "three"));
    let rows = |ids: &[(&String, &str)]| -> Vec<_> {
        ids.iter().map(|(id, state)| ((*id).clone(), (*state).to_owned())).collect()
    };
    let (applied, failed) = ("APPLIED", "FAILED");
    let cases: [(&[&str], _); 6] = [
        (&[], rows(&[(&last, applied), (&first, applied)])),
        (&["--state", "applied"], rows(&[(&last, applied), (&first, applied)])),
        (&["--state", "failed"], rows(&[(&missing, failed), (&refused, failed)])),
        (&["--state", "all"], rows(&[(&missing, failed), (&last, applied), (&refused, failed), (&first, applied)])),
        (&["--state", "all", "-n", "3"], rows(&[(&missing, failed), (&last, applied), (&refused, failed)])),
        (&["--state", "all", "a"], rows(&[(&refused, failed), (&first, applied)])),
    ];
    for (arguments, expected) in cases {
        assert_eq!(listed(place, arguments), expected, "{arguments:?}");
    }
    let shown = text(&aptix(place, &["log", "--state", "failed", "-n", "1"], "").stdout);
    assert!(shown.starts_with(&missing) && shown.contains(" failed b  by person"), "{shown}");
    // Nothing was done, so that nothing can be taken back.
    assert_eq!(ask(place, &["undo", "--json", &refused], "", 1)["errors"][0]["code"], "NOT_FOUND");
    // A dry run and a document that is none were not tried.
    ask(place, &["apply", "--json", "--dry-run"], &replace("b", "two", "three"), 1);
    ask(place, &["apply", "--json"], "no document", 1);
    assert_eq!(kept(place).len(), 2);
}

#[test]
fn nothing_is_kept_of_what_holds_secrets() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\\nMIIE-s3cr3t\\n-----END RSA PRIVATE KEY-----\\n";
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let ws = place.join("ws");
    std::fs::create_dir_all(&ws).unwrap();
    std::fs::write(ws.join(".env"), "TOKEN=s3cr3t-on-disk\nB=2\n").unwrap();
    std::fs::write(ws.join("plain"), "one\n").unwrap();
    let of =
        |path: &str, old: &str| json!({ "path": path, "replacements": [{ "find": old, "replace": "s3cr3t-new" }] });
    let documents = [
        json!({ "root": ".", "patches": [of(".env", "TOKEN=s3cr3t-guess"), of("plain", "two")] }).to_string(),
        format!(r#"{{"path":"plain","content":"{key}"}}"#),
        "diff --git a/plain b/.npmrc\nsimilarity index 50%\nrename from plain\nrename to .npmrc\n--- a/plain\n+++ b/.npmrc\n@@ -1 +1 @@\n-s3cr3t\n+s3cr3t\n".to_owned(),
    ];
    for document in &documents {
        let id = ask(place, &["apply", "--json", "--yes"], document, 1)["batchId"].as_str().unwrap().to_owned();
        let shown = text(&aptix(place, &["show", &id], "").stdout);
        assert!(shown.contains("FAILED") && shown.contains("is not kept"), "{shown}");
    }
    assert_eq!(kept(place).len(), documents.len());
    for file in kept(place) {
        let kept = text(&std::fs::read(&file).unwrap());
        // What is asked of the other file of the first batch is as it was.
        assert!(!kept.replace("+s3cr3t-new", "").contains("s3cr3t"), "{kept}");
        assert_eq!(kept.matches("+s3cr3t-new").count(), usize::from(kept.contains("-two")), "{kept}");
    }
}

#[test]
fn nothing_is_kept_of_a_secret_under_another_name() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let ws = place.join("ws");
    std::fs::create_dir_all(ws.join("deploy")).unwrap();
    std::fs::write(ws.join(".env"), "TOKEN=s3cr3t\n").unwrap();
    std::os::unix::fs::symlink("../.env", ws.join("deploy/settings")).unwrap();
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nAAAA\nBBBB\ns3cr3t0123456789\nCCCC\nDDDD\n";
    std::fs::write(ws.join("identity"), key).unwrap();
    for (path, old) in [("deploy/settings", "TOKEN=s3cr3r"), ("identity", "s3cr3t0123456788")] {
        let id = ask(place, &["apply", "--json", "--yes"], &replace(path, old, "new"), 1);
        assert!(id["errors"][0].to_string().contains("s3cr3t"), "the person at the shell sees it: {id}");
        let shown = text(&aptix(place, &["show", id["batchId"].as_str().unwrap()], "").stdout);
        assert!(shown.contains("FAILED") && shown.contains("is not kept"), "{shown}");
    }
    for file in kept(place) {
        let kept = text(&std::fs::read(&file).unwrap());
        assert!(!kept.contains("s3cr3"), "{kept}");
    }
}

/// Puts a copy of what is kept beside it, as that of a later batch with another id.
fn copy(of: &Path, number: u32) {
    let file = text(&std::fs::read(of).unwrap());
    let [_, owner, body] = file.splitn(3, '\n').collect::<Vec<_>>()[..] else { panic!("{file}") };
    let (part, state) = (owner.split_once('/').unwrap().0, owner.split_once(" of ").unwrap().1);
    let id = format!("01a20000-0000-7000-8000-{number:08x}0000");
    let old = serde_json::from_str::<Value>(body).unwrap()["id"].as_str().unwrap().to_owned();
    let name = format!("{:08x}-{id}", 10 + number);
    let sealed = format!("{part}/{name} of {state}\n{}", body.replace(&old, &id));
    let sum = sha256(sealed.as_bytes());
    std::fs::write(of.with_file_name(name), format!("aptix-own-1 {sum}\n{sealed}")).unwrap();
}

#[test]
fn only_so_many_are_kept_and_the_newest_stay_whatever_the_clock_shows() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let ids: Vec<_> = (0..4).map(|number| refuse(place, &replace("none", "x", &number.to_string()))).collect();
    // As if there had been many.
    let last = kept(place).pop().unwrap();
    (0..120).for_each(|number| copy(&last, number));
    let newest = refuse(place, &replace("none", "x", "y"));
    assert_eq!(kept(place).len(), 100);
    assert_eq!(ask(place, &["show", "--json", &newest], "", 0)["state"], "FAILED");
    assert_eq!(ask(place, &["show", "--json", &ids[0]], "", 1)["errors"][0]["code"], "NOT_FOUND");
    assert_eq!(listed(place, &["--state", "failed"]).len(), 100);
    // What is torn counts for nothing.
    kept(place)[..99].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let whole = std::fs::read(kept(place).pop().unwrap()).unwrap();
    for cut in [0, 40, whole.len() / 2, whole.len() - 1] {
        std::fs::write(kept(place).pop().unwrap(), &whole[..cut]).unwrap();
        assert_eq!(ask(place, &["show", "--json", &newest], "", 1)["errors"][0]["code"], "NOT_FOUND", "{cut}");
        assert_eq!(listed(place, &["--state", "all"]), [], "{cut}");
    }
    // What is large is kept without what it asked for.
    let large = refuse(place, &replace("none", "x", &"long line\n".repeat(100_000)));
    let shown = ask(place, &["show", "--json", &large], "", 0);
    assert!(shown["asked"].as_str().unwrap().contains("too much to be kept"), "{shown}");
    assert_eq!(shown["errors"][0]["code"], "FILE_MISSING");
    assert!(kept(place).pop().unwrap().metadata().unwrap().len() < 2_000);
}

#[test]
fn what_was_refused_is_forgotten_as_the_history_is() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    refuse(place.path(), &replace("none", "x", "y"));
    let disk = FaultyDisk::new(Fault::None);
    let days = Arc::clone(&disk.days);
    let (workspace, _) = faults::open_on(place.path(), disk).unwrap();
    let kept_after = |passed| {
        days.store(passed, Ordering::SeqCst);
        workspace.maintain(|| Some(Retention::DEFAULT)).unwrap();
        kept(place.path()).len()
    };
    assert_eq!([0, 29, 31].map(kept_after), [1, 1, 0]);
}

#[test]
fn what_was_refused_costs_a_batch_that_is_applied_nothing() {
    // Nor does it wait for the disk itself.
    let place = tempfile::tempdir().unwrap();
    refuse(place.path(), &replace("none", "x", "y"));
    if let Some(flushes) = flushes(place.path(), &["apply"], &replace("none", "x", "y"), 1) {
        assert_eq!((flushes, kept(place.path()).len()), (0, 2));
    }
    let count = |refused| {
        let place = tempfile::tempdir().unwrap();
        let document = |name| format!(r#"{{"path":"{name}","content":"x\n"}}"#);
        ask(place.path(), &["apply", "--json"], &document("once"), 0);
        (0..refused).for_each(|_| _ = refuse(place.path(), &replace("none", "x", "y")));
        looks(place.path(), &["apply"], &document("twice"))
    };
    let (Some(none), Some(many)) = (count(0), count(20)) else {
        skip("there is no strace, or it may not trace");
        return;
    };
    assert!(none.abs_diff(many) < 15, "system calls of apply: {none}, {many}");
}
