//! Prepared edits are kept for their owner: across restarts, crashes and clocks that are set, for several processes at once.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::client::{Answer, Client, code};
use super::in_process::call;
use crate::faulty_disk::{Fault, FaultyDisk};

const APPLY: &str = "apply_file_modification";
const RANGE: &str = "prepare_file_range_edit";

fn lay(ws: &Path) {
    std::fs::write(ws.join("a.txt"), "one\ntwo\nthree\nfour\nfive\n").unwrap();
}

/// A call that applies what an answer prepared.
fn apply(planned: &Answer) -> Value {
    json!({ "hunk_id": planned.structured["hunkId"] })
}

fn range(lines: &str, content: &str) -> Value {
    json!({ "path": "a.txt", "range": lines, "content": content })
}

/// The files of the prepared edits in a place.
fn files(place: &Path) -> Vec<PathBuf> {
    let roots = std::fs::read_dir(place.join("state/aptix/roots")).unwrap();
    let dirs = roots.map(|root| root.unwrap().path().join("prepared")).filter(|dir| dir.is_dir());
    dirs.flat_map(|dir| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path())).collect()
}

/// WS-MOD-4.1.2, WS-MOD-4.1.3: plans outlive a server that is killed, for their owner alone. Two for different places of a file are
/// both applied, and what was applied stays applied.
#[test]
fn plans_outlive_the_process_for_their_owner() {
    let mut client = Client::owned("ann", lay);
    let plans =
        [("2", "two\n2.5\n"), ("4", "4\n")].map(|(lines, content)| apply(&client.done(RANGE, &range(lines, content))));
    let [first, second] = &plans;
    let mut client = client.killed_and_restarted("bob");
    for plan in &plans {
        assert_eq!(client.refused(APPLY, plan), "WRONG_OWNER");
    }
    let mut replacing = range("2", "zwei\n");
    replacing["existing_hunk_id"] = first["hunk_id"].clone();
    assert_eq!(client.refused(RANGE, &replacing), "WRONG_OWNER");
    let mut client = client.killed_and_restarted("ann");
    let mut other = json!({ "path": "a.txt", "content": "six\n" });
    other["existing_hunk_id"] = first["hunk_id"].clone();
    assert_eq!(client.refused("prepare_file_append", &other), "INVALID_STATE.OTHER_KIND");
    client.done(APPLY, first);
    let mut client = client.killed_and_restarted("ann");
    assert_eq!(client.refused(APPLY, first), "ALREADY_APPLIED");
    assert_eq!(client.refused(RANGE, &replacing), "ALREADY_APPLIED");
    let applied = client.done(APPLY, second);
    assert!(applied.text.contains("REBASED"), "{}", applied.text);
    assert_eq!(client.read("a.txt"), "one\ntwo\n2.5\nthree\n4\nfive\n");
    client.end();
}

/// Without an owner a plan is its connection's: no other one reaches it.
#[test]
fn without_an_owner_a_plan_is_of_its_connection() {
    let mut client = Client::start(lay);
    let plan = apply(&client.done(RANGE, &range("1", "1\n")));
    let mut other = Client::beside(&client, &[]);
    assert_eq!(other.refused(APPLY, &plan), "WRONG_OWNER");
    assert_eq!(other.refused(APPLY, &json!({ "hunk_id": "0190b3a0-0000-7000-8000-000000000001" })), "NOT_FOUND");
    client.done(APPLY, &plan);
    assert_eq!(other.refused(APPLY, &plan), "WRONG_OWNER");
    other.end();
    client.end();
}

