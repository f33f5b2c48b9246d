//! Which files a batch names: each path by itself, and no two that are, or could be taken for, one file.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::batch::{Batch, FilePatch, Target};
use aptix_model::failure::Failure;
use aptix_model::path::{DocPath, PathError, WorkspacePath, compose, fold, lowercase};
use aptix_model::protection;

use crate::checking::site::Site;
use crate::checking::violation::Violation;
use crate::findings::defect_of_caller;
use crate::shown::quoted_path;
use crate::target::ValidTarget;

/// Checks one path by itself.
pub(crate) fn check(target: &Target, site: &mut Site<'_, '_>) -> Option<ValidTarget> {
    let field = match target {
        Target::DocPath(_) => "docPath",
        Target::Path(_) => "path",
        Target::Readings(_) => "pathReadings",
    };
    check_as(field, "", target, site)
}

/// Checks the other path that a file patch names, if it names one.
pub(crate) fn check_other(patch: &FilePatch, site: &mut Site<'_, '_>) -> Result<Option<ValidTarget>, Reported> {
    let (field, is, text) = match (patch.edit.moved_to(), patch.edit.copied_from()) {
        (Some(text), _) => ("renameTo", "where it is renamed to", text),
        (None, Some(text)) => ("copyFrom", "what it is copied from", text),
        (None, None) => return Ok(None),
    };
    let target = match patch.target {
        Target::DocPath(_) => Target::DocPath(text.to_owned()),
        Target::Path(_) | Target::Readings(_) => Target::Path(text.to_owned()),
    };
    check_as(field, is, &target, site).map(Some).ok_or(Reported)
}

/// Something is wrong, and was taken down.
pub(crate) struct Reported;

/// Checks a path; `is` says which it is where that is not the file patch's own.
fn check_as(field: &str, is: &str, target: &Target, site: &mut Site<'_, '_>) -> Option<ValidTarget> {
    let checked = match target {
        Target::DocPath(text) => DocPath::new(text).map(ValidTarget::DocPath),
        Target::Path(text) => WorkspacePath::new(text).map(ValidTarget::Path),
        Target::Readings(_) => {
            site.refuse(field, || defect_of_caller("which file the names of the diff mean was not decided"));
            return None;
        }
    };
    let text = target.as_str();
    let violation = match checked {
        // An invisible character in `.git` is first of all an attempt at `.git`.
        Err(error @ (PathError::Bidi(_) | PathError::Control(_))) => {
            protection::of(text).map_or(Violation::Path(error), Violation::Protected)
        }
        Err(error) => Violation::Path(error),
        Ok(target) => match protection::of(text) {
            None => return Some(target),
            Some(protection) => Violation::Protected(protection),
        },
    };
    site.refuse(field, || {
        let failure = violation.failure();
        if is.is_empty() {
            return failure;
        }
        Failure { message: format!("{is}, {}: {}", quoted_path(text), failure.message), ..failure }
    });
    None
}

/// Checks that no two paths of one kind are, or could be taken for, one file, nor one the directory of another. A file may be
/// renamed to the path that another one, or it itself in another case, is renamed from.
///
/// A docPath and a path may still name one file; that shows once they are resolved.
pub(crate) fn check_twins<'a>(batch: &'a Batch, site: &mut Site<'_, 'a>) {
    let doc_paths = |target: &Target, text: &'a str| match target {
        // In whatever case they are written, docPaths mean one lower-case key.
        Target::DocPath(_) => Some(Cow::Owned(lowercase(text))),
        Target::Path(_) | Target::Readings(_) => None,
    };
    let paths = |target: &Target, text: &'a str| match target {
        Target::Path(_) => Some(Cow::Borrowed(text)),
        Target::DocPath(_) | Target::Readings(_) => None,
    };
    check_kind(batch, site, "docPath", doc_paths);
    check_kind(batch, site, "path", paths);
}

