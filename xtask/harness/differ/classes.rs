//! The differences between Aptix and git that are meant: who applies the diff, when, and why the other does not. The page
//! `docs/reference/git-patch.md` has a row for each.

mod apart;
mod aptix_alone;
mod class;
mod git_alone;

use anyhow::{Result, ensure};

use self::class::Class;
use crate::proof::Proof;
use crate::seen::{By, Seen};

/// Classes by who applies the diff, and how far git has to agree once the diff is written anew: a difference that nothing
/// proves is in no class. In the order of the page.
const ALL: [(By, Proof, &[Class]); 5] = [
    (By::Git, Proof::None, git_alone::CLASSES),
    (By::Aptix, Proof::Lines, aptix_alone::SAME_LINES),
    (By::Aptix, Proof::Bytes, aptix_alone::SAME_BYTES),
    (By::Both, Proof::Bytes, apart::SAME_BYTES),
    (By::Both, Proof::Lines, apart::SAME_LINES),
];

/// The names of all classes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().flat_map(|(.., classes)| classes).map(|class| class.name)
}

/// The class of a difference.
pub(crate) fn of(seen: &Seen<'_>) -> Option<&'static Class> {
    let tables = ALL.into_iter().filter(|(by, needs, _)| seen.by() == Some(*by) && seen.proof >= *needs);
    tables.flat_map(|(.., classes)| classes).find(|class| (class.is_it)(seen))
}

/// Holds the table of the page against the classes.
pub(crate) fn check_page() -> Result<()> {
    const PAGE: &str = include_str!("../../../docs/reference/git-patch.md");
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| ") && line.contains(" applies it")).collect();
    let expected = ALL.into_iter().flat_map(|(by, _, classes)| {
        let by = match by {
            By::Git => "git alone applies it",
            By::Aptix => "Aptix alone applies it",
            By::Both => "each applies it in its own way",
        };
        classes.iter().map(move |class| format!("| {} | {by} | {} |", class.name, class.reason))
    });
    let expected: Vec<String> = expected.collect();
    for row in &expected {
        ensure!(rows.contains(&row.as_str()), "docs/reference/git-patch.md has no row\n{row}");
    }
    for row in rows {
        ensure!(expected.iter().any(|known| known == row), "docs/reference/git-patch.md has a row of no class\n{row}");
    }
    Ok(())
}
