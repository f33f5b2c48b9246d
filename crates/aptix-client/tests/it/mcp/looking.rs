//! The tools that only read.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Answer, Client};
use super::sha256;

/// WS-MOD-4.2.11: what of a file is shown; and that a line patch can be made of it.
#[test]
fn read_file_gives_lines_and_the_digest() {
    let long: String = (1..=1_200).map(|number| format!("line {number}\n")).collect();
    let mut client = Client::start(|ws| {
        std::fs::create_dir(ws.join("src")).unwrap();
        std::fs::write(ws.join("src/Long.txt"), &long).unwrap();
        std::fs::write(ws.join("crlf.txt"), "\u{feff}a\r\nb").unwrap();
        std::fs::write(ws.join("latin.txt"), b"caf\xe9\n").unwrap();
        std::fs::write(ws.join("empty.txt"), "").unwrap();
        std::fs::write(ws.join("binary"), b"a\0b").unwrap();
        std::fs::write(ws.join(".env"), "SECRET=1").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", ws.join("out")).unwrap();
        std::os::unix::fs::symlink("src", ws.join("in")).unwrap();
    });
    let read = |client: &mut Client, arguments: Value| client.done("read_file", &arguments).structured;
    let answer = read(&mut client, json!({ "path": "src/Long.txt", "range": "", "max_lines": 0 }));
    assert_eq!(
        (&answer["lineCount"], &answer["startLine"], &answer["endLine"]),
        (&1_200.into(), &1.into(), &500.into())
    );
    assert_eq!((&answer["nextRange"], &answer["docPath"]), (&"501~".into(), &"ws/src/long.txt".into()));
    assert_eq!((&answer["sha256"], &answer["sizeBytes"]), (&sha256(&long).into(), &long.len().into()));
    assert!(answer["text"].as_str().unwrap().ends_with("line 499\nline 500\n"));
    let answer = read(&mut client, json!({ "path": "in/Long.txt", "range": "1190~1300", "max_lines": 5 }));
    assert_eq!(
        (&answer["text"], &answer["nextRange"]),
        (&"line 1190\nline 1191\nline 1192\nline 1193\nline 1194\n".into(), &"1195~1200".into())
    );
    let answer = read(&mut client, json!({ "path": "src/Long.txt", "range": "1200" }));
    assert_eq!((&answer["text"], &answer["nextRange"]), (&"line 1200\n".into(), &Value::Null));
    let answer = read(&mut client, json!({ "path": "crlf.txt" }));
    assert_eq!(
        (&answer["text"], &answer["lineEndings"], &answer["endsWithNewline"]),
        (&"a\nb\n".into(), &"crlf".into(), &false.into())
    );
    let answer = read(&mut client, json!({ "path": "latin.txt" }));
    assert_eq!((&answer["text"], &answer["isUtf8"]), (&"caf\u{fffd}\n".into(), &false.into()));
    let answer = read(&mut client, json!({ "path": "empty.txt" }));
    assert_eq!((&answer["lineCount"], &answer["text"], &answer["endLine"]), (&0.into(), &"".into(), &0.into()));
    let shown = client.done("read_file", &json!({ "path": "crlf.txt" })).text;
    assert!(shown.ends_with("}\na\nb\n"), "what is about the file, then its text as it is: {shown}");
    for (arguments, expected) in [
        (json!({ "path": "nothing" }), "FILE_MISSING"),
        (json!({ "path": "src" }), "INVALID_PATH.NOT_REGULAR"),
        (json!({ "path": "binary" }), "NOT_TEXT.BINARY"),
        (json!({ "path": ".env" }), "POLICY_DENIED.SECRET"),
        (json!({ "path": ".git/config" }), "POLICY_DENIED.PROTECTED"),
        (json!({ "path": "out" }), "INVALID_PATH.SYMLINK"),
        (json!({ "path": "../x" }), "INVALID_PATH.TRAVERSAL"),
        (json!({ "path": "src/Long.txt", "range": "1201~" }), "LINE_RANGE.PAST_END"),
        (json!({ "path": "src/Long.txt", "line": 3 }), "INVALID_REQUEST.UNKNOWN_FIELD"),
    ] {
        assert_eq!(client.refused("read_file", &arguments), expected, "{arguments}");
    }
    client.end();
}

