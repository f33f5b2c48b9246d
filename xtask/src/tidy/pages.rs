//! Pages name files that exist: the page of promises its tests, the maps of the code whatever they lead to. The page on scale names each call and
//! each table with the key by which several databases share them.

use super::finding::Finding;
use crate::repo::Text;

/// The maps. They name a file by the end of its path.
const MAPS: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/internals/commit.md", "docs/internals/server.md"];
/// The page of promises, and where the tests are that it names by a short path.
const PAGE: &str = "docs/security.md";
const ROOMS: [(&str, &str); 2] = [("server/", "crates/aptix-server/tests/it/"), ("xtask/", "xtask/tests/it/")];
const OTHERS: &str = "crates/aptix-client/tests/it/";

/// The page on sharding, where calls and tables are declared, and how such a line begins.
const SHARDING: &str = "docs/scale.md";
const SHARDED: [(&str, &str); 2] =
    [("proto/aptix/", "rpc "), ("crates/aptix-server/src/store/postgres/migrations/", "CREATE TABLE ")];

/// Finds files that a page names and the repository does not have, and what the page on sharding does not name.
pub(super) fn check(texts: &[Text]) -> Vec<Finding> {
    let page = texts.iter().find(|text| text.path == SHARDING);
    let unnamed = page.into_iter().flat_map(|page| texts.iter().flat_map(|text| unsharded(text, &page.content)));
    texts.iter().flat_map(|page| missing(page, texts)).chain(unnamed).collect()
}

/// Finds calls and tables that the page on sharding does not name.
fn unsharded(text: &Text, page: &str) -> Vec<Finding> {
    let Some((_, keyword)) = SHARDED.into_iter().find(|(folder, _)| text.path.starts_with(folder)) else {
        return Vec::new();
    };
    let names = text.content.lines().enumerate().filter_map(|(index, line)| {
        Some((index + 1, line.trim_start().strip_prefix(keyword)?.split([' ', '(']).next()?))
    });
    let unnamed = names.filter(|(_, name)| !page.contains(&format!("`{name}`")));
    let finding = |(line, name)| {
        let message = format!("{SHARDING} does not name {name}; add the key by which several databases share it");
        Finding { path: text.path.clone(), line, message }
    };
    unnamed.map(finding).collect()
}

fn missing(page: &Text, texts: &[Text]) -> Vec<Finding> {
    let is_map = MAPS.contains(&page.path.as_str());
    if !is_map && page.path != PAGE {
        return Vec::new();
    }
    let is_there = |name: &str| match is_map {
        true => texts.iter().any(|text| text.path == name || text.path.ends_with(&format!("/{name}"))),
        false => texts.iter().any(|text| text.path == resolve(name)),
    };
    let lines = page.content.lines().enumerate();
    let names = lines.flat_map(|(index, line)| line.split('`').skip(1).step_by(2).map(move |name| (index + 1, name)));
    let gone = names.filter(|(_, name)| is_file(name) && !is_there(name));
    let finding = |(line, name): (usize, &str)| {
        let name = if is_map { name.to_owned() } else { resolve(name) };
        let message = format!("there is no {name}; name the file that the sentence is about");
        Finding { path: page.path.clone(), line, message }
    };
    gone.map(finding).collect()
}

fn is_file(name: &str) -> bool {
    [".rs", ".txt", ".proto"].into_iter().any(|ending| name.ends_with(ending)) && !name.contains(['<', '*', ' '])
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
    fn files_that_are_not_there_are_found() {
        let text = |path: &str, content: &str| Text { path: path.to_owned(), content: content.to_owned() };
        let page = "`undo.rs`, `server/lease.rs`\n`xtask/gone.rs`; `cargo xtask crash`, `crates/a/src/lib.rs`";
        let map = "`lib.rs`, `src/lib.rs`, `it/undo.rs`, `<name>.rs`\n`ib.rs`";
        let there =
            ["crates/aptix-client/tests/it/undo.rs", "crates/aptix-server/tests/it/lease.rs", "crates/a/src/lib.rs"];
        let mut texts = vec![text(PAGE, page), text("ARCHITECTURE.md", map), text("README.md", "`gone.rs`")];
        texts.extend(there.map(|path| text(path, "")));
        let found: Vec<String> = check(&texts).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("docs/security.md:2: there is no xtask/tests/it/gone.rs"), "{found:?}");
        assert!(found[1].starts_with("ARCHITECTURE.md:2: there is no ib.rs"), "{found:?}");
    }

    #[test]
    fn calls_and_tables_without_a_key_are_found() {
        let text = |path: &str, content: &str| Text { path: path.to_owned(), content: content.to_owned() };
        let texts = [
            text(SHARDING, "`GetBatch`, `batches`"),
            text("proto/aptix/v1/a.proto", "service A {\n  rpc GetBatch(A) returns (B);\n  rpc New(A) returns (B);\n"),
            text(
                "crates/aptix-server/src/store/postgres/migrations/V1__a.sql",
                "CREATE TABLE batches (\nCREATE TABLE more (",
            ),
        ];
        let found: Vec<_> = check(&texts).into_iter().map(|finding| finding.message).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("not name New") && found[1].contains("not name more"), "{found:?}");
    }
}
