//! Plans of tools over gRPC, with a real server and agent: one id for the life of a plan, whoever is killed, repeats a call or
//! calls at the same time.

use aptix_model::wire::v1;
use serde_json::{Value, json};
use tonic_types::StatusExt as _;

use crate::processes::{Machine, Server, served, wait_until_served};
use crate::tool_writes::{Caller, structured};

const APPEND: &str = "prepare_file_append";
const APPLY: &str = "apply_file_modification";

fn append(line: &str, existing: &str) -> Value {
    json!({ "path": "a.txt", "content": format!("{line}\n"), "existing_hunk_id": existing })
}

fn apply(hunk: &str) -> Value {
    json!({ "hunk_id": hunk })
}

/// The id of a plan that was made.
fn hunk(answer: &v1::CallToolResponse) -> String {
    structured(answer)["hunkId"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// The code and the detail of a refusal; empty for success.
fn code(answer: &v1::CallToolResponse) -> String {
    let error = &structured(answer)["errors"][0];
    ["code", "detail"].map(|key| error[key].as_str().unwrap_or_default()).join(" ").trim_end().to_owned()
}

/// Kills the server as `kill -9` does, and starts it again on its data; its agent connects again.
fn killed(machine: &Machine, server: Server) -> (Server, Caller) {
    let address = server.address.clone();
    drop(server);
    let server = machine.server_at(&address);
    wait_until_served(&server);
    let caller = Caller::of(&server);
    (server, caller)
}

/// WS-MOD-4.2.1, WS-MOD-4.1.2: a plan has one id over replacements, refusals and kills, and a repeated call is answered as before.
#[test]
fn a_plan_keeps_its_id_over_kills_of_the_server() {
    let (machine, server, _agent) = served("auto");
    wait_until_served(&server);
    machine.put("a.txt", "one\n");
    let mut caller = Caller::of(&server);
    let hunk = hunk(&caller.ask("p1", APPEND, &append("first", "")).unwrap());
    let (server, mut caller) = killed(&machine, server);
    let replaced = caller.ask("p2", APPEND, &append("second", &hunk)).unwrap();
    assert_eq!(self::hunk(&replaced), hunk);
    let (server, mut caller) = killed(&machine, server);
    assert_eq!(caller.ask("p2", APPEND, &append("second", &hunk)).unwrap(), replaced, "a repeat");
    machine.put("a.txt", "two\n");
    let refused = caller.ask("a1", APPLY, &apply(&hunk)).unwrap();
    assert_eq!(code(&refused), "FILE_CHANGED");
    let (server, mut caller) = killed(&machine, server);
    machine.put("a.txt", "one\n");
    assert_eq!(caller.ask("a1", APPLY, &apply(&hunk)).unwrap(), refused, "a repeat applies nothing");
    let applied = caller.ask("a2", APPLY, &apply(&hunk)).unwrap();
    assert_eq!((code(&applied).as_str(), self::hunk(&applied)), ("", hunk.clone()));
    assert_ne!(applied.batch_id, refused.batch_id, "the batch that was refused stays so");
    let (_server, mut caller) = killed(&machine, server);
    assert_eq!(caller.ask("a2", APPLY, &apply(&hunk)).unwrap(), applied, "a repeat");
    assert_eq!(code(&caller.ask("a3", APPLY, &apply(&hunk)).unwrap()), "ALREADY_APPLIED");
    assert_eq!(code(&caller.ask("p3", APPEND, &append("third", &hunk)).unwrap()), "ALREADY_APPLIED");
    assert_eq!(machine.files(), [("a.txt".to_owned(), "one\nsecond\n".to_owned())]);
}

/// A request id is that of one call: another plan, or another tool, is refused under it, and nothing of that call is done.
#[test]
fn a_request_id_is_that_of_one_call() {
    let (machine, server, _agent) = served("auto");
    wait_until_served(&server);
    machine.put("a.txt", "one\n");
    let mut caller = Caller::of(&server);
    let first = hunk(&caller.ask("p1", APPEND, &append("first", "")).unwrap());
    let second = hunk(&caller.ask("p2", APPEND, &append("second", "")).unwrap());
    let applied = caller.ask("a1", APPLY, &apply(&first)).unwrap();
    assert_eq!(code(&applied), "");
    let create = json!({ "path": "b.txt", "content": "x" });
    let undo = json!({ "batch_id": applied.batch_id });
    for (id, tool, arguments) in [
        ("a1", APPLY, apply(&second)),
        ("a1", APPEND, append("first", "")),
        ("a1", "workspace_create_file", create),
        ("a1", "undo", undo),
        ("p1", APPLY, apply(&first)),
        ("p2", APPLY, apply(&second)),
        ("p2", APPEND, append("second", &second)),
    ] {
        let refused = caller.ask(id, tool, &arguments).unwrap_err();
        let details = refused.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "REQUEST_ID_REUSED", "{id} {tool}: {refused}");
    }
    assert_eq!(caller.ask("a1", APPLY, &apply(&first)).unwrap(), applied);
    assert_eq!(machine.files(), [("a.txt".to_owned(), "one\nfirst\n".to_owned())]);
}

/// Of two calls that come at once for one plan, each is answered with what became of it, and the plan is applied once.
#[test]
fn two_calls_at_once_apply_a_plan_once() {
    let (machine, server, _agent) = served("auto");
    wait_until_served(&server);
    let mut caller = Caller::of(&server);
    for round in 0..12 {
        machine.put("a.txt", "one\n");
        let name = |call: &str| format!("{call}{round}");
        let hunk = hunk(&caller.ask(&name("p"), APPEND, &append("first", "")).unwrap());
        if round % 2 == 1 {
            // Of a plan that was refused before, the same holds.
            machine.put("a.txt", "two\n");
            assert_eq!(code(&caller.ask(&name("f"), APPLY, &apply(&hunk)).unwrap()), "FILE_CHANGED");
            machine.put("a.txt", "one\n");
        }
        let (apply, second, third) = (apply(&hunk), append("second", &hunk), append("third", &hunk));
        let (one, other) = (name("x"), name("y"));
        let calls: [(&str, &str, &Value); 2] = match round % 6 {
            0 | 1 => [(&one, APPLY, &apply), (&one, APPLY, &apply)],
            2 | 3 => [(&one, APPLY, &apply), (&other, APPEND, &second)],
            _ => [(&one, APPEND, &second), (&other, APPEND, &third)],
        };
        let answers = caller.ask_both(calls).map(Result::unwrap);
        if round % 6 < 2 {
            assert_eq!(answers[0], answers[1], "it is one call");
        }
        for answer in &answers {
            let known = ["", "ALREADY_APPLIED", "INVALID_STATE CHANGED", "INVALID_STATE NOT_PREPARED"];
            assert!(known.contains(&code(answer).as_str()), "{answer:?}");
        }
        assert!(answers.iter().any(|answer| !answer.is_error), "{answers:?}");
        let last = code(&caller.ask(&name("z"), APPLY, &apply).unwrap());
        assert!(["", "ALREADY_APPLIED"].contains(&last.as_str()), "{last}");
        let [(_, content)] = &machine.files()[..] else { panic!("{:?}", machine.files()) };
        assert_eq!(content.lines().count(), 2, "{content}");
    }
}
