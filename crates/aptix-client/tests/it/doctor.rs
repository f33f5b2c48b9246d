//! `aptix doctor`: every defect is made for real, found, and mended by the command that the hint names.

mod confined;
mod kept;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::command_line::{aptix, run, text};
use crate::policy_file::put;
use crate::tree;

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) check: String,
    pub(crate) state: String,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// What a run found, with `--json`.
pub(crate) fn found(output: &Output) -> Vec<Found> {
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr));
    });
    let checks = json["checks"].as_array().unwrap();
    let is_fine = checks.iter().all(|check| check["state"] != "problem");
    assert_eq!((json["success"].as_bool(), output.status.code()), (Some(is_fine), Some(i32::from(!is_fine))), "{json}");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = checks.iter().map(|check| {
        let hint = word(&check["hint"]);
        assert_eq!(check["state"] == "ok", hint.is_empty(), "what is not ok can be mended: {check}");
        Found { check: word(&check["check"]), state: word(&check["state"]), message: word(&check["message"]), hint }
    });
    found.collect()
}

fn doctor(place: &Path, arguments: &[&str]) -> Vec<Found> {
    found(&aptix(place, &[&["doctor", "--json"], arguments].concat(), ""))
}

/// What is not ok, but for what depends on the machine.
fn defects(found: Vec<Found>) -> Vec<Found> {
    found.into_iter().filter(|found| found.state != "ok" && found.check != "landlock").collect()
}

/// The one defect of a check.
#[track_caller]
pub(crate) fn defect(found: &[Found], check: &str, state: &str, words: &str) -> Found {
    let mut fits = found.iter().filter(|found| found.check == check && found.state == state);
    let one = fits.find(|found| found.message.contains(words));
    one.unwrap_or_else(|| panic!("no {state} of {check} with {words:?} in {found:#?}")).clone()
}

/// Runs the command that a hint names, with the `aptix` that is tested.
pub(crate) fn mend(place: &Path, hint: &str) {
    let (_, rest) = hint.split_once("run `").unwrap_or_else(|| panic!("no command in {hint:?}"));
    let (command, _) = rest.split_once('`').unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_aptix")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PATH", path).current_dir(place.join("ws"));
    shell.env("XDG_STATE_HOME", place.join("state")).env("XDG_CONFIG_HOME", place.join("config"));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{command}: {}", text(&output.stderr));
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn in_a_fresh_place_all_is_ok_and_nothing_is_changed() {
    let place = tempfile::tempdir().unwrap();
    let before = tree::read(place.path());
    let output = aptix(place.path(), &["doctor"], "");
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}{}", text(&output.stderr));
    assert!(stdout.contains("\nok       root "), "{stdout}");
    assert_eq!(defects(doctor(place.path(), &[])), []);
    let mut after = tree::read(place.path());
    // The directory in which it ran.
    after.remove("ws");
    tree::assert_same(&after, &before, "a fresh place");

    // Likewise once there is a policy, a history and a repository.
    put(place.path(), "deny = ['vendor/']\n");
    assert!(aptix(place.path(), &["apply"], r#"{"path":"a.txt","content":"one\n"}"#).status.success());
    std::fs::create_dir(place.path().join("ws/.git")).unwrap();
    let before = tree::read(place.path());
    let found = doctor(place.path(), &[]);
    assert_eq!(defects(found.clone()), []);
    defect(&found, "root", "ok", "in the git repository ");
    defect(&found, "policy", "ok", "no other user can write it");
    defect(&found, "history", "ok", "can be read: 1");
    tree::assert_same(&tree::read(place.path()), &before, "a place with a history");
}

#[test]
fn whoever_else_can_write_the_policy_is_found_with_the_command_that_keeps_them_out() {
    // The file or its directory: no command follows it. A directory above: the user has to know.
    let cases = [
        ("config/aptix/policy.toml", 0o666, 0o644, "problem", "has the mode 0666, expected 0644 or less"),
        ("config/aptix", 0o777, 0o755, "problem", "has the mode 0777, expected 0755 or less"),
        ("config", 0o770, 0o750, "warning", "it has the mode 0770"),
    ];
    for (path, open, closed, state, words) in cases {
        let place = tempfile::tempdir().unwrap();
        put(place.path(), "ask = []\n");
        let path = place.path().join(path);
        set_mode(&path, open);
        let found = doctor(place.path(), &[]);
        let defect = defect(&found, "policy", state, words);
        assert!(defect.hint.contains(&format!("`chmod go-w {}`", path.display())), "{defect:?}");
        mend(place.path(), &defect.hint);
        assert_eq!(defects(doctor(place.path(), &[])), []);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, closed);
    }
    // A directory in which only owners replace entries is not open, and umask 022 is no defect.
    let place = tempfile::tempdir().unwrap();
    let file = put(place.path(), "");
    set_mode(&file, 0o644);
    set_mode(&place.path().join("config"), 0o1777);
    assert_eq!(defects(doctor(place.path(), &[])), []);
}

