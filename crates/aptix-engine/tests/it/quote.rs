//! Blocks of an answer that are no edits, held against the files as they are and as the batch leaves them.

use aptix_engine::plan::{plan, plan_quoting, quoted_reads, reads};
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::target::ValidTarget;
use aptix_engine::validate::validate;
use aptix_model::batch::{
    Batch, Content, FileEdit, FilePatch, Presence, Replacement, Replacements, Scope, Target, WriteFile,
};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;
use aptix_model::quote::{Quote, QuoteName};
use aptix_model::reason::{Detail, Reason};

const FILE: &str = "fn a() {\n    one();\n    if two {\n        three();\n    }\n}\n\nfn b() {\n    four();\n}\n";

/// A quote at lines 4 to 9 of an answer; names end in `?` that only may be paths.
fn quote(names: &[&str], text: &str) -> Quote {
    let name = |name: &&str| QuoteName { path: name.trim_end_matches('?').to_owned(), is_path: !name.ends_with('?') };
    Quote {
        first_line: 4,
        last_line: 9,
        names: names.iter().map(name).collect(),
        is_announced: false,
        text: text.to_owned(),
    }
}

fn announced(names: &[&str], text: &str) -> Quote {
    Quote { is_announced: true, ..quote(names, text) }
}

/// Changes `four` to `five` in src/a.rs, creates new.rs, and quotes.
fn batch(quotes: Vec<Quote>) -> Batch {
    let patch = |path: &str, edit| FilePatch { target: Target::Path(path.to_owned()), key: None, label: None, edit };
    let step = Replacement { find: "four".to_owned(), replace: "five".to_owned(), scope: Scope::First };
    let content = Content::Text("// new\n".to_owned());
    let new = WriteFile { content, presence: Presence::Absent, content_format: None };
    let files = vec![
        patch("src/a.rs", FileEdit::Replacements(Replacements { steps: vec![step] })),
        patch("new.rs", FileEdit::WriteFile(new)),
    ];
    Batch { files, quotes, ..Batch::default() }
}

/// The warnings of a batch with a quote, in a tree that has `src/a.rs`, `LICENSE` and `crlf.txt`.
fn settle(quotes: Vec<Quote>) -> Result<Vec<String>, Vec<Failure>> {
    let batch = batch(quotes);
    let valid = validate(&batch, &Limits::DEFAULT)?;
    let observe = |target: &ValidTarget| {
        let ValidTarget::Path(path) = target else { panic!("{target:?}") };
        let content: Option<&[u8]> = match path.as_str() {
            "src/a.rs" => Some(FILE.as_bytes()),
            "LICENSE" => Some(b"MIT\n"),
            "crlf.txt" => Some(b"\xef\xbb\xbfone\r\n\ttwo \r\n\r\n"),
            _ => None,
        };
        Observed {
            path: WorkspacePath::new(path.as_str()).unwrap(),
            doc_path: format!("repo/{}", path.folded()),
            content,
            digest: None,
            is_executable: false,
            other: None,
        }
    };
    let snapshot: Vec<_> = reads(&valid).map(|reads| observe(reads.target)).collect();
    let quoted: Vec<_> = quoted_reads(&valid).map(|target| Some(observe(target))).collect();
    let plan = plan_quoting(&valid, &snapshot, &quoted, &Settings::DEFAULT)?;
    assert_eq!(plan.files.len(), 2, "a quote is no file of a plan");
    Ok(plan
        .warnings
        .into_iter()
        .map(|warning| {
            assert_eq!((warning.code.as_str(), warning.line), ("BLOCK_IGNORED", Some(4)));
            warning.message
        })
        .collect())
}

#[track_caller]
fn example(quote: Quote, words: &str) {
    let warnings = settle(vec![quote]).unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains(words) && warnings[0].contains("lines 4 to 9"), "{warnings:?}");
}

#[track_caller]
fn refused(quote: Quote, words: &str) {
    let failures = settle(vec![quote]).unwrap_err();
    let failure = &failures[0];
    assert_eq!((failures.len(), failure.reason, failure.detail), (1, Reason::InvalidRequest, Some(Detail::Fence)));
    assert!(failure.message.contains(words) && failure.hint.is_some(), "{failure}");
}

