//! Adds files to the `allow` list of a policy file's text; the rest of it stays as it is.

use toml_edit::{Array, DocumentMut, Item, Table, Value};

/// Why a text cannot be added to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AllowError {
    /// It is not TOML.
    #[error("it is not TOML")]
    Toml,
    /// A key that should be a table or a list is something else.
    #[error("its key {0:?} is neither a table nor a list")]
    Key(&'static str),
}

/// Adds paths in a root to its list.
pub(crate) fn add(text: &str, root: &str, paths: &[String]) -> Result<String, AllowError> {
    let mut document: DocumentMut = text.parse().map_err(|_| AllowError::Toml)?;
    // What comes after the last key would be printed below the new table, and a key that is made of it would belong to that.
    let rest = document.trailing().as_str().unwrap_or_default().to_owned();
    let mut is_moved = false;
    let mut implicit = Table::new();
    // It is written only as what is in it.
    implicit.set_implicit(true);
    let roots =
        document.entry("roots").or_insert(Item::Table(implicit)).as_table_like_mut().ok_or(AllowError::Key("roots"))?;
    let is_new = !roots.contains_key(root);
    let lists = roots.entry(root).or_insert(Item::Table(Table::new()));
    if let Some(table) = lists.as_table_mut().filter(|_| is_new && !rest.trim().is_empty()) {
        table.decor_mut().set_prefix(format!("{}\n\n", rest.trim_end()));
        is_moved = true;
    }
    let lists = lists.as_table_like_mut().ok_or(AllowError::Key("roots"))?;
    let allow = lists.entry("allow").or_insert(Item::Value(Value::Array(Array::new())));
    let allow = allow.as_array_mut().ok_or(AllowError::Key("allow"))?;
    for pattern in paths.iter().map(|path| pattern(path)) {
        if !allow.iter().any(|known| known.as_str() == Some(&pattern)) {
            allow.push(pattern);
        }
    }
    if is_moved {
        document.set_trailing("");
    }
    Ok(document.to_string())
}

/// The pattern that this path alone matches.
fn pattern(path: &str) -> String {
    let mut pattern = "/".to_owned();
    for character in path.chars() {
        if matches!(character, '\\' | '*' | '?' | '[' | ']' | '{' | '}') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::document::{Author, parse};

    /// Comments at the end stay above what is added: a key that is made of one belongs to the whole file.
    #[test]
    fn what_was_commented_out_can_still_be_stated() {
        let paths = ["x".to_owned()];
        for text in [
            "# one\n#deny = [\"y\"]\n",
            "ask = []\n\n# one\n#deny = [\"y\"]\n",
            "[limits]\nfiles = 1\n#file_bytes = 2\n",
        ] {
            let added = add(text, "/w", &paths).unwrap();
            let stated = added.replace("\n#deny", "\ndeny").replace("\n#file", "\nfile");
            let parsed = parse(stated.as_bytes(), Author::Person).unwrap();
            let (_, lists) = parsed.roots.first().unwrap();
            assert!(lists.deny.is_empty() && lists.allow.find("x").is_some(), "{stated}");
            assert_eq!(parsed.lists.deny.find("y").is_some(), text.contains("deny"), "{stated}");
        }
    }

    #[test]
    fn what_is_there_stays_and_what_is_added_is_allowed() {
        let texts = [
            "",
            "# mine\ndeny = [\"x\"] # because\n",
            "[roots.\"/w\"] # the one\ndeny = [\"x\"]\nallow = [\n  # first\n  \"y\",\n]\n[limits]\nfiles = 3\n",
            "roots = { \"/w\" = { allow = [] } }",
            "[roots.\"/other\"]\nallow = [\"z\"]\n",
        ];
        let paths = ["AGENTS.md".to_owned(), "a[1]/{b} *.md".to_owned(), "q\"uote".to_owned()];
        for text in texts {
            let added = add(text, "/w", &paths).unwrap();
            for comment in text.lines().filter_map(|line| line.split_once('#')) {
                assert!(added.contains(comment.1), "{added}");
            }
            let stated = parse(added.as_bytes(), Author::Person).unwrap();
            let (_, lists) = stated.roots.iter().find(|(root, _)| root.to_str() == Some("/w")).unwrap();
            for path in &paths {
                assert!(lists.allow.find(path).is_some(), "{path:?}: {added}");
            }
            assert!(lists.allow.find("a1/b x.md").is_none() && lists.allow.find("sub/AGENTS.md").is_none());
            assert_eq!(add(&added, "/w", &paths).unwrap(), added, "it is added once");
        }
        assert_eq!(add("roots = 1", "/w", &paths), Err(AllowError::Key("roots")));
        assert_eq!(add("=", "/w", &paths), Err(AllowError::Toml));
    }
}
