//! A person at the client is asked about what policy leaves to them, and agrees to exactly what they were shown.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, answer, code};
use crate::command_line::aptix;

/// A file that tells an editor what to execute.
const TASKS: &str = ".vscode/tasks.json";

fn with_tasks(ws: &Path) {
    std::fs::create_dir(ws.join(".vscode")).unwrap();
    std::fs::write(ws.join(TASKS), "one\ntwo\n").unwrap();
}

fn edit() -> Value {
    json!({ "file_path": TASKS, "old_string": "two", "new_string": "2" })
}

fn yes() -> Value {
    json!({ "action": "accept", "content": { "approve": true } })
}

/// The digest that a question names.
fn digest(question: &str) -> String {
    let (_, digest) = question.rsplit_once("digest sha256:").unwrap_or_else(|| panic!("{question}"));
    assert_eq!(digest.trim_end().len(), 64, "{question}");
    digest.to_owned()
}

#[test]
fn a_client_that_shows_forms_is_asked_and_a_yes_is_written() {
    let mut client = Client::with_forms(with_tasks);
    client.send("edit", &edit());
    let (question, message) = client.question();
    for part in [TASKS, "-two\n", "+2\n", "tells an editor", "1 file, +1 -1"] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    digest(&message);
    assert_eq!(client.read(TASKS), "one\ntwo\n", "nothing is written while a person is asked");
    client.decide(&question, &yes());
    let edited = client.answered();
    assert!(!edited.is_error, "{}", edited.structured);
    assert_eq!(client.read(TASKS), "one\n2\n");
    assert!(!client.done("edit", &json!({ "file_path": "a.txt", "old_string": "", "new_string": "x" })).is_error);
    client.send("undo", &json!({ "batch_id": edited.structured["batchId"] }));
    let (question, message) = client.question();
    assert!(message.contains("+two\n"), "{message}");
    client.decide(&question, &yes());
    assert!(!client.answered().is_error);
    assert_eq!(client.read(TASKS), "one\ntwo\n");

    let prepared = client.done("prepare_file_append", &json!({ "path": TASKS, "content": "end\n" })).structured;
    client.send("apply_file_modification", &json!({ "hunk_id": prepared["hunkId"] }));
    let (question, message) = client.question();
    assert!(message.contains("+end\n"), "{message}");
    client.done("prepare_file_append", &json!({ "path": "a.txt", "content": "meanwhile\n" }));
    client.decide(&question, &yes());
    assert!(!answer(&client.hear()).is_error);
    assert_eq!(client.read(TASKS), "one\ntwo\nend\n");

    // A batch is logged once, whoever was asked meanwhile.
    let (place, log) = client.end();
    let count = |event: &str| log.matches(event).count();
    assert_eq!(
        (count("\"Batch.Received\""), count("\"Batch.Agreed\""), count("\"Batch.Refused\"")),
        (5, 3, 0),
        "{log}"
    );
    let shown = aptix(place.path(), &["show", "--json", edited.structured["batchId"].as_str().unwrap()], "");
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let steps =
        [0, 1].map(|step| ["state", "actor", "actorName"].map(|key| shown["steps"][step][key].as_str().unwrap()));
    assert_eq!(steps[0], ["PENDING_APPROVAL", "AUTHOR", "test"], "{shown}");
    assert!(steps[1][1] == "PERSON" && steps[1][2].ends_with("(in a form of test)"), "{shown}");
}

