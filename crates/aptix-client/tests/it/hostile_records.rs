//! Records in the state directory with a right checksum and hostile fields: recovery changes nothing outside of the
//! roots, nothing that is protected, and nothing of its own beside what a record may name.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::command_line::{aptix, text};

const DOCUMENT: &str = r#"{"path":"new.txt","content":"x\n"}"#;
const VICTIM: &str = "victim\n";
const EVIL: &str = "evil\n";
const STAGED: &str = ".00000000000000000000000000000000.aptix-tmp";

fn hex(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything that is there, except the state's own bookkeeping of what was applied.
fn everything(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(everything(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// A place with a root in which one batch was applied, and the directory of its state.
fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path();
    for dir in ["ws/sub", "ws/.git/hooks", "outside"] {
        std::fs::create_dir_all(path.join(dir)).unwrap();
    }
    for file in ["ws/a.txt", "ws/.git/config", "outside/victim", "victim"] {
        std::fs::write(path.join(file), VICTIM).unwrap();
    }
    assert!(aptix(path, &["apply"], r#"{"path":"first.txt","content":"x\n"}"#).status.success());
    let state = std::fs::read_dir(path.join("state/aptix/roots")).unwrap().next().unwrap().unwrap().path();
    (place, state)
}

fn record(place: &Path, change: &Value) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let ws = place.join("ws").canonicalize().unwrap();
    let stat = ws.metadata().unwrap();
    let mark = json!({ "path": { "Unix": ws.as_os_str().as_bytes() }, "device": stat.dev(), "inode": stat.ino() });
    let mut record = json!({
        "boot": "another", "roots": [mark], "history": null, "batch": null, "dirs": [], "files": [],
    });
    for (key, value) in change.as_object().unwrap() {
        record[key] = value.clone();
    }
    let body = [record.to_string().as_bytes(), b"\n{}"].concat();
    [format!("aptix-journal-6 {}\n", hex(&body)).as_bytes(), &body].concat()
}

fn file(root: usize, dir: &str, name: &str, staged: &str) -> Value {
    json!({ "files": [{
        "root": root, "dir": dir, "name": name, "staged": staged, "before": hex(VICTIM), "after": hex(EVIL), "executable": null,
    }] })
}

/// Fields that no commit leaves: each leads out of the root, into what is protected, or to our own files.
fn hostile_fields() -> Vec<Value> {
    let files = [
        ("", "a.txt", "../victim"),
        ("", "a.txt", "../outside/victim"),
        ("", "a.txt", ".git/config"),
        ("", "a.txt", "a.txt"),
        ("", "a.txt", ""),
        ("", "../victim", STAGED),
        ("", "../outside/victim", STAGED),
        ("", ".git/config", STAGED),
        (".git", "config", STAGED),
        ("sub/../.git", "config", STAGED),
        ("..", "victim", STAGED),
        ("../outside", "victim", STAGED),
        ("/tmp", "victim", STAGED),
        ("sub/", "victim", STAGED),
        ("", "..", STAGED),
        ("", "", STAGED),
    ];
    let dir = |parent: &str, name: &str| json!([{ "root": 0, "parent": parent, "name": name }]);
    let mut fields: Vec<_> = files.iter().map(|(dir, name, staged)| file(0, dir, name, staged)).collect();
    fields.extend([7, usize::MAX].map(|root| file(root, "", "a.txt", STAGED)));
    fields.extend([
        json!({ "dirs": dir("", "../outside/made") }),
        json!({ "dirs": dir("..", "outside") }),
        json!({ "dirs": dir("", "..") }),
        json!({ "dirs": dir(".git", "hooks") }),
        json!({ "emptied": dir("..", "outside") }),
        json!({ "emptied": dir("", "../outside") }),
        json!({ "emptied": dir(".git", "hooks") }),
        json!({ "history": "../../../../../victim" }),
        json!({ "history": "../agent/lock" }),
        json!({ "batch": "../../../../../outside/receipt" }),
        json!({ "batch": "../history/receipt" }),
        json!({ "clipboards": { "session": "../../../../../outside/clip", "at": 1, "texts": { "a": "b" } } }),
    ]);
    fields
}

#[test]
fn a_record_with_hostile_fields_changes_nothing_outside() {
    for change in &hostile_fields() {
        for stage in ["staging", "committed", "undoing", "finishing"] {
            let (place, state) = place();
            let path = place.path();
            // What a hostile record would put in the place of others.
            for dir in ["ws", "ws/sub", "ws/.git", "outside", ""] {
                std::fs::write(path.join(dir).join(STAGED), EVIL).unwrap();
            }
            std::fs::write(state.join("journal").join(stage), record(path, change)).unwrap();
            // What is not the state's own, and how many files of the agent there are.
            let look = || {
                let mut all = everything(path);
                let kept = all.keys().filter(|path| path.starts_with(state.join("agent"))).count();
                all.retain(|path, _| !path.starts_with(&state) && !path.ends_with("ws/new.txt"));
                (all, kept)
            };
            let before = look();
            let output = aptix(path, &["apply"], DOCUMENT);
            let said = text(&output.stderr);
            if stage == "staging" {
                // Until its commit point a record that cannot be used counts as lost: nothing was published.
                assert!(output.status.success(), "{stage} {change}: {said}");
            } else {
                assert_eq!(output.status.code(), Some(3), "{stage} {change}: {said}");
                assert!(said.contains("NEEDS_OPERATOR"), "{stage} {change}: {said}");
            }
            assert_eq!(look(), before, "{stage} {change}: {said}");
        }
    }
}

/// An entry of the history with a right checksum and hostile fields is damaged: undoing changes nothing.
#[test]
fn an_entry_with_hostile_fields_undoes_nothing() {
    let changes: [&dyn Fn(&mut Value); 9] = [
        &|head| head["files"][0]["path"] = "../victim".into(),
        &|head| head["files"][0]["path"] = "../outside/victim".into(),
        &|head| head["files"][0]["path"] = ".git/config".into(),
        &|head| head["files"][0]["path"] = "sub/../.git/config".into(),
        &|head| head["files"][0]["path"] = "".into(),
        &|head| head["files"][0]["moved_to"] = "../victim".into(),
        &|head| head["dirs"] = json!([{ "root": head["files"][0]["root"], "parent": "", "name": "../outside/empty" }]),
        &|head| head["dirs"] = json!([{ "root": head["files"][0]["root"], "parent": "..", "name": "empty" }]),
        &|head| head["dirs"] = json!([{ "root": head["files"][0]["root"], "parent": ".git", "name": "hooks" }]),
    ];
    for (index, change) in changes.iter().enumerate() {
        let (place, state) = place();
        let path = place.path();
        std::fs::create_dir_all(path.join("outside/empty")).unwrap();
        std::fs::create_dir_all(path.join("empty")).unwrap();
        // What the entry says that its batch left.
        for file in ["ws/.git/config", "outside/victim", "victim"] {
            std::fs::write(path.join(file), "x\n").unwrap();
        }
        let history = state.join("history");
        let entries: Vec<_> = std::fs::read_dir(&history).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [entry] = entries.as_slice() else { panic!("{entries:?}") };
        let bytes = std::fs::read(entry).unwrap();
        let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
        let (_, head, blob) = (lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap());
        let mut head: Value = serde_json::from_slice(head).unwrap();
        change(&mut head);
        let body = [head.to_string().as_bytes(), b"\n", blob].concat();
        std::fs::write(entry, [format!("aptix-history-1 {}\n", hex(&body)).as_bytes(), &body].concat()).unwrap();
        let before = everything(path);
        let output = aptix(path, &["undo"], "");
        assert_ne!(output.status.code(), Some(0), "{index}: {}", text(&output.stderr));
        let others = |all: BTreeMap<PathBuf, Vec<u8>>| -> Vec<_> {
            all.into_iter().filter(|(path, _)| !path.starts_with(&state)).collect()
        };
        assert_eq!(others(everything(path)), others(before), "{index}: {}", text(&output.stderr));
        let listed = aptix(path, &["log"], "");
        assert!(!text(&listed.stdout).contains("victim"), "{index}: {}", text(&listed.stdout));
    }
}

/// The control: such a record with fields that a batch leaves is carried on, or taken back.
#[test]
fn a_record_with_fields_that_fit_is_carried_on() {
    for (stage, expected) in [("committed", EVIL), ("undoing", VICTIM), ("staging", VICTIM)] {
        let (place, state) = place();
        let path = place.path();
        std::fs::write(path.join("ws").join(STAGED), EVIL).unwrap();
        std::fs::write(state.join("journal").join(stage), record(path, &file(0, "", "a.txt", STAGED))).unwrap();
        let output = aptix(path, &["apply"], DOCUMENT);
        assert!(output.status.success(), "{stage}: {}", text(&output.stderr));
        assert_eq!(std::fs::read_to_string(path.join("ws/a.txt")).unwrap(), expected, "{stage}");
        assert!(!path.join("ws").join(STAGED).exists(), "{stage}");
    }
}

/// A system error about our own directories is reported with the directory: not that the device failed.
#[test]
fn what_is_wrong_with_our_own_directories_is_reported() {
    let (place, state) = place();
    let history = state.join("history");
    let document = r#"{"path":"second.txt","content":"x\n"}"#;
    let said = || {
        let output = aptix(place.path(), &["apply"], document);
        assert!(!output.status.success());
        assert!(!place.path().join("ws/second.txt").exists());
        text(&output.stderr)
    };
    std::fs::rename(&history, state.join("aside")).unwrap();
    std::fs::write(&history, "").unwrap();
    let file = said();
    assert!(file.contains("history: Not a directory"), "{file}");
    std::fs::remove_file(&history).unwrap();
    assert!(aptix(place.path(), &["apply"], document).status.success());
}
