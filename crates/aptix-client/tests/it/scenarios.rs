//! Runs the scenario files: a tree, a document, what the command answers, and the tree afterwards.
//!
//! A scenario begins with `== TITLE`, with `IDS: ` before the title where it holds rules of the register. Its parts begin with `--- ` and a word:
//! `file PATH [mode=OCTAL]`, `dir PATH`, `link PATH -> TARGET`, `fifo PATH`, `socket PATH`, `hard PATH -> PATH` lay out the tree; `flags` and `roots`
//! (default `ws=ws`) go to the command, `policy [mode=OCTAL]` is the person's policy file; `document` is its input; `exit N` (default 0), `error CODE [DETAIL] [KEY=VALUE]...`,
//! `warning CODE`, `example LINE` (a block that was taken for one) and `says KEY=VALUE...` are what it answers; `after PATH [mode=OCTAL]` is a file afterwards, `after PATH gone` none; everything else is as before.
//! With `cases`, the scenario is run once for each line `TEXT => CODE [DETAIL] [& CODE ...]` or `TEXT => ok`, with `$1` in the document
//! and in the names replaced by TEXT.
//!
//! In files and documents `\r \n \t \0 \\ \xNN` are bytes and a `\c` at the end of a line joins it to nothing, not even a newline.
//! In documents, where JSON has its own escapes, only `{{sha PATH}}`, `{{xNN}}` and `{{N times TEXT}}` are replaced.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::scenario_text::{Part, Scenario, document, parse, unescaped};
use crate::tree::{self, Entry, Tree};

#[test]
fn line_patches() {
    run_all(include_str!("scenarios/line_patch.txt"));
}

#[test]
fn created_files() {
    run_all(include_str!("scenarios/create_file.txt"));
}

#[test]
fn git_patches_and_file_bundles() {
    run_all(include_str!("scenarios/git_patch.txt"));
}

#[test]
fn suspect_content() {
    run_all(include_str!("scenarios/content.txt"));
}

#[test]
fn paths() {
    run_all(include_str!("scenarios/paths.txt"));
}

#[test]
fn policy() {
    run_all(include_str!("scenarios/policy.txt"));
}

#[test]
fn violations() {
    run_all(include_str!("scenarios/violations.txt"));
}

#[test]
fn documents() {
    run_all(include_str!("scenarios/documents.txt"));
}

#[test]
fn whole_answers() {
    run_all(include_str!("scenarios/answers.txt"));
}

#[test]
fn search_patches() {
    run_all(include_str!("scenarios/search_patch.txt"));
}

#[test]
fn formats_of_other_tools() {
    run_all(include_str!("scenarios/imported.txt"));
}

#[test]
fn bytes_that_stay() {
    run_all(include_str!("scenarios/bytes.txt"));
}

/// The path that a part begins with, and the rest.
fn path(part: &Part) -> (&str, &str) {
    let end = part.rest.find(" -> ").or_else(|| part.rest.find(" mode=")).unwrap_or(part.rest.len());
    part.rest.split_at(end)
}

fn mode(rest: &str) -> Option<u32> {
    rest.strip_prefix(" mode=").map(|mode| u32::from_str_radix(mode, 8).unwrap())
}

fn run_all(text: &str) {
    let mut failed = Vec::new();
    for scenario in parse(text) {
        for (case, scenario) in cases(&scenario) {
            let name = format!("{} [{case}]", scenario.title);
            // All that fail are reported, not only the first.
            if std::panic::catch_unwind(|| run(&scenario, &name)).is_err() {
                failed.push(name);
            }
        }
    }
    assert!(failed.is_empty(), "failed:\n{}", failed.join("\n"));
}