/// A plan is applied by one of two processes of its owner, or replaced by one, and each sees what the other did.
#[test]
fn two_processes_of_an_owner_apply_a_plan_once() {
    let mut clients = {
        let one = Client::owned("ann", |ws| std::fs::write(ws.join("a.txt"), "begin\n").unwrap());
        let other = Client::beside(&one, &["--owner", "ann"]);
        [one, other]
    };
    let mut expected = "begin\n".to_owned();
    for round in 0..30 {
        let content = format!("round {round}\n");
        let prepare = json!({ "path": "a.txt", "content": content });
        let planned = clients[round % 2].done("prepare_file_append", &prepare);
        if round % 3 == 0 {
            let mut again = prepare.clone();
            again["existing_hunk_id"] = planned.structured["hunkId"].clone();
            assert_eq!(
                clients[(round + 1) % 2].done("prepare_file_append", &again).structured["hunkId"],
                again["existing_hunk_id"]
            );
        }
        for client in &mut clients {
            client.send(APPLY, &apply(&planned));
        }
        let answers = clients.each_mut().map(|client| client.answered());
        let refused: Vec<_> = answers.iter().filter(|answer| answer.is_error).map(|it| code(&it.structured)).collect();
        assert_eq!(refused, ["ALREADY_APPLIED"], "round {round}");
        expected.push_str(&content);
        assert_eq!(clients[0].read("a.txt"), expected);
    }
    clients.into_iter().rev().for_each(|client| drop(client.end()));
}

/// Wherever a process dies that applies a plan, the plan is applied once: also one whose text has the text of its place.
#[test]
fn wherever_a_process_dies_a_plan_is_applied_once() {
    let (mut applied_before, mut stopped) = (0, 0);
    for last in 1.. {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("ws")).unwrap();
        lay(&place.path().join("ws"));
        let whole = || FaultyDisk::new(Fault::None);
        let planned = call(place.path(), whole(), "ann", RANGE, &range("1", "new\none\n")).unwrap();
        assert!(!planned.is_error, "{}", planned.structured);
        let plan = apply(&planned);
        let disk = FaultyDisk::new(Fault::StopAfter(last));
        let count = disk.count.clone();
        drop(call(place.path(), disk, "ann", APPLY, &plan));
        let again = call(place.path(), whole(), "ann", APPLY, &plan).unwrap();
        if again.is_error {
            assert_eq!(code(&again.structured), "ALREADY_APPLIED", "stopped after {last}");
            applied_before += 1;
        }
        let found = std::fs::read_to_string(place.path().join("ws/a.txt")).unwrap();
        assert_eq!(found, "new\none\ntwo\nthree\nfour\nfive\n", "stopped after {last}");
        stopped += 1;
        if count.load(Ordering::SeqCst) <= last {
            break;
        }
    }
    assert!(applied_before > 1 && stopped > applied_before + 5, "{applied_before} of {stopped}");
}

/// WS-MOD-4.1.2: plans expire by the time that has passed, also while no process runs: a clock that is set neither expires nor revives one.
/// Across a restart of the system the clock counts for at most a day, and what expired stays so.
#[test]
fn plans_expire_by_the_age_clock() {
    let at = |(seconds, hours, boots): (u64, i64, bool)| {
        let disk = FaultyDisk::new(Fault::None);
        disk.seconds.store(seconds, Ordering::SeqCst);
        disk.skew.store(hours, Ordering::SeqCst);
        if boots { disk.booted() } else { disk }
    };
    for (looks, expected) in [
        (vec![(3_500, 0, false)], ""),
        (vec![(3_500, 100_000, false)], ""),
        (vec![(3_500, -100_000, true)], ""),
        (vec![(3_700, 0, false)], "HUNK_EXPIRED"),
        (vec![(3_700, -100_000, false)], "HUNK_EXPIRED"),
        (vec![(3_700, 0, true)], "HUNK_EXPIRED"),
        (vec![(3_700, 0, true), (3_700, -100_000, true)], "HUNK_EXPIRED"),
        (vec![(3_700, 0, false), (3_710, -100_000, true)], "HUNK_EXPIRED"),
    ] {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("ws")).unwrap();
        lay(&place.path().join("ws"));
        let plan = apply(&call(place.path(), at((0, 0, false)), "ann", RANGE, &range("1", "x\n")).unwrap());
        let looked = looks.iter().map(|look| call(place.path(), at(*look), "ann", APPLY, &plan).unwrap());
        let answer = looked.reduce(|_, later| later).unwrap();
        let found = if answer.is_error { code(&answer.structured) } else { String::new() };
        assert_eq!(found, expected, "{looks:?}");
        // Long after, the next plan clears it away.
        let late = at((12_000, 0, true));
        assert!(!call(place.path(), late.clone(), "ann", RANGE, &range("5", "x\n")).unwrap().is_error);
        assert_eq!(files(place.path()).len(), 1, "{looks:?}");
        assert_eq!(code(&call(place.path(), late, "ann", APPLY, &plan).unwrap().structured), "NOT_FOUND");
    }
}

