//! Prepared edits: each kind from its plan to the file, and plans that are applied while another call replaces them.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::client::{Answer, Client, answer, code};

/// Rounds, half of them in each order of the two calls.
const ROUNDS: u64 = 200;

/// Sends two calls at once; their answers, in the order of the calls.
fn at_once(client: &mut Client, round: u64, calls: [(&str, Value); 2]) -> [Answer; 2] {
    let id = |call: u64| 1_000_000 + 2 * round + call;
    let lines = (0..).zip(&calls).map(|(call, (tool, arguments))| {
        json!({ "jsonrpc": "2.0", "id": id(call), "method": "tools/call",
                "params": { "name": tool, "arguments": arguments } })
        .to_string()
    });
    let lines: Vec<_> = lines.collect();
    client.say(&lines.join("\n"));
    let mut heard = [client.hear(), client.hear()];
    heard.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(heard.each_ref().map(|answer| answer["id"].as_u64()), [Some(id(0)), Some(id(1))]);
    heard.each_ref().map(answer)
}

/// Either the plan is applied and stays as it was, or it is replaced and the text that was sent first is never written.
#[test]
fn a_plan_is_applied_or_replaced_never_both() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "begin\n").unwrap());
    let mut expected = "begin\n".to_owned();
    let mut won = [0, 0];
    for round in 0..ROUNDS {
        let prepare = |text: String| json!({ "path": "a.txt", "content": text });
        let first = client.done("prepare_file_append", &prepare(format!("first {round}\n")));
        let hunk = first.structured["hunkId"].clone();
        let apply = ("apply_file_modification", json!({ "hunk_id": hunk }));
        let mut again = prepare(format!("second {round}\n"));
        again["existing_hunk_id"] = hunk.clone();
        let replace = ("prepare_file_append", again);
        let is_applied_first = round % 2 == 0;
        let (applied, replaced) = if is_applied_first {
            let [applied, replaced] = at_once(&mut client, round, [apply.clone(), replace]);
            (applied, replaced)
        } else {
            let [replaced, applied] = at_once(&mut client, round, [replace, apply.clone()]);
            (applied, replaced)
        };
        match (applied.is_error, replaced.is_error) {
            (false, true) => {
                let answer = code(&replaced.structured);
                assert!(["ALREADY_APPLIED", "INVALID_STATE"].contains(&answer.as_str()), "{answer}");
                expected.push_str(&format!("first {round}\n"));
                won[0] += 1;
                // What was applied is over.
                assert_eq!(client.refused(apply.0, &apply.1), "ALREADY_APPLIED");
            }
            (true, false) => {
                assert_eq!(code(&applied.structured), "INVALID_STATE.CHANGED");
                client.done(apply.0, &apply.1);
                expected.push_str(&format!("second {round}\n"));
                won[1] += 1;
            }
            // The plan was replaced before it was applied, as it was asked for.
            (false, false) if !is_applied_first => {
                expected.push_str(&format!("second {round}\n"));
                assert_eq!(client.refused(apply.0, &apply.1), "ALREADY_APPLIED");
            }
            both => panic!("round {round}, {both:?}: {} and {}", applied.structured, replaced.structured),
        }
        assert_eq!(client.read("a.txt"), expected, "round {round}");
    }
    assert!(won[0] > 0, "an apply never won");
    client.end();
}

/// WS-MOD-1.1, WS-MOD-1.2, WS-MOD-2.1.1.1, WS-MOD-2.1.2, WS-MOD-4.1.1, WS-MOD-4.2.1, WS-MOD-4.2.5, WS-MOD-4.2.6, WS-MOD-4.2.8: each
/// kind of edit answers with its plan, evidence and diff, writes nothing, is replaced under its id, and is written by
/// `apply_file_modification` alone.
#[test]
fn each_kind_of_edit_is_planned_shown_replaced_and_applied() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\nthree\n").unwrap());
    let mut before = client.read("a.txt");
    for (tool, arguments, content, after) in [
        ("prepare_file_range_edit", json!({ "range": "1" }), "1\n", "1\ntwo\nthree\n"),
        ("prepare_file_append", json!({}), "4\n", "1\ntwo\nthree\n4\n"),
        ("prepare_file_insert_after", json!({ "anchor": "two" }), "2.5\n", "1\ntwo\n2.5\nthree\n4\n"),
        ("prepare_file_insert_before", json!({ "anchor": "two" }), "1.5\n", "1\n1.5\ntwo\n2.5\nthree\n4\n"),
        (
            "prepare_file_block_replace",
            json!({ "start_anchor": "two", "end_anchor": "three" }),
            "x\n",
            "1\n1.5\ntwo\nx\nthree\n4\n",
        ),
    ] {
        let mut call = arguments;
        (call["path"], call["content"], call["existing_hunk_id"]) = ("a.txt".into(), "other\n".into(), "".into());
        let first = client.done(tool, &call);
        let hunk = first.structured["hunkId"].clone();
        assert_ne!(client.done(tool, &call).structured["hunkId"], hunk, "{tool}: an empty id makes a new plan");
        (call["content"], call["existing_hunk_id"]) = (content.into(), hunk.clone());
        let again = client.done(tool, &call);
        assert_eq!(again.structured["hunkId"], hunk, "{tool}");
        for (answer, line) in [(&first, "+other\n".to_owned()), (&again, format!("+{content}"))] {
            for part in ["status: planned", "expires_at_ms:", "\nevidence:", hunk.as_str().unwrap(), &line] {
                assert!(answer.text.contains(part), "{tool}: {part}: {}", answer.text);
            }
        }
        assert_eq!(client.read("a.txt"), before, "{tool}: nothing is written by planning");
        let applied = client.done("apply_file_modification", &json!({ "hunk_id": hunk }));
        for part in ["status: applied", "\napply_evidence:", &format!("+{content}")] {
            assert!(applied.text.contains(part), "{tool}: {part}: {}", applied.text);
        }
        assert_eq!(client.read("a.txt"), after, "{tool}");
        after.clone_into(&mut before);
    }
    client.end();
}

