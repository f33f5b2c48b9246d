//! Roots that cannot be opened, locks, and batches over several roots.

use std::path::Path;
use std::process::Command;

use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::undo::undo;
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::keep::history::find::Wanted;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::batch::{Batch, Origin, Target};
use aptix_model::quote::{Quote, QuoteName};
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
        .env("XDG_CONFIG_HOME", place.join("config"))
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
        .env("XDG_CONFIG_HOME", place.path().join("config"))
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

#[test]
fn one_agent_at_a_time_serves_a_root_and_what_is_in_it() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("ws/sub")).unwrap();
    std::fs::create_dir_all(place.path().join("ws-2")).unwrap();
    let agent = |root: &str| open(place.path(), &[root], Fault::None).lock_agent();
    for (first, second) in [("ws", "ws/sub"), ("ws/sub", "ws")] {
        let held = agent(first).unwrap();
        assert_eq!(agent(second).unwrap_err().failure().reason, Reason::WorkspaceBusy, "{second} while {first}");
        drop(agent("ws-2").unwrap());
        drop(held);
        drop(agent(second).unwrap());
    }
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
    for last in 0..70 {
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
fn what_a_lost_batch_staged_in_two_roots_is_cleared_away_by_whoever_opens_each() {
    let mut found = 0;
    for last in 0..70 {
        for next in [&["one"][..], &["two"], &["two", "one"]] {
            let place = tempfile::tempdir().unwrap();
            let batch = two_roots(place.path());
            let workspace = open(place.path(), &["one", "two"], Fault::StopAfter(last));
            let _ = faults::commit(&workspace, &batch, Receipt::None);
            let record = workspace.roots()[0].state().path().join("journal/staging");
            drop(workspace);
            if !record.exists() {
                continue;
            }
            std::fs::write(&record, "").unwrap();
            let staged = |root: &str| tree::read(&place.path().join(root)).len();
            found += staged("one") + staged("two");
            drop(open(place.path(), next, Fault::None));
            let what = format!("stopped after {last}, then {next:?}");
            assert_eq!(next.iter().map(|root| staged(root)).sum::<usize>(), 0, "{what}");
            for root in ["one", "two"] {
                drop(open(place.path(), &[root], Fault::None));
            }
            assert_eq!(staged("one") + staged("two"), 0, "{what}");
            crate::scenarios::assert_no_debris(place.path(), &what);
        }
    }
    assert!(found > 10, "{found}");
}

#[test]
fn a_batch_over_two_roots_is_known_in_both_and_undone_with_both() {
    let place = tempfile::tempdir().unwrap();
    let batch = two_roots(place.path());
    faults::commit(&open(place.path(), &["one", "two"], Fault::None), &batch, Receipt::None).unwrap();
    std::fs::create_dir(place.path().join("other")).unwrap();
    let listed = |roots: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_aptix"))
            .arg("log")
            .args(roots.iter().flat_map(|root| ["--root", root]))
            .current_dir(place.path())
            .env("XDG_STATE_HOME", place.path().join("state"))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(listed(&["one", "two"]).ends_with("  created one/new.txt and 1 more\n"), "{}", listed(&["one", "two"]));
    for (open, closed) in [("one", "/two)\n"), ("two", "/one)\n")] {
        let line = listed(&[open]);
        assert!(line.contains("  (with files in /") && line.ends_with(closed), "{line}");
    }
    assert_eq!(listed(&["other"]), "");
    let take_back = |roots: &[&str]| {
        let policy = Policy::unstated(Caller::Shell);
        let options = ApplyOptions {
            policy: &policy,
            origin: &Origin::default(),
            diff_bytes: 0,
            mode: Mode::Commit,
            prepared: None,
            acting: Acting::UNKNOWN,
        };
        undo(&open(place.path(), roots, Fault::None), Wanted::Newest, options, &mut |_| Decision::Apply)
    };
    let left = std::fs::read(place.path().join("two/new.txt")).unwrap();
    for (open, closed) in [("one", "/two"), ("two", "/one")] {
        let refusal = take_back(&[open]).unwrap_err();
        assert!(refusal.failures[0].message.contains(closed), "{}", refusal.failures[0]);
        assert!(refusal.failures[0].hint.as_ref().unwrap().contains("--root"));
    }
    // A file is called by its root's name.
    std::fs::write(place.path().join("two/new.txt"), "edited\n").unwrap();
    let refusal = take_back(&["one", "two"]).unwrap_err();
    assert_eq!(refusal.failures[0].path.as_deref(), Some("two/new.txt"), "{}", refusal.failures[0]);
    std::fs::write(place.path().join("two/new.txt"), left).unwrap();
    // Another root that comes first, where such a batch would now be kept, makes no difference.
    std::fs::create_dir(place.path().join("aaa")).unwrap();
    take_back(&["two", "one", "aaa"]).unwrap();
    assert_eq!(["one", "two"].map(|root| tree::read(&place.path().join(root)).len()), [0, 0]);
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
fn names_that_are_no_utf8_do_not_interfere() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let odd = place.path().join("ws").join(std::ffi::OsStr::from_bytes(b"\xff\xfe.txt"));
    std::fs::write(&odd, "odd").unwrap();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&workspace, &faults::batch(1, 1), Receipt::None).unwrap();
    assert_eq!(std::fs::read(&odd).unwrap(), b"odd");
}

