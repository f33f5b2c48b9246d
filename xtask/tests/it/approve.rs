//! Batches that a person has to approve at the server, over a real server, a real agent and the real commands.

use crate::documents::create;
use crate::processes::{Machine, Running, Server, eventually, wait_until_served, write};

/// A machine whose server asks a person about every batch of the workspace, with an agent that asks nobody.
fn held() -> (Machine, Server, Running) {
    let machine = Machine::new();
    write(&machine.path("server.toml"), "[workspaces.demo]\napproval = \"always\"\n");
    let config = machine.path("server.toml");
    let server = machine.server_that(|command| {
        command.arg("--config").arg(config);
    });
    let agent = machine.agent(&server);
    wait_until_served(&server);
    (machine, server, agent)
}

/// A batch of a file, and what its author is shown.
fn sent(machine: &Machine, server: &Server, path: &str) -> (String, String) {
    write(&machine.path("sent.json"), &create(path, "text\n"));
    let output = machine.call(server, "submit", &["--json", "sent.json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["state"], "PENDING_APPROVAL", "{answer}");
    (answer["batchId"].as_str().unwrap().to_owned(), String::from_utf8(output.stderr).unwrap())
}

#[track_caller]
fn call(machine: &Machine, server: &Server, command: &str, arguments: &[&str]) -> String {
    let output = machine.call(server, command, arguments);
    let streams = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    format!("{:?} {}{}", output.status.code(), streams[0], streams[1])
}

fn state(machine: &Machine, server: &Server, id: &str) -> String {
    machine.ask(server, "show", &[id]).0["state"].as_str().unwrap_or_default().to_owned()
}

/// Nothing is written before a person has approved a batch; then its agent applies it. Approving it again writes nothing and names
/// who approved it first; of one that has ended otherwise, the refusal names who ended it and why.
#[test]
fn a_batch_is_applied_once_a_person_has_approved_it() {
    let (machine, server, _agent) = held();
    let (first, said) = sent(&machine, &server, "a.txt");
    assert!(said.contains(&format!("aptix approve {first}")) && !said.contains("APPROVED"), "{said}");
    let (second, _) = sent(&machine, &server, "b.txt");
    let (third, _) = sent(&machine, &server, "c.txt");
    assert!(
        call(&machine, &server, "reject", &["--reviewer", "Rita", "--reason", "no", &second]).starts_with("Some(0)")
    );
    assert!(call(&machine, &server, "cancel", &["--author", "ann", &third]).starts_with("Some(0)"));
    assert!(machine.files().is_empty(), "nothing is written yet");
    let approved = call(&machine, &server, "approve", &["--reviewer", "Rita", "--reason", "fine", &first]);
    assert!(approved.starts_with(&format!("Some(0) {first} ")), "{approved}");
    eventually("the batch is applied", || state(&machine, &server, &first) == "APPLIED");
    let again = call(&machine, &server, "approve", &["--reviewer", "Sam", &first]);
    assert!(again.starts_with(&format!("Some(0) {first} APPLIED\n")), "{again}");
    assert!(
        again.contains("Rita approved the batch before, at ") && again.contains(": fine; nothing changed"),
        "{again}"
    );
    let retried = call(&machine, &server, "approve", &["--reviewer", "Rita", "--reason", "fine", &first]);
    assert_eq!(retried, format!("Some(0) {first} APPLIED\n"), "a retry is answered as the first call");
    let rejected = call(&machine, &server, "reject", &["--reviewer", "Sam", &second]);
    assert!(rejected.contains("REJECTED") && rejected.contains("Rita rejected the batch before, at "), "{rejected}");
    let cases = [
        ("reject", &first, "is APPLIED: it was approved by Rita: fine; only an open batch can be rejected"),
        ("cancel", &first, "is APPLIED: it was approved by Rita: fine; only an open batch can be cancelled"),
        ("approve", &second, "is REJECTED: it was rejected by Rita: no; only a batch that is PENDING_APPROVAL"),
        ("approve", &third, "is CANCELLED: it was cancelled by ann; only a batch that is PENDING_APPROVAL"),
    ];
    for (command, id, said) in cases {
        let refused = call(&machine, &server, command, &[id]);
        assert!(
            refused.starts_with("Some(1)") && refused.contains("INVALID_STATE") && refused.contains(said),
            "{refused}"
        );
    }
    assert_eq!(machine.files(), [("a.txt".to_owned(), "text\n".to_owned())]);
    let shown = machine.ask(&server, "show", &[&first]).0;
    let step = &shown["steps"][1];
    assert_eq!((&step["event"], &step["actor"]), (&"APPROVED".into(), &"PERSON".into()), "{shown}");
    assert_eq!((&step["actorName"], &step["reason"]), (&"Rita".into(), &"fine".into()), "{shown}");
}

/// A prepared batch and a revert wait as well; of two who approve at once both are answered, and the batch is applied once.
#[test]
fn a_prepared_batch_and_a_revert_wait_for_a_person_too() {
    let (machine, server, _agent) = held();
    write(&machine.path("sent.json"), &create("a.txt", "text\n"));
    let prepared = machine.ask(&server, "submit", &["--prepare", "--owner", "ann", "sent.json"]).0;
    let id = prepared["batchId"].as_str().unwrap();
    let early = call(&machine, &server, "approve", &[id]);
    assert!(early.contains("INVALID_STATE") && early.contains("PREPARED"), "{early}");
    let freed = call(&machine, &server, "apply-prepared", &["--owner", "ann", id]);
    assert!(freed.contains("PENDING_APPROVAL") && freed.contains("aptix approve"), "{freed}");
    assert!(machine.files().is_empty());
    let answers = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| call(&machine, &server, "approve", &[id])));
        both.map(|one| one.join().unwrap())
    });
    assert!(answers.iter().all(|answer| answer.starts_with(&format!("Some(0) {id} "))), "{answers:?}");
    eventually("the batch is applied", || state(&machine, &server, id) == "APPLIED");

    let url = server.url();
    let mut revert = machine.aptix(&["revert", "--server", &url, "--workspace", "demo", "--json", id]);
    let waiting =
        Running(revert.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap());
    let mut reverting = String::new();
    eventually("the revert is stored", || {
        let listed = machine.ask(&server, "batches", &["--state", "PENDING_APPROVAL"]).0;
        reverting = listed["batches"][0]["batchId"].as_str().unwrap_or_default().to_owned();
        !reverting.is_empty()
    });
    assert_eq!(machine.files().len(), 1);
    assert!(call(&machine, &server, "reject", &["--reason", "keep it", &reverting]).starts_with("Some(0)"));
    drop(waiting);
    assert_eq!((state(&machine, &server, &reverting), machine.files().len()), ("REJECTED".to_owned(), 1));
}