/// WS-MOD-4.1.4: a plan that was made while its member could write is not applied once they cannot.
#[test]
fn a_plan_is_not_applied_in_restricted_mode() {
    let place = tempfile::tempdir().unwrap();
    let policy = place.path().join("config/aptix/policy.toml");
    for directory in [place.path().join("ws"), policy.parent().unwrap().to_owned()] {
        std::fs::create_dir_all(directory).unwrap();
    }
    std::fs::write(place.path().join("ws/a.txt"), "one\n").unwrap();
    let set = |mode: &str| {
        std::fs::write(&policy, format!("mode = \"{mode}\"\n")).unwrap();
        std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    set("unrestricted");
    let mut client = Client::start_in(place);
    let planned = client.done("prepare_file_append", &json!({ "path": "a.txt", "content": "two\n" }));
    let apply = json!({ "hunk_id": planned.structured["hunkId"] });
    set("restricted");
    assert_eq!(client.refused("apply_file_modification", &apply), "POLICY_DENIED.RESTRICTED_MODE");
    assert_eq!(client.read("a.txt"), "one\n");
    set("unrestricted");
    client.done("apply_file_modification", &apply);
    assert_eq!(client.read("a.txt"), "one\ntwo\n");
    client.end();
}

/// Two plans for one file at different places are both applied, in either order; the second one says that it was moved. A plan
/// whose own place changed is refused.
#[test]
fn plans_for_different_places_of_a_file_are_both_applied() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\nthree\nfour\nfive\n").unwrap());
    let plan = |client: &mut Client, range: &str, content: &str| {
        let call = json!({ "path": "a.txt", "range": range, "content": content });
        json!({ "hunk_id": client.done("prepare_file_range_edit", &call).structured["hunkId"] })
    };
    let [first, second, stale] =
        [("2", "2\n2.5\n"), ("4", "4\n"), ("2", "zwei\n")].map(|(range, content)| plan(&mut client, range, content));
    let tool = "apply_file_modification";
    assert!(!client.done(tool, &first).text.contains("REBASED"));
    let applied = client.done(tool, &second);
    assert!(applied.text.contains("REBASED"), "{}", applied.text);
    assert_eq!(client.read("a.txt"), "one\n2\n2.5\nthree\n4\nfive\n");
    assert_eq!(client.refused(tool, &stale), "FILE_CHANGED");
    assert_eq!(client.read("a.txt"), "one\n2\n2.5\nthree\n4\nfive\n");
    client.end();
}

/// WS-MOD-5.2.1: whatever the kind of edit, its plan says what may look wrong, that a program generates the file, and that the
/// file is new: models read it as YAML, programs under the same keys.
#[test]
fn plans_of_every_kind_warn_in_both_forms() {
    let mut client = Client::start(|ws| {
        std::fs::write(ws.join("a.rs"), "// @generated by a program\none\n\ntwo\n\nthree\n").unwrap();
    });
    for (tool, arguments) in [
        ("prepare_file_range_edit", json!({ "path": "a.rs", "range": "4" })),
        ("prepare_file_append", json!({ "path": "a.rs" })),
        ("prepare_file_insert_after", json!({ "path": "a.rs", "anchor": "two" })),
        ("prepare_file_insert_before", json!({ "path": "a.rs", "anchor": "two" })),
        ("prepare_file_block_replace", json!({ "path": "a.rs", "start_anchor": "one", "end_anchor": "three" })),
    ] {
        let mut call = arguments;
        call["content"] = "\n\nnew\n\n\n".into();
        let answer = client.done(tool, &call);
        let preview = &answer.structured["preview"];
        assert_eq!(preview["action"], "change", "{tool}: {preview}");
        assert!(preview["style_warning"].is_string() && preview["evidence"]["before"].is_array(), "{tool}: {preview}");
        assert_eq!(preview["warnings"][0]["code"], "GENERATED_FILE", "{tool}: {preview}");
        for part in ["style_warning:", "code: GENERATED_FILE", "\nevidence:"] {
            assert!(answer.text.contains(part), "{tool}: {part}: {}", answer.text);
        }
    }
    let answer = client.done("prepare_file_append", &json!({ "path": "new.txt", "content": "x\n" }));
    assert_eq!(answer.structured["preview"]["action"], "create");
    assert!(answer.text.contains("action: create"), "{}", answer.text);
    let hunk = json!({ "hunk_id": answer.structured["hunkId"] });
    assert!(client.done("apply_file_modification", &hunk).text.contains("action: create"));
    client.end();
}