fn cases(scenario: &Scenario) -> Vec<(String, Scenario)> {
    let Some(table) = scenario.parts.iter().find(|part| part.word == "cases") else {
        return vec![(String::new(), scenario.clone())];
    };
    let mut cases = Vec::new();
    for line in table.body.lines().filter(|line| !line.is_empty()) {
        let (text, expected) = line.rsplit_once(" => ").unwrap_or_else(|| panic!("no '=>' in {line:?}"));
        let mut case = scenario.clone();
        case.parts.retain(|part| part.word != "cases");
        for part in &mut case.parts {
            part.body = part.body.replace("$1", text);
            part.rest = expand(&part.rest.replace("$1", text));
        }
        if expected != "ok" {
            // What the scenario says about a good ending does not hold for a refused case.
            case.parts.retain(|part| !matches!(part.word.as_str(), "after" | "says" | "warning" | "example"));
            let exit = case.parts.iter().all(|part| part.word != "exit");
            let mut add = |word: &str, rest: &str| {
                case.parts.push(Part { word: word.to_owned(), rest: rest.to_owned(), body: String::new() });
            };
            expected.split(" & ").for_each(|error| add("error", error));
            if exit {
                add("exit", "1");
            }
        }
        cases.push((text.to_owned(), case));
    }
    cases
}

/// `{{N times TEXT}}`, written out.
fn expand(text: &str) -> String {
    let Some((plain, rest)) = text.split_once("{{") else { return text.to_owned() };
    let Some((order, rest)) = rest.split_once("}}") else { return text.to_owned() };
    match order.split_once(" times ") {
        Some((count, what)) => format!("{plain}{}{}", what.repeat(count.parse().unwrap()), expand(rest)),
        None => format!("{plain}{{{{{order}}}}}{}", expand(rest)),
    }
}

fn all<'a>(scenario: &'a Scenario, word: &'a str) -> impl Iterator<Item = &'a Part> {
    scenario.parts.iter().filter(move |part| part.word == word)
}

fn rest<'a>(scenario: &'a Scenario, word: &'a str, default: &'a str) -> &'a str {
    all(scenario, word).next().map_or(default, |part| part.rest.as_str())
}