fn open_named(place: &Path, spec: &str) -> Result<Workspace, aptix_model::failure::Failure> {
    let (name, dir) = spec.split_once('=').unwrap();
    let spec = format!("{name}={}", place.join(dir).display()).parse().unwrap();
    Workspace::open(&[spec], &place.join("state"), Box::new(SystemDisk)).map_err(|error| error.failure())
}

fn is_new(place: &Path, dir: &str) -> [bool; 2] {
    ["a.txt", "dir/b.txt"].map(|path| std::fs::read_to_string(place.join(dir).join(path)).unwrap().contains("inserted"))
}

#[test]
fn a_root_that_was_renamed_after_a_crash_is_recovered_under_its_new_name() {
    let place = tempfile::tempdir().unwrap();
    faults::die_while_publishing(place.path());
    std::fs::rename(place.path().join("ws"), place.path().join("moved")).unwrap();
    // Another directory is put in its place: it is not the one that the record speaks of.
    faults::lay_out(place.path());
    let other = tree::read(&place.path().join("ws"));
    let refused = open_named(place.path(), "ws=ws").unwrap_err();
    assert_eq!(refused.reason, Reason::NeedsOperator, "{refused}");
    tree::assert_same(&tree::read(&place.path().join("ws")), &other, "another directory");
    assert_eq!(is_new(place.path(), "moved"), [true, false]);

    open_named(place.path(), "ws=moved").unwrap();
    assert_eq!(is_new(place.path(), "moved"), [true, true]);
    open_named(place.path(), "ws=ws").unwrap();
    tree::assert_same(&tree::read(&place.path().join("ws")), &other, "another directory");
    crate::scenarios::assert_no_debris(place.path(), "recovered");
}

#[test]
fn a_dry_run_recovers_a_root_that_was_renamed() {
    let place = tempfile::tempdir().unwrap();
    faults::die_while_publishing(place.path());
    std::fs::rename(place.path().join("ws"), place.path().join("moved")).unwrap();
    let (exit, answer) = aptix(place.path(), &["--dry-run", "--root", "moved"]);
    assert_eq!(exit, Some(0), "{answer}");
    assert_eq!(is_new(place.path(), "moved"), [true, true]);
}

#[test]
fn a_dry_run_leaves_no_trace() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let before = tree::read(&place.path().join("ws"));
    let (exit, answer) = aptix(place.path(), &["--dry-run", "--root", "ws"]);
    assert_eq!((exit, &answer["success"]), (Some(0), &true.into()), "{answer}");
    assert!(!place.path().join("state").exists());
    tree::assert_same(&tree::read(&place.path().join("ws")), &before, "dry run");
    // Where nothing is kept yet, Aptix's own directory is not edited either.
    let (exit, answer) = aptix(place.path(), &["--dry-run", "--root", "ws", "--root", "state/aptix"]);
    assert_eq!(exit, Some(2), "{answer}");
}

