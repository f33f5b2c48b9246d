//! What git does once a diff is written as git would write it: with its prefixes, headers, blanks and numbers, for all files at
//! once or in parts. Where that is what Aptix does, nothing but the writing makes the difference.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::case::Case;
use crate::git::{self, Theirs};
use crate::level;
use crate::memory::Tree;
use crate::mend::mend_some;
use crate::section::{Paths, Reading, Section, all_paths, sections};

/// How far git agrees with Aptix about a diff that is written anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Proof {
    /// It refuses all of it, or makes other files.
    None,
    /// It makes the same lines, whatever their ends and byte order marks.
    Lines,
    /// It makes the same tree.
    Bytes,
}

/// Hunks with counts that do not fit of which each is taken in both ways.
const MIXED: usize = 4;

/// Lets git apply the diff of a case in each way of writing it, until one gives the tree that Aptix made.
pub(crate) fn prove(case: &Case, ours: &Tree, folder: &Path) -> Result<Proof> {
    let mut diff = case.diff.clone();
    if !diff.ends_with(b"\n") {
        diff.push(b'\n');
    }
    // Each hunk as it counts, or as its lines are.
    let unfit = mend_some(&diff, |_| false).1.min(MIXED);
    let chosen = (0..1_usize << unfit).rev();
    let readings: Vec<Vec<Section>> =
        chosen.map(|chosen| sections(&mend_some(&diff, |hunk| chosen >> hunk.min(MIXED - 1) & 1 == 1).0)).collect();
    for sections in &readings {
        if is_made(sections, &case.tree, folder, |theirs| theirs == ours)? {
            return Ok(Proof::Bytes);
        }
    }
    for sections in &readings {
        let unfit = unfit_paths(sections, &case.tree, folder)?;
        let choices: [&dyn Fn(&str) -> bool; 2] = [&|_| true, &|path| unfit.contains(path)];
        for is_level in choices {
            let (tree, ours) = (level::tree(&case.tree, is_level), level::tree(ours, is_level));
            let ours = level::trimmed(&ours, is_level);
            let paths = all_paths(sections, &case.tree, Reading::ByFile).unwrap_or_default();
            let mut sections = sections.clone();
            for (section, paths) in sections.iter_mut().zip(&paths) {
                if paths.all().any(|path| is_level(path)) {
                    section.hunks.iter_mut().for_each(|hunk| hunk.lines = level::hunk(&hunk.lines));
                }
            }
            if is_made(&sections, &tree, folder, |theirs| level::trimmed(theirs, is_level) == ours)? {
                return Ok(Proof::Lines);
            }
        }
    }
    Ok(Proof::None)
}

/// The paths of the files that git refuses to change as they are.
fn unfit_paths(sections: &[Section], tree: &Tree, folder: &Path) -> Result<BTreeSet<String>> {
    let mut tree = tree.clone();
    let mut unfit = BTreeSet::new();
    let all = all_paths(sections, &tree, Reading::ByFile).unwrap_or_default();
    for (section, paths) in sections.iter().zip(&all) {
        match applied(&[section.write(paths, None)], false, &tree, folder)? {
            Some(next) => tree = next,
            None => unfit.extend(paths.all().cloned()),
        }
    }
    Ok(unfit)
}

/// Whether git makes what is wanted of the sections, written in one of the ways.
fn is_made(sections: &[Section], tree: &Tree, folder: &Path, is_wanted: impl Fn(&Tree) -> bool) -> Result<bool> {
    let mut tried: Vec<(Vec<Vec<u8>>, bool)> = Vec::new();
    for reading in [Reading::ByFile, Reading::Stripped, Reading::Written] {
        let Some(paths) = all_paths(sections, tree, reading) else { continue };
        for is_renumbered in [false, true] {
            let lines = |paths: &Paths| {
                let file = paths.old.as_ref().and_then(|path| tree.get(path));
                file.map_or(0, |file| file.bytes.split_inclusive(|byte| *byte == b'\n').count() as i64)
            };
            let written = sections.iter().zip(&paths);
            let written = written.map(|(section, paths)| section.write(paths, is_renumbered.then(|| lines(paths))));
            let written: Vec<Vec<u8>> = written.collect();
            // Of two diffs, nothing says where the second one begins.
            let halves = (1..written.len()).map(|at| vec![written[..at].concat(), written[at..].concat()]);
            let halves: Vec<Vec<Vec<u8>>> = halves.collect();
            let usual = [vec![written.concat()], in_parts(sections, &written, &paths), written];
            for parts in usual.into_iter().chain(halves) {
                for is_anchored in [true, false] {
                    let way = (parts.clone(), is_anchored);
                    if !tried.contains(&way) {
                        if applied(&way.0, is_anchored, tree, folder)?.as_ref().is_some_and(&is_wanted) {
                            return Ok(true);
                        }
                        tried.push(way);
                    }
                }
            }
        }
    }
    Ok(false)
}

/// Sections together as long as they are of one mail, and none takes or leaves a file that an earlier one does.
fn in_parts(sections: &[Section], written: &[Vec<u8>], paths: &[Paths]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    for ((section, text), paths) in sections.iter().zip(written).zip(paths) {
        let ends = section.ends(paths);
        if section.begins_mail
            || ends.iter().zip(&seen).any(|(path, seen)| path.is_some_and(|path| seen.contains(path)))
        {
            parts.push(Vec::new());
            seen.iter_mut().for_each(BTreeSet::clear);
        }
        seen.iter_mut().zip(ends).for_each(|(seen, path)| seen.extend(path));
        parts.last_mut().into_iter().for_each(|part| part.extend_from_slice(text));
    }
    parts
}

/// What git makes of a tree with several diffs, one after the other.
fn applied(parts: &[Vec<u8>], is_anchored: bool, tree: &Tree, folder: &Path) -> Result<Option<Tree>> {
    let mut tree = tree.clone();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let flags: &[&str] = if is_anchored { &[] } else { &["--unidiff-zero"] };
        match git::apply(folder, &tree, part, flags)? {
            Theirs::Applied(next) => tree = next,
            Theirs::Refused(_) => return Ok(None),
        }
    }
    Ok(Some(tree))
}
