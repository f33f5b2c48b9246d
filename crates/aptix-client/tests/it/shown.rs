//! What is printed of a batch is what became of it: the object is read back and compared with the files, and git takes its diff,
//! for each dialect and each state, by whichever command it is asked for.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::command_line::{aptix, text};

/// The object that `--json` prints: every key, and no other.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Answer {
    success: bool,
    batch_id: Option<String>,
    state: String,
    dry_run: bool,
    batch_key: Option<String>,
    batch_label: Option<String>,
    undoes: Option<String>,
    files: Vec<File>,
    errors: Vec<Error>,
    warnings: Vec<Value>,
    diff: String,
    /// Of a record alone.
    #[serde(default)]
    steps: Vec<Step>,
    asked: String,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Step {
    event: String,
    state: String,
    unix_ms: u64,
    actor: String,
    actor_name: Option<String>,
    reason: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    file_patch_id: Option<String>,
    path: String,
    doc_path: Option<String>,
    file_key: Option<String>,
    file_label: Option<String>,
    status: String,
    renamed_to: Option<String>,
    sha256_before: Option<String>,
    sha256: Option<String>,
    size_bytes: Option<u64>,
    normalized: Vec<String>,
    warnings: Vec<Value>,
    changes: Vec<Change>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Change {
    change_id: Option<String>,
    change_key: Option<String>,
    description: Option<String>,
    failure: Option<usize>,
    tier: Option<String>,
    candidates: Option<u32>,
    start_line: Option<u32>,
    end_line: Option<u32>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Error {
    code: String,
    detail: Option<String>,
    message: String,
    hint: Option<String>,
    path: Option<String>,
    doc_path: Option<String>,
    file_index: Option<usize>,
    file_patch_id: Option<String>,
    file_key: Option<String>,
    change_index: Option<usize>,
    change_id: Option<String>,
    change_key: Option<String>,
    line: Option<usize>,
    nearest: Vec<Value>,
    current_sha256: Option<String>,
    next_action: Option<Value>,
}

/// The object itself, once it has shown to have every key and no other.
pub(crate) fn parsed(object: Value) -> Value {
    serde_json::from_value::<Answer>(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"));
    object
}

/// Files with their bytes, and whether they can be run.
pub(crate) type Files = BTreeMap<String, (Vec<u8>, bool)>;

pub(crate) fn files(top: &Path) -> Files {
    let tree = crate::tree::read(top).into_iter().filter(|(name, _)| !name.starts_with(".git"));
    let files = tree.filter_map(|(name, entry)| match entry {
        crate::tree::Entry::File { mode, bytes } => Some((name, (bytes, mode & 0o100 != 0))),
        _ => None,
    });
    files.collect()
}

pub(crate) fn put(top: &Path, files: &Files) {
    for (name, (bytes, is_executable)) in files {
        let file = top.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, bytes).unwrap();
        let mode = if *is_executable { 0o755 } else { 0o644 };
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn git(top: &Path, arguments: &[&str], input: &str) -> String {
    let mut git = Command::new("git");
    git.current_dir(top).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    git.args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]).args(arguments);
    let mut git =
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("git is needed");
    let mut stdin = git.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, input.as_bytes()).unwrap();
    drop(stdin);
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}{input}", text(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What git makes of files by a diff.
pub(crate) fn by_git(before: &Files, diff: &str) -> Files {
    let place = tempfile::tempdir().unwrap();
    put(place.path(), before);
    if !diff.is_empty() {
        git(place.path(), &["apply", "--check", "-"], diff);
        git(place.path(), &["apply", "-"], diff);
    }
    files(place.path())
}

/// Names with blanks, quotes and letters of all kinds; each way for a text to end its lines.
pub(crate) fn old() -> Files {
    let lines: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    let files: [(&str, &[u8], bool); 8] = [
        ("plain.txt", lines.as_bytes(), false),
        ("crlf.txt", b"one\r\ntwo\r\nthree\r\n", false),
        ("open.txt", b"a\nb\nc", false),
        ("sp ace.txt", b"x \n\ty\n", false),
        ("it's.txt", b"quoted\n", false),
        ("\u{fc}n\u{ef}/\u{65e5}\u{672c}.txt", "\u{e9}\n\u{8a9e}\n".as_bytes(), false),
        ("tool.sh", b"#!/bin/sh\n", true),
        ("gone.txt", b"gone\n", false),
    ];
    files.into_iter().map(|(name, bytes, is_executable)| (name.to_owned(), (bytes.to_vec(), is_executable))).collect()
}

/// A diff as git writes it, that does all there is to files in a directory.
pub(crate) fn git_diff(dir: &str) -> String {
    let repository = tempfile::tempdir().unwrap();
    git(repository.path(), &["init", "-q", "."], "");
    diff_in(&repository.path().join(dir))
}

fn diff_in(top: &Path) -> String {
    put(top, &old());
    git(top, &["add", "-A"], "");
    git(top, &["commit", "-q", "-m", "old"], "");
    git(top, &["mv", "sp ace.txt", "new n\u{e4}me.txt"], "");
    git(top, &["mv", "it's.txt", "its other.txt"], "");
    std::fs::remove_file(top.join("gone.txt")).unwrap();
    let mut new = files(top);
    let plain = String::from_utf8(new["plain.txt"].0.clone()).unwrap();
    let plain = plain.replace("line 2\n", "").replace("line 12\n", "twelve\nand more\n");
    new.insert("plain.txt".to_owned(), (plain.into_bytes(), false));
    new.insert("crlf.txt".to_owned(), (b"one\r\n2\r\nthree\r\n".to_vec(), false));
    new.insert("open.txt".to_owned(), (b"a\nb\nd".to_vec(), false));
    new.insert("new n\u{e4}me.txt".to_owned(), (b"x \n\tz\n".to_vec(), false));
    new.insert("tool.sh".to_owned(), (b"#!/bin/sh\n".to_vec(), false));
    new.insert("made/run".to_owned(), (b"#!/bin/sh\nexit".to_vec(), true));
    new.insert("made/empty".to_owned(), (Vec::new(), false));
    put(top, &new);
    git(top, &["add", "-A"], "");
    git(top, &["diff", "--cached", "-M30%", "HEAD"], "")
}

fn sha(name: &str) -> String {
    Sha256::digest(&old()[name].0).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn line_patch(expected: &str) -> String {
    let change = |key: &str, line: usize, old: &str, new: &[&str]| {
        json!({ "changeKey": key, "description": format!("change {key}"), "operation": "replace", "startLine": line,
                "endLine": line, "expectedOriginalLines": [old], "newLines": new })
    };
    let plain = [change("first", 2, "line 2", &["two"]), change("last", 15, expected, &["fifteen", "more"])];
    let open = [json!({ "operation": "delete", "startLine": 3, "endLine": 3, "expectedOriginalLines": ["c"] })];
    let file = |key: &str, name: &str, changes: &[Value]| {
        json!({ "fileKey": key, "fileLabel": format!("file {key}"), "docPath": format!("ws/{name}"),
                "originalSha256": sha(name), "changes": changes })
    };
    let files = [file("p", "plain.txt", &plain), file("o", "open.txt", &open)];
    json!({ "batchKey": "k", "batchLabel": "Label", "files": files }).to_string()
}

/// One document in each dialect that applies, and one of the same form that is refused.
pub(crate) fn documents() -> Vec<(&'static str, String, String)> {
    let search = |old: &str| {
        let patch = |operation: Value| operation;
        json!({ "path": "plain.txt", "patches": [
            patch(json!({ "operation": "replace", "oldText": old, "newText": "four\n4" })),
            patch(json!({ "operation": "append_eof", "newText": "end\n" })),
        ] })
    };
    let structured = |old: &str| {
        json!({ "root": ".", "patches": [
            { "path": "crlf.txt", "replacements": [{ "find": "two", "replace": "2" }] },
            { "path": "plain.txt", "replacements": [{ "find": old, "replace": "seven" }] },
        ] })
    };
    let bundle = |operation: &str| {
        json!({ "files": [
            { "path": "sp ace.txt", "operation": "replace", "content": "other\n" },
            { "path": "n\u{e9}w.txt", "operation": operation, "content": "no end" },
            { "path": "gone.txt", "operation": "delete" },
        ] })
    };
    let create = |path: &str| json!({ "path": path, "content": "made\n" });
    let codex = |old: &str| {
        format!(
            "*** Begin Patch\n*** Update File: plain.txt\n@@\n line 8\n-{old}\n+nine\n*** Add File: add.txt\n+added\n*** End Patch\n"
        )
    };
    let blocks = |old: &str| format!("plain.txt\n<<<<<<< SEARCH\n{old}\n=======\nten\n>>>>>>> REPLACE\n");
    let command =
        |old: &str| json!({ "command": "str_replace", "path": "it's.txt", "old_str": old, "new_str": "told" });
    let diff = git_diff("");
    let broken = diff.replace("-line 12\n", "-line 21\n");
    vec![
        ("line-patch", line_patch("line 15"), line_patch("line 51")),
        ("search-patch", search("line 4").to_string(), search("no line").to_string()),
        ("structured-patch", structured("line 7").to_string(), structured("no line").to_string()),
        ("git-patch", diff.clone(), broken.clone()),
        ("file-bundle", bundle("create").to_string(), bundle("replace").to_string()),
        ("create-file", create("made.txt").to_string(), create("plain.txt").to_string()),
        ("codex-patch", codex("line 9"), codex("line 6")),
        ("search-replace", blocks("line 10"), blocks("no line")),
        ("str-replace", command("quoted").to_string(), command("no line").to_string()),
        ("chat", format!("So:\n\n```diff\n{diff}```\n"), format!("So:\n\n```diff\n{broken}```\n")),
    ]
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        put(&place.top(), &old());
        place
    }

    fn top(&self) -> std::path::PathBuf {
        self.0.path().join("ws")
    }

    fn ask(&self, arguments: &[&str], document: &str, code: i32) -> Answer {
        let output = aptix(self.0.path(), arguments, document);
        let shown = format!("{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{shown}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {shown}"))
    }
}

