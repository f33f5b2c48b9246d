//! The agent as a process: what it applies, what it refuses, what it reports, and what it survives.

use serde_json::Value;

use crate::documents::{create, insert};
use crate::processes::{Machine, eventually, served, write};

/// TUL-002-8.6.3, TUL-002-8.6.4, TUL-002-8.6.7, TUL-002-8.6.8: stored, handed over, applied, uploaded, the cloud's;
/// TUL-002-4.2.3, TUL-002-5.1.3: under the same docPath, every change with its id.
#[test]
fn several_files_change_in_one_batch_and_become_the_cloud_files() {
    let (machine, server, mut agent) = served("auto");
    machine.put("Src/One.txt", "1\n2\n");
    machine.put("two.txt", "a\nb");
    let (done, code) = machine.submit(&server, &insert(&[("src/one.txt", "1\n2\n"), ("two.txt", "a\nb")], 1, "new"));
    assert_eq!((code, &done["state"]), (Some(0), &"APPLIED".into()), "{done}");
    assert_eq!(machine.files(), [("Src/One.txt", "1\nnew\n2\n"), ("two.txt", "a\nnew\nb")].map(owned));
    assert_eq!(done["files"][0]["path"], "Src/One.txt");
    assert!(done["diff"].as_str().unwrap().contains("\n+new\n"), "{done}");

    // The agent answers from its disk; without one the cloud copy has the same.
    let read = || machine.ask(&server, "read", &["project/src/one.txt"]);
    for source in ["ACTIVE", "CLOUD"] {
        let (mut found, mut code) = (Value::Null, None);
        eventually("a read comes from there", || {
            (found, code) = read();
            found["source"] == source
        });
        let read = found;
        assert_eq!((code, &read["content"]), (Some(0), &"1\nnew\n2\n".into()), "{read}");
        assert_eq!((&read["path"], &read["source"]), (&"Src/One.txt".into(), &source.into()), "{read}");
        assert_eq!(read["sha256"], done["files"][0]["sha256"]);
        if source == "ACTIVE" {
            agent.terminate();
        }
    }

    let change = done["files"][1]["changes"][0]["changeId"].as_str().unwrap();
    for id in [&done["batchId"], &done["files"][1]["filePatchId"], &change.into()] {
        let (shown, code) = machine.ask(&server, "show", &[id.as_str().unwrap()]);
        assert_eq!(
            (code, &shown["batchId"], &shown["state"]),
            (Some(0), &done["batchId"], &"APPLIED".into()),
            "{shown}"
        );
        let last = shown["files"].as_array().unwrap().last().unwrap();
        assert_eq!(last["changes"][0]["changeId"], change, "{shown}");
    }
    let (listed, _) = machine.ask(&server, "batches", &[]);
    assert_eq!(listed["batches"][0]["batchId"], done["batchId"], "{listed}");
}

/// A file on disk that is too large for one answer comes in parts.
#[test]
fn a_large_file_is_read_in_parts() {
    let (machine, server, _agent) = served("auto");
    let large = "0123456789abcde\n".repeat(200_000);
    machine.put("large.txt", &large);
    let read = || machine.ask(&server, "read", &["project/large.txt"]).0;
    eventually("the agent answers", || read()["source"] == "ACTIVE");
    assert_eq!(read()["content"], large.as_str());
}

/// TUL-004-3.1.1, TUL-004-3.2.6, TUL-004-3.2.7, TUL-004-6.1.3: a server that runs in the very project creates no file
/// there and answers nothing for it; the file is made, and the batch ends, when an agent has come.
#[test]
fn a_file_is_created_by_the_agent_and_never_by_the_server() {
    let machine = Machine::new();
    machine.put("kept.txt", "kept\n");
    let kept = ("kept.txt", "kept\n");
    let server = machine.server_that(|command| _ = command.current_dir(machine.path("project")));
    write(&machine.path("new.json"), &create("docs/New.md", "hello\n"));
    let (stored, code) = machine.ask(&server, "submit", &["new.json"]);
    assert_eq!(code, Some(0), "{stored}");
    let id = stored["batchId"].as_str().unwrap();
    let state = || machine.ask(&server, "show", &[id]).0["state"].clone();
    assert_eq!((state(), machine.files()), ("APPROVED".into(), vec![owned(kept)]));
    let _agent = machine.agent_that(&server, "auto");
    eventually("the batch ends", || state() != "APPROVED");
    assert_eq!((state(), machine.files()), ("APPLIED".into(), [("docs/New.md", "hello\n"), kept].map(owned).into()));
}