#[test]
fn anything_but_a_yes_writes_nothing() {
    let mut client = Client::with_forms(with_tasks);
    for (given, expected, part) in [
        (json!({ "action": "accept", "content": { "approve": false, "reason": "use lint" } }), "REJECTED", "use lint"),
        (json!({ "action": "decline" }), "REJECTED", "said no"),
        (json!({ "action": "cancel" }), "APPROVAL_REQUIRED", "the question was closed"),
        (json!({ "action": "accept" }), "REJECTED", "said no"),
        (json!({ "action": "accept", "content": { "approve": "true" } }), "REJECTED", "said no"),
        (json!({ "action": "perhaps" }), "APPROVAL_REQUIRED.SENSITIVE", "--review"),
    ] {
        client.send("edit", &edit());
        let (question, _) = client.question();
        client.decide(&question, &given);
        let answer = client.answered();
        assert_eq!((answer.is_error, code(&answer.structured).as_str()), (true, expected), "{given}");
        assert!(answer.structured.to_string().contains(part), "{given}: {}", answer.structured);
    }
    client.send("edit", &edit());
    let (question, _) = client.question();
    let error = json!({ "jsonrpc": "2.0", "id": question, "error": { "code": -32601, "message": "no forms" } });
    client.say(&error.to_string());
    assert_eq!(code(&client.answered().structured), "APPROVAL_REQUIRED.SENSITIVE");
    assert_eq!(client.read(TASKS), "one\ntwo\n");
}

#[test]
fn a_client_without_forms_is_told_how_the_user_can_approve() {
    let mut client = Client::start(with_tasks);
    let answer = client.call("edit", &edit());
    assert_eq!(code(&answer.structured), "APPROVAL_REQUIRED.SENSITIVE");
    let hint = answer.structured["errors"][0]["hint"].as_str().unwrap();
    for way in ["--review", "`aptix apply`", "policy file"] {
        assert!(hint.contains(way), "{way}: {hint}");
    }
    assert_eq!(client.read(TASKS), "one\ntwo\n");
    // Of an undo as well.
    let created = client.done("edit", &json!({ "file_path": "a.txt", "old_string": "", "new_string": "x" })).structured;
    let undone = client.call("undo", &json!({ "batch_id": created["batchId"] })).structured;
    assert!(undone["errors"][0]["hint"].as_str().unwrap().contains("--review"), "{undone}");
}

/// What a person agreed to is not what would be written: they are asked about that, and not for ever.
#[test]
fn a_yes_covers_nothing_that_was_not_shown() {
    let mut client = Client::with_forms(with_tasks);
    client.send("edit", &edit());
    let mut seen = Vec::new();
    for round in 0..3 {
        let (question, message) = client.question();
        seen.push(digest(&message));
        std::fs::write(client.ws().join(TASKS), format!("{round}\ntwo\n")).unwrap();
        client.decide(&question, &yes());
    }
    seen.dedup();
    assert_eq!(seen.len(), 3, "each question is about another change");
    assert_eq!(code(&client.answered().structured), "APPROVAL_REQUIRED.CHANGED");
    assert_eq!(client.read(TASKS), "2\ntwo\n");

    client.send("edit", &edit());
    let (question, _) = client.question();
    client.set_policy(&format!("deny = [\"{TASKS}\"]\n"));
    client.decide(&question, &yes());
    assert_eq!(code(&client.answered().structured).split('.').next(), Some("POLICY_DENIED"));
    assert_eq!(client.read(TASKS), "2\ntwo\n");
}

#[test]
fn nothing_in_a_change_ends_its_fence_or_is_left_out() {
    let mut client = Client::with_forms(with_tasks);
    let create = |content: &str| json!({ "path": ".vscode/new.json", "content": content });
    client.send("workspace_create_file", &create("````\n<!-- \u{202e}\u{1b}[2J -->\nline\n"));
    let (question, message) = client.question();
    let fence = "`".repeat(5);
    assert_eq!(message.matches(&fence).count(), 2, "{message}");
    let (_, inside) = message.split_once(&fence).unwrap();
    let (inside, _) = inside.split_once(&fence).unwrap();
    assert!(inside.contains("+````\n") && inside.contains("<!--") && inside.contains("+line\n"), "{message}");
    assert!(!message.contains(['\u{202e}', '\u{1b}']), "{message:?}");
    client.decide(&question, &json!({ "action": "decline" }));
    client.answered();

    let hidden = format!("make lint{}; curl evil\n", " ".repeat(4_000));
    client.send("workspace_create_file", &create(&hidden));
    let (question, message) = client.question();
    assert!(message.lines().all(|row| row.len() <= 100), "{message}");
    assert!(message.lines().any(|row| row.starts_with(": ") && row.ends_with("; curl evil")), "{message}");
    client.decide(&question, &json!({ "action": "decline" }));
    client.answered();

    let answer = client.call("workspace_create_file", &create(&"long\n".repeat(10_000)));
    assert!(
        answer.is_error && answer.structured.to_string().contains("too long for the client's form"),
        "{}",
        answer.text
    );
}

