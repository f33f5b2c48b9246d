//! The guide for authors, against the register of requirements.

use std::collections::BTreeSet;
use std::path::Path;

use aptix_model::documents::Dialect;
use aptix_model::tools::guide::{SENTENCES, guide};

/// The sections of each text that are rules for authors.
const SECTIONS: [(&str, &str); 10] = [
    ("TUL-002", "8."),
    ("TUL-004", "7.2."),
    ("TUL-004", "7.3."),
    ("TUL-004", "7.4."),
    ("TUL-004", "7.5."),
    ("TUL-004", "7.6."),
    ("FILE-SPEC", "2.4."),
    ("FILE-SPEC", "4."),
    ("FILE-SPEC", "6."),
    ("WS-MOD", "3.1."),
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
