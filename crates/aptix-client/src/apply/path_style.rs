//! How messages for people name a file: by its path in the only root, or with the root's name in front.

use std::borrow::Cow;

/// How files are named for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathStyle {
    /// By the path in the one root there is.
    InRoot,
    /// By the root's name and the path in that root.
    WithRoot,
}

impl PathStyle {
    /// The shortest style that is unambiguous with so many roots.
    #[must_use]
    pub const fn among(roots: usize) -> Self {
        if roots > 1 { Self::WithRoot } else { Self::InRoot }
    }

    /// A file's name, from its path in its root and its lower-case key.
    #[must_use]
    pub fn name<'a>(self, path: &'a str, doc_path: &str) -> Cow<'a, str> {
        match (self, doc_path.split_once('/')) {
            (Self::WithRoot, Some((root, _))) => Cow::Owned(format!("{root}/{path}")),
            _ => Cow::Borrowed(path),
        }
    }
}