/// TUL-002-8.6.5: one file of two is another version; neither changes.
#[test]
fn a_batch_with_one_stale_file_changes_none() {
    let (machine, server, _agent) = served("auto");
    machine.put("one.txt", "1\n");
    machine.put("two.txt", "somebody was here\n");
    let before = machine.files();
    let (done, code) = machine.submit(&server, &insert(&[("one.txt", "1\n"), ("two.txt", "2\n")], 1, "new"));
    assert_eq!((code, &done["state"]), (Some(1), &"FAILED".into()), "{done}");
    assert_eq!(done["errors"][0]["code"], "SHA_MISMATCH", "{done}");
    assert!(done["errors"][0]["path"].as_str().unwrap().ends_with("two.txt"), "{done}");
    assert_eq!(machine.files(), before);
}

/// TUL-004-6.1.4.2, TUL-004-6.2.1, TUL-004-6.2.3: both sides log the file, with size and hash.
#[test]
fn a_created_file_is_logged_on_both_sides() {
    let (machine, server, _agent) = served("auto");
    let (done, code) = machine.submit(&server, &create("docs/New.md", "hello\n"));
    assert_eq!((code, &done["files"][0]["status"]), (Some(0), &"created".into()), "{done}");
    let hash = done["files"][0]["sha256"].as_str().unwrap();
    let (_, code) = machine.submit(&server, &create("docs/New.md", "again\n"));
    assert_eq!(code, Some(1));
    let log = machine.logged("agent.log");
    let executed: Vec<_> = log.lines().filter(|line| line.contains("Tool.CreateFile.Executed")).collect();
    for field in ["Path=\"docs/New.md\"", "Overwrite=false", "Success=true", "SizeBytes=6", hash] {
        assert!(executed[0].contains(field), "{field} in {}", executed[0]);
    }
    for field in ["Success=false", "ErrorCode=\"FileExists\""] {
        assert!(executed[1].contains(field), "{field} in {}", executed[1]);
    }
    eventually("the server logs the result", || {
        machine.logged("server.log").contains("Tool.CreateFile.ResultReceived")
    });
    let log = machine.logged("server.log");
    assert!(log.contains("Tool.CreateFile.Forwarded"), "{log}");
    let result = log.lines().find(|line| line.contains("Tool.CreateFile.ResultReceived")).unwrap();
    assert!(result.contains(hash), "{result}");
}

/// TUL-002-9.6, TUL-002-9.8: what came and why it was refused is in the agent's log, with the file.
#[test]
fn a_refusal_is_logged_with_its_reason_and_file() {
    let (machine, server, _agent) = served("auto");
    machine.submit(&server, &insert(&[("absent.txt", "1\n")], 1, "new"));
    let log = machine.logged("agent.log");
    let refused = log.lines().find(|line| line.contains("Batch.Refused")).unwrap();
    for field in ["Reason=\"FILE_MISSING\"", "DocPath=\"project/absent.txt\"", "BatchId="] {
        assert!(refused.contains(field), "{field} in {refused}");
    }
    assert!(log.contains("Batch.Received"), "{log}");
}

#[test]
fn without_a_terminal_a_question_is_an_answer() {
    let (machine, server, _agent) = served("ask");
    let (done, code) = machine.submit(&server, &create("a.txt", ""));
    assert_eq!(
        (code, &done["state"], &done["errors"][0]["code"]),
        (Some(1), &"FAILED".into(), &"APPROVAL_REQUIRED".into())
    );
    assert_eq!(machine.files(), []);
}