#[test]
fn a_quotation_occurs_in_the_file_before_or_after() {
    for text in [
        FILE,
        "one();\n",
        "\n\n    one();\n    if two {\n\n",
        "fn b() {\n    four();\n}",
        "fn b() {\n    five();\n}\n",
        // one indentation less, and more
        "if two {\n    three();\n}\n",
        "        fn b() {\n            five();\n        }\n",
        // runs in order between elision lines
        "fn a() {\n    one();\n    // ...\n}\n\n...\n    four();\n",
        "fn a() {\n\u{2026}\n        three();\n/* rest of it ... */\n    five();\n",
        "...\nfn b() {\n# ... existing code ...\n",
        "fn a() {\n    // rest of the function unchanged\nfn b() {\n",
        "fn a() {\r\n    one();\r\n",
    ] {
        example(quote(&["src/a.rs"], text), "it quotes \"src/a.rs\"");
        example(announced(&["In?", "src/a.rs", "is?"], text), "it quotes");
    }
    example(quote(&["crlf.txt"], "one\n\ttwo\n"), "it quotes");
    example(quote(&["crlf.txt"], "two"), "it quotes");
    example(quote(&["new.rs"], "// new\n"), "it quotes \"new.rs\"");
    example(quote(&["other.rs", "src/a.rs"], "one();\n"), "it quotes \"src/a.rs\"");
}

#[test]
fn what_is_named_for_a_file_and_does_not_occur_there_is_refused() {
    for text in [
        "",
        "\n",
        "...\n",
        "on",
        "zero();\n",
        // neither before nor after: half of each
        "one();\nif two {\n    four();\n}\n",
        // two indentations
        "fn a() {\none();\n",
        "    if two {\n    three();\n",
        // out of order, or overlapping
        "    four();\n...\n    one();\n",
        "    one();\n    if two {\n...\n    if two {\n",
    ] {
        refused(quote(&["src/a.rs"], text), "is named for \"src/a.rs\"");
        refused(announced(&["src/a.rs"], text), "is announced for \"src/a.rs\"");
    }
    refused(quote(&["src/b.rs"], "x\n"), "\"src/b.rs\"");
    // a name that nothing but the tree, or an edit, makes a path
    refused(quote(&["LICENSE?"], "GPL\n"), "\"LICENSE\"");
    refused(quote(&["new.rs?"], "// old\n"), "\"new.rs\"");
}

#[test]
fn what_names_no_file_is_an_example() {
    example(quote(&["Usage?"], "zero();\n"), "not named for a file");
    example(announced(&["Run?", "this?"], "zero();\n"), "not named for a file");
    // A sentence about two files announces neither of them.
    example(announced(&["src/a.rs", "LICENSE?"], "zero();\n"), "not named for a file");
    example(quote(&["../x?"], "zero();\n"), "not named for a file");
}

#[test]
fn a_quote_is_held_to_what_paths_and_limits_are() {
    let code = |quote| {
        let failure = settle(vec![quote]).unwrap_err().remove(0);
        assert_eq!(failure.field.as_deref().map(|field| field.starts_with("line ")), Some(true), "{failure}");
        failure.reason
    };
    assert_eq!(code(quote(&["../x.rs"], "x")), Reason::InvalidPath);
    assert_eq!(code(quote(&[".git/config"], "x")), Reason::PolicyDenied);
    assert_eq!(code(quote(&[], "x")), Reason::InvalidRequest);
    assert_eq!(code(quote(&["a.rs"; 101], "x")), Reason::InvalidRequest);
    assert_eq!(code(quote(&["a.rs"], &"x".repeat((1 << 20) + 1))), Reason::TooLarge);
    assert_eq!(code(Quote { first_line: 0, ..quote(&["a.rs"], "x") }), Reason::InvalidRequest);
    assert_eq!(code(Quote { last_line: 3, ..quote(&["a.rs"], "x") }), Reason::InvalidRequest);
    // Each block that is refused is named; each that is not, up to a hundred.
    assert_eq!(settle(vec![quote(&["x.rs"], "x"), quote(&["y.rs"], "y")]).unwrap_err().len(), 2);
    let many = batch(vec![quote(&["Usage?"], "x"); 300]);
    let valid = validate(&many, &Limits::DEFAULT).unwrap();
    let nothing: Vec<Option<Observed<'_>>> = vec![None; 300];
    let files = [("src/a.rs", Some(FILE.as_bytes())), ("new.rs", None)].map(|(path, content)| Observed {
        path: WorkspacePath::new(path).unwrap(),
        doc_path: format!("repo/{path}"),
        content,
        digest: None,
        is_executable: false,
        other: None,
    });
    let planned = plan_quoting(&valid, &files, &nothing, &Settings::DEFAULT).unwrap();
    assert_eq!(planned.warnings.len(), 100);
    assert!(planned.warnings[99].message.starts_with("201 more"), "{:?}", planned.warnings[99]);
    // Without what was found for them, quotes are not passed over.
    assert_eq!(plan(&valid, &files, &Settings::DEFAULT).unwrap_err()[0].reason, Reason::Internal);
}
