//! The register of requirements, `docs/requirements.md`, and which tests name its ids.

use std::collections::{BTreeMap, BTreeSet};

use crate::repo::Text;

/// Where the register stands.
pub(crate) const PATH: &str = "docs/requirements.md";

/// One row of the register: a rule with its id.
pub(crate) struct Row<'a> {
    /// Index of its line in the text, from 0.
    pub(crate) line: usize,
    /// The id tests name.
    pub(crate) id: &'a str,
    /// Whether it is `tested`, left to the `author`, or comes `later`.
    pub(crate) status: &'a str,
    /// The cells of the row, as they stand between the bars.
    cells: Vec<&'a str>,
}

/// Every row of the register's tables, in order.
pub(crate) fn rows(register: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (line, text) in register.lines().enumerate() {
        let cells: Vec<&str> = text.split('|').map(str::trim).collect();
        if let ["", id, _, status, _, ""] = cells[..]
            && family(id).is_some()
        {
            rows.push(Row { line, id, status, cells });
        }
    }
    rows
}

/// The name of the text an id belongs to, if this is an id at all: `REQ-PATCH` of `REQ-PATCH-002`.
fn family(id: &str) -> Option<&str> {
    let (family, number) = id.rsplit_once('-')?;
    let numbered = number.starts_with(|first: char| first.is_ascii_digit());
    (numbered && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')).then_some(family)
}

/// A place in a file that names an id.
pub(crate) struct Mention<'a> {
    /// The id, whole: never the beginning of a longer one.
    pub(crate) id: &'a str,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// Every id in a text that belongs to one of the register's texts, known or not.
pub(crate) fn mentions<'a>(text: &'a str, families: &BTreeSet<&str>) -> Vec<Mention<'a>> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for token in line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')) {
            let token = token.trim_matches(['-', '.']);
            if family(token).is_some_and(|name| families.contains(name)) {
                found.push(Mention { id: token, line: index + 1 });
            }
        }
    }
    found
}

/// The texts of which the register has rules.
pub(crate) fn families<'a>(rows: &[Row<'a>]) -> BTreeSet<&'a str> {
    rows.iter().filter_map(|row| family(row.id)).collect()
}

/// The part of a file that is test: all of a file in a test directory, a source file from its `#[cfg(test)]` on.
fn test_part(file: &Text) -> Option<&str> {
    let directory = ["crates/", "xtask/"].iter().any(|room| file.path.starts_with(room));
    if (directory && file.path.contains("/tests/")) || file.path.starts_with("examples/python/") {
        return Some(&file.content);
    }
    let source = directory && file.path.contains("/src/") && file.path.ends_with(".rs");
    let start = file.content.find("\n#[cfg(test)]\nmod ")?;
    source.then(|| &file.content[start..])
}

/// Which test files name each id, by their short names.
pub(crate) fn scenarios<'a>(files: &'a [Text], families: &BTreeSet<&str>) -> BTreeMap<&'a str, BTreeSet<String>> {
    let mut scenarios: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        for mention in test_part(file).map(|text| mentions(text, families)).unwrap_or_default() {
            scenarios.entry(mention.id).or_default().insert(short(&file.path));
        }
    }
    scenarios
}

/// `crates/aptix-engine/tests/it/lines.rs` is `engine/lines.rs`: what tells test files apart, and no more.
fn short(path: &str) -> String {
    let path = path.strip_prefix("crates/aptix-").unwrap_or(path);
    path.replacen("/tests/it/", "/", 1).replacen("/tests/", "/", 1).replacen("/src/", "/", 1)
}

/// The register with its column `scenario` filled in: `?` where a test is owed, `-` where none is.
pub(crate) fn filled(register: &str, files: &[Text]) -> String {
    let rows = rows(register);
    let scenarios = scenarios(files, &families(&rows));
    let mut lines: Vec<String> = register.lines().map(str::to_owned).collect();
    for row in &rows {
        let cell = match scenarios.get(row.id) {
            Some(names) => names.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
            None if row.status == "tested" => "?".to_owned(),
            None => "-".to_owned(),
        };
        lines[row.line] = format!("| {} | {} | {} | {cell} |", row.id, row.cells[2], row.status);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTER: &str = "\
| id | rule | status | scenario |
| --- | --- | --- | --- |
| DOC-1-2.1 | One. | tested | ? |
| DOC-1-2.10 | Ten. | tested | old.rs |
| DOC-1-3 | Later. | later | - |
";

    fn file(path: &str, content: &str) -> Text {
        Text { path: path.to_owned(), content: content.to_owned() }
    }

    #[test]
    fn the_scenario_column_names_each_test_file_once_and_in_order() {
        let files = [
            file("crates/aptix-model/src/path.rs", "//! DOC-1-2.10\n\n#[cfg(test)]\nmod tests {} // DOC-1-2.1"),
            file("crates/aptix-engine/tests/it/lines.rs", "// DOC-1-2.1.\nDOC-1-2.1"),
            file("docs/other.md", "DOC-1-2.10"),
        ];
        let filled = filled(REGISTER, &files);
        assert!(filled.contains("| DOC-1-2.1 | One. | tested | engine/lines.rs, model/path.rs |\n"), "{filled}");
        assert!(filled.contains("| DOC-1-2.10 | Ten. | tested | ? |\n"), "{filled}");
        assert!(filled.ends_with("| DOC-1-3 | Later. | later | - |\n"), "{filled}");
    }

    #[test]
    fn ids_are_whole_tokens_of_the_known_texts() {
        let rows = rows(REGISTER);
        let found = mentions("a DOC-1-2.1, (DOC-1-2.1.7) DOC-1 2.1 UTF-8 DOC-1-x\nDOC-1-3: b", &families(&rows));
        let found: Vec<_> = found.iter().map(|mention| (mention.id, mention.line)).collect();
        assert_eq!(found, [("DOC-1-2.1", 1), ("DOC-1-2.1.7", 1), ("DOC-1-3", 2)]);
    }
}