/// What a tool, a shell or a service would execute, what holds secrets, and what only looks like one of them.
#[test]
fn an_agent_that_approves_everything_writes_nothing_that_is_guarded() {
    let (machine, server, _agent) = served("auto");
    let guarded = [
        (".devcontainer.json", "APPROVAL_REQUIRED", "SENSITIVE"),
        ("sub/.cargo/config.toml", "APPROVAL_REQUIRED", "SENSITIVE"),
        ("mise.toml", "APPROVAL_REQUIRED", "SENSITIVE"),
        ("start.desktop", "APPROVAL_REQUIRED", "SENSITIVE"),
        ("sitecustomize.py", "APPROVAL_REQUIRED", "SENSITIVE"),
        (".woodpecker.yml", "APPROVAL_REQUIRED", "SENSITIVE"),
        ("sub/QWEN.md", "APPROVAL_REQUIRED", "SENSITIVE"),
        (".newtool", "APPROVAL_REQUIRED", "SENSITIVE"),
        (".newtool/hooks/start", "APPROVAL_REQUIRED", "SENSITIVE"),
        ("prod.tfvars", "APPROVAL_REQUIRED", "SECRET"),
        ("sub/id_ed25519_sk", "APPROVAL_REQUIRED", "SECRET"),
        (".env.local", "POLICY_DENIED", "SECRET"),
        ("certs/server.pem", "POLICY_DENIED", "SECRET"),
        (".sl/config", "POLICY_DENIED", "PROTECTED"),
        ("CVS/Root", "POLICY_DENIED", "PROTECTED"),
    ];
    for (path, expected, detail) in guarded {
        let (done, code) = machine.submit(&server, &create(path, "x\n"));
        let error = &done["errors"][0];
        assert_eq!(
            (code, &error["code"], &error["detail"]),
            (Some(1), &expected.into(), &detail.into()),
            "{path}: {done}"
        );
    }
    assert_eq!(machine.files(), []);
    for path in [".gitignore", ".env.example", "sub/.newtool", "docs/CODEOWNERS.md", "environment.py", "src/keys.rs"] {
        let (done, code) = machine.submit(&server, &create(path, "x\n"));
        assert_eq!((code, &done["state"]), (Some(0), &"APPLIED".into()), "{path}: {done}");
    }
}

#[test]
fn an_agent_that_never_approves_rejects_everything() {
    let (machine, server, _agent) = served("never");
    let (done, code) = machine.submit(&server, &create("a.txt", ""));
    assert_eq!((code, &done["state"], &done["errors"][0]["code"]), (Some(1), &"REJECTED".into(), &"REJECTED".into()));
    assert_eq!(machine.files(), []);
}

#[test]
fn a_second_agent_of_one_root_is_refused_and_the_first_goes_on() {
    let (machine, server, _agent) = served("auto");
    eventually("the agent serves", || machine.logged("agent.log").contains("serving"));
    let url = server.url();
    let second = ["agent", "--server", &url, "--workspace", "other", "--root", "project", "--approve", "auto"];
    let second = machine.aptix(&second).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(3), "{said}");
    assert!(said.contains("another agent serves"), "{said}");
    assert_eq!(machine.submit(&server, &create("a.txt", "")).1, Some(0));
}

/// Behind the wall the agent cannot make its state directory again; without one it goes on.
#[test]
#[expect(clippy::disallowed_methods, reason = "a person removes a directory")]
fn an_agent_whose_state_was_removed_says_what_to_do() {
    let (machine, server, mut agent) = served("auto");
    machine.submit(&server, &create("a.txt", "1"));
    std::fs::remove_dir_all(machine.path("state/aptix")).unwrap();
    write(&machine.path("b.json"), &create("b.txt", "2"));
    machine.ask(&server, "submit", &["b.json"]);
    let mut ended = None;
    eventually("the agent ends, or applies the batch", || {
        ended = agent.0.try_wait().unwrap();
        ended.is_some() || machine.path("project/b.txt").exists()
    });
    if let Some(status) = ended {
        let logged = machine.logged("agent.log");
        assert_eq!(status.code(), Some(3), "{logged}");
        assert!(
            logged.contains("was removed while the agent ran") && logged.contains("start the agent again"),
            "{logged}"
        );
        assert!(!logged.contains("os error 13"), "{logged}");
        let _agent = machine.agent_that(&server, "auto");
        eventually("the batch is applied after all", || machine.path("project/b.txt").exists());
    }
}