/// What becomes of a file whose second line is given.
type Damage = fn(&[u8], &str) -> Vec<u8>;

/// A file that is damaged, of another plan, or hostile is named, set aside and never applied.
#[test]
fn a_damaged_plan_is_named_and_never_applied() {
    let changes: [Damage; 5] = [
        |bytes, _| bytes[..bytes.len() - 1].to_vec(),
        |bytes, _| [b"x".as_slice(), bytes].concat(),
        |_, owner| sealed(&format!("{owner}\nno JSON\n"), b""),
        |bytes, owner| sealed(&format!("{owner}\n{}\n", head(bytes)), b"\xff\xff\xff\xff\xff\xff\xff\xff"),
        |bytes, owner| {
            sealed(&format!("{owner}\n{}\n", head(bytes).replacen("hunk\":\"0", "hunk\":\"1", 1)), b"12345678")
        },
    ];
    let mut client = Client::owned("ann", lay);
    for (number, change) in changes.iter().enumerate() {
        let plan = apply(&client.done(RANGE, &range("1", "1\n")));
        let [file] = files(client.place.path()).try_into().unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let bytes = std::fs::read(&file).unwrap();
        let owner = String::from_utf8_lossy(bytes.split(|byte| *byte == b'\n').nth(1).unwrap()).into_owned();
        std::fs::write(&file, change(&bytes, &owner)).unwrap();
        let answer = client.call(APPLY, &plan);
        assert_eq!(code(&answer.structured), "NOT_FOUND", "{number}");
        let message = answer.structured["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains("set aside"), "{number}: {message}");
        assert_eq!(files(client.place.path()), Vec::<PathBuf>::new(), "{number}");
    }
    assert!(client.read("a.txt").starts_with("one\n"));
    client.end();
}

/// What is no file, in the place of a plan, hinders no other one, and is neither followed nor removed.
#[test]
fn what_cannot_be_read_in_the_place_of_a_plan_stops_nothing() {
    let mut client = Client::owned("ann", lay);
    client.done(RANGE, &range("1", "1\n"));
    let [file] = files(client.place.path()).try_into().unwrap();
    let odd = |number: u8| file.with_file_name(format!("018f6d2e-7c1a-7b3e-9d55-0123456789{number:02x}"));
    assert!(std::process::Command::new("mkfifo").arg(odd(0)).status().unwrap().success());
    std::os::unix::fs::symlink("nowhere", odd(1)).unwrap();
    std::fs::create_dir(odd(2)).unwrap();
    std::fs::write(odd(3), "").unwrap();
    std::fs::set_permissions(odd(3), std::fs::Permissions::from_mode(0o000)).unwrap();
    let plan = apply(&client.done(RANGE, &range("2", "2\n")));
    client.done(APPLY, &plan);
    assert!((0..3).all(|number| odd(number).symlink_metadata().is_ok()));
    client.end();
}

/// The line of JSON that a file begins with.
fn head(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == b'\n').nth(2).unwrap()).into_owned()
}

/// A file with the right checksum.
fn sealed(head: &str, content: &[u8]) -> Vec<u8> {
    let body = [head.as_bytes(), content].concat();
    let digest: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    [format!("aptix-own-1 {digest}\n").as_bytes(), &body].concat()
}

/// At most 256 plans are kept; those that expire first make room.
#[test]
fn the_plans_that_expire_first_make_room() {
    let mut client = Client::owned("ann", lay);
    let first = apply(&client.done(RANGE, &range("1", "1\n")));
    let mut last = Value::Null;
    for _ in 0..256 {
        last = apply(&client.done(RANGE, &range("2", "2\n")));
    }
    assert_eq!(files(client.place.path()).len(), 256);
    assert_eq!(client.refused(APPLY, &first), "NOT_FOUND");
    client.done(APPLY, &last);
    client.end();
}