/// A client sees no more of files that models are not shown, nor of this machine, because it asks its user.
#[test]
fn a_form_gives_away_nothing() {
    const SECRET: &str = "zebra one\nzebra two\n";
    let mut client = Client::with_forms(|ws| {
        std::fs::write(ws.join("prod.tfvars"), SECRET).unwrap();
        std::fs::write(ws.join("a.txt"), "a\n").unwrap();
    });
    for (tool, arguments) in [
        ("delete_file", json!({ "path": "prod.tfvars" })),
        ("workspace_create_file", json!({ "path": "prod.tfvars", "content": "x", "overwrite": true })),
        ("move_file", json!({ "path": "prod.tfvars", "to": "plain.txt" })),
    ] {
        let answer = client.call(tool, &arguments);
        assert!(answer.is_error && !answer.text.contains("zebra"), "{tool}: {}", answer.text);
    }
    client.set_policy("ask = [\"a.txt\"]\n");
    client.send("workspace_create_file", &json!({ "path": "a.txt", "content": "b\n", "overwrite": true }));
    let (question, message) = client.question();
    let place = client.place.path().to_str().unwrap();
    assert!(message.contains("policy.toml has it under ask") && !message.contains(place), "{message}");
    client.decide(&question, &json!({ "action": "cancel" }));
    client.answered();
    assert_eq!(client.read("prod.tfvars"), SECRET);
}

#[test]
fn a_question_waits_no_longer_than_policy_allows_and_not_behind_many_others() {
    let mut client = Client::with_forms(with_tasks);
    client.set_policy("approval_seconds = 4\n");
    client.send("edit", &edit());
    let (question, _) = client.question();
    let void = client.hear();
    assert_eq!((&void["method"], &void["params"]["requestId"]), (&"notifications/cancelled".into(), &question));
    let late = client.answered();
    assert!(late.is_error && late.text.contains("no one answered within 4 seconds"), "{}", late.text);

    client.set_policy("");
    for _ in 0..9 {
        client.send("edit", &edit());
    }
    // Of one the form is shown, seven wait for it, and the ninth is refused.
    let heard = [client.hear(), client.hear()];
    let refused = heard.iter().find(|heard| heard["method"].is_null()).unwrap();
    assert!(answer(refused).text.contains("other changes wait"), "{refused}");
    drop(client.stdin.take());
    let answers = client.lines.iter().count();
    assert!(client.child.wait().unwrap().success());
    let log = std::fs::read_to_string(client.place.path().join("log")).unwrap();
    let ends = log.matches("\"Batch.Refused\"").count();
    assert_eq!((answers, ends), (8, 1 + 9), "each call ends with the client: {log}");
}

/// Other calls go on while a person is asked, and a call that is given up takes its question back.
#[test]
fn a_question_holds_up_nothing_else_and_ends_with_its_call() {
    let mut client = Client::with_forms(with_tasks);
    client.send("edit", &edit());
    let call = 2;
    let (question, _) = client.question();
    let other = json!({ "path": "other.txt", "content": "x" });
    client.done("workspace_create_file", &other);
    client.say(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } }).to_string(),
    );
    let taken_back = client.hear();
    assert_eq!(
        (&taken_back["method"], &taken_back["params"]["requestId"]),
        (&"notifications/cancelled".into(), &question)
    );
    client.decide(&question, &yes());
    client.done("read_file", &json!({ "path": "other.txt" }));
    assert_eq!(client.read(TASKS), "one\ntwo\n");
}

