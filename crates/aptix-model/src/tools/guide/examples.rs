//! One example of each dialect: what it is for, and the document.

use crate::documents::Dialect;

/// When a dialect fits, and a document of it.
pub(super) fn of(dialect: Dialect) -> String {
    let (about, document) = parts(dialect);
    let fence = if matches!(dialect, Dialect::Chat) { "````" } else { "```" };
    format!("{about}\n\n{fence}\n{document}\n{fence}")
}

/// The document alone.
pub(super) const fn parts(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::LinePatch => ("Lines by their numbers, held to the digest of the file that you read.", LINE_PATCH),
        Dialect::SearchPatch => {
            ("Texts of one file that each occur once in it, all found in the file as it is.", SEARCH_PATCH)
        }
        Dialect::StructuredPatch => ("Texts replaced one after the other, in one or more files.", STRUCTURED_PATCH),
        Dialect::GitPatch => ("A unified diff, with the lines around each change as they are in the file.", GIT_PATCH),
        Dialect::FileBundle => ("Whole files, created, replaced or deleted.", FILE_BUNDLE),
        Dialect::CreateFile => ("One whole file.", CREATE_FILE),
        Dialect::CodexPatch => ("Sections that add, delete, update and move files, without line numbers.", CODEX_PATCH),
        Dialect::SearchReplace => {
            ("Blocks below the name of their file; SEARCH holds whole lines as they are.", SEARCH_REPLACE)
        }
        Dialect::StrReplace => ("A command of the text-editor tool, or a list of them.", STR_REPLACE),
        Dialect::Chat => ("A whole answer: every block in it that is an edit is applied, as one batch.", CHAT),
    }
}

const LINE_PATCH: &str = r#"{ "files": [{
  "docPath": "project/src/main.rs",
  "originalSha256": "df67c101daad35da4e822b95acdd91089c39a432d3ac23ad237440ea051a6c47",
  "changes": [
    { "operation": "insert", "afterLine": 0, "newLines": ["// first"] },
    { "operation": "replace", "startLine": 2, "endLine": 2,
      "expectedOriginalLines": ["hello"], "newLines": ["hello, world"] },
    { "operation": "delete", "startLine": 4, "endLine": 4, "expectedOriginalLines": ["old"] }
  ]
}] }"#;
const SEARCH_PATCH: &str = r#"{ "path": "src/main.rs", "patches": [
  { "operation": "replace", "oldText": "hello", "newText": "hello, world" },
  { "operation": "append_eof", "newText": "// end\n" }
] }"#;
const STRUCTURED_PATCH: &str = r#"{ "patches": [{
  "path": "src/main.rs",
  "replacements": [{ "find": "hello", "replace": "hello, world" }, { "find": "old", "replace": "new", "limit": "all" }]
}] }"#;
const GIT_PATCH: &str = "--- a/src/main.rs
+++ b/src/main.rs
@@ -1,3 +1,3 @@
 first
-hello
+hello, world
 last";
const FILE_BUNDLE: &str = r#"{ "files": [
  { "path": "src/new.rs", "operation": "create", "content": "fn new() {}\n" },
  { "path": "src/old.rs", "operation": "delete" }
] }"#;
const CREATE_FILE: &str = r#"{ "path": "src/new.rs", "content": "fn new() {}\n", "overwrite": false }"#;
const CODEX_PATCH: &str = "*** Begin Patch
*** Update File: src/main.rs
@@
 first
-hello
+hello, world
*** Delete File: src/old.rs
*** End Patch";
const SEARCH_REPLACE: &str = "src/main.rs
<<<<<<< SEARCH
hello
=======
hello, world
>>>>>>> REPLACE";
const STR_REPLACE: &str =
    r#"{ "command": "str_replace", "path": "src/main.rs", "old_str": "hello", "new_str": "hello, world" }"#;
const CHAT: &str = "Greet the world:

```diff
--- a/src/main.rs
+++ b/src/main.rs
@@ -1 +1 @@
-hello
+hello, world
```";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::parse;

    /// What the guide shows is what the parsers read.
    #[test]
    fn every_example_is_a_document_of_its_dialect() {
        for dialect in Dialect::ALL {
            let document =
                parse(parts(dialect).1.as_bytes(), None).unwrap_or_else(|failures| panic!("{dialect}: {failures:?}"));
            assert_eq!(document.dialect, dialect);
        }
    }
}
