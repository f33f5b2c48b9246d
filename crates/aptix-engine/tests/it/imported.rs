//! Edits in the formats of other tools, from their text to the bytes of a file: what those tools get wrong, and what
//! holds for every edit.

use aptix_engine::plan::plan;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate::validate;
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;
use proptest::prelude::*;

use crate::boundary::{Applied, apply, code, observed, shown};

/// What a document of one file makes of that file.
pub(crate) fn applied(dialect: Dialect, document: &str, before: Option<&[u8]>) -> Result<Applied, Box<Failure>> {
    match parse(document.as_bytes(), Some(dialect)) {
        Ok(mut document) => apply(document.batch.files.remove(0), before),
        Err(mut failures) => Err(Box::new(failures.remove(0))),
    }
}

/// The replacement of some whole lines by others, in every dialect that has it.
pub(crate) fn documents(old: &str, new: &str) -> [(Dialect, String); 3] {
    let prefixed = |sign: char, text: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
    let chunk = prefixed('-', old) + &prefixed('+', new);
    [
        (Dialect::CodexPatch, format!("*** Begin Patch\n*** Update File: a\n@@\n{chunk}*** End Patch\n")),
        (Dialect::SearchReplace, format!("a\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n")),
        (
            Dialect::StrReplace,
            format!(r#"{{"command": "str_replace", "path": "a", "old_str": {old:?}, "new_str": {new:?}}}"#),
        ),
    ]
}

/// A name, a file, lines of it, what comes instead, and what becomes of the file.
type Probe<'a> = (&'a str, &'a [u8], &'a str, &'a str, Result<&'a [u8], &'a str>);

/// What tools were seen to do to files that they should not have touched, or not so.
#[test]
fn every_dialect_gets_right_what_other_tools_get_wrong() {
    let python = "def f():\n    if x:\n        y()\n        z()\n";
    let cases: &[Probe<'_>] = &[
        ("an LF edit of a CRLF file", b"a\r\nb\r\nc\r\n", "b\n", "x\ny\n", Ok(b"a\r\nx\r\ny\r\nc\r\n")),
        ("mixed terminators", b"a\r\nb\nc\r\n", "b\n", "x\n", Ok(b"a\r\nx\nc\r\n")),
        ("text that occurs twice", b"a\nb\na\n", "a\n", "x\n", Err("TEXT_NOT_UNIQUE")),
        ("text that overlaps itself", b"a\na\na\n", "a\na\n", "x\n", Err("TEXT_NOT_UNIQUE")),
        (
            "text without its indentation",
            python.as_bytes(),
            "y()\nz()\n",
            "y()\nif y:\n    z()\n",
            Ok(b"def f():\n    if x:\n        y()\n        if y:\n            z()\n"),
        ),
        ("tabs in the file, blanks in the text", b"\ta\n\tb\n", "    a\n    b\n", "    c\n", Err("TEXT_NOT_FOUND")),
        ("a stale number", b"limit = 15\n", "limit = 10\n", "limit = 20\n", Err("TEXT_NOT_FOUND")),
        ("another name", b"let total = 1;\n", "let totals = 1;\n", "let total = 2;\n", Err("TEXT_NOT_FOUND")),
        ("other quotation marks", "\u{201c}a\u{201d}\n".as_bytes(), "\"a\"\n", "b\n", Err("TEXT_NOT_FOUND")),
        ("blanks within a line", b"a  b\n", "a b\n", "c\n", Err("TEXT_NOT_FOUND")),
        ("blanks at the ends of new lines", b"a\n", "a\n", "a  \n", Ok(b"a  \n")),
        ("no newline at the end of the file", b"a\nb", "b\n", "c\n", Ok(b"a\nc")),
        ("a byte order mark", b"\xef\xbb\xbfa\nb\n", "a\n", "x\n", Ok(b"\xef\xbb\xbfx\nb\n")),
        ("bytes that are no UTF-8 elsewhere", b"\xe9\nb\n\xff", "b\n", "x\n", Ok(b"\xe9\nx\n\xff")),
        ("nothing but a deletion", b"a\nb\nc\n", "b\n", "", Ok(b"a\nc\n")),
        ("all of the file", b"a\n", "a\n", "", Ok(b"")),
        ("nothing at all", b"a\n", "a\n", "a\n", Ok(b"a\n")),
        ("binary", b"a\n\0", "a\n", "b\n", Err("NOT_TEXT.BINARY")),
        ("UTF-16", b"\xff\xfea\0\n\0", "a\n", "b\n", Err("NOT_TEXT.ENCODING")),
    ];
    for (name, before, old, new, expected) in cases {
        for (dialect, document) in documents(old, new) {
            let found = applied(dialect, &document, Some(before));
            let found = found.map(|applied| shown(&applied.content)).map_err(|failure| code(&failure));
            assert_eq!(found, expected.map(shown).map_err(str::to_owned), "{name}, {dialect}");
        }
    }
    for (dialect, document) in documents("a\n", "b\n") {
        assert_eq!(code(&applied(dialect, &document, None).unwrap_err()), "FILE_MISSING", "{dialect}");
    }
}

/// A text as a string in JSON.
pub(crate) fn json(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

/// What was only written down in another way is shown as the file has it, and never applied.
#[test]
fn old_text_in_another_spelling_is_shown_as_the_file_has_it() {
    let cases = [
        ("let a = \"x\";\nlet b = 'y';\n", "let a = \u{201c}x\u{201d};\n", "let a = \"x\";", 1),
        (
            "# one\n# \u{2018}two\u{2019} \u{2014} three\n",
            "# 'two' - three\n",
            "# \u{2018}two\u{2019} \u{2014} three",
            2,
        ),
        ("a\nif x < 1 && y > 2:\n", "if x &lt; 1 &amp;&amp; y &gt; 2:\n", "if x < 1 && y > 2:", 2),
        ("a\nfirst();\n\tsecond();\n", "first();\\n\\tsecond();\n", "first();\n\tsecond();", 2),
        ("say(\"hi\");\n", "say(\\\"hi\\\");\n", "say(\"hi\");", 1),
    ];
    for (before, old, lines, line) in cases {
        let others = [
            (
                Dialect::SearchPatch,
                format!(
                    r#"{{"path": "a", "patches": [{{"operation": "replace", "oldText": {}, "newText": "z"}}]}}"#,
                    json(old)
                ),
            ),
            (
                Dialect::StructuredPatch,
                format!(
                    r#"{{"patches": [{{"path": "a", "replacements": [{{"find": {}, "replace": "z"}}]}}]}}"#,
                    json(old)
                ),
            ),
            (
                Dialect::StrReplace,
                format!(r#"{{"command": "str_replace", "path": "a", "old_str": {}, "new_str": "z"}}"#, json(old)),
            ),
        ];
        let [codex, blocks, _] = documents(old, "z\n");
        for (dialect, document) in [codex, blocks].into_iter().chain(others) {
            let failure = applied(dialect, &document, Some(before.as_bytes())).unwrap_err();
            let hint = failure.hint.clone().unwrap();
            assert_eq!(failure.reason.code(), "TEXT_NOT_FOUND", "{dialect}: {failure}");
            assert!(hint.starts_with("did you mean ") && failure.next_action.is_none(), "{dialect}: {failure}: {hint}");
            assert_eq!((failure.nearest[0].text.as_str(), failure.line), (lines, Some(line)), "{dialect}: {failure}");
        }
    }
    // White space and letters are other matters.
    for (before, old) in [("a  b\n", "a b\n"), ("x = 1\n", "x = 2\n"), ("a\\nb\n", "a\\nc\n")] {
        for (dialect, document) in documents(old, "z\n") {
            let failure = applied(dialect, &document, Some(before.as_bytes())).unwrap_err();
            assert!(!failure.hint.clone().unwrap().starts_with("did you mean"), "{dialect}: {failure}");
        }
    }
}

/// Conflict markers are text like any other, where a format can say so.
#[test]
fn markers_in_a_file_are_text() {
    let before = b"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n";
    let old = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n";
    let escaped = "a\n<<<<<<< SEARCH\n\\<<<<<<< HEAD\na\n\\=======\nb\n\\>>>>>>> other\n=======\na\n>>>>>>> REPLACE\n";
    let longer = format!("a\n<<<<<<<<< SEARCH\n{old}=========\na\n>>>>>>>>> REPLACE\n");
    for document in [escaped, &longer] {
        assert_eq!(shown(&applied(Dialect::SearchReplace, document, Some(before)).unwrap().content), "a\\n");
    }
    let [(codex, patch), (search, blocks), (command, json)] = documents(old, "a\n");
    assert_eq!(shown(&applied(codex, &patch, Some(before)).unwrap().content), "a\\n");
    assert_eq!(shown(&applied(command, &json, Some(before)).unwrap().content), "a\\n");
    assert_eq!(code(&applied(search, &blocks, Some(before)).unwrap_err()), "PATCH_MALFORMED.MARKER");
}

#[test]
fn search_replace_blocks_are_made_one_after_the_other() {
    let check = |before: Option<&str>, blocks: &str, expected: Result<&str, &str>| {
        let found = applied(Dialect::SearchReplace, &format!("a\n{blocks}"), before.map(str::as_bytes));
        let found = found.map(|applied| shown(&applied.content)).map_err(|failure| code(&failure));
        assert_eq!(found, expected.map(|text| shown(text.as_bytes())).map_err(str::to_owned), "{blocks}");
    };
    let block = |old: &str, new: &str| format!("<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n");
    check(Some("a\nb\n"), &(block("a\n", "x\n") + &block("x\n", "y\n")), Ok("y\nb\n"));
    check(Some("a\nb\n"), &(block("a\n", "b\n") + &block("b\n", "y\n")), Err("TEXT_NOT_UNIQUE"));
    check(Some("a\n"), &(block("a\n", "x\n") + &block("a\n", "y\n")), Err("TEXT_NOT_FOUND"));
    // Nothing to look for is the end of the file, or a file that is not there yet.
    check(Some("a"), &block("", "x\n"), Ok("a\nx"));
    check(None, &block("", "x\ny\n"), Ok("x\ny\n"));
    // Lines end as lines did, though the step before took the last one that had an end.
    check(Some("a\r\nb"), &(block("a\n", "") + "a\n" + &block("", "x\n")), Ok("b\r\nx"));
    // Without a name, whose end is meant is not said.
    check(Some("a\r\nb"), &(block("a\n", "") + &block("", "x\n")), Err("PATCH_MALFORMED.MISSING"));
    check(None, &block("a\n", "x\n"), Err("FILE_MISSING"));
    // Lines of three dots stand for what stays; each piece has one place.
    let file = "fn a() {\n    one\n    two\n}\nfn b() {\n    two\n}\n";
    check(
        Some(file),
        &block("fn a() {\n...\n}\nfn b() {\n", "fn c() {\n...\n}\nfn d() {\n"),
        Ok("fn c() {\n    one\n    two\n}\nfn d() {\n    two\n}\n"),
    );
    check(Some(file), &block("fn a() {\n...\n    two\n", "fn c() {\n...\n    2\n"), Err("TEXT_NOT_UNIQUE"));
    check(Some(file), &block("fn x() {\n...\n    one\n", "fn x() {\n...\n    1\n"), Err("TEXT_NOT_FOUND"));
    check(
        Some("def f():\n    ...\n"),
        &block("def f():\n    ...\n", "def f():\n    pass\n"),
        Ok("def f():\n    pass\n"),
    );
    check(
        Some("def f():\n    ...\n"),
        &block("def f():\n    ...\n", "def f(x):\n    ...\n"),
        Ok("def f(x):\n    ...\n"),
    );
    // A line number settles which of several places is meant.
    check(Some("a\nb\na\n"), &block(":start_line: 3\n-------\na\n", "x\n"), Ok("a\nb\nx\n"));
    check(Some("a\nb\na\n"), &block(":start_line: 2\n-------\na\n", "x\n"), Err("TEXT_NOT_UNIQUE"));
}

#[test]
fn commands_of_a_list_are_made_at_once() {
    let check = |before: Option<&str>, commands: &str, expected: Result<&str, &str>| {
        let found = applied(Dialect::StrReplace, &format!("[{commands}]"), before.map(str::as_bytes));
        let found = found.map(|applied| shown(&applied.content)).map_err(|failure| code(&failure));
        assert_eq!(found, expected.map(|text| shown(text.as_bytes())).map_err(str::to_owned), "{commands}");
    };
    let swap = |old: &str, new: &str| {
        format!(r#"{{"command": "str_replace", "path": "a", "old_str": {old:?}, "new_str": {new:?}}}"#)
    };
    let insert = |line: i64, text: &str| {
        format!(r#"{{"command": "insert", "path": "a", "insert_line": {line}, "insert_text": {text:?}}}"#)
    };
    let create = r#"{"command": "create", "path": "a", "file_text": "x\r\n"}"#;
    check(None, create, Ok("x\r\n"));
    check(Some(""), create, Err("FILE_EXISTS"));
    check(Some("one two\n"), &(swap("one", "1") + "," + &swap("two", "2")), Ok("1 2\n"));
    check(Some("one two\n"), &(swap("one t", "1") + "," + &swap("two", "2")), Err("MATCH_OVERLAP"));
    check(Some("one\n"), &(swap("one", "2") + "," + &swap("three", "4")), Err("TEXT_NOT_FOUND"));
    check(Some("a\nb"), &insert(0, "x"), Ok("x\na\nb"));
    check(Some("a\nb"), &insert(1, "x\n"), Ok("a\nx\nb"));
    check(Some("a\nb"), &insert(2, "x"), Ok("a\nb\nx"));
    check(Some("a\r\nb\r\n"), &insert(1, "x\ny"), Ok("a\r\nx\r\ny\r\nb\r\n"));
    check(Some("a\nb"), &insert(3, "x"), Err("LINE_RANGE.PAST_END"));
    check(Some("a\nb"), &insert(-1, "x"), Err("LINE_RANGE.NEGATIVE"));
    check(Some("a\nb\n"), &(insert(2, "y") + "," + &insert(1, "x") + "," + &swap("a", "c")), Ok("c\nx\nb\ny\n"));
    check(Some("a\nb\n"), &(insert(1, "x") + "," + &swap("a\nb", "c")), Err("MATCH_OVERLAP"));
}

/// Lines of a file that are replaced by others; the first removed line has so many above it.
#[derive(Clone, Debug)]
struct Edit {
    above: usize,
    removed: usize,
    new: Vec<&'static str>,
    /// Lines of context that are given, as far as there are any.
    context: usize,
    is_anchored: bool,
}

#[derive(Clone, Debug)]
struct Case {
    lines: Vec<&'static str>,
    edits: Vec<Edit>,
    is_crlf: bool,
    is_unterminated: bool,
}

const LINES: [&str; 10] = ["", "a", "b", "}", "fn a() {", "fn b() {", "    x", "    y", "    if a {", "        x"];

fn case() -> impl Strategy<Value = Case> {
    let lines = proptest::collection::vec(proptest::sample::select(LINES.to_vec()), 0..20);
    let new = proptest::collection::vec(proptest::sample::select(LINES.to_vec()), 0..4);
    let edit = (0..8_usize, 0..4_usize, new, 0..4_usize, any::<bool>());
    (lines, proptest::collection::vec(edit, 1..4), any::<bool>(), any::<bool>()).prop_map(
        |(lines, steps, is_crlf, open)| {
            let mut edits: Vec<Edit> = Vec::new();
            let mut at = 0;
            for (skip, removed, new, context, is_anchored) in steps {
                let above = (at + skip).min(lines.len());
                let removed = removed.min(lines.len() - above);
                if removed > 0 || !new.is_empty() {
                    edits.push(Edit { above, removed, new, context, is_anchored });
                    // Chunks that touch would be one.
                    at = above + removed + 1;
                }
                if at > lines.len() {
                    break;
                }
            }
            let is_unterminated = open && lines.last().is_some_and(|line| !line.is_empty());
            // New lines can only end like others.
            let is_crlf = is_crlf && lines.len() > 1;
            Case { lines, edits, is_crlf, is_unterminated }
        },
    )
}

/// An edit with the lines above that are given, the lines that go, and the lines below that are given.
type Part<'a> = (&'a Edit, &'a [&'static str], &'a [&'static str], &'a [&'static str]);

impl Case {
    /// The bytes of a file with these lines.
    fn bytes(&self, lines: &[&str]) -> String {
        let end = if self.is_crlf { "\r\n" } else { "\n" };
        let last = if self.is_unterminated || lines.is_empty() { "" } else { end };
        lines.join(end) + last
    }

    fn after(&self) -> String {
        let mut lines = self.lines.clone();
        for edit in self.edits.iter().rev() {
            lines.splice(edit.above..edit.above + edit.removed, edit.new.iter().copied());
        }
        self.bytes(&lines)
    }

    /// Each edit with the lines of context above and below it.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut end = 0;
        let mut parts = Vec::new();
        for (index, edit) in self.edits.iter().enumerate() {
            let next = self.edits.get(index + 1).map_or(self.lines.len(), |edit| edit.above);
            let below = edit.above + edit.removed;
            let first = edit.above.saturating_sub(edit.context).max(end);
            end = (below + edit.context).min(next);
            parts.push((edit, &self.lines[first..edit.above], &self.lines[edit.above..below], &self.lines[below..end]));
        }
        parts
    }

    /// The line that heads an edit: the nearest above its first line that is indented less than everything the edit names.
    fn head(&self, first: usize, named: &[&str]) -> Option<&'static str> {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let own = named.iter().filter(|line| !line.is_empty()).map(|line| indent(line)).min()?;
        self.lines[..first].iter().rev().find(|line| !line.is_empty() && indent(line) < own).copied()
    }

    fn codex_patch(&self) -> String {
        let mut text = String::from("*** Begin Patch\n*** Update File: a\n");
        for (edit, above, old, below) in self.parts() {
            text.push_str("@@\n");
            let named = [above, old, below].concat();
            if let Some(head) = self.head(edit.above - above.len(), &named).filter(|_| edit.is_anchored) {
                text.push_str(&format!("@@ {head}\n"));
            }
            for (sign, lines) in [(' ', above), ('-', old), ('+', &edit.new), (' ', below)] {
                lines.iter().for_each(|line| text.push_str(&format!("{sign}{line}\n")));
            }
            let is_last = edit.above + edit.removed + below.len() == self.lines.len();
            if is_last && edit.is_anchored {
                text.push_str("*** End of File\n");
            }
        }
        text + "*** End Patch\n"
    }

    fn search_replace(&self) -> String {
        let mut text = String::new();
        for (edit, above, old, below) in self.parts() {
            let lines = |parts: [&[&str]; 3]| parts.concat().iter().map(|line| format!("{line}\n")).collect::<String>();
            let hint = if edit.is_anchored {
                format!(":start_line: {}\n-------\n", edit.above - above.len() + 1)
            } else {
                String::new()
            };
            text.push_str(&format!(
                "a\n<<<<<<< SEARCH\n{hint}{}=======\n{}>>>>>>> REPLACE\n",
                lines([above, old, below]),
                lines([above, &edit.new, below])
            ));
        }
        text
    }
}