#[test]
fn a_cancelled_batch_is_not_applied() {
    let machine = Machine::new();
    let server = machine.server();
    crate::processes::write(&machine.path("a.json"), &create("a.txt", ""));
    let (stored, code) = machine.ask(&server, "submit", &["a.json"]);
    assert_eq!((code, &stored["state"]), (Some(0), &"APPROVED".into()), "{stored}");
    let id = stored["batchId"].as_str().unwrap();
    assert!(machine.call(&server, "cancel", &[id]).status.success());
    let _agent = machine.agent(&server);
    assert_eq!(machine.submit(&server, &create("b.txt", "")).1, Some(0));
    assert_eq!(machine.files(), [("b.txt", "")].map(owned));
    let (shown, _) = machine.ask(&server, "show", &[id]);
    assert_eq!(shown["state"], "CANCELLED", "{shown}");
}

#[test]
fn content_of_three_megabytes_travels_there_and_back() {
    let (machine, server, _agent) = served("auto");
    let content = "0123456789abcde\n".repeat(3 << 16);
    let (done, code) = machine.submit(&server, &create("big.txt", &content));
    assert_eq!((code, &done["files"][0]["sizeBytes"]), (Some(0), &content.len().into()), "{}", done["errors"]);
    assert_eq!(machine.files(), [("big.txt", content.as_str())].map(owned));
    let (read, _) = machine.ask(&server, "read", &["project/big.txt"]);
    assert!(read["content"] == content.as_str(), "{} bytes came back", read["content"].as_str().unwrap().len());
}

#[test]
fn an_agent_resumes_when_its_server_comes_back() {
    let (machine, server, mut agent) = served("auto");
    assert_eq!(machine.submit(&server, &create("a.txt", "1\n")).1, Some(0));
    let address = server.address.clone();
    drop(server);
    eventually("the loss is noticed", || machine.logged("agent.log").contains("waiting before connecting"));
    let server = machine.server_at(&address);
    let (done, code) = machine.submit(&server, &insert(&[("a.txt", "1\n")], 1, "2"));
    assert_eq!((code, &done["state"]), (Some(0), &"APPLIED".into()), "{done}");
    assert_eq!(machine.files(), [("a.txt", "1\n2\n")].map(owned));
    assert_eq!(agent.terminate(), Some(0));
    assert!(server.terminate());
}

#[test]
fn an_agent_that_is_started_again_does_what_came_meanwhile() {
    let (machine, server, mut agent) = served("auto");
    assert_eq!(machine.submit(&server, &create("a.txt", "1\n")).1, Some(0));
    assert_eq!(agent.terminate(), Some(0));
    crate::processes::write(&machine.path("later.json"), &insert(&[("a.txt", "1\n")], 1, "2"));
    let (stored, _) = machine.ask(&server, "submit", &["later.json"]);
    let _agent = machine.agent(&server);
    let id = stored["batchId"].as_str().unwrap();
    eventually("the batch is applied", || machine.ask(&server, "show", &[id]).0["state"] == "APPLIED");
    assert_eq!(machine.files(), [("a.txt", "1\n2\n")].map(owned));
}

#[test]
fn several_roots_are_served_by_one_agent() {
    let machine = Machine::new();
    let server = machine.server();
    let url = server.url();
    machine.put("lib/x.txt", "1\n");
    machine.put("app/y.txt", "1\n");
    let agent = ["agent", "--server", &url, "--workspace", "demo", "--approve", "auto", "--root", "left=project/lib"];
    let agent = [&agent[..], &["--root", "right=project/app"]].concat();
    let _agent = crate::processes::Running(machine.aptix(&agent).spawn().unwrap());
    let document = insert(&[("x.txt", "1\n"), ("y.txt", "1\n")], 0, "0");
    let document = document.replace("project/x", "left/x").replace("project/y", "right/y");
    let (done, code) = machine.submit(&server, &document);
    assert_eq!(code, Some(0), "{done}");
    assert_eq!(machine.files(), [("app/y.txt", "0\n1\n"), ("lib/x.txt", "0\n1\n")].map(owned));
    let (read, _) = machine.ask(&server, "read", &["right/y.txt"]);
    assert_eq!(read["content"], Value::from("0\n1\n"), "{read}");
}

fn owned((path, content): (&str, &str)) -> (String, String) {
    (path.to_owned(), content.to_owned())
}