fn run(scenario: &Scenario, name: &str) {
    let known = [
        "file", "dir", "link", "fifo", "socket", "hard", "flags", "roots", "document", "exit", "error", "warning",
        "says", "after", "policy", "example",
    ];
    for part in &scenario.parts {
        assert!(known.contains(&part.word.as_str()), "{name}: unknown part {:?}", part.word);
    }
    let place = tempfile::tempdir().unwrap();
    let top = place.path().join("top");
    std::fs::create_dir_all(top.join("ws")).unwrap();
    lay_out(scenario, &top);
    if let Some(policy) = all(scenario, "policy").next() {
        let file = place.path().join("config/aptix/policy.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &policy.body).unwrap();
        let mode = mode(&format!(" {}", policy.rest)).unwrap_or(0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let before = tree::read(&top);

    let body = &all(scenario, "document").next().expect("a scenario has a document").body;
    let document = document(body, &top);
    let output = apply(scenario, place.path(), &top, &document);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{name}: stdout is not one JSON object: {error}\n{stderr}"));

    let shown = format!("{name}\n{answer:#}\n{stderr}");
    let errors: Vec<&Value> = answer["errors"].as_array().unwrap().iter().collect();
    let expected: Vec<&Part> = all(scenario, "error").collect();
    let found: Vec<_> = errors.iter().map(|error| words(error)).collect();
    assert_eq!(found.len(), expected.len(), "{shown}");
    for (error, part) in errors.iter().zip(expected) {
        check_error(error, &part.rest, &shown);
    }
    let exit: i32 = rest(scenario, "exit", "0").parse().unwrap();
    assert_eq!(output.status.code(), Some(exit), "{shown}");
    assert_eq!(answer["success"], exit == 0, "{shown}");
    check_files(&answer, &shown);
    let warned: Vec<_> =
        answer["files"].as_array().unwrap().iter().flat_map(|file| file["warnings"].as_array().unwrap()).collect();
    let warnings: Vec<_> = all(scenario, "warning").map(|part| part.rest.as_str()).collect();
    assert_eq!(warned.iter().map(|warning| warning["code"].as_str().unwrap()).collect::<Vec<_>>(), warnings, "{shown}");
    let examples = answer["warnings"].as_array().unwrap().iter().filter(|warning| warning["code"] == "BLOCK_IGNORED");
    let examples: Vec<_> = examples.map(|warning| warning["line"].to_string()).collect();
    let expected: Vec<_> = all(scenario, "example").map(|part| part.rest.as_str()).collect();
    if exit == 0 {
        assert_eq!(examples, expected, "{shown}");
    }
    for part in all(scenario, "says") {
        check_file(&answer["files"], &part.rest, &shown);
    }

    tree::assert_same(&tree::read(&top), &expected_tree(scenario, &before, &top), &shown);
    if rest(scenario, "flags", "").contains("--dry-run") {
        assert!(!place.path().join("state").exists(), "{name}: a dry run leaves no trace");
    } else {
        assert_no_debris(place.path(), name);
    }
}

fn words(error: &Value) -> String {
    format!("{} {}", error["code"].as_str().unwrap(), error["detail"].as_str().unwrap_or("-"))
}

/// Each file of a batch that was refused is listed as one that did not change, and a change that failed names its error; one
/// that was applied names how it found its place. All ids are in the block of the batch's, whatever a document says of ids.
fn check_files(answer: &Value, shown: &str) {
    let (success, errors) = (answer["success"] == true, answer["errors"].as_array().unwrap());
    let files = answer["files"].as_array().unwrap();
    assert!(!success || !files.is_empty(), "{shown}");
    let block = |id: &Value| id.as_str().map(|id| id[..31].to_owned());
    for (index, file) in files.iter().enumerate() {
        let status = file["status"].as_str().unwrap();
        assert_eq!(matches!(status, "failed" | "not_applied"), !success, "{shown}");
        assert_eq!(status == "failed", errors.iter().any(|error| error["fileIndex"] == index), "{shown}");
        assert!(file["docPath"].is_string(), "{shown}");
        assert_eq!(block(&file["filePatchId"]), block(&answer["batchId"]), "{shown}");
        for (at, change) in file["changes"].as_array().unwrap().iter().enumerate() {
            assert_eq!(change["tier"].is_string(), success, "{shown}");
            assert_eq!(block(&change["changeId"]), block(&answer["batchId"]), "{shown}");
            let named = |error: &Value| error["fileIndex"] == index && error["changeIndex"] == at;
            assert_eq!(change["failure"], errors.iter().position(named).map_or(Value::Null, Value::from), "{shown}");
        }
    }
}

/// `CODE [DETAIL] [KEY=VALUE]...`
fn check_error(error: &Value, expected: &str, shown: &str) {
    let mut parts = expected.split_whitespace().peekable();
    assert_eq!(error["code"], *parts.next().unwrap(), "{shown}");
    let detail = parts.next_if(|part| !part.contains('=')).map_or(Value::Null, Value::from);
    assert_eq!(error["detail"], detail, "{shown}");
    check_keys(error, parts, shown);
    assert!(!error["message"].as_str().unwrap().is_empty(), "{shown}");
}

fn check_file(files: &Value, expected: &str, shown: &str) {
    let mut parts = expected.split_whitespace();
    let index: usize = parts.next().unwrap().parse().unwrap();
    check_keys(&files[index], parts, shown);
}

/// `KEY=VALUE`, the value compared as text; a key may be a path with dots.
fn check_keys<'a>(value: &Value, pairs: impl Iterator<Item = &'a str>, shown: &str) {
    for pair in pairs {
        let (key, expected) = pair.split_once('=').unwrap();
        let found = value.pointer(&format!("/{}", key.replace('.', "/"))).unwrap_or(&Value::Null);
        let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
        assert_eq!(found, expected, "{key}: {shown}");
    }
}

fn lay_out(scenario: &Scenario, top: &Path) {
    for part in &scenario.parts {
        let (path, rest) = path(part);
        let place = top.join(path);
        if matches!(part.word.as_str(), "file" | "dir" | "link" | "fifo" | "socket" | "hard") {
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        }
        let target = rest.strip_prefix(" -> ").unwrap_or_default();
        match part.word.as_str() {
            "file" => {
                std::fs::write(&place, unescaped(&part.body)).unwrap();
                std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode(rest).unwrap_or(0o644))).unwrap();
            }
            "dir" => std::fs::create_dir_all(&place).unwrap(),
            "link" => symlink(target, &place).unwrap(),
            "hard" => std::fs::hard_link(top.join(target), &place).unwrap(),
            "socket" => drop(std::os::unix::net::UnixListener::bind(&place).unwrap()),
            "fifo" => assert!(Command::new("mkfifo").arg(&place).status().unwrap().success()),
            _ => {}
        }
    }
}

