//! Plans that are applied while another call replaces them.

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
