//! Diffs as programs send them: mails, logs and comparisons that git and diff really write, applied here and over a server.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::processes::{Machine, served, write};

/// A repository with a project of two commits, and the output of git for them.
struct Repository {
    directory: tempfile::TempDir,
}

const OLD: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";
const NEW: &str = "one\n2\nthree\nfour\nfive\nsix\n7\neight\n";

impl Repository {
    fn new() -> Self {
        let repository = Self { directory: tempfile::tempdir().unwrap() };
        repository.git(&["init", "-q", "."]);
        repository.put("src/a.txt", OLD);
        repository.put("gone.txt", "gone\n");
        repository.put("old name.txt", OLD);
        repository.commit("Begin");
        repository
    }

    fn put(&self, name: &str, content: &str) {
        write(&self.directory.path().join(name), content);
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// The changes of the project, in one commit.
    fn change(&self) {
        self.put("src/a.txt", NEW);
        self.git(&["rm", "-q", "gone.txt"]);
        self.git(&["mv", "old name.txt", "new name.txt"]);
        self.put("new name.txt", &OLD.replace("four", "4"));
        self.put("made/b.txt", "made\n");
        self.commit("M\u{e9}nd it\n\nSince it was broken:\n- here\n--- there ---\n");
    }

    fn git(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(self.directory.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]).args(args);
        let output = git.stdin(Stdio::null()).output().expect("git is needed");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn project() -> Machine {
    let machine = Machine::new().with_policy("deletions = \"allow\"\n");
    machine.put("src/a.txt", OLD);
    machine.put("gone.txt", "gone\n");
    machine.put("old name.txt", OLD);
    machine
}

fn changed() -> Vec<(String, String)> {
    let renamed = OLD.replace("four", "4");
    let files = [("made/b.txt", "made\n"), ("new name.txt", &renamed), ("src/a.txt", NEW)];
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).to_vec()
}

/// Applies a document that is not said to be in any dialect.
fn apply(machine: &Machine, document: &str) -> (serde_json::Value, Option<i32>) {
    write(&machine.path("answer"), document);
    let output = machine.aptix(&["apply", "--root", "project", "--json", "answer"]).output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), output.status.code())
}

/// FILE-SPEC-3.1.3.2: what git and people put around a diff is skipped, here and over a server.
#[test]
fn what_git_writes_around_a_diff_is_no_obstacle() {
    let repository = Repository::new();
    repository.change();
    let show = |args: &[&str]| repository.git(args);
    let diff = show(&["diff", "-M", "HEAD~1", "HEAD"]);
    let label = "M\u{e9}nd it\n\nSince it was broken:\n- here\n--- there ---";
    for (diff, expected) in [
        (show(&["format-patch", "--stdout", "-1"]), Some(label)),
        (show(&["format-patch", "--stdout", "-1", "--no-stat", "--full-index"]), Some(label)),
        (show(&["show"]), Some(label)),
        (show(&["show", "--stat", "-p"]), Some(label)),
        (show(&["log", "-p", "-1", "--format=fuller"]), Some(label)),
        (show(&["log", "-p", "-1", "--no-renames"]), Some(label)),
        (show(&["diff", "--stat", "-p", "-M", "HEAD~1", "HEAD"]), None),
        (format!("I made these changes:\n\n{diff}\nThe tests pass.\n"), None),
        (format!("I made these changes:\n\n```diff\n{diff}```\n\nThe tests pass.\n"), None),
    ] {
        let machine = project();
        let (done, code) = apply(&machine, &diff);
        assert_eq!(code, Some(0), "{diff}\n{done}");
        assert_eq!(machine.files(), changed(), "{diff}");
        let log = machine.aptix(&["log", "--root", "project", "--json"]).output().unwrap();
        assert_eq!(log.status.code(), Some(0));

        let machine = project();
        let server = machine.server();
        let _agent = machine.agent(&server);
        let (done, code) = machine.submit(&server, &diff);
        assert_eq!((code, &done["state"]), (Some(0), &json!("APPLIED")), "{diff}\n{done}");
        assert_eq!(machine.files(), changed(), "{diff}");
        let (listed, _) = machine.ask(&server, "batches", &[]);
        assert_eq!(listed["batches"][0]["label"].as_str(), expected, "{listed}");
    }
}