fn apply(scenario: &Scenario, place: &Path, top: &Path, document: &[u8]) -> Output {
    let mut arguments = vec!["apply".to_owned(), "--json".to_owned()];
    for root in rest(scenario, "roots", "ws=ws").split(' ') {
        arguments.extend(["--root".to_owned(), root.to_owned()]);
    }
    arguments.extend(rest(scenario, "flags", "").split_whitespace().map(str::to_owned));
    let mut child = Command::new("sh")
        .args(["-c", "umask 022; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_aptix")])
        .args(arguments)
        .current_dir(top)
        .env("XDG_STATE_HOME", place.join("state"))
        .env("XDG_CONFIG_HOME", place.join("config"))
        .env_remove("APTIX_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that refuses early does not read all of it.
    let _ = stdin.write_all(document);
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn expected_tree(scenario: &Scenario, before: &Tree, top: &Path) -> Tree {
    let mut expected = before.clone();
    for part in all(scenario, "after") {
        if let Some(path) = part.rest.strip_suffix(" gone") {
            expected.remove(path);
            continue;
        }
        let (path, rest) = path(part);
        let old = match before.get(path) {
            Some(Entry::File { mode, .. }) => Some(*mode),
            _ => None,
        };
        let mode = mode(rest).or(old).unwrap_or(0o644);
        expected.insert(path.to_owned(), Entry::File { mode, bytes: unescaped(&part.body) });
        for parent in Path::new(path).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            expected.entry(parent.to_str().unwrap().to_owned()).or_insert(Entry::Dir { mode: 0o755 });
        }
    }
    assert!(top.exists());
    expected
}

/// Nothing is left in the state directory but locks and empty directories.
pub(crate) fn assert_no_debris(place: &Path, name: &str) {
    let state = place.join("state");
    assert!(state.exists(), "{name}: there is no state directory to look at");
    let left: BTreeMap<_, _> = tree::read(&state)
        .into_iter()
        .filter(|(path, entry)| {
            let file = PathBuf::from(path);
            let is_lock = file
                .file_name()
                .is_some_and(|name| ["lock", "agent.lock", "outbox.lock"].contains(&&*name.to_string_lossy()));
            // That a batch has ended is remembered in the log, and later in a list.
            let is_done = path.ends_with("outbox/log") || file.parent().is_some_and(|dir| dir.ends_with("ended"));
            // What a session has on its clipboards stays until it is left alone for long.
            let is_clipboard = file.parent().is_some_and(|dir| dir.ends_with("clipboards"));
            // So is what it would take to undo it.
            let is_past = file.parent().is_some_and(|dir| dir.ends_with("history"))
                && file.extension().is_none_or(|ending| ending == "late");
            // So is what was tried when a batch was refused.
            let is_past = is_past || file.parent().is_some_and(|dir| dir.ends_with("refused"));
            // So is what is derived from others.
            let is_index =
                path.ends_with("index/history-1") || file.parent().is_some_and(|dir| dir.ends_with("unfinished"));
            // So is the clock by which they age.
            let is_age = path.ends_with("age/clock");
            // So is what a batch has displaced, for a day.
            let is_displaced = file.parent().is_some_and(|dir| dir.ends_with("displaced"))
                && !path.ends_with("/next")
                && !path.ends_with(".part");
            let is_known = is_displaced || is_lock || is_done || is_past || is_index || is_clipboard || is_age;
            !is_known && !matches!(entry, Entry::Dir { .. })
        })
        .collect();
    assert!(left.is_empty(), "{name}: left in the state directory: {left:?}");
}