/// An answer about what was, or would be, done to files is what became of them.
fn check_done(answer: &Answer, before: &Files, after: &Files) {
    assert!(answer.success && answer.errors.is_empty() && answer.asked.is_empty(), "{answer:#?}");
    assert_eq!(&by_git(before, &answer.diff), after, "{}", answer.diff);
    let mut left = before.clone();
    let sha256 = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for file in &answer.files {
        let old = left.remove(&file.path);
        let new = after.get(file.renamed_to.as_ref().unwrap_or(&file.path));
        let status = match (&old, new, &file.renamed_to) {
            (_, _, Some(_)) => "renamed",
            (None, ..) => "created",
            (Some(_), None, _) => "deleted",
            (Some(old), Some(new), _) if old == new => "unchanged",
            (Some(_), Some(_), _) => "modified",
        };
        assert_eq!(file.status, status, "{file:#?}");
        assert_eq!(file.sha256_before, old.map(|(bytes, _)| sha256(&bytes)), "{file:#?}");
        assert_eq!(file.sha256, new.map(|(bytes, _)| sha256(bytes)), "{file:#?}");
        assert_eq!(file.size_bytes, new.map(|(bytes, _)| bytes.len() as u64), "{file:#?}");
        let is_placed =
            |change: &Change| change.tier.is_some() && change.start_line.is_some() && change.failure.is_none();
        assert!(file.changes.iter().all(is_placed), "{file:#?}");
        assert!(file.doc_path.as_ref().unwrap().starts_with("ws/"), "{file:#?}");
    }
    let untouched = left.iter().all(|(name, old)| after.get(name) == Some(old));
    assert!(untouched, "a file that changed is not listed: {answer:#?}");
}

