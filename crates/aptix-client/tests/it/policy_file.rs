//! A person's policy file as commands find it: what it closes, and the error where it cannot be followed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::command_line::{aptix, text};

const DOCUMENT: &str = r#"{"path":"vendor/a.txt","content":"x\n"}"#;

/// Writes a policy file for the user of this place.
pub(crate) fn put(place: &Path, text: &str) -> PathBuf {
    let file = place.join("config/aptix/policy.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// A pattern with the root's path in front matches nothing, so that what was to be closed would be open.
#[test]
fn a_pattern_with_the_path_of_the_root_in_it_is_refused_with_what_to_write() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap().join("ws");
    let root = root.to_str().unwrap();
    std::fs::create_dir_all(root).unwrap();
    let cases = [
        (
            format!("ask = []\ndeny = ['{root}/vendor/']"),
            format!("line 2: \"{root}/vendor/\" has the path of the root"),
        ),
        (format!("[roots.'{root}']\nask = ['{root}']"), "write \"/**\"".to_owned()),
    ];
    for (policy, message) in cases {
        put(place.path(), &policy);
        let output = aptix(place.path(), &["apply"], DOCUMENT);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("POLICY_DENIED (POLICY_FILE)") && stderr.contains(&message), "{stderr}");
    }
    // There is something of that name in the root: then it is what is meant.
    std::fs::create_dir(Path::new(root).join(root.split('/').nth(1).unwrap())).unwrap();
    put(place.path(), &format!("deny = ['{root}/vendor/']"));
    assert!(aptix(place.path(), &["apply"], DOCUMENT).status.success());
}

#[test]
fn a_policy_file_that_others_can_write_is_reported_with_the_command_that_mends_it() {
    let place = tempfile::tempdir().unwrap();
    let file = put(place.path(), "");
    let directory = file.parent().unwrap();
    for (path, open, closed) in [(file.as_path(), 0o664, 0o644), (directory, 0o777, 0o755)] {
        let set = |mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(open);
        let output = aptix(place.path(), &["apply"], DOCUMENT);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(&format!("{} has the mode {open:04o}, expected 0", path.display())), "{stderr}");
        let command = format!("chmod go-w {}", path.display());
        assert!(stderr.contains(&format!("hint: run `{command}`")), "{stderr}");
        let run = std::process::Command::new("sh").args(["-c", &command]).status().unwrap();
        let mended = path.metadata().unwrap().permissions().mode() & 0o777;
        assert!(run.success() && mended & 0o022 == 0, "{mended:o}");
        set(closed);
    }
    assert!(aptix(place.path(), &["apply"], DOCUMENT).status.success());
}

#[test]
fn durability_is_no_longer_a_choice() {
    let place = tempfile::tempdir().unwrap();
    let own = put(place.path(), "ask = []\ndurability = \"journal\"\n");
    let root = place.path().join("ws/.aptix/policy.toml");
    std::fs::create_dir_all(root.parent().unwrap()).unwrap();
    let output = aptix(place.path(), &["apply"], DOCUMENT);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("line 2: ") && stderr.contains("delete this line"), "{stderr}");
    for (number, (mine, roots)) in
        [("durability = \"flushed\"", ""), ("", "\ndurability = \"journal\""), ("", "durability = 7")]
            .iter()
            .enumerate()
    {
        put(place.path(), mine);
        std::fs::write(&root, roots).unwrap();
        let output = aptix(place.path(), &["apply"], DOCUMENT.replace("a.txt", &number.to_string()));
        let stderr = text(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let file = if mine.is_empty() { &root } else { &own };
        assert!(stderr.contains("WARN") && stderr.contains(file.file_name().unwrap().to_str().unwrap()), "{stderr}");
        assert!(stderr.contains("`durability` is no longer a choice"), "{stderr}");
    }
}

/// A repository's policy costs a bounded time, however much is in it: it is refused with its file and line.
#[test]
fn a_policy_with_too_many_patterns_is_refused_with_its_line() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("ws");
    let file = root.join(".aptix/policy.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let listed = |count: usize| {
        let patterns: Vec<_> = (0..count).map(|number| format!("'/a{number}'")).collect();
        format!("deny = [\n{}\n]\n", patterns.join(",\n"))
    };
    let wild: Vec<_> = (0..999).map(|number| format!("'{}{number}'", "*a?".repeat(20))).collect();
    let cases = [
        (listed(20_000), "line 1002: a policy file has at most 1000 patterns"),
        (listed(60_000), "it has more than 262144 bytes"),
        (format!("deny = [\n{}\n]\n", wild.join(",\n")), "simpler ones"),
    ];
    for (policy, message) in cases {
        std::fs::write(&file, policy).unwrap();
        let begun = Instant::now();
        let output = aptix(place.path(), &["apply"], DOCUMENT);
        let (took, stderr) = (begun.elapsed(), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("POLICY_DENIED (POLICY_FILE)") && stderr.contains(message), "{stderr}");
        assert!(stderr.contains(".aptix/policy.toml"), "{stderr}");
        assert!(took < Duration::from_secs(120), "{took:?}");
    }
    std::fs::write(&file, listed(1000)).unwrap();
    assert!(aptix(place.path(), &["apply"], DOCUMENT).status.success());
}
