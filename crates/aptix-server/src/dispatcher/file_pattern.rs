//! Which files a reader of batches asks for.

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
        doc_path == self.0 || (self.0.ends_with('/') && doc_path.starts_with(&self.0))
    }

    /// As [`Self::fits`], for a path whose root's name is not known: then the pattern is compared without its own.
    fn fits_in_some_root(&self, path: &str) -> bool {
        let inside = self.0.split_once('/').map(|(_, inside)| inside);
        self.fits(path) || inside.is_some_and(|inside| inside.is_empty() || Self(inside.to_owned()).fits(path))
    }

    /// Whether a batch names a file that fits.
    pub(super) fn is_named_in(&self, batch: &BatchRecord) -> bool {
        (0..batch.batch.files.len()).any(|index| names(batch, index, self))
    }
}

/// Whether a file patch is about a file that fits: as its agent reported it, else as its author named it.
fn names(batch: &BatchRecord, index: usize, pattern: &FilePattern) -> bool {
    let report = batch.report.as_ref().and_then(|report| report.files.get(index));
    let patch = batch.batch.files.get(index);
    let fits = |path: &str| pattern.fits_in_some_root(&fold(path));
    let fits_new_path = || patch.and_then(|patch| patch.edit.moved_to()).is_some_and(fits);
    match (report, patch.map(|patch| &patch.target)) {
        (Some(file), _) => {
            let root = file.doc_path.split('/').next().unwrap_or_default();
            let renamed = file.paths_in_root().1.map(|path| format!("{root}/{}", fold(path)));
            pattern.fits(&file.doc_path) || renamed.is_some_and(|renamed| pattern.fits(&renamed))
        }
        (None, Some(Target::DocPath(doc_path))) => pattern.fits(doc_path) || fits_new_path(),
        (None, Some(Target::Path(path))) => fits(path) || fits_new_path(),
        (None, Some(Target::Readings(readings))) => readings.all().any(fits),
        (None, None) => false,
    }
}
