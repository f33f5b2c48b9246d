//! How a file is named in reports, failures and lists: by its path in the only root, or with the root's name in front.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use crate::path::fold;

/// How files are named.
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

    /// The name of the file that has a lower-case key, as far as the key alone determines it.
    #[must_use]
    pub fn of_key(self, doc_path: &str) -> &str {
        match (self, doc_path.split_once('/')) {
            (Self::InRoot, Some((_, path))) => path,
            _ => doc_path,
        }
    }

    /// The lower-case key of the file with a name; `root` is the name of the only root, if it is known.
    #[must_use]
    pub fn key(self, name: &str, root: Option<&str>) -> Option<String> {
        match self {
            Self::InRoot => root.map(|root| format!("{root}/{}", fold(name))),
            Self::WithRoot => Some(fold(name)),
        }
    }
}