/// A mail that was cut between two of its files is not done in part: its diffstat counts them.
#[test]
fn a_mail_that_was_cut_is_refused() {
    let repository = Repository::new();
    repository.change();
    let mail = repository.git(&["format-patch", "--stdout", "-1"]);
    let cuts: Vec<usize> = mail.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    assert_eq!(cuts.len(), 4);
    for cut in cuts {
        let machine = project();
        let before = machine.files();
        let (refused, code) = apply(&machine, &mail[..cut]);
        assert_eq!(code, Some(1), "{refused}");
        assert_eq!(machine.files(), before, "{}", &mail[..cut]);
    }
}

/// `diff` between a copy and the file, and the file's other reading, over a server.
#[test]
fn the_file_that_exists_is_the_one_that_diff_compared() {
    let (machine, server, _agent) = served("auto");
    machine.put("src/a.txt", OLD);
    write(&machine.path("project/src/a.txt.new"), NEW);
    let mut diff = Command::new("diff");
    diff.current_dir(machine.path("project")).args(["-u", "src/a.txt", "src/a.txt.new"]);
    let diff = String::from_utf8(diff.output().expect("diff is needed").stdout).unwrap();
    let (refused, code) = machine.submit(&server, &diff);
    assert_eq!((code, &refused["errors"][0]["code"]), (Some(1), &json!("AMBIGUOUS_PATH")), "{refused}");
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    std::fs::remove_file(machine.path("project/src/a.txt.new")).unwrap();
    let (done, code) = machine.submit(&server, &diff);
    assert_eq!((code, &done["state"]), (Some(0), &json!("APPLIED")), "{done}");
    assert_eq!(done["files"][0]["path"], "src/a.txt", "{done}");
    assert_eq!(machine.files(), [("src/a.txt".to_owned(), NEW.to_owned())]);
}

/// A series of mails about the same files produces the tree of its last commit, here and over a server, and is
/// undone as one batch.
#[test]
fn a_series_of_mails_is_one_batch() {
    let repository = Repository::new();
    repository.change();
    repository.put("made/b.txt", "made\nmore\n");
    repository.put("src/a.txt", &NEW.replace("2\n", "II\n"));
    repository.put("new name.txt", &OLD.replace("four", "IV"));
    repository.commit("Go on");
    repository.git(&["mv", "src/a.txt", "src/c.txt"]);
    repository.commit("Move it");
    let mails = repository.git(&["format-patch", "--stdout", "-3"]);
    let expected = [
        ("made/b.txt", "made\nmore\n".to_owned()),
        ("new name.txt", OLD.replace("four", "IV")),
        ("src/c.txt", NEW.replace("2\n", "II\n")),
    ];
    let expected = expected.map(|(path, text)| (path.to_owned(), text));

    let machine = project();
    let before = machine.files();
    let (done, code) = apply(&machine, &mails);
    assert_eq!(code, Some(0), "{done}");
    assert_eq!(machine.files(), expected);
    assert_eq!(done["files"].as_array().unwrap().len(), 4, "{done}");
    let undone = machine.aptix(&["undo", "--root", "project", "--json"]).output().unwrap();
    assert_eq!(undone.status.code(), Some(0), "{}", String::from_utf8_lossy(&undone.stdout));
    assert_eq!(machine.files(), before);

    let machine = project();
    let server = machine.server();
    let _agent = machine.agent(&server);
    let (done, code) = machine.submit(&server, &mails);
    assert_eq!((code, &done["state"]), (Some(0), &json!("APPLIED")), "{done}");
    assert_eq!(machine.files(), expected);
    for (path, text) in &expected {
        let (read, _) = machine.ask(&server, "read", &[&format!("project/{path}")]);
        assert_eq!(read["content"], json!(text), "{path}: {read}");
    }
}
