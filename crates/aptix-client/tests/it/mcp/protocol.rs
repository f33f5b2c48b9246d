//! The process that serves the tools: calls at the same time, lines that are no calls, and its end.

use std::process::Command;

use aptix_client::workspace::wall::{Wall, raise};
use serde_json::json;

use super::client::{Client, PATIENCE, answer, code};
use crate::command_line::{aptix, text};

/// Many calls at once: each is answered, those that write take turns, and what they wrote can be undone.
#[test]
fn calls_at_the_same_time_are_all_answered_and_lose_nothing() {
    const CALLS: u64 = 40;
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "").unwrap());
    for id in 100..100 + CALLS {
        let edit = json!({ "path": "a.txt", "patches": [{ "operation": "append_eof", "newText": format!("{id}\n") }] });
        let params = json!({ "name": "patch", "arguments": edit });
        client.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    }
    let mut answered: Vec<_> = (0..CALLS)
        .map(|_| {
            let heard = client.hear();
            assert!(!answer(&heard).is_error, "{heard}");
            heard["id"].as_u64().unwrap()
        })
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, (100..100 + CALLS).collect::<Vec<_>>());
    let expected: String = (100..100 + CALLS).map(|id| format!("{id}\n")).collect();
    assert_eq!(client.read("a.txt"), expected, "in the order in which they came");
    let (place, _) = client.end();
    let undone = aptix(place.path(), &["undo"], "");
    assert_eq!(undone.status.code(), Some(0), "{}", text(&undone.stderr));
    assert!(!std::fs::read_to_string(place.path().join("ws/a.txt")).unwrap().contains("139"));
}

