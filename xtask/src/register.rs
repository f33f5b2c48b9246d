//! The register of requirements, `docs/requirements.md`, and which tests name its ids.

use std::collections::{BTreeMap, BTreeSet};

use crate::repo::Text;

/// Path of the register.
pub(crate) const PATH: &str = "docs/requirements.md";

/// What a row may say of its rule.
pub(crate) const STATUSES: [&str; 4] = ["tested", "author", "later", "refused by design"];

/// One row of the register: a rule with its id.
pub(crate) struct Row<'a> {
    /// Index of its line in the text, from 0.
    pub(crate) line: usize,
    /// The id tests name.
    pub(crate) id: &'a str,
    /// One of [`STATUSES`].
    pub(crate) status: &'a str,
    /// The cells of the row: the text between the bars.
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

/// A place in a test file that names an id, and the test it belongs to.
pub(crate) struct Claim<'a> {
    /// The id that is named.
    pub(crate) id: &'a str,
    /// The file.
    pub(crate) path: &'a str,
    /// Its line within the part of the file that is test, from 1.
    pub(crate) line: usize,
    /// Name of the function, or title of the scenario; none where the id is outside of both.
    pub(crate) test: Option<String>,
}

/// Every place in a test that names an id.
pub(crate) fn claims<'a>(files: &'a [Text], families: &BTreeSet<&str>) -> Vec<Claim<'a>> {
    let mut claims = Vec::new();
    for file in files {
        let Some(text) = test_part(file) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        for Mention { id, line } in mentions(text, families) {
            let test = match file.path.ends_with(".txt") {
                true => scenario(lines.get(..line).unwrap_or_default()),
                false => function(&lines, line - 1),
            };
            claims.push(Claim { id, path: &file.path, line, test });
        }
    }
    claims
}

/// Title of the scenario that the last of these lines belongs to, without the ids it begins with.
fn scenario(lines: &[&str]) -> Option<String> {
    let head = lines.iter().rev().find_map(|line| line.strip_prefix("== "))?;
    let title = match head.split_once(": ") {
        Some((ids, title)) if ids.split([' ', ',']).all(|word| word.is_empty() || family(word).is_some()) => title,
        _ => head,
    };
    Some(format!("\"{title}\""))
}

/// Name of the function that contains a line, or whose comments and attributes do.
fn function(lines: &[&str], at: usize) -> Option<String> {
    let is_above = |line: &&str| ["//", "#[", "@"].iter().any(|start| line.trim_start().starts_with(start));
    let below = lines.iter().skip(at).find(|line| !is_above(line));
    let name = |line: &&str| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        let line = line.strip_prefix("async ").unwrap_or(line);
        let rest = line.strip_prefix("fn ").or_else(|| line.strip_prefix("def "))?;
        rest.split(['(', '<']).next().map(str::to_owned)
    };
    below.and_then(name).or_else(|| lines.get(..=at).unwrap_or_default().iter().rev().find_map(name))
}

/// Which tests name each id: names of tests by the short name of their file.
pub(crate) fn tests<'a>(claims: &[Claim<'a>]) -> BTreeMap<&'a str, BTreeMap<String, BTreeSet<String>>> {
    let mut tests: BTreeMap<&str, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for claim in claims {
        if let Some(test) = &claim.test {
            tests.entry(claim.id).or_default().entry(short(claim.path)).or_default().insert(test.clone());
        }
    }
    tests
}

/// `crates/aptix-engine/tests/it/lines.rs` is `engine/lines.rs`: the shortest name that distinguishes test files.
fn short(path: &str) -> String {
    let path = path.strip_prefix("crates/aptix-").unwrap_or(path);
    path.replacen("/tests/it/", "/", 1).replacen("/tests/", "/", 1).replacen("/src/", "/", 1)
}

/// The register with its column `test` filled in: `?` where a test is owed, `-` where none is.
pub(crate) fn filled(register: &str, files: &[Text]) -> String {
    let rows = rows(register);
    let claims = claims(files, &families(&rows));
    let tests = tests(&claims);
    let mut lines: Vec<String> = register.lines().map(str::to_owned).collect();
    for row in &rows {
        let cell = match tests.get(row.id) {
            Some(files) => {
                let named = |(file, names): (&String, &BTreeSet<String>)| {
                    format!("{file}: {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
                };
                files.iter().map(named).collect::<Vec<_>>().join("; ")
            }
            None if row.status == "tested" => "?".to_owned(),
            None => "-".to_owned(),
        };
        if let (Some(line), Some(rule)) = (lines.get_mut(row.line), row.cells.get(2)) {
            *line = format!("| {} | {rule} | {} | {cell} |", row.id, row.status);
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTER: &str = "\
| id | rule | status | test |
| --- | --- | --- | --- |
| DOC-1-2.1 | One. | tested | ? |
| DOC-1-2.10 | Ten. | tested | old.rs |
| DOC-1-3 | Later. | later | - |
";

    fn file(path: &str, content: &str) -> Text {
        Text { path: path.to_owned(), content: content.to_owned() }
    }

    #[test]
    fn the_column_names_each_test_once_and_in_order() {
        let files = [
            file(
                "crates/aptix-model/src/path.rs",
                "//! DOC-1-2.10\n\n#[cfg(test)]\nmod tests {\nfn b() {\n// DOC-1-2.1\n}",
            ),
            file(
                "crates/aptix-engine/tests/it/lines.rs",
                "/// DOC-1-2.1.\n#[test]\nfn z() {}\nfn a() {\n// DOC-1-2.1\nDOC-1-2.1",
            ),
            file("crates/aptix-engine/tests/it/s.txt", "== DOC-1-2.1, DOC-1-3: a: title\n== Other: title\nDOC-1-2.1"),
            file("docs/other.md", "DOC-1-2.10"),
        ];
        let filled = filled(REGISTER, &files);
        let tests = r#"engine/lines.rs: a, z; engine/s.txt: "Other: title", "a: title"; model/path.rs: b"#;
        assert!(filled.contains(&format!("| DOC-1-2.1 | One. | tested | {tests} |\n")), "{filled}");
        assert!(filled.contains("| DOC-1-2.10 | Ten. | tested | ? |\n"), "{filled}");
        assert!(filled.ends_with("| DOC-1-3 | Later. | later | engine/s.txt: \"a: title\" |\n"), "{filled}");
    }

    #[test]
    fn an_id_outside_of_every_test_claims_nothing() {
        let files = [file("crates/aptix-engine/tests/it/lines.rs", "//! DOC-1-2.1\n\nuse x;\n\nfn a() {}\n")];
        let claims = claims(&files, &families(&rows(REGISTER)));
        assert_eq!(claims.iter().map(|claim| (claim.line, claim.test.as_deref())).collect::<Vec<_>>(), [(1, None)]);
        assert!(tests(&claims).is_empty());
    }

    #[test]
    fn ids_are_whole_tokens_of_the_known_texts() {
        let rows = rows(REGISTER);
        let found = mentions("a DOC-1-2.1, (DOC-1-2.1.7) DOC-1 2.1 UTF-8 DOC-1-x\nDOC-1-3: b", &families(&rows));
        let found: Vec<_> = found.iter().map(|mention| (mention.id, mention.line)).collect();
        assert_eq!(found, [("DOC-1-2.1", 1), ("DOC-1-2.1.7", 1), ("DOC-1-3", 2)]);
    }
}