/// A path as it is spelled, and in the order in which paths that could be taken for one lie side by side.
struct Entry<'a> {
    /// Folded, with the separator below every other character, so that a directory sorts right before its content.
    key: String,
    /// Paths that files leave sort first, so that two of one role lie side by side.
    role: Role,
    spelled: Cow<'a, str>,
    index: usize,
    patch: &'a FilePatch,
}

/// What a batch does at a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Role {
    /// A file is renamed from it.
    Leaves,
    /// A file is renamed to it.
    Arrives,
    /// Something else.
    Stays,
}

fn check_kind<'a>(
    batch: &'a Batch,
    site: &mut Site<'_, 'a>,
    field: &str,
    spelled: impl Fn(&Target, &'a str) -> Option<Cow<'a, str>>,
) {
    let files = batch.files.iter().enumerate();
    // What is copied is only read; what a file is renamed to is written like any target.
    let named = files.flat_map(|(index, patch)| {
        let to = patch.edit.moved_to();
        let own = if to.is_some() { Role::Leaves } else { Role::Stays };
        let texts = [Some((own, patch.target.as_str())), to.map(|to| (Role::Arrives, to))].into_iter().flatten();
        texts.map(move |(role, text)| (index, role, patch, text))
    });
    let valid =
        named.filter_map(|(index, role, patch, text)| Some((index, role, patch, spelled(&patch.target, text)?)));
    let mut entries: Vec<Entry<'a>> = valid
        .filter(|(.., spelled)| WorkspacePath::new(spelled).is_ok())
        .map(|(index, role, patch, spelled)| {
            let index = site.position(index);
            Entry { key: fold(&spelled).replace('/', "\0"), role, spelled, index, patch }
        })
        .collect();
    entries.sort_by(|a, b| (&a.key, a.role, &a.spelled, a.index).cmp(&(&b.key, b.role, &b.spelled, b.index)));
    // Paths that share folded directories lie together, so a difference between any two shows between two neighbours.
    for (a, b) in entries.iter().zip(entries.iter().skip(1)) {
        let (other, this) = if a.index < b.index { (a, b) } else { (b, a) };
        let Some(violation) = conflict(other, this) else { continue };
        site.file = Some((this.index, this.patch));
        site.report(field, || violation);
    }
}

/// What is wrong between two paths, compared component by component.
fn conflict(other: &Entry<'_>, this: &Entry<'_>) -> Option<Violation> {
    if is_handed_over(other, this) {
        return None;
    }
    let path = || quoted_path(&other.spelled);
    let mut these = this.key.split('\0').zip(this.spelled.split('/'));
    let mut others = other.key.split('\0').zip(other.spelled.split('/'));
    loop {
        match (these.next(), others.next()) {
            (None, None) => return Some(Violation::DuplicatePath { other: other.index }),
            (None, Some(_)) | (Some(_), None) => {
                return Some(Violation::PrefixConflict { other: other.index, path: path() });
            }
            (Some((key, _)), Some((other_key, _))) if key != other_key => return None,
            (Some((_, name)), Some((_, other_name))) if name != other_name => {
                return Some(if compose(name) == compose(other_name) {
                    Violation::NormTwin { other: other.index, path: path() }
                } else {
                    Violation::CaseTwin { other: other.index, path: path() }
                });
            }
            _ => {}
        }
    }
}

/// Whether one of two entries is a name that a file leaves, and the other one the same name, as it is or in another case, that a
/// file gets. A file that keeps its name is none.
fn is_handed_over(a: &Entry<'_>, b: &Entry<'_>) -> bool {
    let dir = |entry: &Entry<'_>| entry.spelled.rsplit_once('/').map(|(dir, _)| dir.to_owned());
    let is_renamed = a.index != b.index || a.spelled != b.spelled;
    let roles = (a.role.min(b.role), a.role.max(b.role));
    a.key == b.key && roles == (Role::Leaves, Role::Arrives) && is_renamed && dir(a) == dir(b)
}
