//! Search-replace blocks as documents: markers, names, elisions, and every way in which one can be malformed.

use aptix_model::batch::{FileEdit, Scope, Target};
use aptix_model::documents::{Dialect, Document, parse};
use aptix_model::failure::Failure;

fn read(text: &str) -> Result<Document, Vec<Failure>> {
    parse(text.as_bytes(), Some(Dialect::SearchReplace))
}

/// `path: "old" => "new", ...` for each file; a line number before the old text.
#[track_caller]
fn steps(text: &str) -> Vec<String> {
    let document = read(text).unwrap_or_else(|failures| panic!("{text}\n{failures:?}"));
    let files = document.batch.files.iter().map(|file| {
        let Target::Path(path) = &file.target else { panic!("a path") };
        let FileEdit::Replacements(edit) = &file.edit else { panic!("replacements") };
        let steps = edit.steps.iter().map(|step| {
            let Scope::Block { start_line } = step.scope else { panic!("a block") };
            let line = start_line.map(|line| format!("{line}:")).unwrap_or_default();
            format!("{line}{:?} => {:?}", step.find, step.replace)
        });
        format!("{path}: {}", steps.collect::<Vec<_>>().join(", "))
    });
    files.collect()
}

const BLOCK: &str = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n";

/// A block with these lines in its halves.
fn block(old: &str, new: &str) -> String {
    format!("a\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n")
}

