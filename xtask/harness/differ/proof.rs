//! What git does once a diff is written as git would write it: with its prefixes, headers, blanks and numbers, for all files at
//! once or in parts. Where that is what Aptix does, nothing but the writing makes the difference.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::family::Case;
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
    let choices = (0..1_usize << unfit).rev();
    let mut readings: Vec<Vec<Section>> =
        choices.map(|chosen| sections(&mend_some(&diff, |hunk| chosen >> hunk.min(MIXED - 1) & 1 == 1).0)).collect();
    for sections in &readings {
        if is_made(sections, &case.tree, folder, |theirs| theirs == ours)? {
            return Ok(Proof::Bytes);
        }
    }
    let (tree, ours) = (level::tree(&case.tree), level::trimmed(&level::tree(ours)));
    for sections in &mut readings {
        for hunk in sections.iter_mut().flat_map(|section| &mut section.hunks) {
            hunk.lines = level::hunk(&hunk.lines);
        }
        if is_made(sections, &tree, folder, |theirs| level::trimmed(theirs) == ours)? {
            return Ok(Proof::Lines);
        }
    }
    Ok(Proof::None)
}

/// Whether git makes what is wanted of the sections, written in one of the ways.
fn is_made(sections: &[Section], tree: &Tree, folder: &Path, is_wanted: impl Fn(&Tree) -> bool) -> Result<bool> {
    let mut tried: Vec<(Vec<Vec<u8>>, bool)> = Vec::new();
    for reading in [Reading::ByFile, Reading::Stripped, Reading::Written] {
        let Some(paths) = all_paths(sections, tree, reading) else { continue };
        for is_renumbered in [false, true] {
            let written = sections.iter().zip(&paths).map(|(section, paths)| section.write(paths, is_renumbered));
            let written: Vec<Vec<u8>> = written.collect();
            for parts in [vec![written.concat()], in_parts(sections, &written, &paths), written] {
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
