//! Which directories the tools work in: those of the command line, else those that the client names, else the working directory.

use std::path::Path;

use serde_json::{Value, json};

use super::client::Client;

/// Two directories beside the working directory.
fn two(ws: &Path) {
    for dir in ["one", "the other"] {
        std::fs::create_dir(ws.with_file_name(dir)).unwrap();
    }
}

fn create(path: &str) -> Value {
    json!({ "file_path": path, "old_string": "", "new_string": "new\n" })
}

fn is_there(client: &Client, path: &str) -> bool {
    client.place.path().join(path).exists()
}

/// Answers the question for the client's roots, with these directories of its place.
fn name_roots(client: &mut Client, directories: &[&str]) {
    let asked = client.hear();
    assert_eq!(asked["method"], "roots/list", "{asked}");
    let roots = directories.iter().map(|dir| {
        let uri = format!("file://{}", client.place.path().join(dir).display()).replace(' ', "%20");
        json!({ "uri": uri, "name": "any" })
    });
    let roots: Vec<_> = roots.collect();
    client.decide(&asked["id"], &json!({ "roots": roots }));
}

fn has_roots() -> Value {
    json!({ "roots": { "listChanged": true } })
}

#[test]
fn with_several_roots_paths_begin_with_the_name_of_one() {
    let options = ["--root", "../one", "--root", "second=../the other"];
    let mut client = Client::with(&options, &has_roots(), two);
    client.done("edit", &create("second/a.txt"));
    let absolute = client.place.path().join("one/b.txt");
    client.done("edit", &create(absolute.to_str().unwrap()));
    assert!(is_there(&client, "the other/a.txt") && is_there(&client, "one/b.txt"));
    assert_eq!(client.refused("edit", &create("c.txt")), "INVALID_PATH.UNKNOWN_ROOT");
    for (path, names) in [("", ["one", "second"]), ("one", ["b.txt", "b.txt"])] {
        let listed = client.done("list_directory", &json!({ "path": path })).structured.to_string();
        assert!(names.iter().all(|name| listed.contains(name)), "{listed}");
    }
    client.end();
}

#[test]
fn without_a_root_those_of_the_client_are_opened() {
    let mut client = Client::with(&[], &has_roots(), two);
    // A call that comes before the answer waits for it.
    client.send("edit", &create("the other/a.txt"));
    name_roots(&mut client, &["one", "the other", "the other"]);
    let created = client.answered();
    assert!(!created.is_error, "{}", created.structured);
    assert!(is_there(&client, "the other/a.txt"));
    client.end();

    let mut client = Client::with(&[], &has_roots(), two);
    name_roots(&mut client, &["one"]);
    client.done("edit", &create("a.txt"));
    assert!(is_there(&client, "one/a.txt") && !is_there(&client, "ws/a.txt"));
    client.end();
}

/// Wherever links lead: one that is there twice is opened once, and one that only seems to lie in another is opened for itself.
#[test]
fn a_root_in_another_one_is_a_part_of_it() {
    let lay_out = |ws: &Path| {
        two(ws);
        std::fs::create_dir(ws.with_file_name("one").join("sub")).unwrap();
        std::os::unix::fs::symlink(ws.with_file_name("one"), ws.with_file_name("alias")).unwrap();
        std::os::unix::fs::symlink(ws.with_file_name("the other"), ws.with_file_name("one").join("link")).unwrap();
    };
    let mut client = Client::with(&[], &has_roots(), lay_out);
    name_roots(&mut client, &["one/sub", "one", "alias", "one/link"]);
    client.done("edit", &create("one/sub/a.txt"));
    client.done("edit", &create("the other/b.txt"));
    assert!(is_there(&client, "one/sub/a.txt") && is_there(&client, "the other/b.txt"));
    client.end();
}

#[test]
fn a_client_without_roots_works_in_the_working_directory() {
    let mut client = Client::with(&[], &json!({}), two);
    client.done("edit", &create("a.txt"));
    assert!(is_there(&client, "ws/a.txt"));
    client.end();

    let mut client = Client::with(&[], &has_roots(), two);
    name_roots(&mut client, &[]);
    client.done("edit", &create("a.txt"));
    assert!(is_there(&client, "ws/a.txt"));
    client.end();
}

/// No other directory takes the place of one that the client meant.
#[test]
fn roots_that_cannot_be_opened_end_the_server_with_the_reason() {
    let answers = [
        (json!({ "error": { "code": -32603, "message": "no window" } }), "no window; name them with --root DIR"),
        (json!({ "result": { "roots": [{ "uri": "vscode-vfs://github/a/b" }] } }), "vscode-vfs://github/a/b"),
        (json!({ "result": { "roots": [{ "uri": "file:///no/such/directory" }] } }), "/no/such/directory"),
    ];
    for (mut answer, part) in answers {
        let mut client = Client::with(&[], &has_roots(), two);
        let asked = client.hear();
        client.send("edit", &create("a.txt"));
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = asked["id"].clone();
        client.say(&answer.to_string());
        let refused = client.hear();
        assert!(refused["error"]["message"].as_str().unwrap().contains("cannot be opened"), "{refused}");
        assert_ne!(client.child.wait().unwrap().code(), Some(0));
        let log = std::fs::read_to_string(client.place.path().join("log")).unwrap();
        assert!(log.contains("error: ") && log.contains(part), "{log}");
        assert!(!is_there(&client, "ws/a.txt"));
    }
}

/// The answer of the client is read, however many calls it sent before.
#[test]
fn calls_before_the_roots_are_named_keep_no_answer_back() {
    let mut client = Client::with(&[], &has_roots(), two);
    let asked = client.hear();
    for number in 0..40 {
        client.send("edit", &create(&format!("{number}.txt")));
    }
    let uri = format!("file://{}", client.place.path().join("one").display());
    client.decide(&asked["id"], &json!({ "roots": [{ "uri": uri }] }));
    let heard: Vec<_> = (0..40).map(|_| client.hear()).collect();
    let refused =
        heard.iter().filter(|heard| heard["error"]["message"].as_str().is_some_and(|why| why.contains("again")));
    let written = std::fs::read_dir(client.place.path().join("one")).unwrap().count();
    assert_eq!(written + refused.count(), 40);
    assert!(written >= 8, "{written} were carried out");
    client.end();
}

/// A client that writes everything at once and closes its end is answered.
#[test]
fn calls_of_a_client_that_left_are_carried_out() {
    let mut client = Client::silent();
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let call = json!({ "name": "edit", "arguments": create("a.txt") });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }),
    ];
    client.say(&lines.map(|line| line.to_string()).join("\n"));
    drop(client.stdin.take());
    assert_eq!([client.hear()["id"].clone(), client.hear()["id"].clone()], [0, 1]);
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    assert!(is_there(&client, "ws/a.txt"));
}

#[test]
fn a_server_that_is_stopped_before_the_roots_are_named_ends() {
    let mut client = Client::with(&[], &has_roots(), two);
    client.hear();
    client.send("edit", &create("a.txt"));
    let id = client.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    assert!(!is_there(&client, "ws/a.txt"));
}

/// A client that leaves instead of naming its roots is no failure.
#[test]
fn a_client_that_leaves_before_it_named_its_roots_ends_the_server() {
    let client = Client::with(&[], &has_roots(), two);
    client.hear();
    client.end();
}