proptest! {
    /// An edit comes out as it was meant, or is refused because its text occurs several times.
    #[test]
    fn an_edit_is_exact_or_ambiguous(case in case()) {
        let before = case.bytes(&case.lines);
        // Without any old line, a place is only identified if it is the end of the file.
        let has_place = |(edit, above, old, below): &Part<'_>| {
            !above.is_empty() || !old.is_empty() || !below.is_empty() || edit.above == case.lines.len()
        };
        if case.edits.is_empty() || !case.parts().iter().all(has_place) {
            return Ok(());
        }
        for (dialect, document) in [
            (Dialect::CodexPatch, case.codex_patch()),
            (Dialect::SearchReplace, case.search_replace()),
        ] {
            match applied(dialect, &document, Some(before.as_bytes())) {
                Ok(applied) => prop_assert_eq!(shown(&applied.content), shown(case.after().as_bytes()), "{}", document),
                Err(failure) => {
                    let is_known = ["TEXT_NOT_UNIQUE", "ALREADY_APPLIED"].contains(&code(&failure).as_str());
                    prop_assert!(is_known, "{}\n{}", failure, document);
                }
            }
        }
    }

    /// Whatever a document says, it is read, refused or applied; nothing else comes of it.
    #[test]
    fn no_document_causes_a_panic(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 0..24),
        file in proptest::option::of(proptest::collection::vec(proptest::sample::select(FILE_PIECES.to_vec()), 0..12)),
    ) {
        let content = file.map(|pieces| pieces.concat());
        for text in [pieces.concat(), format!("*** Begin Patch\n{}*** End Patch\n", pieces.concat())] {
            for dialect in Dialect::ALL {
                let Ok(document) = parse(text.as_bytes(), Some(dialect)) else { continue };
                let Ok(valid) = validate(&document.batch, &Settings::DEFAULT.limits) else { continue };
                let found = |name: &str| observed(name, content.as_deref().map(str::as_bytes));
                let files = document.batch.files.iter().map(|file| {
                    let other = file.edit.moved_to().or(file.edit.copied_from());
                    let other = other.map(|path| Box::new(observed(path, None)));
                    Observed { other, ..found(file.target.as_str()) }
                });
                let snapshot: Vec<_> = files.collect();
                if let Ok(plan) = plan(&valid, &snapshot, &Settings::DEFAULT) {
                    plan.files.iter().for_each(|file| drop(file.report(&file.content())));
                }
            }
        }
    }
}