/// An answer about a batch that was refused blames what failed, and changed nothing.
fn check_refused(answer: &Answer) {
    assert!(!answer.success && answer.state == "FAILED" && answer.diff.is_empty(), "{answer:#?}");
    assert!(!answer.errors.is_empty() && !answer.files.is_empty(), "{answer:#?}");
    for (index, file) in answer.files.iter().enumerate() {
        let is_blamed = answer.errors.iter().any(|error| error.file_index == Some(index));
        assert_eq!(file.status, if is_blamed { "failed" } else { "not_applied" }, "{answer:#?}");
    }
    for error in &answer.errors {
        let file = &answer.files[error.file_index.unwrap()];
        assert_eq!((&error.file_patch_id, &error.file_key), (&file.file_patch_id, &file.file_key));
        assert!(error.hint.as_ref().is_none_or(|hint| !error.message.contains(hint.as_str())), "{error:#?}");
        if let Some(change) = error.change_index.map(|change| &file.changes[change]) {
            assert_eq!((&error.change_id, &error.change_key), (&change.change_id, &change.change_key));
            assert_eq!(answer.errors[change.failure.unwrap()].code, error.code);
        }
    }
}

#[test]
fn what_is_printed_is_what_became_of_the_files() {
    for (dialect, good, bad) in documents() {
        let place = Place::new();
        let arguments =
            |more: &'static [&'static str]| [&["apply", "--json", "--yes", "--dialect", dialect], more].concat();
        let refused = place.ask(&arguments(&[]), &bad, 1);
        check_refused(&refused);
        check_refused_history(&place, &refused);
        assert_eq!(files(&place.top()), old(), "{dialect}");
        assert_eq!(place.ask(&arguments(&["--dry-run"]), &bad, 1).batch_id, None);

        let planned = place.ask(&arguments(&["--dry-run"]), &good, 0);
        let done = place.ask(&arguments(&[]), &good, 0);
        let after = files(&place.top());
        check_done(&planned, &old(), &after);
        check_done(&done, &old(), &after);
        assert_eq!((planned.state.as_str(), planned.batch_id.as_ref()), ("PREPARED", None));
        assert_eq!((planned.diff.as_str(), done.state.as_str()), (done.diff.as_str(), "APPLIED"));
        check_history(&place, &done, &after);
    }
}

