//! House rules that hold for every file.

use super::finding::{Finding, code};
use crate::repo::Text;

/// How many lines a source file may have, by its ending.
const MAX_LINES: [(&str, usize); 4] = [(".rs", 500), (".py", 500), (".sh", 500), (".proto", 500)];

/// What unfinished or silenced code looks like, and what to write. Put together, so that this file obeys itself.
const UNFINISHED: [(&str, &str); 4] = [
    (concat!("to", "do!("), "finish it, or leave it out until it is needed"),
    (concat!("un", "implemented!("), "finish it, or leave it out until it is needed"),
    (concat!("#[ig", "nore"), "a test runs or is deleted"),
    (concat!("[al", "low("), "use expect(.., reason = \"..\"), which reports when it is no longer needed"),
];

/// Directories of one machine or one person.
const MACHINE: [&str; 3] = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/")];

/// The helpers of tests that wait until something holds: who sleeps elsewhere waits too long or not long enough.
const WAITING: [&str; 5] = [
    "crates/aptix-client/tests/it/agent/scene.rs",
    "crates/aptix-server/tests/it/until.rs",
    "xtask/harness/crash/moment.rs",
    // Its time is simulated: nothing waits.
    "xtask/harness/simulate/clock.rs",
    "xtask/tests/it/processes.rs",
];

/// Whether a file is of tests or harnesses.
fn is_test(path: &str) -> bool {
    (path.starts_with("crates/") && path.contains("/tests/"))
        || ["xtask/tests/", "xtask/harness/"].iter().any(|folder| path.starts_with(folder))
}

/// Checks one file.
pub(super) fn check(text: &Text) -> Vec<Finding> {
    let finding = |line, message| Finding { path: text.path.clone(), line, message };
    let mut findings = Vec::new();
    let generated = text.path.contains("/generated/");
    let lines = text.content.lines().count();
    let most = MAX_LINES.into_iter().find(|(end, _)| text.path.ends_with(end));
    if let Some((_, most)) = most.filter(|(_, most)| lines > *most && !generated) {
        findings.push(finding(0, format!("{lines} lines; split it by what it knows, into files of at most {most}")));
    }
    if text.path.ends_with("/clippy.toml") || text.path.ends_with("/.clippy.toml") {
        findings.push(finding(0, "replaces the root's clippy.toml and its bans; move its settings there".to_owned()));
    }
    for (index, line) in text.content.lines().enumerate() {
        if let Some(directory) = machine_path(line) {
            let message = format!("{directory} is a directory of one machine; use a relative or an invented path");
            findings.push(finding(index + 1, message));
        }
        if !text.path.ends_with(".rs") || generated {
            continue;
        }
        if is_test(&text.path) && !WAITING.contains(&text.path.as_str()) && code(line).contains("sleep(") {
            let message = format!("wait until something holds instead, with a helper of {}", WAITING.join(", "));
            findings.push(finding(index + 1, message));
        }
        for (pattern, instead) in UNFINISHED {
            if code(line).contains(pattern) {
                findings.push(finding(index + 1, format!("{pattern}: {instead}")));
            }
        }
    }
    findings
}

/// The machine directory that a line names as an absolute path.
fn machine_path(line: &str) -> Option<&'static str> {
    let begins_path = |at: usize| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/~*}])".contains(c))
    };
    MACHINE.into_iter().find(|directory| line.match_indices(directory).any(|(at, _)| begins_path(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, content: &str) -> Vec<String> {
        let text = Text { path: path.to_owned(), content: content.to_owned() };
        check(&text).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_long_file_is_found_unless_a_program_wrote_it() {
        let long = "x\n".repeat(501);
        assert_eq!(found("a.rs", &long).len(), 1);
        assert!(found("src/generated/a.rs", &long).is_empty());
        assert!(found("a.md", &long).is_empty());
        assert!(found("a.rs", &"x\n".repeat(500)).is_empty());
    }

    #[test]
    fn unfinished_and_silenced_code_is_found() {
        for (pattern, _) in UNFINISHED {
            assert_eq!(found("a.rs", &format!("fine\n{pattern}")).len(), 1, "{pattern}");
            assert!(found("a.rs", &format!("fine // {pattern}")).is_empty(), "{pattern}");
            assert!(found("a.md", pattern).is_empty(), "{pattern}");
        }
    }

    #[test]
    fn a_test_that_sleeps_is_found_unless_it_is_the_helper_that_waits() {
        for path in ["crates/a/tests/it/a.rs", "xtask/harness/crash/a.rs", "xtask/tests/it/a.rs"] {
            assert_eq!(found(path, "std::thread::sleep(time);\ntokio::time::sleep(time)").len(), 2, "{path}");
        }
        for path in WAITING.into_iter().chain(["crates/a/src/a.rs"]) {
            assert!(found(path, "sleep(time)").is_empty(), "{path}");
        }
    }

    #[test]
    fn paths_of_a_machine_are_found_and_relative_ones_are_not() {
        for directory in MACHINE {
            assert_eq!(found("a.txt", &format!("see {directory}x")).len(), 1);
            assert_eq!(found("a.txt", &format!("\"{directory}x\"")).len(), 1);
            assert!(found("a.txt", &format!("the{directory}x ${{DIR}}{directory}x")).is_empty());
        }
    }

    #[test]
    fn a_second_clippy_toml_is_found() {
        assert!(found("clippy.toml", "").is_empty());
        assert_eq!(found("crates/aptix-model/clippy.toml", "").len(), 1);
    }
}
