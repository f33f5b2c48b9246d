//! `aptix batches` with options that choose batches.

use serde_json::json;

use crate::documents::create;
use crate::processes::{Machine, Server, served, with_input};

fn keys(machine: &Machine, server: &Server, options: &[&str]) -> Vec<String> {
    let (listed, exit) = machine.ask(server, "batches", options);
    assert_eq!(exit, Some(0), "{listed}");
    let batches = listed["batches"].as_array().unwrap();
    batches.iter().map(|batch| batch["files"][0].as_str().unwrap().to_owned()).collect()
}

#[test]
fn batches_are_chosen_by_state_session_path_author_and_time() {
    let (machine, server, _agent) = served("auto");
    assert_eq!(machine.submit(&server, &create("a.txt", "a\n")).1, Some(0));
    assert_eq!(machine.submit(&server, &create("a.txt", "b\n")).1, Some(1), "the file exists");
    let mut other =
        machine.aptix(&["submit", "--server", &server.url(), "--workspace", "demo", "--session", "s2", "--wait"]);
    let done = with_input(&mut other, &create("dir/b.txt", "b\n"));
    assert!(done.status.success(), "{done:?}");
    let cases: [(&[&str], &[&str]); 9] = [
        (&[], &["dir/b.txt", "a.txt", "a.txt"]),
        (&["--state", "failed"], &["a.txt"]),
        (&["--state", "failed", "--state", "applied"], &["dir/b.txt", "a.txt", "a.txt"]),
        (&["--session", "s2"], &["dir/b.txt"]),
        (&["--path", "project/dir/"], &["dir/b.txt"]),
        (&["--author", "author", "--since", "2026-01-01"], &["dir/b.txt", "a.txt", "a.txt"]),
        (&["--author", "agent"], &[]),
        (&["--author", "any:nobody"], &[]),
        (&["--until", "2026-01-01T00:00:00Z"], &[]),
    ];
    for (options, expected) in cases {
        assert_eq!(keys(&machine, &server, options), expected, "{options:?}");
    }
    for option in ["--state", "--author", "--since"] {
        let refused = machine.call(&server, "batches", &[option, "nonsense"]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    let (refused, exit) = machine.ask(&server, "batches", &["--path", "../x"]);
    assert_eq!((exit, &refused["errors"][0]["code"]), (Some(1), &json!("INVALID_PATH")), "{refused}");
}