/// What is kept of a batch that was refused is what was answered, for the batch and each of its parts.
fn check_refused_history(place: &Place, refused: &Answer) {
    let id = refused.batch_id.as_deref().unwrap();
    let shown = place.ask(&["show", "--json", id], "", 0);
    assert!(shown.files.iter().all(|file| shown.asked.contains(file.path.rsplit('/').next().unwrap())), "{shown:#?}");
    let without = |answer: &Answer| {
        let (asked, warnings, steps) = (String::new(), Vec::new(), Vec::new());
        Answer { asked, warnings, steps, ..answer.clone() }
    };
    assert_eq!(without(&shown), without(refused));
    let whole = &shown;
    for (index, file) in refused.files.iter().enumerate() {
        let part = place.ask(&["show", "--json", file.file_patch_id.as_deref().unwrap()], "", 0);
        let errors: Vec<_> = refused.errors.iter().filter(|error| error.file_index == Some(index)).collect();
        assert_eq!(part.errors.iter().collect::<Vec<_>>(), errors);
        assert!(whole.asked.contains(&part.asked) && part.files.len() == 1, "{part:#?}");
        assert_eq!((&part.files[0].path, &part.files[0].status), (&file.path, &file.status));
        for change in &file.changes {
            let part = place.ask(&["show", "--json", change.change_id.as_deref().unwrap()], "", 0);
            let [shown] = &part.files[0].changes[..] else { panic!("{part:#?}") };
            assert_eq!((&shown.change_id, &shown.change_key), (&change.change_id, &change.change_key));
            assert_eq!(shown.failure.is_some(), change.failure.is_some(), "{part:#?}");
        }
    }
    let text = text(&aptix(place.0.path(), &["show", id], "").stdout);
    assert!(text.starts_with(&format!("batch {id} FAILED")) && text.contains("error: "), "{text}");
}