#[test]
fn a_record_of_other_roots_is_never_carried_out() {
    let place = tempfile::tempdir().unwrap();
    let record = faults::die_while_publishing(place.path());
    std::fs::create_dir(place.path().join("other")).unwrap();
    let other = open_named(place.path(), "other=other").unwrap();
    let journal = other.roots()[0].state().path().join("journal");
    drop(other);
    for stage in ["staging", "committed", "undoing", "finishing"] {
        std::fs::copy(&record, journal.join(stage)).unwrap();
        let refused = open_named(place.path(), "other=other").unwrap_err();
        assert_eq!(refused.reason, Reason::NeedsOperator, "{refused}");
        assert!(refused.message.contains("of other roots"), "{refused}");
        assert_eq!(is_new(place.path(), "ws"), [true, false]);
        std::fs::remove_file(journal.join(stage)).unwrap();
    }
    open_named(place.path(), "other=other").unwrap();
}

#[test]
fn only_the_journal_of_another_root_is_looked_for_elsewhere() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    let record = faults::die_while_publishing(place.path());
    std::fs::create_dir(place.path().join("other")).unwrap();
    let other = open_named(place.path(), "other=other").unwrap();
    let state = other.roots()[0].state().path().to_owned();
    drop(other);
    let outside = place.path().join("outside");
    std::fs::create_dir_all(outside.join("journal")).unwrap();
    std::fs::copy(&record, outside.join("journal/committed")).unwrap();
    let link = state.with_file_name("0".repeat(64));
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    for named in [outside.clone(), link, state.with_file_name("1".repeat(64)), state.join("journal"), "".into()] {
        std::fs::write(state.join("journal/elsewhere"), named.as_os_str().as_bytes()).unwrap();
        let refused = open_named(place.path(), "other=other").unwrap_err();
        assert_eq!(refused.reason, Reason::NeedsOperator, "{}: {refused}", named.display());
        assert!(refused.message.contains("elsewhere"), "{refused}");
        assert!(outside.join("journal/committed").exists());
        assert_eq!(is_new(place.path(), "ws"), [true, false]);
    }
}

#[test]
fn the_files_of_a_batch_have_a_limit_together() {
    use aptix_client::apply::proposal::Decision;
    use aptix_client::apply::{ApplyOptions, Mode, apply};
    use aptix_client::policy::Policy;
    use aptix_client::policy::caller::Caller;
    use aptix_model::limits::Limits;
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    let with = |batch: &Batch, batch_bytes| {
        let limits = Limits { batch_bytes, ..Limits::DEFAULT };
        let origin = aptix_model::batch::Origin::default();
        let mut policy = Policy::unstated(Caller::Shell);
        policy.limits = limits;
        let options = ApplyOptions {
            policy: &policy,
            origin: &origin,
            diff_bytes: 1 << 20,
            mode: Mode::DryRun,
            prepared: None,
            acting: Acting::UNKNOWN,
        };
        apply(&workspace, batch, options, &mut |_| Decision::Apply)
    };
    let batch = faults::batch(2, 1);
    with(&batch, 28).unwrap();
    let refused = with(&batch, 27).unwrap_err();
    assert_eq!(refused.failures.len(), 1);
    let failure = &refused.failures[0];
    assert_eq!((failure.reason, failure.file_index), (Reason::TooLarge, Some(1)), "{failure}");
    assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains("split")), "{failure}");
    // A file that is quoted is read once, however often that is, and not at all if the batch edits it.
    let quote = |path: &str| Quote {
        first_line: 1,
        last_line: 3,
        names: vec![QuoteName { path: path.to_owned(), is_path: true }],
        is_announced: false,
        text: "one\n".to_owned(),
    };
    let mut quoting = faults::batch(1, 1);
    quoting.quotes = ["a.txt", "dir/b.txt"].into_iter().flat_map(|path| vec![quote(path); 3]).collect();
    with(&quoting, 28).unwrap();
    with(&quoting, 13).unwrap_err();
}