/// A client gives up no call whose user takes their time.
#[test]
fn a_call_that_waits_for_a_person_shows_signs_of_life() {
    let mut client = Client::with_forms(with_tasks);
    let meta = json!({ "progressToken": "token" });
    client.request("tools/call", &json!({ "name": "edit", "arguments": edit(), "_meta": meta }));
    let (question, _) = client.question();
    let signs = [(); 2].map(|()| {
        let sign = client.hear();
        assert_eq!(
            (&sign["method"], &sign["params"]["progressToken"]),
            (&"notifications/progress".into(), &"token".into())
        );
        sign["params"]["progress"].as_f64().unwrap()
    });
    assert!(signs[0] < signs[1], "{signs:?}");
    client.decide(&question, &yes());
    assert!(!client.answered().is_error);
}

/// A server of the newer protocol asks nothing by itself: the answer of the call is the question.
#[test]
fn the_newer_protocol_brings_the_answer_with_the_next_call() {
    let mut client = Client::silent();
    with_tasks(&client.ws());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let ws = client.ws();
    let mut call = |more: Value| {
        let mut params = json!({ "name": "edit", "arguments": edit(), "_meta": meta });
        // What is given takes the place of what was there.
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.ask("tools/call", &params)
    };
    let first = call(json!({}));
    let asked = &first["result"];
    assert_eq!(asked["resultType"], "input_required", "{first}");
    let request = &asked["inputRequests"]["consent"];
    assert_eq!(request["method"], "elicitation/create", "{first}");
    digest(request["params"]["message"].as_str().unwrap());
    let state = asked["requestState"].as_str().unwrap().to_owned();

    // A state that the server did not give answers nothing.
    let with = |state: &str, given: Value| json!({ "requestState": state, "inputResponses": { "consent": given } });
    let again = call(with("00000000-0000-4000-8000-000000000000", yes()));
    let again = &again["result"];
    assert_eq!(again["resultType"], "input_required", "{again}");
    let declined = answer(&call(with(again["requestState"].as_str().unwrap(), json!({ "action": "decline" }))));
    assert_eq!(code(&declined.structured), "REJECTED");

    // The yes was to another change than the one that the next call asks for.
    let other = call(json!({
        "requestState": state,
        "inputResponses": { "consent": yes() },
        "arguments": { "file_path": TASKS, "old_string": "one", "new_string": "1" },
    }));
    assert_eq!(other["result"]["resultType"], "input_required", "{other}");
    let again = call(json!({}));
    let state = again["result"]["requestState"].as_str().unwrap().to_owned();
    let done = answer(&call(with(&state, yes())));
    assert!(!done.is_error, "{}", done.structured);
    assert_eq!(std::fs::read_to_string(ws.join(TASKS)).unwrap(), "one\n2\n");
    // It is good once.
    std::fs::write(ws.join(TASKS), "one\ntwo\n").unwrap();
    let mut spent = call(with(&state, yes()));
    // A change that becomes another one is asked about so often.
    for round in 0..3 {
        assert_eq!(spent["result"]["resultType"], "input_required", "{round}: {spent}");
        std::fs::write(ws.join(TASKS), format!("{round}\ntwo\n")).unwrap();
        spent = call(with(spent["result"]["requestState"].as_str().unwrap(), yes()));
    }
    assert_eq!(code(&answer(&spent).structured), "APPROVAL_REQUIRED.CHANGED", "{spent}");
    assert_eq!(std::fs::read_to_string(ws.join(TASKS)).unwrap(), "2\ntwo\n");
}
