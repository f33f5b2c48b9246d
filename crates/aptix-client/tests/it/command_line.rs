//! The command line itself: usage, text for people, logs, interruption.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) fn aptix(place: &Path, arguments: &[&str], document: impl AsRef<[u8]>) -> Output {
    run(place, arguments, document, |_| ())
}

/// Runs `aptix` in surroundings of its own.
pub(crate) fn run(
    place: &Path,
    arguments: &[&str],
    document: impl AsRef<[u8]>,
    surround: impl FnOnce(&mut Command),
) -> Output {
    std::fs::create_dir_all(place.join("ws")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix"));
    command
        .args(arguments)
        .current_dir(place.join("ws"))
        .env("XDG_STATE_HOME", place.join("state"))
        .env("XDG_CONFIG_HOME", place.join("config"))
        .env("APTIX_LOG", "info")
        .env_remove("USER")
        .env_remove("LOGNAME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    surround(&mut command);
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(document.as_ref());
    drop(stdin);
    child.wait_with_output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn wrong_usage_is_exit_2_and_help_is_exit_0() {
    let place = tempfile::tempdir().unwrap();
    let cases: &[&[&str]] = &[
        &[],
        &["nothing"],
        &["apply", "--nothing"],
        &["apply", "--dialect", "klingon"],
        &["apply", "--session", "a b"],
        &["apply", "--state-home", "relative"],
        &["--state-home", "../state", "apply"],
    ];
    for arguments in cases {
        let output = aptix(place.path(), arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    for arguments in [&["apply", "--json", "--nothing"][..], &["submit", "--json"], &["log", "--json", "x", "y"]] {
        let output = aptix(place.path(), arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&answer["success"], &answer["errors"][0]["code"]), (&false.into(), &"INVALID_REQUEST".into()));
        assert!(!answer["errors"][0]["message"].as_str().unwrap().is_empty(), "{answer}");
    }
    for arguments in [&["--help"][..], &["apply", "--help"], &["--version"], &["completions", "bash"]] {
        let output = aptix(place.path(), arguments, "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}

/// REQ-PATCH-009.1, REQ-PATCH-009.4: undoing writes as well; the mode is read for every command anew.
#[test]
fn nothing_is_undone_in_restricted_mode() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("config/aptix/policy.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let set = |mode: &str| {
        std::fs::write(&file, format!("mode = \"{mode}\"\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    let made = place.path().join("ws/a.txt");
    set("unrestricted");
    assert!(aptix(place.path(), &["apply"], r#"{"path":"a.txt","content":"one\n"}"#).status.success());
    set("restricted");
    for name in [&["undo"][..], &["undo", "no such batch"]] {
        let output = aptix(place.path(), name, "");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        let words = "Patch tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.";
        assert!(message.contains(&format!("POLICY_DENIED (RESTRICTED_MODE): {words}")), "{message}");
        assert!(made.exists(), "{name:?}");
    }
    set("unrestricted");
    assert!(aptix(place.path(), &["undo"], "").status.success());
    assert!(!made.exists());
}

#[test]
fn people_get_a_diff_and_a_line_for_each_file_and_nothing_can_hide_in_it() {
    let place = tempfile::tempdir().unwrap();
    let document = r#"{"path":"a.txt","content":"one\u001b[31m\u202e\ufe0f\u3164\udb40\udd00\ttwo\n"}"#;
    let output = aptix(place.path(), &["apply", "--yes"], document);
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    assert!(shown.contains("+one\\u{1b}[31m\\u{202e}\\u{fe0f}\\u{3164}\\u{e0100}\ttwo\n"), "{shown}");
    assert!(shown.ends_with("\ncreated a.txt\n"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "no colour without a terminal: {shown:?}");

    let output = aptix(place.path(), &["apply"], document);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("error: FILE_EXISTS: a.txt: "), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("hint: "));
}

#[test]
fn a_created_file_is_logged_with_what_it_came_from_and_what_became_of_it() {
    // TUL-004-3.3.7, TUL-004-6.2.1
    let place = tempfile::tempdir().unwrap();
    let document = r#"{"path":"a.txt","content":"x\n"}"#;
    let logged = text(&aptix(place.path(), &["apply", "--session", "s-1"], document).stderr);
    for field in [
        "Event=\"Tool.CreateFile.Executed\"",
        "SessionId=\"s-1\"",
        "Path=\"a.txt\"",
        "Overwrite=false",
        "Success=true",
        "SizeBytes=2",
        "Hash=73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac",
    ] {
        assert!(logged.contains(field), "{field}: {logged}");
    }
    let logged = text(&aptix(place.path(), &["apply"], document).stderr);
    for field in ["Path=\"a.txt\"", "Overwrite=false", "Success=false", "ErrorCode=\"FileExists\""] {
        assert!(logged.contains(field), "{field}: {logged}");
    }
    let document = r#"{"path":"a.txt","content":"","overwrite":true}"#;
    let logged = text(&aptix(place.path(), &["apply"], document).stderr);
    let empty = "Hash=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    for field in ["Event=\"Tool.CreateFile.Executed\"", "Overwrite=true", "Success=true", "SizeBytes=0", empty] {
        assert!(logged.contains(field), "{field}: {logged}");
    }
}

#[test]
fn a_document_that_cannot_be_read_is_a_failure_of_the_environment() {
    let place = tempfile::tempdir().unwrap();
    for file in ["nothing.json", "."] {
        let output = aptix(place.path(), &["apply", "--json", file], "");
        assert_eq!(output.status.code(), Some(3), "{file}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["errors"][0]["code"], "READ_FAILED");
    }
}

#[test]
fn a_file_of_a_connection_that_cannot_be_read_is_a_failure_of_the_environment() {
    let place = tempfile::tempdir().unwrap();
    let call = ["batches", "--json", "--server", "https://127.0.0.1:1", "--workspace", "w"];
    for (option, hint) in
        [("--ca", "name a file with certificates in PEM"), ("--token-file", "name a file that has the token")]
    {
        let output = aptix(place.path(), &[&call[..], &[option, "absent"]].concat(), "");
        assert_eq!(output.status.code(), Some(3), "{option}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = &answer["errors"][0];
        assert_eq!(error["code"], "READ_FAILED", "{answer}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{answer}");
    }
}

/// What several commands have in common is described for the command that it is asked about.
#[test]
fn help_describes_an_option_for_its_command() {
    let place = tempfile::tempdir().unwrap();
    for (command, expected) in
        [("login", "in $APTIX_TOKEN, or a line of stdin"), ("revert", "The session that the call comes from")]
    {
        let output = aptix(place.path(), &[command, "--help"], "");
        let help = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(expected), "{help}");
    }
}

#[test]
fn an_unread_log_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("ws")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_aptix"))
        .args(["apply", "--json"])
        .current_dir(place.path().join("ws"))
        .env("XDG_STATE_HOME", place.path().join("state"))
        .env("XDG_CONFIG_HOME", place.path().join("config"))
        .env("APTIX_LOG", "info")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    child.stdin.take().unwrap().write_all(br#"{"path":"a.txt","content":"x"}"#).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["state"], "APPLIED");
}

#[test]
fn aptix_log_filters_the_log_and_rust_log_does_not() {
    let place = tempfile::tempdir().unwrap();
    let run = |variable: &str, content: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_aptix"));
        std::fs::create_dir_all(place.path().join("ws")).unwrap();
        let arguments = ["apply", "--json", &format!("{content}.json")];
        let document = format!(r#"{{"path":"{content}.txt","content":"x"}}"#);
        std::fs::write(place.path().join("ws").join(arguments[2]), document).unwrap();
        let child = child.args(arguments).current_dir(place.path().join("ws")).env_remove("APTIX_LOG");
        let child = child.env("XDG_STATE_HOME", place.path().join("state")).env("XDG_CONFIG_HOME", place.path());
        text(&child.env(variable, "info").output().unwrap().stderr)
    };
    assert!(run("APTIX_LOG", "a").contains(" INFO "));
    assert_eq!(run("RUST_LOG", "b"), "");
}

#[test]
fn the_command_line_says_how_much_is_logged_and_whether_output_is_coloured() {
    let place = tempfile::tempdir().unwrap();
    let mut number = 0;
    let mut run_with = |flags: &[&str], log: &str| {
        number += 1;
        let arguments = [&["apply"], flags].concat();
        let document = format!(r#"{{"path":"{number}.txt","content":"x\n"}}"#);
        run(place.path(), &arguments, document, |command| {
            command.env("APTIX_LOG", log);
        })
    };
    let counts = |output: &Output| {
        let stderr = text(&output.stderr);
        [" INFO ", "DEBUG"].map(|level| stderr.contains(level))
    };
    assert_eq!(counts(&run_with(&[], "")), [false, false]);
    assert_eq!(counts(&run_with(&["-v"], "")), [true, false]);
    assert_eq!(counts(&run_with(&["-vv"], ""))[0], counts(&run_with(&["-v"], ""))[0]);
    assert_eq!(counts(&run_with(&["--quiet"], "debug")), [false, false], "the command line counts more");
    for (color, is_coloured) in [("always", true), ("never", false), ("auto", false)] {
        let output = run_with(&["-v", "--color", color], "");
        let all = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(all.contains('\u{1b}'), is_coloured, "{color}: {all}");
    }
    assert_eq!(run_with(&["-v", "-q"], "").status.code(), Some(2));
}

#[test]
fn the_server_and_the_workspace_can_be_named_by_the_environment() {
    let place = tempfile::tempdir().unwrap();
    let named = |command: &mut Command| {
        command.env("APTIX_SERVER", "http://127.0.0.1:1").env("APTIX_WORKSPACE", "somewhere");
    };
    let output = run(place.path(), &["batches"], "", named);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("http://127.0.0.1:1"), "{}", text(&output.stderr));
    let other = run(place.path(), &["batches", "--server", "http://127.0.0.1:2"], "", named);
    assert!(text(&other.stderr).contains("http://127.0.0.1:2"), "{}", text(&other.stderr));
    let unnamed = run(place.path(), &["batches"], "", |_| ());
    assert_eq!(unnamed.status.code(), Some(2));
}

#[test]
fn with_several_roots_the_output_names_the_root() {
    let place = tempfile::tempdir().unwrap();
    for root in ["One", "two"] {
        std::fs::create_dir(place.path().join(root)).unwrap();
    }
    let arguments = ["apply", "--root", "one=../One", "--root", "two=../two"];
    let shown = aptix(place.path(), &arguments, r#"{"path":"two/a.txt","content":"x\n"}"#);
    let shown = text(&shown.stdout);
    assert!(shown.starts_with("batch ") && shown.contains(" APPLIED\ndiff --git a/two/a.txt b/two/a.txt\n"), "{shown}");
    assert!(shown.ends_with("\ncreated two/a.txt\n"), "{shown}");
}

#[test]
fn an_interrupted_command_reports_it_and_exits_with_130() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("ws")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_aptix"))
        .args(["apply", "--json"])
        .current_dir(place.path().join("ws"))
        .env("XDG_STATE_HOME", place.path().join("state"))
        .env("XDG_CONFIG_HOME", place.path().join("config"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It waits for its document once its lock exists; the handler was there before that.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    let has_lock = || {
        let roots = std::fs::read_dir(place.path().join("state/aptix/roots")).ok();
        roots.and_then(|mut roots| roots.next()).is_some_and(|root| root.unwrap().path().join("journal").exists())
    };
    while !has_lock() {
        assert!(std::time::Instant::now() < deadline, "the command never began");
        std::thread::yield_now();
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let keep_open = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["state"], &answer["errors"][0]["code"]), (&"FAILED".into(), &"INTERRUPTED".into()), "{answer}");
    drop(keep_open);
}

#[test]
fn what_was_applied_is_listed_and_taken_back() {
    let place = tempfile::tempdir().unwrap();
    let json = |arguments: &[&str], document: &str, code: i32| {
        let output = aptix(place.path(), arguments, document);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let refused = json(&["undo", "--json"], "", 1);
    assert_eq!((&refused["errors"][0]["code"], &refused["success"]), (&"NOT_FOUND".into(), &false.into()));
    assert_eq!(json(&["log", "--json"], "", 0), serde_json::json!({ "batches": [], "displacedWrites": [] }));
    json(&["apply", "--json"], r#"{"path":"a.txt","content":"x\n"}"#, 0);
    let log = json(&["log", "--json"], "", 0);
    let batch = &log["batches"][0];
    let files = serde_json::json!([{ "path": "a.txt", "docPath": "ws/a.txt", "status": "created", "renamedTo": null }]);
    assert_eq!((&batch["files"], &batch["undoes"]), (&files, &serde_json::Value::Null));
    assert!(batch["appliedUnixMs"].as_u64().unwrap() > 1_700_000_000_000);
    let name = batch["batchId"].as_str().unwrap();
    let undone = json(&["undo", "--json", name], "", 0);
    assert_eq!((&undone["state"], &undone["files"][0]["status"]), (&"APPLIED".into(), &"deleted".into()));
    assert!(undone["diff"].as_str().unwrap().contains("-x\n"));
    assert!(!place.path().join("ws/a.txt").exists());
    let shown = text(&aptix(place.path(), &["log"], "").stdout);
    assert!(shown.contains(&format!("  deleted a.txt  (undid {name})  by person\n")), "{shown}");
    let again = text(&aptix(place.path(), &["undo", "--redo"], "").stdout);
    assert!(again.ends_with("\ncreated a.txt\n"), "{again}");
}

/// A file patch that names two paths is reported under its own; the message names the one that is refused.
#[test]
fn the_other_path_of_a_file_patch_is_named_when_that_is_what_is_refused() {
    let place = tempfile::tempdir().unwrap();
    crate::policy_file::put(place.path(), "deny = ['denied']\nask = ['asked']\n");
    let root = place.path().join("ws");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    std::fs::write(root.join(".git/config"), "x\n").unwrap();
    std::fs::write(root.join("denied"), "x\n").unwrap();
    std::fs::write(root.join("f"), "x\n").unwrap();
    std::os::unix::fs::symlink("/", root.join("out")).unwrap();
    let patch = |verb: &str, from: &str, to: &str| {
        format!("diff --git a/{from} b/{to}\nsimilarity index 100%\n{verb} from {from}\n{verb} to {to}\n")
    };
    let renamed = |to: &str| (patch("rename", "f", to), format!("f: where it is renamed to, {to:?}: "));
    let copied = |from: &str| (patch("copy", from, "new"), format!("new: what it is copied from, {from:?}: "));
    let cases = [
        renamed(".git/hooks/x"),
        renamed("denied"),
        renamed("out/x"),
        renamed("../x"),
        copied(".git/config"),
        copied("denied"),
        (patch("rename", "f", "asked"), "f: a person has to agree: \"asked\": ".to_owned()),
        (patch("rename", "f", ".env"), "f: a person has to agree: \".env\": ".to_owned()),
        (patch("rename", "f", "AGENTS.md"), "f: a person has to agree: \"AGENTS.md\": ".to_owned()),
    ];
    for (document, message) in cases {
        let output = aptix(place.path(), &["apply"], &document);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{document}: {stderr}");
        assert!(stderr.contains(&message), "{message}: {stderr}");
    }
}
