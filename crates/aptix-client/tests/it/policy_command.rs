//! `aptix init` and `aptix policy`: a person writes a policy, and is told what it means.

use crate::command_line::{aptix, text};
use crate::policy_file::put;

#[test]
fn a_new_policy_file_explains_everything_and_states_nothing() {
    let place = tempfile::tempdir().unwrap();
    let output = aptix(place.path(), &["init"], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = place.path().join("config/aptix/policy.toml");
    assert!(text(&output.stdout).contains(&file.display().to_string()), "{}", text(&output.stdout));
    let made = std::fs::read_to_string(&file).unwrap();
    // Each value as the documentation has it, behind one character.
    let lines = made.lines().skip_while(|line| !line.is_empty()).skip(1);
    let states = |line: &str| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line).to_owned();
    let stated: String = lines.map(|line| states(line) + "\n").collect();
    let documented = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.md")).unwrap();
    let (_, example) = documented.split_once("```toml\n").unwrap();
    assert_eq!(stated, example.split_once("```").unwrap().0);
    assert!(made.lines().all(|line| line.is_empty() || line.starts_with('#')), "{made}");

    let checked = text(&aptix(place.path(), &["policy", "check"], "").stdout);
    assert!(checked.starts_with(&format!("{}: ok\n", file.display())), "{checked}");
    std::fs::write(&file, "deny = ['mine']\n").unwrap();
    let again = aptix(place.path(), &["init"], "");
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("is there already, and stays as it is"), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "deny = ['mine']\n");
}

#[test]
fn every_policy_file_is_checked_and_what_is_wrong_is_told_of_each() {
    let place = tempfile::tempdir().unwrap();
    put(place.path(), "ask = []\nforbid = ['x']\n");
    let root = place.path().join("ws/.aptix/policy.toml");
    std::fs::create_dir_all(root.parent().unwrap()).unwrap();
    std::fs::write(&root, "allow = ['x']\n").unwrap();
    let output = aptix(place.path(), &["policy", "check"], "");
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    let lines: Vec<_> = stdout.lines().collect();
    assert!(lines[0].contains("policy.toml: line 2: unknown field `forbid`"), "{stdout}");
    assert!(lines[2].contains("ws/.aptix/policy.toml: line 1: a root's policy can only be stricter"), "{stdout}");
    let json = aptix(place.path(), &["policy", "check", "--json"], "");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["success"], &json["files"][1]["state"]), (&false.into(), &"unusable".into()), "{json}");
}

/// What is told is what a batch would meet, from whoever it comes.
#[test]
fn it_is_explained_what_the_policy_means_for_a_file() {
    let place = tempfile::tempdir().unwrap();
    put(place.path(), "deny = ['vendor/']\nask = ['*.lock']\nallow = ['/AGENTS.md']\n");
    let ws = place.path().join("ws");
    std::fs::create_dir_all(ws.join(".git")).unwrap();
    std::fs::write(ws.join("a.txt"), "a\n").unwrap();
    std::fs::write(ws.join("skipped.txt"), "a\n").unwrap();
    std::fs::write(ws.join(".gitignore"), "skipped.txt\n").unwrap();
    let cases = [
        ("a.txt", ["usual", "usual", "usual", "yes", "yes"], ""),
        ("new/file.txt", ["usual", "usual", "usual", "absent", "absent"], "it is not there"),
        ("AGENTS.md", ["yes", "yes", "yes", "absent", "absent"], ""),
        ("CLAUDE.md", ["asked", "asked", "asked", "absent", "absent"], "where none can be it is refused"),
        ("yarn.lock", ["asked", "asked", "asked", "absent", "absent"], "under ask as \"*.lock\""),
        ("vendor/x.js", ["no", "no", "no", "no", "no"], "under deny as \"vendor/\""),
        (".env", ["asked", "no", "no", "no", "no"], "holds secrets"),
        (".git/config", ["no", "no", "no", "no", "no"], "never edited"),
        ("skipped.txt", ["usual", "usual", "asked", "yes", "no"], "a whole new content: yes;"),
        ("../outside", ["no", "no", "no", "no", "no"], "'..'"),
    ];
    for (path, expected, why) in cases {
        let output = aptix(place.path(), &["policy", "explain", path, "--json"], "");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let answers = ["writes", "reads"].map(|doing| json[doing].as_array().unwrap().clone()).concat();
        let found: Vec<_> = answers.iter().map(|answer| answer["answer"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{path}: {json}");
        let output = aptix(place.path(), &["policy", "explain", path], "");
        assert!(text(&output.stdout).contains(why), "{path}: {}", text(&output.stdout));
    }
    assert_eq!(std::fs::read_to_string(ws.join("a.txt")).unwrap(), "a\n", "nothing is written");
}