/// Files that git ignores, that hold secrets, or that are closed, among others.
fn lay_out(ws: &Path) {
    let put = |path: &str, text: &str| {
        let path = ws.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("src/a.rs", "fn Needle() {}\n// a needle\nlet x = 1;\n");
    put("src/deep/b.rs", "no\nno\nNEEDLE\r\nno\n");
    put("src/c.txt", "needle\n");
    put("target/d.rs", "needle\n");
    put("logs/e.log", "needle\n");
    put("logs/keep.log", "needle\n");
    put("src/gen/f.rs", "needle\n");
    put("private/g.rs", "needle\n");
    put(".hidden/h.rs", "needle\n");
    put(".env", "needle=1\n");
    put("binary.rs", "needle\0");
    put(".git/info/exclude", "private\n");
    put(".git/objects/i.rs", "needle\n");
    put("bare/HEAD", "needle\n");
    put("bare/objects/x", "needle\n");
    put("bare/refs/x", "needle\n");
    put(".gitignore", "/target/\n*.log\n!keep.log\n# needle\n");
    put("src/.gitignore", "gen/\n");
    put("outside", "");
    std::os::unix::fs::symlink("src", ws.join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", ws.join("etc")).unwrap();
}

/// Lists and searches name what they left out, though nothing withholds it.
#[test]
fn what_could_not_be_searched_is_counted_and_named() {
    let mut client = Client::start(|ws| {
        std::fs::create_dir_all(ws.join(format!("deep{}", "/d".repeat(70)))).unwrap();
        std::fs::File::create(ws.join("large.txt")).unwrap().set_len((16 << 20) + 1).unwrap();
    });
    let listed = client.done("list_directory", &json!({}));
    let deep = format!("deep{}", "/d".repeat(63));
    let counts = |too_large: u32, paths: &[&str]| json!({ "tooDeep": 1, "tooLarge": too_large, "unreadable": 0, "badName": 0, "paths": paths });
    assert_eq!(listed.structured["skipped"], counts(0, &[&deep]));
    assert!(
        listed.text.contains(&format!("left out: 1 directories 64 levels below the root; among them {deep}")),
        "{}",
        listed.text
    );
    let found = client.done("ripgrep_content", &json!({ "pattern": "x" }));
    assert_eq!(found.structured["skipped"], counts(1, &[&deep, "large.txt"]));
    assert!(found.text.contains("1 files that are too large"), "{}", found.text);
    let found =
        client.done("ripgrep_content", &json!({ "pattern": "x", "glob": "*.rs", "path": "deep/d/d/d/d/d/d/d" }));
    assert_eq!(found.structured["skipped"]["tooDeep"], 1);
}

/// WS-MOD-4.2.13: what is searched, and what is not.
#[test]
fn ripgrep_searches_what_git_does_not_ignore() {
    let mut client = Client::start(lay_out);
    let files = |answer: &Answer| -> Vec<String> {
        let files = answer.structured["files"].as_array().unwrap();
        files.iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    };
    let usual = json!({ "pattern": "needle", "path": "", "case": "", "glob": "", "max_files": 0, "max_results": 0 });
    let answer = client.done("ripgrep_files", &usual);
    assert_eq!(
        files(&answer),
        [".gitignore", ".hidden/h.rs", "logs/keep.log", "src/a.rs", "src/c.txt", "src/deep/b.rs"]
    );
    assert_eq!((&answer.structured["files"][3]["matches"], &answer.structured["cut"]), (&2.into(), &Value::Null));
    let answer = client.done("ripgrep_files", &json!({ "pattern": "Needle" }));
    assert_eq!(files(&answer), ["src/a.rs"], "a capital makes capitals count");
    let answer = client.done("ripgrep_files", &json!({ "pattern": "needle", "case": "sensitive", "glob": "*.rs" }));
    assert_eq!(files(&answer), [".hidden/h.rs", "src/a.rs"]);
    let answer = client.done("ripgrep_files", &json!({ "pattern": "Needle", "case": "insensitive", "path": "src/" }));
    assert_eq!(files(&answer), ["src/a.rs", "src/c.txt", "src/deep/b.rs"]);
    let answer = client.done("ripgrep_files", &json!({ "glob": "src/**/*.rs" }));
    assert_eq!(files(&answer), ["src/a.rs", "src/deep/b.rs"], "{}", answer.structured);
    let answer = client.done("ripgrep_files", &json!({ "max_files": 2 }));
    assert_eq!((files(&answer).len(), &answer.structured["cut"]), (2, &"max_files".into()));

    let answer = client.done("ripgrep_content", &json!({ "pattern": "needle$", "context": 1, "path": "src" }));
    assert_eq!(
        answer.text,
        "src/a.rs\n1-fn Needle() {}\n2:// a needle\n3-let x = 1;\n\nsrc/c.txt\n1:needle\n\nsrc/deep/b.rs\n2-no\n3:NEEDLE\n4-no\n\n"
    );
    let answer = client.done("ripgrep_content", &json!({ "pattern": "needle", "path": "src/c.txt" }));
    assert_eq!(answer.structured["files"][0]["lines"], json!([{ "line": 1, "text": "needle", "isMatch": true }]));
    let answer = client.done("ripgrep_content", &json!({ "pattern": "needle", "max_results": 1 }));
    assert_eq!((files(&answer).len(), &answer.structured["cut"]), (1, &"max_results".into()));
    assert!(client.done("ripgrep_content", &json!({ "pattern": "nowhere" })).text.contains("nothing found"));
    client.end();
}

/// What cannot be searched, or for what nothing can be searched, is refused by name.
#[test]
fn a_search_that_cannot_be_made_is_refused_by_name() {
    let mut client = Client::start(lay_out);
    for (arguments, expected) in [
        (json!({ "pattern": "" }), "INVALID_REQUEST.MISSING"),
        (json!({ "pattern": "(" }), "INVALID_REQUEST.REGEX"),
        (json!({ "pattern": "(?=x)" }), "INVALID_REQUEST.REGEX"),
        (json!({ "pattern": "x", "path": "nowhere" }), "FILE_MISSING"),
        (json!({ "pattern": "x", "path": "target" }), "POLICY_DENIED"),
        (json!({ "pattern": "x", "path": "src/gen/f.rs" }), "POLICY_DENIED"),
        (json!({ "pattern": "x", "path": ".git" }), "POLICY_DENIED.PROTECTED"),
        (json!({ "pattern": "x", "path": "bare/refs" }), "POLICY_DENIED.PROTECTED"),
        (json!({ "pattern": "x", "path": ".env" }), "POLICY_DENIED.SECRET"),
        (json!({ "pattern": "x", "path": "etc" }), "INVALID_PATH.SYMLINK"),
        (json!({ "pattern": "x", "path": "/etc" }), "INVALID_PATH.ABSOLUTE"),
        (json!({ "pattern": "x", "path": "../ws" }), "INVALID_PATH.TRAVERSAL"),
        (json!({ "pattern": "x", "glob": "[" }), "INVALID_REQUEST"),
        (json!({ "pattern": "x", "glob": "!*.rs" }), "INVALID_REQUEST"),
        (json!({ "pattern": "x", "max_files": -1 }), "INVALID_REQUEST.NUMBER"),
    ] {
        assert_eq!(client.refused("ripgrep_content", &arguments), expected, "{arguments}");
    }
    client.end();
}

/// A pattern that is too long is refused before anything is searched.
#[test]
fn a_pattern_that_is_too_long_is_refused() {
    let mut client = Client::start(|_| {});
    let pattern = "x".repeat(10_001);
    assert_eq!(client.refused("ripgrep_content", &json!({ "pattern": pattern })), "TOO_LARGE");
    assert_eq!(client.refused("ripgrep_files", &json!({ "glob": pattern })), "TOO_LARGE");
    client.end();
}

/// Whatever is searched for, and however long a line is: an answer or a named refusal comes soon, and other calls go on.
#[test]
fn a_costly_pattern_is_refused_by_name() {
    let mut state = 1_u32;
    let letters: String = (0..16_000_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state >> 31 == 0 { 'a' } else { 'b' }
        })
        .collect();
    let mut client = Client::start(|ws| {
        std::fs::write(ws.join("long.txt"), letters).unwrap();
        std::fs::write(ws.join("small.txt"), "one\ntwo\n").unwrap();
    });
    for (pattern, expected) in [
        ("a[ab]{400}c".to_owned(), "MATCH_BUDGET_EXCEEDED"),
        ("a[ab]{9000}c".to_owned(), "MATCH_BUDGET_EXCEEDED"),
        ("\\w{1,1000}".to_owned(), "MATCH_BUDGET_EXCEEDED"),
        ("(a{1000}){1000}".to_owned(), "MATCH_BUDGET_EXCEEDED"),
        ("x".repeat(2_049), "TOO_LARGE"),
        ("one\\ntwo".to_owned(), "INVALID_REQUEST.REGEX"),
    ] {
        assert_eq!(client.refused("ripgrep_content", &json!({ "pattern": pattern })), expected, "{pattern:.40}");
    }
    let answer = client.done("ripgrep_content", &json!({ "pattern": "[^\\n]wo|[^c]\\\\n" }));
    assert_eq!(answer.text, "small.txt\n2:two\n\n");
    client.end();
}
