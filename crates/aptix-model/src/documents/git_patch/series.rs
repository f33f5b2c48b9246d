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
    let mut files = Files::default();
    for (position, part) in parts.into_iter().enumerate() {
        let place = (position, part.line);
        files.add(part, place).map_err(|why| (place.0, place.1, GitPatchError::Series(why)))?;
    }
    if let (true, Some((position, line))) = (files.follows, files.doubtful) {
        let why = "the diff has files in several parts, and copies one that it changes above";
        return Err((position, line, GitPatchError::Series(why)));
    }
    Ok(files.all.into_iter().map(|series| series.file).collect())
}

/// The files of the parts that were read so far.
#[derive(Default)]
struct Files {
    all: Vec<Series>,
    /// Under which name each file is left by the parts above.
    names: BTreeMap<Key, usize>,
    /// The files that had the names before which the mail or commit that is being read takes away or gives to others.
    before: BTreeMap<Key, Option<usize>>,
    /// The mail or commit that is being read.
    newest: usize,
    /// Whether diffs follow one another within a mail or commit.
    follows: bool,
    /// The place of the first copy of a file that changes above it in the same mail or commit.
    doubtful: Option<(usize, usize)>,
}

impl Files {
    fn add(&mut self, part: Part, place: (usize, usize)) -> Result<(), &'static str> {
        let Part { file, letter, is_of_log, .. } = part;
        let FileEdit::GitPatch(patch) = &file.edit else { return Ok(()) };
        let kind = patch.kind.clone();
        if letter != self.newest {
            self.before.clear();
            self.newest = letter;
        }
        if let Some(source) = self.copied(&kind) {
            if source.letters.0 != letter {
                return Err("a file is copied that an earlier mail or commit changes");
            }
            self.doubtful = self.doubtful.or(Some(place));
        }
        let keys = Key::of(&file.target);
        let known = self.known(&keys, file.target.as_str(), &kind)?;
        let index = known.unwrap_or(self.all.len());
        match known.and_then(|index| self.all.get_mut(index)) {
            Some(series) => {
                if series.letters.1 != letter && is_of_log {
                    return Err("a log lists the newest commit first, and several of its commits change this file");
                }
                check(series, patch, letter)?;
                append(series, file);
                self.follows |= series.letters.1 == letter;
                series.letters.1 = letter;
            }
            None => self.all.push(Series { file, letters: (letter, letter) }),
        }
        self.name(index, keys, kind);
        Ok(())
    }

    /// The file that a part copies, if a part above changes it.
    fn copied(&self, kind: &GitKind) -> Option<&Series> {
        let GitKind::Copy { from } = kind else { return None };
        let key = Key::of_path(from);
        let index = self.before.get(&key).copied().unwrap_or_else(|| self.names.get(&key).copied());
        index.and_then(|index| self.all.get(index))
    }

    /// The position of the file that a part changes, if parts above change it as well.
    fn known(&self, keys: &[Key], name: &str, kind: &GitKind) -> Result<Option<usize>, &'static str> {
        let known = keys.iter().find_map(|key| self.names.get(key)).copied();
        let series = known.and_then(|index| self.all.get(index));
        if !series.is_some_and(|series| series.arrives_in(self.newest, name)) {
            return Ok(known);
        }
        // A diff that renames a file to this name and renames this file moves the one that had the name before.
        if matches!(kind, GitKind::Rename { .. }) {
            return Ok(keys.iter().find_map(|key| self.before.get(key)).copied().flatten());
        }
        match self.all.iter().any(|series| series.file.target.as_str() == name) {
            true => Err("the diff renames another file to this name, and changes one that has it"),
            false => Ok(known),
        }
    }

    /// Notes under which name a part leaves its file.
    fn name(&mut self, index: usize, keys: Vec<Key>, kind: GitKind) {
        let GitKind::Rename { to } = kind else {
            self.names.extend(keys.into_iter().map(|key| (key, index)));
            return;
        };
        for key in keys {
            if self.names.get(&key) == Some(&index) {
                self.names.remove(&key);
                self.before.entry(key).or_insert(Some(index));
            }
        }
        let to = Key::of_path(&to);
        let had = self.names.insert(to.clone(), index);
        self.before.entry(to).or_insert(had);
    }
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
