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
            let said = Said { success: true, after, ..Said::default() };
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
    let mut trees = Vec::new();
    let mut add = |how, change: &dyn Fn(&mut Tree)| {
        let mut spoilt = tree.clone();
        change(&mut spoilt);
        trees.push((how, spoilt));
    };
    add("a stray file", &|tree| drop(tree.files.insert("stray".into(), Entry::plain(Vec::new()))));
    add("a half of the change", &|half| {
        let Some(path) = tree.changed(before).first().copied() else { return };
        match before.files.get(path) {
            Some(entry) => drop(half.files.insert(path.to_owned(), entry.clone())),
            None => drop(half.files.remove(path)),
        }
    });
    if let Some(path) = tree.files.keys().next_back() {
        add("a byte too many", &|tree| tree.files.get_mut(path).into_iter().for_each(|entry| entry.bytes.push(b'\n')));
        add("another mode", &|tree| tree.files.get_mut(path).into_iter().for_each(|entry| entry.mode ^= 0o111));
    }
    trees
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
    Ok(Said { success: is_any_applied, after, ..Said::default() })
}
