//! Which files the names of a diff mean, where they can be read in several ways: decided by the files that exist, with one
//! reading for all files of a batch.

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::batch::{Batch, FileEdit, FilePatch, GitKind, GitPatch, Target};
use aptix_model::failure::Failure;
use aptix_model::path_readings::PathReadings;
use aptix_model::reason::{Detail, Reason};

use crate::findings::Findings;
use crate::shown::quoted_path;

/// What is at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Nothing that a batch could edit or create files in.
    Absent,
    /// A file, or something that the batch is refused for.
    File,
    /// A directory.
    Directory,
}

/// Whether the usual prefixes of a batch's names are prefixes or directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    Stripped,
    Written,
}

impl Reading {
    fn paths(self, readings: &PathReadings) -> &[String] {
        match self {
            Self::Stripped => &readings.stripped,
            Self::Written => &readings.written,
        }
    }
}

/// What an edit needs at the path that is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    File,
    Nothing,
    Either,
}

/// Every path whose entry decides how the names of a batch are read; none if they can be read in one way only.
#[must_use]
pub fn asked(batch: &Batch) -> BTreeSet<&str> {
    let mut paths = BTreeSet::new();
    for (readings, patch) in open(batch) {
        paths.extend(readings.all());
        if need(patch) != Need::File {
            paths.extend(readings.written.iter().filter_map(|path| top(path)));
        }
    }
    paths
}

/// The batch with one path for each file, once it is known what is at the paths that are [`asked`] for.
///
/// # Errors
/// When the files that exist leave several readings, or none.
pub fn settle<'b>(batch: &'b Batch, entry: impl Fn(&str) -> Entry) -> Result<Cow<'b, Batch>, Vec<Failure>> {
    if open(batch).next().is_none() {
        return Ok(Cow::Borrowed(batch));
    }
    let reading = reading(batch, &entry)?;
    let mut findings = Findings::default();
    let mut settled = batch.clone();
    for (index, file) in settled.files.iter_mut().enumerate() {
        let Target::Readings(readings) = &file.target else { continue };
        match choose(reading, readings, need(file), &entry) {
            Ok(path) => set(file, path),
            Err(failure) => findings.add(|| failure.file(index, file.target.as_str())),
        }
    }
    findings.or(Cow::Owned(settled))
}

/// A batch once for each way of reading its names; none if they can be read in one way only.
pub(crate) fn assumptions(batch: &Batch) -> impl Iterator<Item = Batch> {
    let ways = [(Reading::Stripped, 0), (Reading::Stripped, 1), (Reading::Written, 0), (Reading::Written, 1)];
    let is_open = open(batch).next().is_some();
    ways.into_iter().filter(move |_| is_open).map(|(reading, side)| assumed(batch, reading, side))
}

/// A batch as it would be under one reading, with one of the two sides of a file.
fn assumed(batch: &Batch, reading: Reading, side: usize) -> Batch {
    let mut assumed = batch.clone();
    for file in &mut assumed.files {
        let Target::Readings(readings) = &file.target else { continue };
        let paths = reading.paths(readings);
        // A file without a name stays undecided, which no plan takes.
        let Some(path) = paths.get(side).or_else(|| paths.first()).cloned() else { continue };
        set(file, path);
    }
    assumed
}

fn open(batch: &Batch) -> impl Iterator<Item = (&PathReadings, &FilePatch)> {
    batch.files.iter().filter_map(|file| match &file.target {
        Target::Readings(readings) => Some((readings, file)),
        Target::DocPath(_) | Target::Path(_) => None,
    })
}

fn need(file: &FilePatch) -> Need {
    match parts(&file.edit).first() {
        Some(first) if first.kind == GitKind::Create => Need::Nothing,
        Some(first) if may_create(first) => Need::Either,
        _ => Need::File,
    }
}

/// The parts of a diff that an edit is.
fn parts(edit: &FileEdit) -> &[GitPatch] {
    match edit {
        FileEdit::GitPatch(patch) => core::slice::from_ref(patch),
        FileEdit::GitSeries(parts) => parts,
        _ => &[],
    }
}

/// Whether a patch of an existing file may be one of a created file: its only hunk has no old side.
#[must_use]
pub fn may_create(patch: &GitPatch) -> bool {
    let is_bare = patch.kind == GitKind::Modify && patch.executable.is_none() && patch.base_id.is_none();
    is_bare
        && matches!(patch.hunks.as_slice(), [hunk] if !hunk.is_unnumbered && (hunk.old_start, hunk.old_count) == (0, 0))
}

/// The directory at the root that a path leads through.
fn top(path: &str) -> Option<&str> {
    path.split_once('/').map(|(top, _)| top)
}