#[test]
fn a_block_is_the_text_between_its_markers() {
    let cases = [
        (block("old\n", "new\n"), r#"a: "old\n" => "new\n""#),
        (block("x\n  y \n\n", ""), r#"a: "x\n  y \n\n" => """#),
        (block("", "new\n"), r#"a: "" => "new\n""#),
        (block("\n", "new\n"), r#"a: "\n" => "new\n""#),
        (block("old\n", "new\n").replace('\n', "\r\n"), r#"a: "old\n" => "new\n""#),
        (block("old\n", "new\n").trim_end().to_owned(), r#"a: "old\n" => "new\n""#),
        // From five to nine marks, blanks behind them, and a stray `>`.
        ("a\n<<<<< SEARCH\nold\n=====\nnew\n>>>>> REPLACE\n".into(), r#"a: "old\n" => "new\n""#),
        ("a\n<<<<<<<<< SEARCH>  \nold\n======  \nnew\n>>>>>>> REPLACE\t\n".into(), r#"a: "old\n" => "new\n""#),
        // Other authors' marks.
        ("a\n------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE\n".into(), r#"a: "old\n" => "new\n""#),
        ("a\n------- SEARCH>\nold\n=======\nnew\n>>>>>>> REPLACE>\n".into(), r#"a: "old\n" => "new\n""#),
        // Where the author saw it.
        (block(":start_line: 12\n-------\nold\n", "new\n"), r#"a: 12:"old\n" => "new\n""#),
        (block(":start_line:12\n:end_line: 12\n-------\nold\n", "new\n"), r#"a: 12:"old\n" => "new\n""#),
        (block(":start_line:0\n-------\n-------\nold\n", ""), r#"a: "-------\nold\n" => """#),
        (block("-------\nold\n", ""), r#"a: "-------\nold\n" => """#),
        (block("old\n:start_line:12\n", ""), r#"a: "old\n:start_line:12\n" => """#),
        // Lines of the file that look like markers: behind a backslash, or between markers of another length.
        (
            block("\\=======\n\\<<<<<<< HEAD\n\\:start_line:1\n\\x\n", "\\>>>>>>> b\n\\>>>>>>> REPLACE\n\\-------\n"),
            r#"a: "=======\n<<<<<<< HEAD\n:start_line:1\n\\x\n" => ">>>>>>> b\n>>>>>>> REPLACE\n-------\n""#,
        ),
        (block("Title\n=====\n", "New\n===\n"), r#"a: "Title\n=====\n" => "New\n===\n""#),
        (block("Title\n====\n==========\n", ""), r#"a: "Title\n====\n==========\n" => """#),
        (
            "a\n<<<<<<<<< SEARCH\n=======\n=========\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n>>>>>>>>> REPLACE\n"
                .into(),
            r#"a: "=======\n" => "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n""#,
        ),
        (block("<<<<<<< HEAD\n", "    =======\n"), r#"a: "<<<<<<< HEAD\n" => "    =======\n""#),
    ];
    for (text, expected) in cases {
        assert_eq!(steps(&text), [expected], "{text}");
    }
    let warnings = read(&block("\\=======\n", "\\=======\n")).unwrap().warnings;
    assert_eq!(warnings.iter().map(|warning| warning.code.as_str()).collect::<Vec<_>>(), ["MARKER_UNESCAPED"]);
}

/// The text above a block, and the name of its file.
const NAMED: &[(&str, &str)] = &[
    ("src/a.rs\n", "src/a.rs"),
    (".\\src\\a.rs\n", "src/a.rs"),
    ("Change it:\n\nsrc/a.rs\n", "src/a.rs"),
    ("src/a.rs\n```rust\n", "src/a.rs"),
    ("src/a.rs\n\n````\n", "src/a.rs"),
    ("src/a.rs\n~~~ rust\n", "src/a.rs"),
    ("```rust\nsrc/a.rs\n", "src/a.rs"),
    ("Prose above.\n```src/a.rs\n", "src/a.rs"),
    ("src/a.rs\n```vb.net\n", "src/a.rs"),
    ("```src/a.rs\n\n", "src/a.rs"),
    ("src/a.rs\n<source>rust\n", "src/a.rs"),
    ("src/a.rs\n<codeblock>\n", "src/a.rs"),
    ("### src/a.rs\n", "src/a.rs"),
    ("src/a.rs:\n", "src/a.rs"),
    ("**src/a.rs**:\n", "src/a.rs"),
    ("**`src/a.rs`**\n", "src/a.rs"),
    ("**src/a.rs:**\n", "src/a.rs"),
    ("#### `src/my file.rs`\n", "src/my file.rs"),
    ("`Makefile`\n```\n", "Makefile"),
    ("Makefile\n", "Makefile"),
    ("`and`\n", "and"),
    ("src/main\n", "src/main"),
    (".env.example\n", ".env.example"),
    // Labels, numbers, comments, and what models write behind fences.
    ("File: src/a.rs\n", "src/a.rs"),
    ("FILE PATH: `src/my file.rs`\n```rust\n", "src/my file.rs"),
    ("**File: a.txt**\n", "a.txt"),
    ("**File:** `a.txt`\n```\n", "a.txt"),
    ("### File: `a.txt`\n", "a.txt"),
    ("File: Makefile\n", "Makefile"),
    ("### 1. a.txt\n```\n", "a.txt"),
    ("### 12) `src/a.txt`:\n", "src/a.txt"),
    ("2. **src/a.txt**\n```\n", "src/a.txt"),
    ("#### 3. File: src/a.txt\n", "src/a.txt"),
    ("**2. src/a.txt**\n", "src/a.txt"),
    ("Updated file: `src/a.txt`\n", "src/a.txt"),
    ("// filepath: src/m.js\n", "src/m.js"),
    ("```js\n// File: m.js\n", "m.js"),
    ("```{.python file=\"m.py\"}\n", "m.py"),
    ("```python\n# src/m.py\n", "src/m.py"),
    ("```js\n// src/m.js\n", "src/m.js"),
    ("```html\n<!-- src/m.html -->\n", "src/m.html"),
    ("```css\n/* src/m.css */\n", "src/m.css"),
    ("```python:src/m.py\n", "src/m.py"),
    ("~~~~python:m.py\n", "m.py"),
    ("```python src/m.py\n", "src/m.py"),
    ("```python title=\"m.py\" {3}\n", "m.py"),
    ("```12:15:src/m.py\n", "src/m.py"),
    ("src/m.py\n```python:src/m.py\n# src/m.py\n", "src/m.py"),
    ("Change `src/m.py` so:\n```python:src/m.py\n", "src/m.py"),
    ("<replace_in_file>\n<path>src/my file.py</path>\n<diff>\n", "src/my file.py"),
    ("<apply_diff>\n<file_path>m.py</file_path>\n<diff>\n", "m.py"),
];

#[test]
fn a_name_is_in_the_three_lines_above() {
    for (above, path) in NAMED {
        assert_eq!(steps(&format!("{above}{BLOCK}")), [format!("{path}: \"old\\n\" => \"new\\n\"")], "{above}");
    }
}

#[test]
fn a_block_without_one_sure_name_is_refused() {
    for above in [
        "",
        "src/a.rs\n\n\n\n",
        "Here is the change:\n",
        "src/a.rs\nNow it is this:\n",
        "```rust\n",
        "...\n",
        "---\n",
        "`a.rs` and `b.rs`\n",
        "src/a b.rs\n",
        "File: a.rs (new)\n",
        "### 1. Change `src/a.rs` so\n",
        "1. First\n",
        "// as in a.rs\n",
        "src/a.rs\n```rust:src/b.rs\n",
        "`a.rs`\n```rust:src/a.rs\n",
        "src/a.rs\n```rust\n// src/b.rs\n",
        "```rust title=a.rs src/b.rs\n",
        "<path></path>\n<diff>\n",
        "### 1. src/a.rs\n\nChange it so:\n\n```rust\n",
    ] {
        let failures = read(&format!("{above}{BLOCK}")).expect_err(above);
        assert_eq!(
            (failures[0].reason.code(), failures[0].detail.unwrap().code()),
            ("PATCH_MALFORMED", "MISSING"),
            "{above}"
        );
        assert_eq!(failures[0].field, Some(format!("line {}", above.lines().count() + 1)), "{above}");
    }
}

/// A block without old lines makes a file, and a word of the prose is no name for one.
#[test]
fn no_file_is_made_of_a_word() {
    let block = "<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n";
    for above in
        ["Solution:\n```\n", "a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\nso\n```\n", "# Result\n", "Here:\n"]
    {
        let failures = read(&format!("{above}{block}")).expect_err(above);
        assert_eq!(failures[0].detail.unwrap().code(), "MISSING", "{above}");
        assert!(failures[0].message.contains("may be a file's name or a word"), "{above}: {}", failures[0]);
    }
    for above in ["Makefile\n", "`Makefile`\n", "./Makefile\n```\n", "### `Makefile`\n"] {
        assert_eq!(steps(&format!("{above}{block}")), [r#"Makefile: "" => "new\n""#], "{above}");
    }
}

#[test]
fn a_name_holds_until_the_next_and_blocks_of_a_file_come_together_in_order() {
    let other = BLOCK.replace("old", "x").replace("new", "y");
    let text = format!(
        "Prose.\n\na.rs\n```\n{BLOCK}```\n\nAnd there too:\n\n```\n{other}```\nb.rs\n```\n{BLOCK}```\na.rs\n{other}"
    );
    let pair = r#""old\n" => "new\n""#;
    let second = r#""x\n" => "y\n""#;
    assert_eq!(steps(&text), [format!("a.rs: {pair}, {second}, {second}"), format!("b.rs: {pair}")]);
}

/// The name of the block before does not hold where the line above may name another file.
#[test]
fn a_name_does_not_hold_where_another_may_be_meant() {
    let below = |line: &str| format!("src/a.rs\n{BLOCK}{line}\n{BLOCK}");
    for line in [
        "### 2. Also in `src/b.rs`:",
        "**File: b.rs, at the end**",
        "**src/b.rs** (changed):",
        "Now `src/b.rs` and `src/a.rs`:",
        "Next, change src/b.rs:",
        "### src/b.rs\n\nThere, too:\n\n```",
        "2. In `src/b.rs`:\n\nThere, too:",
    ] {
        let failure = read(&below(line)).expect_err(line).remove(0);
        let number = format!("line {}", 7 + line.lines().count());
        assert_eq!((failure.detail.unwrap().code(), failure.field), ("MISSING", Some(number)), "{line}");
        assert!(failure.message.contains("is not alone"), "{}", failure.message);
    }
    for line in [
        "Also in `src/a.rs`:",
        "Then `and/or` (no path):".replace("and/or", "f(a/b)").as_str(),
        "1. Then",
        "And so:",
        "and",
        "Then:\n\n```",
        "and\n\n```python",
        "New file:",
        "See **both** files, a/b and **c**:",
        "See https://example.org/b.html and I/O.",
        "### In src/a.rs as well\n\nThere too:\n",
    ] {
        assert_eq!(steps(&below(line)).len(), 1, "{line}");
    }
    // What replaces nothing fits every file.
    let failure = read(&below("Then:\n\nso:").replacen("old\n", "", 2).replacen("=======", "x\n=======", 1))
        .unwrap_err()
        .remove(0);
    assert_eq!((failure.detail.unwrap().code(), failure.field.as_deref()), ("MISSING", Some("line 10")), "{failure}");
    // The first line of a block is a line of the file, whatever it looks like.
    let failure = read(&BLOCK.replace("old", "# src/m.py\nold")).unwrap_err().remove(0);
    assert!(failure.hint.unwrap().contains("\"src/m.py\" may be a line of the file"));
    let commented = BLOCK.replace("old", "# src/m.py\nold");
    assert_eq!(steps(&format!("src/m.py\n{commented}")), [r##"src/m.py: "# src/m.py\nold\n" => "new\n""##]);
}

#[test]
fn lines_of_three_dots_stand_for_lines_that_stay() {
    let cases = [
        ("a\n...\nb\n", "A\n...\nB\n", r#"a: "a\n" => "A\n", "b\n" => "B\n""#),
        ("a\n   ... \nb\n", "a\n...\nB\n", r#"a: "a\n" => "a\n", "b\n" => "B\n""#),
        ("...\na\n...\n", "...\nA\n...\n", r#"a: "a\n" => "A\n""#),
        ("a\n...\n...\nb\n", "A\n...\n...\n", r#"a: "a\n" => "A\n", "b\n" => """#),
        (":start_line:3\na\n...\nb\n", "A\n...\nB\n", r#"a: 3:"a\n" => "A\n", "b\n" => "B\n""#),
        // Dots on one side only are text.
        ("a\n...\n", "b\n", r#"a: "a\n...\n" => "b\n""#),
        ("a\n", "b\n...\n", r#"a: "a\n" => "b\n...\n""#),
        ("a\n...\n...\n", "b\n...\n", r#"a: "a\n...\n...\n" => "b\n...\n""#),
        ("a ...\n", "b ...\n", r#"a: "a ...\n" => "b ...\n""#),
    ];
    for (old, new, expected) in cases {
        assert_eq!(steps(&block(old, new)), [expected], "{old}{new}");
    }
    let failures = read(&block("a\n...\n", "a\n...\nb\n")).unwrap_err();
    assert!(failures[0].message.starts_with("lines come beside '...'"), "{}", failures[0]);
}

#[test]
fn what_is_malformed_is_refused_with_its_line() {
    let cases = [
        ("a\n<<<<<<< SEARCH\nold\n", "-", "the block at line 2 has no '======='"),
        ("a\n<<<<<<< SEARCH\nold\n=======\nnew\n", "-", "the block at line 2 has no '>>>>>>> REPLACE'"),
        ("a\n<<<<<<< SEARCH\nold\n=======\nnew\n=======\n", "-", "no '>>>>>>> REPLACE'"),
        ("a\n<<<<<<< SEARCH\nold\n>>>>>>> REPLACE\n", "line 4", "no '=======' before \">>>>>>> REPLACE\""),
        ("a\n<<<<<<< SEARCH\nold\n<<<<<<< SEARCH\n", "line 4", "no '=======' before \"<<<<<<< SEARCH\""),
        ("a\n<<<<<<< SEARCH\nx\n=======\ny\nb\n<<<<<<< SEARCH\n", "line 7", "no '>>>>>>> REPLACE' before"),
        (
            "a\n<<<<<<< SEARCH\nx\n=======\ny\n=======\nz\n>>>>>>> REPLACE\n",
            "line 6",
            "lines 4 and 6 could both divide",
        ),
        (
            "a\n<<<<<<< SEARCH\nChanges\n=======\n=======\n>>>>>>> REPLACE\n",
            "line 5",
            "lines 4 and 5 could both divide",
        ),
        ("a\n>>>>>>> REPLACE\n", "line 2", "ends no block"),
        ("a\n<<<<<<<<< SEARCH\n=========\n>>>>> REPLACE\n>>>>>>>>> REPLACE\n", "line 5", "ends no block"),
        (
            "a\n<<<<<<< SEARCH\nx\n=======\n:start_line: 3\n>>>>>>> REPLACE\n",
            "line 5",
            ":start_line: is below the divider",
        ),
        ("a\n  <<<<<<< SEARCH\n  x\n  =======\n  >>>>>>> REPLACE\n", "line 2", "has blanks before it"),
    ];
    for (text, field, message) in cases {
        let failures = read(text).expect_err(text);
        let [failure] = failures.as_slice() else { panic!("{failures:?}") };
        assert_eq!(failure.field.as_deref().unwrap_or("-"), field, "{text}\n{failure}");
        let reason = if field == "-" { "PATCH_TRUNCATED" } else { "PATCH_MALFORMED" };
        assert_eq!((failure.reason.code(), failure.detail.unwrap().code()), (reason, "MARKER"), "{text}");
        assert!(failure.message.contains(message) && failure.hint.is_some(), "{text}\n{failure}");
    }
    for text in
        ["prose\n", "<< SEARCH\n", "<<<<<<< HEAD\n=======\n>>>>>>> b\n", "a <<<<<<< SEARCH\n", "<<<<<<< searching\n"]
    {
        assert_eq!(read(text).expect_err(text)[0].reason.code(), "NO_EDIT_FOUND", "{text}");
    }
    // What is nearly a marker is not passed over beside other blocks.
    for near in
        ["<<<<<<<<<< SEARCH", "<<<< SEARCH", "<<<<<<< SEARCH x", "<<<<<<<SEARCH", "<<<<<<< search", "<<<<<<< ORIGINAL"]
    {
        let failure = read(&format!("a\n{BLOCK}b\n{near}\nx\n=======\ny\n")).expect_err(near).remove(0);
        assert_eq!(failure.field.as_deref(), Some("line 8"), "{near}");
        assert!(failure.message.contains("begins no block"), "{failure}");
    }
}

/// Blocks without fence and prose are recognised; blocks in an answer are for another dialect.
#[test]
fn bare_blocks_are_recognised() {
    let dialect = |text: &str| parse(text.as_bytes(), None).ok().map(|document| document.dialect);
    assert_eq!(dialect(&format!("a.rs\n{BLOCK}")), Some(Dialect::SearchReplace));
    assert_eq!(dialect(&format!("\n**a.rs**\n\n{BLOCK}")), Some(Dialect::SearchReplace));
    assert_ne!(dialect(&format!("Here it is:\n{BLOCK}")), Some(Dialect::SearchReplace));
}

/// A document is read in one pass, however its markers lie.
#[test]
fn reading_does_not_grow_with_the_square_of_the_document() {
    let openers = "a\n<<<<<<< SEARCH\n=====\n=======\n".repeat(100_000);
    assert!(read(&openers).is_err());
    let sloppy = "a\n<<<<<<< SEARCH\n=====\n=======\n>>>>>>> REPLACE\n".repeat(50_000);
    assert_eq!(read(&sloppy).unwrap().batch.files.len(), 1);
}

#[test]
fn blocks_of_more_files_than_any_batch_are_refused() {
    let text = (0..10_001).map(|name| format!("f{name}\n{BLOCK}")).collect::<String>();
    let failure = read(&text).unwrap_err().remove(0);
    assert_eq!((failure.reason.code(), failure.detail.unwrap().code()), ("TOO_LARGE", "FILES"));
}