/// The history of the workspace answers the same, for the batch and each of its parts.
fn check_history(place: &Place, done: &Answer, after: &Files) {
    let id = done.batch_id.as_deref().unwrap();
    let shown = place.ask(&["show", "--json", id], "", 0);
    check_done(&shown, &old(), after);
    assert!(matches!(&shown.steps[..], [step] if step.state == done.state), "{shown:#?}");
    assert_eq!(
        Answer { diff: String::new(), steps: Vec::new(), ..shown },
        Answer { diff: String::new(), warnings: Vec::new(), ..done.clone() }
    );
    let shown = place.ask(&["show", "--json", &id[..31]], "", 0);
    assert_eq!(shown.batch_id.as_deref(), Some(id));
    for file in &done.files {
        let part = place.ask(&["show", "--json", file.file_patch_id.as_deref().unwrap()], "", 0);
        assert_eq!(part.files, std::slice::from_ref(file));
        by_git(&old(), &part.diff);
        for change in &file.changes {
            let part = place.ask(&["show", "--json", change.change_id.as_deref().unwrap()], "", 0);
            assert_eq!(part.files[0].changes, std::slice::from_ref(change));
            by_git(&old(), &part.diff);
        }
    }
    let log: Value = serde_json::from_slice(&aptix(place.0.path(), &["log", "-p", "--json"], "").stdout).unwrap();
    let row = &log["batches"][0];
    assert_eq!((&row["batchId"], &row["batchLabel"]), (&json!(id), &json!(done.batch_label)));
    assert_eq!(&by_git(&old(), row["diff"].as_str().unwrap()), after);
    let log = text(&aptix(place.0.path(), &["log", "-p"], "").stdout);
    assert!(log.starts_with(id) && log.contains("\ndiff --git "), "{log}");
}

#[test]
fn the_beginning_of_an_id_is_enough_unless_several_begin_so() {
    let place = Place::new();
    let apply = |name: &str| {
        let document = json!({ "path": name, "content": "x\n" }).to_string();
        place.ask(&["apply", "--json"], &document, 0).batch_id.unwrap()
    };
    let (first, second) = (apply("first"), apply("second"));
    let common = first.bytes().zip(second.bytes()).take_while(|(one, other)| one == other).count();
    assert_eq!(place.ask(&["show", "--json", &second[..=common]], "", 0).batch_id, Some(second.clone()));
    let refused = place.ask(&["show", "--json", &first[..common]], "", 1);
    let [error] = &refused.errors[..] else { panic!("{refused:#?}") };
    assert_eq!(error.code, "AMBIGUOUS_ID");
    assert!(error.message.contains(&first) && error.message.contains(&second), "{error:#?}");
    for unknown in ["ffffffff", &first.replace("000", "001")] {
        assert_eq!(place.ask(&["show", "--json", unknown], "", 1).errors[0].code, "NOT_FOUND");
    }
    let shown = text(&aptix(place.0.path(), &["show", &first], "").stdout);
    let (head, rest) = shown.split_once('\n').unwrap();
    assert_eq!(head, format!("batch {first} APPLIED"));
    assert!(rest.lines().nth(1).unwrap().starts_with("diff --git "), "{shown}");
    assert!(shown.ends_with("\n+x\ncreated first\n"), "{shown}");
}

/// An undo is a batch of its own, and what it undid stays as it was.
#[test]
fn an_undo_is_shown_like_any_batch() {
    let place = Place::new();
    let done = place.ask(&["apply", "--json"], &line_patch("line 15"), 0);
    let after = files(&place.top());
    let undone = place.ask(&["undo", "--json"], "", 0);
    check_done(&undone, &after, &old());
    let shown = place.ask(&["show", "--json", undone.batch_id.as_deref().unwrap()], "", 0);
    check_done(&shown, &after, &old());
    assert_eq!([&undone.undoes, &shown.undoes], [&done.batch_id, &done.batch_id]);
    assert_eq!(shown.batch_label, Some(format!("undo {}", done.batch_id.as_deref().unwrap())));
    check_done(&place.ask(&["show", "--json", done.batch_id.as_deref().unwrap()], "", 0), &old(), &after);
    let log = text(&aptix(place.0.path(), &["log"], "").stdout);
    assert!(log.lines().nth(1).unwrap().contains(" and 1 more  \"Label\"  (undone by "), "{log}");
}
