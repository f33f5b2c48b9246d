//! Shows that the checker sees a wrong application: trees spoilt by hand, and a careless program that applies each block
//! of an answer by itself and passes over those that fail.

use anyhow::{Result, ensure};

use crate::boundary::{Place, Said};
use crate::case::{Case, Expected};
use crate::judge::{Class, Way, judge};
use crate::scan::fences;
use crate::tree::{Entry, Tree};

/// Answers that the careless program must be caught with at the least.
const CAUGHT: usize = 10;

/// Fails unless every spoilt tree is found, and the careless program is caught.
pub(crate) fn check(cases: &[Case], is_whole_corpus: bool) -> Result<String> {
    let mut spoilt = 0;
    for case in cases {
        let Expected::Applied(tree) = &case.expected else { continue };
        for (how, after) in spoil(&case.before, tree) {
            let said = Said { success: true, errors: Vec::new(), warnings: Vec::new(), label: None, after };
            let found = judge(case, &said, Way::Command).class;
            ensure!(found == Class::Wrong, "the checker passes over {how} in {:?}", case.title);
            spoilt += 1;
        }
    }
    let mut caught = 0;
    for case in cases {
        let said = careless(case)?;
        caught += usize::from(judge(case, &said, Way::Command).class == Class::Wrong);
    }
    ensure!(caught >= CAUGHT || !is_whole_corpus, "a careless program is caught with {caught} answers only");
    Ok(format!("{spoilt} spoilt trees found, a program that applies what it can caught with {caught} answers"))
}

/// The expected tree with one thing wrong.
fn spoil(before: &Tree, tree: &Tree) -> Vec<(&'static str, Tree)> {
    let spoilt = |change: &dyn Fn(&mut Tree)| {
        let mut tree = tree.clone();
        change(&mut tree);
        tree
    };
    let mut trees = vec![("a stray file", spoilt(&|tree| drop(tree.files.insert("stray".into(), plain("")))))];
    let changed = tree.changed(before);
    trees.push(("a half of the change", {
        let mut half = tree.clone();
        if let Some(path) = changed.first() {
            match before.files.get(*path) {
                Some(entry) => drop(half.files.insert((*path).to_owned(), entry.clone())),
                None => drop(half.files.remove(*path)),
            }
        }
        half
    }));
    if let Some(path) = tree.files.keys().next_back().cloned() {
        trees.push(("a byte too many", {
            let mut tree = tree.clone();
            tree.files.entry(path.clone()).and_modify(|entry| entry.bytes.push(b'\n'));
            tree
        }));
        trees.push(("another mode", {
            let mut tree = tree.clone();
            tree.files.entry(path).and_modify(|entry| entry.mode ^= 0o111);
            tree
        }));
    }
    trees
}

fn plain(text: &str) -> Entry {
    Entry::plain(text.as_bytes().to_vec())
}

/// Applies what can be applied: each block alone, with the line above it.
fn careless(case: &Case) -> Result<Said> {
    let lines: Vec<&str> = case.answer.split_inclusive('\n').collect();
    let place = Place::new(&case.before)?;
    let library = place.open()?;
    let mut is_any_applied = false;
    for fence in fences(&lines) {
        let from = fence.first.saturating_sub(1);
        let block = lines.get(from..=fence.last.unwrap_or(lines.len() - 1)).unwrap_or_default().concat();
        is_any_applied |= library.apply(block.as_bytes(), None)?.success;
    }
    let after = place.tree()?;
    Ok(Said { success: is_any_applied, errors: Vec::new(), warnings: Vec::new(), label: None, after })
}
