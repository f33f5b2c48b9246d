//! An orchestrator, a server and an agent, each a process of its own.

use serde_json::Value;

use crate::documents::create;
use crate::processes::{Machine, json, python, served, write};
use crate::readme;

const NOTES: [(&str, &str); 2] = [("notes/first.txt", "one\nzwei\n"), ("notes/second.txt", "Alpha\nbeta\n")];

#[test]
fn an_orchestrator_in_python_edits_two_files_in_one_batch_and_reads_them_back() {
    let (machine, server, _agent) = served("auto");

    let (result, code) = json(&python(&["edit_workspace.py", "--server", &server.address, "--workspace", "demo"]));
    assert_eq!(code, Some(0), "{result}");
    assert_eq!(result["batches"][1]["state"], "BATCH_STATE_APPLIED", "{result}");
    assert_eq!(machine.files(), NOTES.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let cloud = result["files"].as_array().unwrap();
    let cloud: Vec<_> = cloud.iter().map(|file| [&file["docPath"], &file["text"]]).collect();
    let expected = NOTES.map(|(path, text)| [Value::from(format!("project/{path}")), Value::from(text)]);
    assert_eq!(cloud, expected.each_ref().map(|file| file.each_ref()));
    assert!(server.terminate(), "a server that is asked to end ends well");
}

#[test]
fn an_orchestrator_in_python_gets_all_violations_at_once() {
    let machine = Machine::new();
    let server = machine.server();
    let code = "
import sys
from aptix_client import Client, Refused, edit_pb2
bad = edit_pb2.FilePatch(path='../a', create_file=edit_pb2.CreateFile(text=''))
worse = edit_pb2.FilePatch(path='b', line_patch=edit_pb2.LinePatch(original_sha256='no', changes=[]))
try:
    Client(sys.argv[1], 'demo').submit(edit_pb2.Edit(files=[bad, worse]))
except Refused as refused:
    print(refused.code.name, refused.reason, sorted(where for where, _ in refused.violations))
";
    let output = python(&["-c", code, &server.address]);
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.starts_with("INVALID_ARGUMENT INVALID_PATH ["), "{out} {}", String::from_utf8_lossy(&output.stderr));
    for field in ["files[0]", "files[1].originalSha256", "files[1].changes"] {
        assert!(out.contains(field), "{field} in {out}");
    }
}

/// Its event leaves the content out, and the agent fetches it.
#[test]
fn a_batch_that_is_too_large_for_an_event_is_applied() {
    let (machine, server, _agent) = served("auto");
    let content = "a line of some length\n".repeat(40_000);
    let (result, code) = machine.submit(&server, &create("large.txt", &content));
    assert_eq!((code, &result["state"]), (Some(0), &"APPLIED".into()), "{result}");
    assert_eq!(machine.files(), [("large.txt".to_owned(), content)]);
}

#[test]
fn a_batch_outlives_a_killed_server_and_waits_for_its_agent() {
    let machine = Machine::new();
    machine.put("greeting.txt", "To whom it may concern:\nhello\n");
    write(&machine.path("edit.json"), &readme::document());
    let server = machine.server();
    let address = server.address.clone();
    let (submitted, code) = machine.ask(&server, "submit", &["edit.json"]);
    assert_eq!((code, &submitted["state"]), (Some(0), &"APPROVED".into()), "{submitted}");
    drop(server);

    let server = machine.server_at(&address);
    let _agent = machine.agent(&server);
    let wait = "
import sys
from aptix_client import Client, batch_pb2
print(batch_pb2.BatchState.Name(Client(sys.argv[1], 'demo').wait(sys.argv[2]).state))
";
    let id = submitted["batchId"].as_str().unwrap();
    let output = python(&["-c", wait, &address, id]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "BATCH_STATE_APPLIED");
    assert_eq!(machine.files(), [("greeting.txt".into(), "To whom it may concern:\nhello, world\n".into())]);

    let output = machine.call(&server, "read", &["project/greeting.txt"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("hello, world"), "{output:?}");
}

#[test]
fn a_stale_batch_is_reported_with_its_reason_and_changes_nothing() {
    let machine = Machine::new();
    machine.put("greeting.txt", "Somebody else was faster.\nhello\n");
    let before = machine.files();
    write(&machine.path("edit.json"), &readme::document());
    let server = machine.server();
    let _agent = machine.agent(&server);
    let (result, code) = machine.ask(&server, "submit", &["--wait", "edit.json"]);
    assert_eq!(code, Some(1), "{result}");
    assert_eq!(result["state"], "FAILED", "{result}");
    assert_eq!(result["errors"][0]["code"], "SHA_MISMATCH", "{result}");
    assert_eq!(machine.files(), before);
}