#[test]
fn every_policy_file_is_read_also_where_no_root_can_be_opened() {
    let place = tempfile::tempdir().unwrap();
    put(place.path(), "ask = []\nforbid = ['x']\n");
    let root = place.path().join("ws/.aptix/policy.toml");
    std::fs::create_dir_all(root.parent().unwrap()).unwrap();
    std::fs::write(&root, "allow = ['x']\n").unwrap();
    let both = doctor(place.path(), &[]);
    defect(&both, "policy", "problem", "line 2: unknown field `forbid`");
    defect(&both, "policy", "problem", "line 1: a root's policy can only be stricter");
    let own = doctor(place.path(), &["--root", "absent"]);
    defect(&own, "policy", "problem", "line 2: unknown field `forbid`");
}

#[test]
fn roots_that_no_command_opens_are_found_each_by_itself() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("ws/inner")).unwrap();
    std::fs::write(place.path().join("ws/file"), "x\n").unwrap();
    let found = doctor(place.path(), &["--root", "absent dir", "--root", "file", "--root", "x/y=inner"]);
    let absent = defect(&found, "root", "problem", "No such file or directory");
    assert!(absent.hint.contains("`mkdir -p 'absent dir'`"), "{absent:?}");
    defect(&found, "root", "problem", "Not a directory");
    defect(&found, "root", "problem", "cannot name a root: a name has no slash");
    mend(place.path(), &absent.hint);
    assert_eq!(defects(doctor(place.path(), &["--root", "absent dir"])), []);
    let overlapping = doctor(place.path(), &["--root", ".", "--root", "inner"]);
    defect(&overlapping, "roots", "problem", "overlap");
}

#[test]
fn a_server_and_its_token_are_checked_as_far_as_they_are_reached() {
    let place = tempfile::tempdir().unwrap();
    // Nothing listens there: the port is taken and not listened at.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{taken}");
    let found = doctor(place.path(), &["--server", &url]);
    defect(&found, "token", "ok", "calls are made without a token");
    let server = defect(&found, "server", "problem", "out of reach: ");
    assert!(server.hint.contains("`aptix-server --listen"), "{server:?}");

    let kept = place.path().join("config/aptix/tokens").join(url.replace(':', "%3A").replace('/', "%2F"));
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    std::fs::write(&kept, "aptix_0123\n").unwrap();
    set_mode(&kept, 0o644);
    let token = defect(&doctor(place.path(), &["--server", &url]), "token", "problem", "has the mode 0644");
    assert!(!token.message.contains("aptix_0123"), "{token:?}");
    mend(place.path(), &token.hint);
    let found = doctor(place.path(), &["--server", &url]);
    defect(&found, "token", "ok", "can be read");
    defect(&found, "server", "problem", "out of reach: ");
    let missing = doctor(place.path(), &["--server", &url, "--token-file", "none"]);
    defect(&missing, "token", "problem", "No such file or directory");
    // A token for another machine is not sent in clear text.
    let elsewhere = doctor(place.path(), &["--server", "http://192.0.2.1:1", "--token-file", kept.to_str().unwrap()]);
    defect(&elsewhere, "server", "problem", "in clear text");
    defect(&doctor(place.path(), &["--workspace", "demo"]), "workspace", "warning", "no server is named");
}

#[test]
fn git_is_missed_only_where_a_root_is_in_a_repository() {
    let place = tempfile::tempdir().unwrap();
    let doctor = || {
        let output = run(place.path(), &["doctor", "--json"], "", |command| {
            command.env("PATH", place.path());
        });
        found(&output)
    };
    defect(&doctor(), "git", "ok", "not found in PATH");
    std::fs::create_dir(place.path().join(".git")).unwrap();
    defect(&doctor(), "git", "warning", "a root is in a git repository");
}

#[test]
fn wrong_usage_is_exit_2_and_the_given_directories_are_checked() {
    let place = tempfile::tempdir().unwrap();
    for arguments in [&["doctor", "--nothing"][..], &["doctor", "--server", "nowhere"]] {
        assert_eq!(aptix(place.path(), arguments, "").status.code(), Some(2), "{arguments:?}");
    }
    let output = aptix(place.path(), &["doctor", "--state-home", "/nonexistent/state"], "");
    let stdout = text(&output.stdout);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{stdout}");
    assert!(stdout.contains(" state /nonexistent/state/aptix: "), "{stdout}");
}

/// The names beneath a directory of this place.
pub(crate) fn only_in(dir: PathBuf) -> PathBuf {
    let mut names = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let one = names.next().unwrap();
    assert!(names.next().is_none(), "{} holds more than one thing", dir.display());
    one
}
