//! The differences between Aptix and git that are meant: who applies the diff, when, and why the other does not. The page
//! `docs/reference/git-patch.md` has a row for each.

mod apart;
mod aptix_alone;
mod git_alone;

use anyhow::{Result, ensure};

use crate::class::Class;
use crate::seen::{By, Seen};

/// All of them, in the order of the page.
pub(crate) fn all() -> impl Iterator<Item = &'static Class> {
    [git_alone::CLASSES, aptix_alone::CLASSES, apart::CLASSES].into_iter().flatten()
}

/// The class of a difference.
pub(crate) fn of(seen: &Seen<'_>) -> Option<&'static Class> {
    all().find(|class| class.has(seen))
}

/// Holds the table of the page against the classes.
pub(crate) fn check_page() -> Result<()> {
    const PAGE: &str = include_str!("../../../docs/reference/git-patch.md");
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| ") && line.contains(" applies it")).collect();
    let row = |class: &Class| {
        let by = match class.by {
            By::Git => "git alone applies it",
            By::Aptix => "Aptix alone applies it",
            By::Both => "each applies it in its own way",
        };
        format!("| {} | {by} | {} |", class.name, class.reason)
    };
    let expected: Vec<String> = all().map(row).collect();
    for row in &expected {
        ensure!(rows.contains(&row.as_str()), "docs/reference/git-patch.md has no row\n{row}");
    }
    for row in rows {
        ensure!(expected.iter().any(|known| known == row), "docs/reference/git-patch.md has a row of no class\n{row}");
    }
    Ok(())
}
