//! The guide for authors, against the register of requirements.

use std::collections::BTreeSet;
use std::path::Path;

use aptix_model::documents::Dialect;
use aptix_model::tools::guide::{SENTENCES, guide};

/// The sections of each text that are rules for authors.
const SECTIONS: [(&str, &str); 12] = [
    ("TUL-002", "8."),
    ("TUL-004", "4.2.5"),
    ("TUL-004", "7.2."),
    ("TUL-004", "7.3."),
    ("TUL-004", "7.4."),
    ("TUL-004", "7.5."),
    ("TUL-004", "7.6."),
    ("FILE-SPEC", "2.4."),
    ("FILE-SPEC", "4."),
    ("FILE-SPEC", "6."),
    ("WS-MOD", "3.1."),
    ("WS-MOD", "4.2.14"),
];

/// Each rule for authors in the register is one sentence of the guide, and each sentence is such a rule.
#[test]
fn each_rule_for_authors_is_a_sentence_of_the_guide() {
    let register = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/requirements.md");
    let register = std::fs::read_to_string(register).unwrap();
    let ids = register.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let rules: BTreeSet<_> =
        ids.filter(|id| SECTIONS.iter().any(|(text, section)| id.starts_with(&format!("{text}-{section}")))).collect();
    let said: Vec<_> = SENTENCES.iter().map(|sentence| sentence.id).collect();
    assert_eq!(said.iter().copied().collect::<BTreeSet<_>>(), rules);
    assert_eq!(said.len(), rules.len(), "each once");
    let whole = guide(None);
    for sentence in SENTENCES {
        assert!(whole.contains(sentence.text) && sentence.text.len() > 20, "{}", sentence.id);
    }
}

/// What the guide says of the rules that only authors can keep.
#[test]
fn the_guide_says_what_authors_are_to_do() {
    let rules = [
        ("TUL-002-8.1.1", "open in the editor, before the stored copy"),
        ("TUL-002-8.1.2", "snippets to find things, never"),
        ("TUL-002-8.2.1", "Read the full text"),
        ("TUL-002-8.2.2", "SHA-256 of exactly that text"),
        ("TUL-002-8.3.1", "full text and the task alone"),
        ("TUL-002-8.3.2", "Do not derive edits from snippets or from earlier versions"),
        ("TUL-002-8.3.3", "smallest exact set of line edits"),
        ("TUL-002-8.4.2", "within a line as a replace of the whole line"),
        ("TUL-002-8.5.3", "Describe a change"),
        ("TUL-002-8.6.1", "all file patches of a task in one call"),
        ("TUL-004-4.2.5", "Write every line of the content"),
        ("TUL-004-7.2.1", "workspace_create_file for a new source file"),
        ("TUL-004-7.2.2", "new test file"),
        ("TUL-004-7.2.3", "configuration, schema or documentation"),
        ("TUL-004-7.2.4", "replace a whole file at once"),
        ("TUL-004-7.3.1", "Do not use it to edit a file in place"),
        ("TUL-004-7.3.2", "Do not use it to append"),
        ("TUL-004-7.3.3", "Do not use it for binary content"),
        ("TUL-004-7.4.1", "Give all of the file"),
        ("TUL-004-7.4.2", "right relative path with its directories"),
        ("TUL-004-7.4.3", "overwrite only on purpose; in doubt, ask the user"),
        ("TUL-004-7.4.5", "edits with the patch tools"),
        ("TUL-004-7.5.1", "Prefer a directory that is known to exist"),
        ("TUL-004-7.5.2", "Follow the patterns"),
        ("TUL-004-7.5.3", "related files near each other"),
        ("TUL-004-7.5.4", "new directory only when no existing one fits"),
        ("TUL-004-7.6.1", "path is clear, call the tool without asking"),
        ("TUL-004-7.6.2", "ask the user one brief question first"),
        ("FILE-SPEC-2.4.1", "Do not rewrite whole files"),
        ("FILE-SPEC-2.4.2", "fewest find and replace operations"),
        ("FILE-SPEC-2.4.3.1", "each find identify its place uniquely"),
        ("FILE-SPEC-2.4.4", "A patch cannot be safely generated with the information provided."),
        ("FILE-SPEC-2.4.5", "Give no patch with that answer"),
        ("FILE-SPEC-4.0.1", "that the user asked for"),
        ("FILE-SPEC-4.1.1", "a single json block that holds a valid bundle"),
        ("FILE-SPEC-4.1.3", "may replace whole files"),
        ("FILE-SPEC-4.1.4", "Do not aim for small edits"),
        ("FILE-SPEC-4.2.1", "a structured patch or a git patch, as the user asked"),
        ("FILE-SPEC-4.2.2", "Do not give the full content"),
        ("FILE-SPEC-4.2.3", "small, exact edits"),
        ("FILE-SPEC-4.3.1", "small changes or patches"),
        ("FILE-SPEC-4.3.2", "agrees that files are overwritten, write a file bundle"),
        ("FILE-SPEC-4.3.3", "large or complex, write a file bundle"),
        ("FILE-SPEC-6.1.1", "Please allow a full Aptix file bundle instead."),
        ("FILE-SPEC-6.1.2", "Do not send a partial or guessed patch"),
        ("FILE-SPEC-6.2.1", "Unable to generate a safe Git patch; fallback to Aptix file bundle or structured patch."),
        ("WS-MOD-3.1.1", "in two separate messages"),
        ("WS-MOD-4.2.14", "Leave optional arguments out; only where"),
    ];
    for (id, words) in rules {
        let sentence =
            SENTENCES.iter().find(|sentence| sentence.id == id).unwrap_or_else(|| panic!("{id} is not said"));
        assert!(sentence.text.contains(words), "{id}: {}", sentence.text);
    }
}

/// The guide for one dialect has its example, the rules about it, and no other dialect.
#[test]
fn a_guide_for_one_dialect_is_about_that_one() {
    for dialect in Dialect::ALL {
        let text = guide(Some(dialect));
        let sections: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections.last(), Some(&dialect.to_string().as_str()));
        assert_eq!(sections.iter().filter(|title| title.parse::<Dialect>().is_ok()).count(), 1, "{dialect}");
        assert!(text.len() < guide(None).len());
    }
    assert!(guide(Some(Dialect::LinePatch)).contains("originalSha256"));
    assert!(guide(Some(Dialect::GitPatch)).contains("Unable to generate a safe Git patch"));
}
