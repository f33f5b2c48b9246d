//! Which files a reader of batches asks for.

use std::borrow::Cow;

use aptix_model::batch::Target;
use aptix_model::path::{DocPath, PathError, fold};
use aptix_model::record::BatchRecord;

/// One file, or all below a directory, by the lower-case key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePattern(String);

impl FilePattern {
    /// Checks a document path, or one that ends in `/`: a root's name with a slash, or a directory in it.
    ///
    /// # Errors
    /// When it is neither.
    pub fn new(text: &str) -> Result<Self, PathError> {
        // A directory is what any name makes a document path of.
        let name = if text.ends_with('/') { "x" } else { "" };
        DocPath::new(&format!("{text}{name}")).map(|_| Self(text.to_owned()))
    }

    fn fits(&self, doc_path: &str) -> bool {
        is_at(&self.0, doc_path)
    }

    /// As [`Self::fits`], for a path whose root's name is not known: then the pattern is compared without its own.
    fn fits_in_some_root(&self, path: &str) -> bool {
        let inside = self.0.split_once('/').map(|(_, inside)| inside);
        self.fits(path) || inside.is_some_and(|inside| inside.is_empty() || is_at(inside, path))
    }

    /// Whether a batch names a file that fits one of the patterns. The names of each file are made once, however many patterns
    /// there are.
    pub(super) fn any_is_named_in(patterns: &[Self], batch: &BatchRecord) -> bool {
        let mut files = 0..batch.batch.files.len();
        files.any(|index| names(batch, index).iter().any(|name| patterns.iter().any(|pattern| name.fits(pattern))))
    }
}

/// Whether a path is this one, or below it where it is a directory's.
fn is_at(wanted: &str, path: &str) -> bool {
    path == wanted || (wanted.ends_with('/') && path.starts_with(wanted))
}

/// A name of a file, folded to lower case.
enum Name<'b> {
    /// A document path.
    Key(Cow<'b, str>),
    /// A path whose root's name may be missing.
    InSomeRoot(String),
}

impl Name<'_> {
    fn fits(&self, pattern: &FilePattern) -> bool {
        match self {
            Self::Key(doc_path) => pattern.fits(doc_path),
            Self::InSomeRoot(path) => pattern.fits_in_some_root(path),
        }
    }
}

/// The names of a file patch's file, the old one and the new one: as its agent reported it, else as its author named it.
fn names(batch: &BatchRecord, index: usize) -> Vec<Name<'_>> {
    let report = batch.report.as_ref().and_then(|report| report.files.get(index));
    let Some(patch) = batch.batch.files.get(index) else { return Vec::new() };
    let in_some_root = |path: &str| Name::InSomeRoot(fold(path));
    let new_path = || patch.edit.moved_to().map(in_some_root);
    match (report, &patch.target) {
        (Some(file), _) => {
            let root = file.doc_path.split('/').next().unwrap_or_default();
            let renamed = file.paths_in_root().1.map(|path| Name::Key(format!("{root}/{}", fold(path)).into()));
            [Name::Key(file.doc_path.as_str().into())].into_iter().chain(renamed).collect()
        }
        (None, Target::DocPath(doc_path)) => {
            [Name::Key(doc_path.as_str().into())].into_iter().chain(new_path()).collect()
        }
        (None, Target::Path(path)) => [in_some_root(path)].into_iter().chain(new_path()).collect(),
        (None, Target::Readings(readings)) => readings.all().map(in_some_root).collect(),
    }
}
