//! Roots that cannot be opened, locks, and batches over several roots.

use std::path::Path;
use std::process::Command;

use aptix_client::workspace::Workspace;
use aptix_client::workspace::disk::SystemDisk;
use aptix_model::batch::{Batch, Target};
use aptix_model::reason::Reason;

use crate::faults::{self, Fault, FaultyDisk, Receipt};
use crate::tree;

fn aptix(place: &Path, arguments: &[&str]) -> (Option<i32>, serde_json::Value) {
    let document = place.join("document.json");
    std::fs::write(&document, r#"{"path":"x","content":"x\n"}"#).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_aptix"))
        .args(["apply", "--json"])
        .args(arguments)
        .arg(&document)
        .current_dir(place)
        .env("XDG_STATE_HOME", place.join("state"))
        .output()
        .unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

#[test]
fn roots_that_are_none_are_wrong_usage() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("ws/sub")).unwrap();
    std::fs::create_dir_all(place.path().join("a:b")).unwrap();
    std::fs::write(place.path().join("file"), "x").unwrap();
    let cases: &[&[&str]] = &[
        &["--root", "nothing"],
        &["--root", "file"],
        &["--root", "a:b"],
        &["--root", "a/b=ws"],
        &["--root", "=ws"],
        &["--root", "ws", "--root", "ws/sub"],
        &["--root", "ws", "--root", "other=ws"],
        &["--root", "one=ws", "--root", "one=a:b"],
        &["--root", "state/aptix"],
    ];
    for arguments in cases {
        let (exit, answer) = aptix(place.path(), arguments);
        assert_eq!(exit, Some(2), "{arguments:?}: {answer}");
        assert_eq!(answer["errors"][0]["code"], "INVALID_REQUEST", "{arguments:?}: {answer}");
    }
    assert!(!place.path().join("ws/x").exists());
}

#[test]
fn aptix_never_edits_its_own_state() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("state")).unwrap();
    let document = r#"{"path":"state/aptix/roots/x","content":"x\n"}"#;
    std::fs::write(place.path().join("d.json"), document).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_aptix"))
        .args(["apply", "--json", "--root", "ws=.", "d.json"])
        .current_dir(place.path())
        .env("XDG_STATE_HOME", place.path().join("state"))
        .output()
        .unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["errors"][0]["code"], "POLICY_DENIED", "{answer}");
    assert!(!place.path().join("state/aptix/roots/x").exists());
}

#[test]
fn a_state_directory_that_others_can_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    let state = workspace.roots()[0].state().path().to_owned();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o770)).unwrap();
    let refused = faults::commit(&workspace, &faults::batch(1, 0), Receipt::None).unwrap_err();
    assert_eq!(refused.failures[0].reason, Reason::PolicyDenied);
}

#[test]
fn one_agent_at_a_time_serves_a_root() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let (one, _) = faults::open(place.path(), Fault::None).unwrap();
    let (other, _) = faults::open(place.path(), Fault::None).unwrap();
    let held = one.lock_agent().unwrap();
    assert_eq!(other.lock_agent().unwrap_err().failure().reason, Reason::WorkspaceBusy);
    drop(held);
    other.lock_agent().unwrap();
}

fn two_roots(place: &Path) -> Batch {
    for root in ["one", "two"] {
        std::fs::create_dir_all(place.join(root)).unwrap();
    }
    let mut batch = faults::batch(0, 2);
    batch.files[0].target = Target::Path("one/new.txt".to_owned());
    batch.files[1].target = Target::Path("two/new.txt".to_owned());
    batch
}

fn open(place: &Path, roots: &[&str], fault: Fault) -> Workspace {
    let specs: Vec<_> = roots.iter().map(|root| place.join(root).to_str().unwrap().parse().unwrap()).collect();
    Workspace::open(&specs, &place.join("state"), Box::new(FaultyDisk::new(fault))).unwrap()
}

#[test]
fn a_batch_over_two_roots_is_whole_whichever_root_is_opened_next() {
    let mut ends = [0, 0];
    for last in 0..60 {
        for next in [&["one"][..], &["two"], &["two", "one"]] {
            let place = tempfile::tempdir().unwrap();
            let batch = two_roots(place.path());
            let workspace = open(place.path(), &["one", "two"], Fault::StopAfter(last));
            let outcome = faults::commit(&workspace, &batch, Receipt::None);
            drop(workspace);
            drop(open(place.path(), next, Fault::None));
            let [one, two] = ["one", "two"].map(|root| tree::read(&place.path().join(root)));
            assert_eq!(one, two, "stopped after {last}, then {next:?}");
            assert!(!one.is_empty() || outcome.is_err(), "stopped after {last}");
            ends[usize::from(!one.is_empty())] += 1;
            drop(open(place.path(), &["one", "two"], Fault::None));
            crate::scenarios::assert_no_debris(place.path(), &format!("stopped after {last}, then {next:?}"));
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
}

#[test]
fn the_workspace_says_which_roots_it_has() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("My.Project")).unwrap();
    let spec = place.path().join("My.Project").to_str().unwrap().parse().unwrap();
    let workspace = Workspace::open(&[spec], &place.path().join("state"), Box::new(SystemDisk)).unwrap();
    assert_eq!(workspace.roots()[0].name(), "my.project");
}

#[test]
fn names_that_are_no_utf8_are_in_nobodys_way() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let odd = place.path().join("ws").join(std::ffi::OsStr::from_bytes(b"\xff\xfe.txt"));
    std::fs::write(&odd, "odd").unwrap();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&workspace, &faults::batch(1, 1), Receipt::None).unwrap();
    assert_eq!(std::fs::read(&odd).unwrap(), b"odd");
}
