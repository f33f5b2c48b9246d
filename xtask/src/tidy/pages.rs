//! The page of promises names tests that exist.

use super::finding::Finding;
use crate::repo::Text;

/// The page, and where the tests are that it names by a short path.
const PAGE: &str = "docs/security.md";
const ROOMS: [(&str, &str); 2] = [("server/", "crates/aptix-server/tests/it/"), ("xtask/", "xtask/tests/it/")];
const OTHERS: &str = "crates/aptix-client/tests/it/";

/// Finds files of tests that the page names and the repository does not have.
pub(super) fn check(texts: &[Text]) -> Vec<Finding> {
    let Some(page) = texts.iter().find(|text| text.path == PAGE) else { return Vec::new() };
    let mut findings = Vec::new();
    for (index, line) in page.content.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2).filter(|name| is_file(name)) {
            let path = resolve(name);
            if !texts.iter().any(|text| text.path == path) {
                let message = format!("there is no {path}; name the test that holds this promise");
                findings.push(Finding { path: PAGE.to_owned(), line: index + 1, message });
            }
        }
    }
    findings
}

fn is_file(name: &str) -> bool {
    [".rs", ".txt"].into_iter().any(|ending| name.ends_with(ending))
}

fn resolve(name: &str) -> String {
    if name.starts_with("crates/") {
        return name.to_owned();
    }
    let room = ROOMS.into_iter().find_map(|(short, room)| Some((room, name.strip_prefix(short)?)));
    let (room, name) = room.unwrap_or((OTHERS, name));
    format!("{room}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_not_there_is_found() {
        let text = |path: &str, content: &str| Text { path: path.to_owned(), content: content.to_owned() };
        let page = "`undo.rs`, `server/lease.rs`\n`xtask/gone.rs`; `cargo xtask crash`, `crates/a/src/lib.rs`";
        let there =
            ["crates/aptix-client/tests/it/undo.rs", "crates/aptix-server/tests/it/lease.rs", "crates/a/src/lib.rs"];
        let mut texts = vec![text(PAGE, page)];
        texts.extend(there.map(|path| text(path, "")));
        let found: Vec<String> = check(&texts).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("docs/security.md:2: there is no xtask/tests/it/gone.rs"), "{found:?}");
    }
}
