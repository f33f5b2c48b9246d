//! Files that a diff has in several parts, as diffs that follow one another and series of mails do: the parts of one file are
//! put together, in their order.

use std::collections::BTreeMap;

use super::malformed::GitPatchError;
use crate::batch::{FileEdit, FilePatch, GitKind, GitPatch, Target};

/// One file of the diff, and where it comes from.
pub(super) struct Part {
    pub(super) file: FilePatch,
    /// The line that it begins at.
    pub(super) line: usize,
    /// How many mails and commits begin above it.
    pub(super) letter: usize,
    /// Whether it is of a log, which lists the newest commit first.
    pub(super) is_of_log: bool,
}

/// A file, with the parts of it that were read so far.
struct Series {
    file: FilePatch,
    /// The mails or commits of its first part and of its last one.
    letters: (usize, usize),
}

/// Puts the parts of each file together.
///
/// # Errors
/// The position of the first part that cannot follow those above it, and why.
pub(super) fn fold(parts: Vec<Part>) -> Result<Vec<FilePatch>, (usize, usize, GitPatchError)> {
    let mut all: Vec<Series> = Vec::with_capacity(parts.len());
    // Under which name each file is left by the parts above.
    let mut names: BTreeMap<Key, usize> = BTreeMap::new();
    // The files that had the names before which the mail or commit that is being read takes away or gives to others.
    let mut before: BTreeMap<Key, Option<usize>> = BTreeMap::new();
    let mut newest = 0;
    // Whether diffs follow one another within a mail or commit, and the first copy there of a file that changes above it.
    let (mut follows, mut doubtful) = (false, None);
    for (position, part) in parts.into_iter().enumerate() {
        let Part { file, line, letter, is_of_log } = part;
        let refused = |why| (position, line, GitPatchError::Series(why));
        let FileEdit::GitPatch(patch) = &file.edit else { continue };
        let kind = patch.kind.clone();
        if letter != newest {
            before.clear();
            newest = letter;
        }
        let copied = match &kind {
            GitKind::Copy { from } => {
                let key = Key::of_path(from);
                let index = before.get(&key).copied().unwrap_or_else(|| names.get(&key).copied());
                index.and_then(|index| all.get(index))
            }
            _ => None,
        };
        if copied.is_some_and(|source| source.letters.0 != letter) {
            return Err(refused("a file is copied that an earlier mail or commit changes"));
        }
        doubtful = doubtful.or(copied.map(|_| (position, line)));
        let keys = Key::of(&file.target);
        let mut known = keys.iter().find_map(|key| names.get(key)).copied();
        // A diff that renames a file to this name and renames this file moves the one that had the name before.
        let name = file.target.as_str();
        let is_taken_over =
            known.and_then(|index| all.get(index)).is_some_and(|series| series.arrives_in(letter, name));
        if is_taken_over && matches!(kind, GitKind::Rename { .. }) {
            known = keys.iter().find_map(|key| before.get(key)).copied().flatten();
        } else if is_taken_over && all.iter().any(|series| series.file.target.as_str() == name) {
            return Err(refused("the diff renames another file to this name, and changes one that has it"));
        }
        let index = known.unwrap_or(all.len());
        match known.and_then(|index| all.get_mut(index)) {
            Some(series) => {
                if series.letters.1 != letter && is_of_log {
                    return Err(refused(
                        "a log lists the newest commit first, and several of its commits change this file",
                    ));
                }
                check(series, patch, letter).map_err(refused)?;
                append(series, file);
                follows |= series.letters.1 == letter;
                series.letters.1 = letter;
            }
            None => all.push(Series { file, letters: (letter, letter) }),
        }
        match kind {
            GitKind::Rename { to } => {
                for key in &keys {
                    if names.get(key) == Some(&index) {
                        names.remove(key);
                        before.entry(key.clone()).or_insert(Some(index));
                    }
                }
                let to = Key::of_path(&to);
                let had = names.insert(to.clone(), index);
                before.entry(to).or_insert(had);
            }
            _ => names.extend(keys.into_iter().map(|key| (key, index))),
        }
    }
    if let (true, Some((position, line))) = (follows, doubtful) {
        let why = "the diff has files in several parts, and copies one that it changes above";
        return Err((position, line, GitPatchError::Series(why)));
    }
    Ok(all.into_iter().map(|series| series.file).collect())
}

impl Series {
    /// Whether a part in this mail or commit renames the file to this name.
    fn arrives_in(&self, letter: usize, name: &str) -> bool {
        self.letters.1 == letter && self.file.edit.moved_to() == Some(name)
    }
}

/// A name of a target, as other parts may have it too. Names that are alike behind what may be a prefix are not enough: they
/// are those of two files where the diff has no prefixes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    path: String,
    /// The name as it is written, if that may be the path.
    written: Option<String>,
}

impl Key {
    fn of(target: &Target) -> Vec<Self> {
        let Target::Readings(readings) = target else { return vec![Self::of_path(target.as_str())] };
        let key = |written: &String| Self { path: target.as_str().into(), written: Some(written.clone()) };
        readings.written.iter().map(key).collect()
    }

    fn of_path(path: &str) -> Self {
        Self { path: path.into(), written: None }
    }
}

/// Whether a part can follow those of its file.
fn check(series: &Series, part: &GitPatch, letter: usize) -> Result<(), &'static str> {
    let above = parts(&series.file.edit);
    let is_gone = above.last().is_some_and(|last| last.kind == GitKind::Delete);
    if !part.hunks.is_empty() && above.iter().any(|other| other.hunks == part.hunks) {
        return Err("the diff has the same part of this file twice");
    }
    match part.kind {
        GitKind::Create if !is_gone => Err("the diff creates this file, and changes it above"),
        GitKind::Copy { .. } => Err("the diff makes this file by copying another one, and changes it above"),
        // One diff renames what its files were before; only a later one renames what they are by then.
        GitKind::Rename { .. } if series.letters.1 == letter => Err("the diff renames this file, and changes it above"),
        GitKind::Modify | GitKind::Delete | GitKind::Rename { .. } if is_gone => {
            Err("the diff changes this file, and deletes it above")
        }
        _ => Ok(()),
    }
}

fn parts(edit: &FileEdit) -> &[GitPatch] {
    match edit {
        FileEdit::GitPatch(patch) => core::slice::from_ref(patch),
        FileEdit::GitSeries(parts) => parts,
        _ => &[],
    }
}

fn append(series: &mut Series, file: FilePatch) {
    let FileEdit::GitPatch(part) = file.edit else { return };
    let above = core::mem::replace(&mut series.file.edit, FileEdit::DeleteFile);
    series.file.edit = match above {
        FileEdit::GitPatch(first) => FileEdit::GitSeries(vec![first, part]),
        FileEdit::GitSeries(mut parts) => {
            parts.push(part);
            FileEdit::GitSeries(parts)
        }
        other => other,
    };
    // Names that only some parts leave open are those of the others.
    if let (Target::Readings(all), Target::Readings(own)) = (&mut series.file.target, &file.target) {
        let shared: Vec<_> = all.written.iter().filter(|path| own.written.contains(path)).cloned().collect();
        if !shared.is_empty() {
            all.written = shared;
        }
    } else if matches!((&series.file.target, &file.target), (Target::Readings(_), Target::Path(_))) {
        series.file.target = file.target;
    }
}