/// What documents are made of.
const PIECES: [&str; 44] = [
    "*** Add File: a\n",
    "*** Update File: a\n",
    "*** Update File: b\n",
    "*** Delete File: c\n",
    "*** Move to: d\n",
    "*** End of File\n",
    "*** End Patch\n",
    "@@\n",
    "@@ a\n",
    "@@ b\n",
    "@@  \n",
    "+a\n",
    "-a\n",
    " a\n",
    "+b\n",
    "-b\n",
    " b\n",
    "+\n",
    "-\n",
    " \n",
    "\n",
    "+\ta\n",
    "-  a\n",
    "-  b\n",
    "\r\n",
    "a\n",
    "b",
    "<<<<<<< SEARCH\n",
    "=======\n",
    "=====\n",
    ">>>>>>> REPLACE\n",
    "<<<<< SEARCH\n",
    ">>>>> REPLACE\n",
    "------- SEARCH\n",
    "+++++++ REPLACE\n",
    "...\n",
    ":start_line: 2\n",
    "-------\n",
    "\\=======\n",
    "```\n",
    "a.rs\n",
    "--- a/a\n",
    "+++ b/a\n",
    "@@ -1 +1 @@\n",
];

/// What files are made of.
const FILE_PIECES: [&str; 12] =
    ["a\n", "b\n", "\n", "  a\n", "\ta\n", "a\r\n", "b\r\n", " \n", "a", "\r", "\u{feff}", "=======\n"];
