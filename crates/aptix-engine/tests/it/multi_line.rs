//! Text whose indentation differs from the file's, where white space may be part of a value.

use aptix_engine::correct::correct;
use aptix_engine::planning::settings::Settings;
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;

use crate::boundary::{Applied, apply_all, code, observed};

const BASE: &str = "def f():\n    if x:\n        y()\n        z(1)\n";

fn apply(dialect: Dialect, document: &str, base: &str) -> Result<Applied, Box<Failure>> {
    let document = parse(document.as_bytes(), Some(dialect)).unwrap_or_else(|error| panic!("{error:?}: {document}"));
    match apply_all(&document.batch, &[Some(base.as_bytes())], &Limits::DEFAULT) {
        Ok(mut applied) => Ok(applied.remove(0)),
        Err(mut failures) => {
            let files = [observed("a.py", Some(base.as_bytes()))];
            let corrected = correct(&document.batch, &files, &Settings::DEFAULT, &failures);
            assert_eq!(corrected, None, "no value is changed for the author");
            Err(Box::new(failures.remove(0)))
        }
    }
}

/// The replacement of some lines by others, in every dialect that recovers them.
fn documents(old: &str, new: &str) -> [(Dialect, String); 5] {
    let prefixed = |sign: char, text: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
    let chunk = prefixed('-', old) + &prefixed('+', new);
    let change = format!(r#"{{"operation": "replace", "oldText": {old:?}, "newText": {new:?}}}"#);
    let step = format!(r#"{{"find": {old:?}, "replace": {new:?}}}"#);
    [
        (Dialect::SearchPatch, format!(r#"{{"path": "a.py", "patches": [{change}]}}"#)),
        (Dialect::StructuredPatch, format!(r#"{{"patches": [{{"path": "a.py", "replacements": [{step}]}}]}}"#)),
        (
            Dialect::StrReplace,
            format!(r#"{{"command": "str_replace", "path": "a.py", "old_str": {old:?}, "new_str": {new:?}}}"#),
        ),
        (Dialect::SearchReplace, format!("a.py\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n")),
        (Dialect::CodexPatch, format!("*** Begin Patch\n*** Update File: a.py\n@@\n{chunk}*** End Patch\n")),
    ]
}

/// Text is not indented anew where that may change a value, in any dialect.
#[test]
fn a_value_over_several_lines_is_not_indented_anew() {
    for opener in ["s = \"\"\"a", "s = '''a", "s = `a", "cat <<EOF", "s = r#\"a", "s = R\"(a"] {
        for (dialect, document) in documents("y()\nz(1)\n", &format!("y()\n{opener}\nb\n")) {
            let failure = apply(dialect, &document, BASE).expect_err(&document);
            assert_eq!((code(&failure).as_str(), failure.line), ("TEXT_NOT_FOUND", Some(3)), "{dialect} {opener}");
            assert!(failure.message.contains("in the new text"), "{dialect}: {}", failure.message);
            assert_eq!(failure.nearest[0].text, "        y()\n        z(1)", "{dialect}");
        }
        let base = BASE.replace("z(1)", opener);
        for (dialect, document) in documents(&format!("y()\n{opener}\n"), "y()\n") {
            let failure = apply(dialect, &document, &base).expect_err(&document);
            assert!(failure.message.contains("in the old text"), "{dialect}: {}", failure.message);
        }
        // As the file is indented, it is found and written as it is.
        for (dialect, document) in documents("        z(1)\n", &format!("        {opener}\nb\n")) {
            assert!(apply(dialect, &document, BASE).is_ok(), "{dialect} {opener}");
        }
    }
    for (dialect, document) in documents("y()\nz(1)\n", "y()\nz(2)  # `this` << that\n") {
        let applied = apply(dialect, &document, BASE).unwrap_or_else(|failure| panic!("{dialect}: {failure}"));
        assert_eq!(applied.report.changes[0].tier.word(), "indent", "{dialect}");
    }
}

/// A here document is one however its operator is written, and a shift is none.
#[test]
fn a_here_document_is_not_indented_anew() {
    let begun = ["cat<<EOF", "cat << EOF", "cat <<- 'EOF' > x", "python3 << \"EOF\"", "f(<<~ SQL)", "cat<<-\\EOF | x"];
    let begun = begun.map(|opener| format!("{opener}\nb\n"));
    let ended = ["cat << eof\nb\neof\n", "exec 3<<x.y && a\n\tx.y\n", "cat << END-1 a\nb\nEND-1\n"].map(str::to_owned);
    for text in begun.iter().chain(&ended) {
        for (dialect, document) in documents("y()\nz(1)\n", &format!("y()\n{text}")) {
            let failure = apply(dialect, &document, BASE).expect_err(&document);
            assert!(failure.message.contains("<<WORD in the new text"), "{dialect}: {}", failure.message);
        }
        let base = BASE.replace("        z(1)\n", &text.replace("b\n", "        b\n"));
        let old = format!("        y()\n{text}");
        for (dialect, document) in documents(&old.replace("b\n", "        b\n"), "y()\n") {
            assert!(apply(dialect, &document, &base).is_ok(), "{dialect}: {document}");
        }
    }
    for line in ["a << B", "1<<SHIFT", "x = 1u << SHIFT;", "f(x) << SHIFT", "a << SHIFT + 1", "out << x << Y"] {
        for (dialect, document) in documents("y()\nz(1)\n", &format!("y()\n{line}\n")) {
            let applied = apply(dialect, &document, BASE).unwrap_or_else(|failure| panic!("{dialect}: {failure}"));
            assert_eq!(applied.report.changes[0].tier.word(), "indent", "{dialect} {line}");
        }
    }
}

/// Who says how lines are indented has found them as they are.
#[test]
fn reindent_turns_the_tier_off() {
    let patch = |old: &str| {
        let reindent = r#"{"strip": "", "add": "        "}"#;
        let change =
            format!(r#""operation": "replace", "oldText": {old:?}, "newText": "a()\n", "reindent": {reindent}"#);
        format!(r#"{{"path": "a.py", "patches": [{{{change}}}]}}"#)
    };
    let failure = apply(Dialect::SearchPatch, &patch("y()\nz(1)\n"), BASE).expect_err("it is not found");
    assert_eq!((code(&failure).as_str(), failure.line), ("TEXT_NOT_FOUND", Some(3)));
    assert!(failure.message.contains("reindent"), "{}", failure.message);
    let applied = apply(Dialect::SearchPatch, &patch("        y()\n        z(1)\n"), BASE).unwrap();
    assert_eq!(applied.content, b"def f():\n    if x:\n        a()\n");
}

/// A line that takes the place of a blank one is indented like the lines below it.
#[test]
fn a_line_in_the_place_of_a_blank_one_is_indented() {
    let base = "f(\n\n    x,\n    y,\n";
    for (dialect, document) in documents("\nx,\ny,\n", "z,\ny,\n") {
        let applied = apply(dialect, &document, base).unwrap_or_else(|failure| panic!("{dialect}: {failure}"));
        assert_eq!(String::from_utf8_lossy(&applied.content), "f(\n    z,\n    y,\n", "{dialect}");
    }
}