/// A call that is cancelled while it waits for its turn gets no answer and writes nothing.
#[test]
fn a_call_that_is_taken_back_writes_nothing() {
    let mut client = Client::start(|_| {});
    client.done("workspace_create_file", &json!({ "path": "first", "content": "" }));
    let roots = std::fs::read_dir(client.place.path().join("state/aptix/roots")).unwrap();
    let lock = roots.map(|root| root.unwrap().path().join("lock")).find(|lock| lock.exists()).unwrap();
    let lock = std::fs::File::open(lock).unwrap();
    lock.lock().unwrap();
    let call = |id: u64, path: &str| {
        let params = json!({ "name": "workspace_create_file", "arguments": { "path": path, "content": "x" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    client.say(&call(50, "a"));
    // The answer to one is not taken for the answer to another.
    client.say(&call(50, "d"));
    let heard = client.hear();
    assert!(heard["error"]["code"] == -32600 && heard["id"].is_null(), "{heard}");
    client.say(&call(51, "b"));
    client.say(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 51 } }).to_string(),
    );
    // What only looks is answered meanwhile, and after what was said before it.
    client.done("ripgrep_files", &json!({}));
    lock.unlock().unwrap();
    let heard = client.hear();
    assert_eq!((heard["id"].as_u64(), answer(&heard).is_error), (Some(50), false), "{heard}");
    client.done("workspace_create_file", &json!({ "path": "c", "content": "x" }));
    let ws = client.ws();
    let (_place, _) = client.end();
    assert_eq!(["a", "b", "c", "d"].map(|name| ws.join(name).exists()), [true, false, true, false]);
}

/// A long line is not shown; an unread answer does not keep the server alive; the kernel keeps it within
/// its walls; and what another process writes into a file that was replaced is kept when it ends.
#[test]
fn it_is_a_good_guest() {
    let long = "x".repeat(200 << 10);
    let mut client = Client::start(|ws| {
        std::fs::write(ws.join("long"), format!("{long}{long}\nnext\n")).unwrap();
        std::fs::write(ws.join("half"), format!("{long}\n")).unwrap();
        std::fs::write(ws.join("open"), "old\n").unwrap();
    });
    assert_eq!(client.refused("read_file", &json!({ "path": "long" })), "TOO_LARGE");
    assert_eq!(client.done("read_file", &json!({ "path": "long", "range": "2~" })).structured["text"], "next\n");
    if matches!(std::thread::spawn(|| raise(&[])).join().unwrap(), Wall::Up { .. }) {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", client.child.id())).unwrap();
        let mut carriers = 0;
        for task in tasks.filter_map(Result::ok) {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            // These two carry what is said, and work on no file.
            let carries = ["stdin", "stdout"].iter().any(|name| status.starts_with(&format!("Name:\t{name}\n")));
            carriers += usize::from(carries);
            assert!(carries || status.is_empty() || status.contains("NoNewPrivs:\t1"), "{status}");
        }
        assert_eq!(carriers, 2);
    }
    let mut program = std::fs::File::options().append(true).open(client.ws().join("open")).unwrap();
    client.done("overwrite_entire_file", &json!({ "path": "open", "content": "new" }));
    std::io::Write::write_all(&mut program, b"late\n").unwrap();
    let (place, _) = client.end();
    let [(path, kept)] = <[_; 1]>::try_from(crate::displaced::logged(place.path())).unwrap();
    assert_eq!((path.as_str(), std::fs::read_to_string(&kept).unwrap().as_str()), ("open", "old\nlate\n"));

    let mut client = Client::deaf_in(place);
    for id in 1..=10 {
        let params = json!({ "name": "read_file", "arguments": { "path": "half" } });
        client.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    }
    drop(client.stdin.take());
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
}

/// A line that is no message is answered as such, and nothing else is harmed; a key given twice is refused.
#[test]
fn lines_that_are_no_calls_are_harmless() {
    let mut client = Client::start(|_| {});
    for (line, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\"", -32700),
        ("[1,2]", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"nothing/here\"}", -32601),
    ] {
        client.say(line);
        assert_eq!(client.hear()["error"]["code"], code, "{line}");
    }
    client.say("");
    client.say(r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"workspace_create_file","arguments":{"path":"a","path":"b","content":"x"}}}"#);
    let refused = answer(&client.hear());
    assert!(
        refused.is_error && refused.structured["message"].as_str().unwrap().contains("DUPLICATE_KEY"),
        "{}",
        refused.structured
    );
    assert!(!client.ws().join("a").exists() && !client.ws().join("b").exists());
    // Bad arguments are reported by the tool.
    for (id, arguments) in [
        (10, "\"text\"".to_owned()),
        (11, "[]".to_owned()),
        (12, "null".to_owned()),
        (13, "[".repeat(500) + &"]".repeat(500)),
    ] {
        client.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools\/call","params":{{"name":"patch","arguments":{arguments}}}}}"#
        ));
        let heard = client.hear();
        assert_eq!(heard["id"], id);
        assert!(code(&answer(&heard).structured).starts_with("INVALID_REQUEST"), "{heard}");
    }
    for params in [
        r#"{"name":"patch","arguments":{},"arguments":{}}"#,
        r#"{"name":"patch","name":"patch","arguments":{}}"#,
        r#"{"name":3,"arguments":{}}"#,
        r#"{"arguments":{}}"#,
    ] {
        client.say(&format!(r#"{{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{params}}}"#));
        let heard = client.hear();
        assert!(heard["id"] == "two" && heard["error"]["code"] == -32602, "{heard}");
    }
    client.say(&format!("{}{}", "x".repeat(1 << 20), "y".repeat(1 << 20)));
    assert_eq!(client.hear()["error"]["code"], -32700);
    client.done("ripgrep_files", &json!({}));
    client.end();
}

/// The newest version of the protocol has no initialization: each request states what it needs.
#[test]
fn a_request_of_the_newest_protocol_needs_no_hello() {
    let mut client = Client::silent();
    let about = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.ask("server/discover", &json!({ "_meta": about }));
    assert!(found["result"]["capabilities"]["tools"].is_object(), "{found}");
    let call = json!({ "_meta": about, "name": "workspace_create_file", "arguments": { "path": "a", "content": "x" } });
    assert!(!answer(&client.ask("tools/call", &call)).is_error);
    assert_eq!(client.read("a"), "x");
    assert!(client.ask("tools/list", &json!({ "_meta": about }))["result"]["tools"].is_array());
    client.end();
}

/// When its client disconnects it ends, after finishing a started write; a client that sent nothing is no failure.
#[test]
fn it_ends_with_its_client() {
    let mut client = Client::start(|_| {});
    let create = json!({ "name": "workspace_create_file", "arguments": { "path": "last", "content": "x" } });
    client.say(&json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": create }).to_string());
    drop(client.stdin.take());
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    assert_eq!((client.hear()["id"].as_u64(), client.read("last").as_str()), (Some(9), "x"));

    let place = tempfile::tempdir().unwrap();
    let output = aptix(place.path(), &["mcp"], "");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]), "{}", text(&output.stderr));
    let output = aptix(place.path(), &["mcp", "--root", "nowhere"], "");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
    assert!(text(&output.stderr).contains("hint: give every root as [NAME=]DIR"), "{}", text(&output.stderr));

    let mut client = Client::start(|_| {});
    let killed = Command::new("kill").args(["-TERM", &client.child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    assert!(client.lines.recv_timeout(PATIENCE).is_err());
}