/// The one reading under which every file fits.
fn reading(batch: &Batch, entry: &impl Fn(&str) -> Entry) -> Result<Reading, Vec<Failure>> {
    if open(batch).all(|(readings, _)| readings.stripped == readings.written) {
        return Ok(Reading::Stripped);
    }
    // Of a file with several readings this says that both sides have one name, which begins with what may be a prefix.
    let is_unprefixed = |file: &FilePatch| parts(&file.edit).iter().any(|part| part.is_unprefixed);
    let others_have_none = batch.files.iter().any(is_unprefixed);
    let fits = |reading: Reading, (readings, file): (&PathReadings, &FilePatch)| {
        let paths = reading.paths(readings);
        let files = paths.iter().filter(|path| entry(path) == Entry::File).count();
        let need = need(file);
        if is_unprefixed(file) && need != Need::File {
            // Both readings are as likely, so that only a file that is there decides.
            return need == Need::Nothing || files > 0 || !readings.all().any(|path| entry(path) == Entry::File);
        }
        let may_come = || {
            let is_dir = |path: &String| top(path).is_some_and(|top| entry(top) == Entry::Directory);
            reading == Reading::Stripped || others_have_none || paths.iter().any(is_dir)
        };
        match need {
            Need::File => files > 0,
            Need::Nothing => files == 0 && may_come(),
            Need::Either => files > 0 || may_come(),
        }
    };
    let all_fit = |reading| open(batch).all(|file| fits(reading, file)) && are_distinct(batch, reading, entry);
    let any_exists = |reading: Reading| {
        let is_file = |path: &String| entry(path) == Entry::File;
        open(batch).any(|(readings, file)| need(file) != Need::Nothing && reading.paths(readings).iter().any(is_file))
    };
    match (all_fit(Reading::Stripped), all_fit(Reading::Written)) {
        (true, false) => Ok(Reading::Stripped),
        (false, true) => Ok(Reading::Written),
        // What is wrong with the one reading that some files fit shows when the batch is planned.
        (false, false) if !any_exists(Reading::Written) => Ok(Reading::Stripped),
        (false, false) if !any_exists(Reading::Stripped) => Ok(Reading::Written),
        _ => Err(several(batch)),
    }
}

/// Whether a reading gives each file a path of its own: a diff has the parts of one file together.
fn are_distinct(batch: &Batch, reading: Reading, entry: &impl Fn(&str) -> Entry) -> bool {
    let mut seen = BTreeSet::new();
    batch.files.iter().all(|file| {
        let path = match &file.target {
            Target::DocPath(_) => None,
            Target::Path(path) => Some(path),
            Target::Readings(readings) => match reading.paths(readings) {
                [path] => Some(path),
                several => several.iter().find(|path| entry(path) == Entry::File),
            },
        };
        path.is_none_or(|path| seen.insert(path))
    })
}

fn several(batch: &Batch) -> Vec<Failure> {
    let mut findings = Findings::default();
    for (index, file) in batch.files.iter().enumerate() {
        let Target::Readings(readings) = &file.target else { continue };
        if readings.stripped == readings.written {
            continue;
        }
        findings.add(|| {
            let message = format!(
                "the names of the diff can mean {} or, if they have no prefixes a/ and b/, {}, and the files there are do not decide",
                listed(&readings.stripped),
                listed(&readings.written)
            );
            ambiguous(message).file(index, file.target.as_str())
        });
    }
    findings.into_failures()
}

/// The path that one file of the diff means under a reading.
fn choose(
    reading: Reading,
    readings: &PathReadings,
    need: Need,
    entry: &impl Fn(&str) -> Entry,
) -> Result<String, Failure> {
    let paths = reading.paths(readings);
    let [old, new] = paths else { return Ok(paths.first().cloned().unwrap_or_default()) };
    match (entry(old) == Entry::File, entry(new) == Entry::File) {
        (true, false) => Ok(old.clone()),
        (false, true) => Ok(new.clone()),
        (true, true) => {
            Err(ambiguous(format!("the two sides of the diff name different files, and both exist: {}", listed(paths))))
        }
        (false, false) => {
            let what = if need == Need::File { "is to be edited" } else { "is meant" };
            let message = format!(
                "the two sides of the diff name different files, and none that {what} exists: {}",
                listed(paths)
            );
            Err(Failure::new(Reason::FileMissing, message)
                .hint("give both sides the path of the file: '--- a/path' and '+++ b/path'"))
        }
    }
}

fn ambiguous(message: String) -> Failure {
    Failure::new(Reason::AmbiguousPath, message).detail(Detail::Names).hint(
        "put the line 'diff --git a/path b/path' above '--- a/path' and '+++ b/path', with the whole path of the file",
    )
}

fn listed(paths: &[String]) -> String {
    let quoted: Vec<_> = paths.iter().map(|path| quoted_path(path)).collect();
    quoted.join(" and ")
}

/// Gives a file the path that is meant; a path as it is written has no prefix.
fn set(file: &mut FilePatch, path: String) {
    let old = core::mem::replace(&mut file.target, Target::Path(path.to_owned()));
    let Target::Readings(readings) = old else { return };
    let parts = match &mut file.edit {
        FileEdit::GitPatch(patch) => core::slice::from_mut(patch),
        FileEdit::GitSeries(parts) => parts,
        _ => return,
    };
    parts.iter_mut().for_each(|part| part.is_unprefixed = readings.written.contains(&path));
}
