//! Requirement ids: each with the status `tested` is named by a test, and none is named that does not exist.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::finding::Finding;
use crate::register;
use crate::repo::Text;

/// Compares the register with the tests and with every other text.
pub(super) fn check(texts: &[Text]) -> Result<Vec<Finding>> {
    let register = texts.iter().find(|text| text.path == register::PATH);
    let register = &register.with_context(|| format!("{} is missing", register::PATH))?.content;
    Ok(compare(register, texts))
}

fn compare(register: &str, texts: &[Text]) -> Vec<Finding> {
    let rows = register::rows(register);
    let families = register::families(&rows);
    let claims = register::claims(texts, &families);
    let tests = register::tests(&claims);
    let mut findings = Vec::new();
    let mut known = BTreeSet::new();
    for row in &rows {
        let message = if !known.insert(row.id) {
            format!("{} occurs here for the second time; an id belongs to one rule for ever", row.id)
        } else if !register::STATUSES.contains(&row.status) {
            format!("{} has status {:?}; expected one of {:?}", row.id, row.status, register::STATUSES)
        } else if row.status == "tested" && !tests.contains_key(row.id) {
            format!("no test names {}; name it in the test that holds it, or set its status to `later`", row.id)
        } else {
            continue;
        };
        findings.push(Finding { path: register::PATH.to_owned(), line: row.line + 1, message });
    }
    for claim in claims.iter().filter(|claim| claim.test.is_none() && known.contains(claim.id)) {
        let message = format!("{} is named outside of any test; name it in the test that holds it", claim.id);
        findings.push(Finding { path: claim.path.to_owned(), line: claim.line, message });
    }
    // Several rules of one section may be spoken of together, by the section's own number.
    let section = |id: &str| known.iter().any(|known| known.strip_prefix(id).is_some_and(|rest| rest.starts_with('.')));
    for text in texts {
        for mention in register::mentions(&text.content, &families) {
            if !known.contains(mention.id) && !section(mention.id) {
                let message =
                    format!("{} is not in {}; correct the id or register the rule", mention.id, register::PATH);
                findings.push(Finding { path: text.path.clone(), line: mention.line, message });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_that_is_untested_unknown_or_twice_is_found() {
        let register = "\
| DOC-1-1 | Tested. | tested | ? |
| DOC-1-4.1 | Tested. | tested | ? |
| DOC-1-2 | Owed. | tested | ? |
| DOC-1-3 | Later. | later | - |
| DOC-1-3 | Again. | maybe | - |
| DOC-1-5 | Odd. | maybe | - |
";
        let text = |path: &str, content: &str| Text { path: path.to_owned(), content: content.to_owned() };
        let texts = [
            text(
                "crates/aptix-engine/tests/it/lines.txt",
                "== DOC-1-1: a scenario\n== DOC-1-4.1, of DOC-1-4\n== DOC-1-11: a slip",
            ),
            text("crates/aptix-engine/tests/it/a.rs", "//! DOC-1-1\n\nfn a() {}"),
            text("docs/guide.md", "DOC-1-2 is named here, which is no test"),
        ];
        let found: Vec<String> = compare(register, &texts).iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/requirements.md:3: no test names DOC-1-2; name it in the test that holds it, or set its status to \
                 `later`",
                "docs/requirements.md:5: DOC-1-3 occurs here for the second time; an id belongs to one rule for ever",
                "docs/requirements.md:6: DOC-1-5 has status \"maybe\"; expected one of [\"tested\", \"author\", \"later\", \
                 \"refused by design\"]",
                "crates/aptix-engine/tests/it/a.rs:1: DOC-1-1 is named outside of any test; name it in the test that \
                 holds it",
                "crates/aptix-engine/tests/it/lines.txt:3: DOC-1-11 is not in docs/requirements.md; correct the id or \
                 register the rule",
            ]
        );
    }
}
