//! Paths as authors write them, made into the one form in which they may be used.
//!
//! Nothing here looks at a disk. A valid path is a necessary condition; the agent still resolves
//! each component from an open root.

mod rules;

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use unicode_normalization::UnicodeNormalization;

use self::rules::check;

pub use rules::PathError;

/// A file's place in a workspace: relative, `/` between components, case kept.
///
/// Cannot be absolute, climb, or hold a name that any common system reads as something else.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// Checks a path in its canonical spelling, as the protocol carries it (TUL-004 5.2).
    ///
    /// # Errors
    /// Names the first rule the text breaks.
    pub fn new(text: &str) -> Result<Self, PathError> {
        check(text, text)?;
        Ok(Self(text.to_owned()))
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names from the root down.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The form in which two paths that some file system takes for one are equal: composed and lower-cased.
    #[must_use]
    pub fn folded(&self) -> String {
        fold(&self.0)
    }
}

/// A file's place among all roots of a workspace: a root's name, `/`, and the path in that root.
///
/// The limits on length and depth hold for the path in the root, so every file of a root has one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RootedPath {
    text: String,
    root_len: usize,
}

impl RootedPath {
    /// Checks a path that begins with a root's name.
    ///
    /// # Errors
    /// When it is no valid path, or has no component after the root's name.
    pub fn new(text: &str) -> Result<Self, PathError> {
        let Some((root, rest)) = text.split_once('/') else {
            return Err(check(text, text).err().unwrap_or(PathError::NoRoot));
        };
        check(text, rest)?;
        Ok(Self { text: text.to_owned(), root_len: root.len() })
    }

    /// The whole path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The root's name.
    #[must_use]
    pub fn root(&self) -> &str {
        self.text.split_at(self.root_len).0
    }

    /// The path in the root.
    #[must_use]
    pub fn rest(&self) -> &str {
        self.text.split_at(self.root_len + 1).1
    }
}

/// A file's lower-case key: a root's name, then the path in that root (TUL-002 3.1).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocPath(RootedPath);

impl DocPath {
    /// Checks a document path.
    ///
    /// # Errors
    /// When it is no valid path, not lower-case, or has no component after the root's name.
    pub fn new(text: &str) -> Result<Self, PathError> {
        let rooted = RootedPath::new(text);
        // That it is not lower-case is said before that it has no root.
        match rooted {
            Ok(_) | Err(PathError::NoRoot) if text != lowercase(text) => Err(PathError::NotLowercase),
            rooted => rooted.map(Self),
        }
    }

    /// The whole key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The root's name.
    #[must_use]
    pub fn root(&self) -> &str {
        self.0.root()
    }

    /// The lower-cased path in the root.
    #[must_use]
    pub fn rest(&self) -> &str {
        self.0.rest()
    }
}

/// Shows a path as its text.
macro_rules! shown {
    ($($name:ident)+) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }
    )+ };
}

shown! { WorkspacePath RootedPath DocPath }

/// Composes and lower-cases a path or a name, so that names which some file system takes for one compare equal.
#[must_use]
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

/// A path or a name in composed normal form, so that names that differ in normal form alone compare equal.
#[must_use]
pub fn compose(text: &str) -> String {
    text.nfc().collect()
}

/// A path lower-cased as document paths are: each character by itself.
#[must_use]
pub fn lowercase(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// A path of a document, where `\` separates like `/` and a leading `./` is dropped, in the protocol's spelling (TUL-004 5.1).
#[must_use]
pub fn document_spelling(text: &str) -> String {
    let text = text.replace('\\', "/");
    match text.strip_prefix("./") {
        Some(rest) if !rest.starts_with('/') => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Detail;
    use std::vec::Vec;

    fn refused(text: &str) -> Option<Detail> {
        WorkspacePath::new(&document_spelling(text)).err().map(PathError::detail)
    }

    #[test]
    fn every_bad_path_gets_its_own_word() {
        let deep = ["d"; 65].join("/");
        let long = ["x".repeat(200).as_str(); 30].join("/");
        let name = "n".repeat(256);
        let cases: &[(&[&str], Detail)] = &[
            (&["", " ", "\t", ".", "./"], Detail::Empty),
            (&["..", "../x", "d/../../x", "d/../x", "a\\..\\..\\x", "./../x"], Detail::Traversal),
            (&["d/./y", "a/.", "././x", ".//x"], Detail::DotSegment),
            (&["d//y", "d/y/"], Detail::EmptySegment),
            (&["/etc/passwd", "\\x"], Detail::Absolute),
            (&["//server/share/x", "\\\\server\\share\\x"], Detail::Unc),
            (&["\\\\?\\C:\\x", "\\\\.\\PhysicalDrive0", "\\??\\C:\\x"], Detail::Device),
            (&["C:\\x", "C:/x", "c:"], Detail::Drive),
            (&["a\0b"], Detail::Nul),
            (&["a\nb", "a\rb", "a\tb", "a\u{1b}b", "a\u{7f}"], Detail::Control),
            (&["a\u{202e}b", "a\u{2066}b", "a\u{2069}"], Detail::Bidi),
            (&[" x", "x ", "x.", "x..", "d/ x"], Detail::SpaceDot),
            (&["ws\"", "a<b", "a>b", "a|b", "a?b", "a*b"], Detail::Char),
            (&["CON", "aux.txt", "nul.tar.gz", "con/x", "COM1", "lpt9.c", "COM0", "COM\u{b9}"], Detail::Reserved),
            (&["LPT\u{b3}", "CONIN$", "CONOUT$", "CLOCK$", "PRN"], Detail::Reserved),
            (&["x:stream", "x::$DATA", "dir/a:b"], Detail::Colon),
            (&["~/.ssh/x", "~root"], Detail::Tilde),
            (&["\u{ff0e}\u{ff0e}/x", "a\u{2044}b", "a\u{2215}b"], Detail::Confusable),
            (&[&long, &name], Detail::TooLong),
            (&[&deep, &"x/".repeat(100_000)], Detail::TooDeep),
        ];
        for (texts, detail) in cases {
            for text in *texts {
                assert_eq!(refused(text), Some(*detail), "{text:?}");
            }
        }
        assert_eq!(WorkspacePath::new("src\\x.cs"), Err(PathError::Backslash));
    }

    #[test]
    fn odd_but_harmless_names_are_taken_literally() {
        let name = "n".repeat(255);
        for text in
            ["-rf", "--help", "$HOME/x", "%2e%2e/x", "..%2fx", "a b/c d", "é/ü.txt", "COM", "COM10", "...a", &name]
        {
            assert_eq!(refused(text), None, "{text:?}");
        }
        assert_eq!(document_spelling("./src\\x.cs"), "src/x.cs");
        let path = WorkspacePath::new("a/B/c.rs").unwrap();
        assert_eq!(path.components().collect::<Vec<_>>(), ["a", "B", "c.rs"]);
    }

    #[test]
    fn folding_makes_case_and_normal_form_twins_equal() {
        assert_eq!(fold("A/É.txt"), fold("a/e\u{301}.TXT"));
        assert_ne!(fold("a"), fold("b"));
    }

    #[test]
    fn a_doc_path_is_lower_case_and_names_its_root() {
        let path = DocPath::new("repo/src/a.rs").unwrap();
        assert_eq!((path.root(), path.rest()), ("repo", "src/a.rs"));
        assert_eq!(DocPath::new("repo/A.rs"), Err(PathError::NotLowercase));
        assert_eq!(DocPath::new("a.rs"), Err(PathError::NoRoot));
    }

    #[test]
    fn the_limits_hold_for_the_path_in_the_root() {
        let deepest = ["d"; 64].join("/");
        // 20 names of 199 bytes, one of 95, and 20 slashes.
        let longest = ("x".repeat(199) + "/").repeat(20) + &"x".repeat(95);
        assert_eq!(longest.len(), 4095);
        for path in [deepest.as_str(), longest.as_str()] {
            assert!(WorkspacePath::new(path).is_ok(), "{:?}", WorkspacePath::new(path));
            for root in ["r", "n".repeat(255).as_str()] {
                let text = std::format!("{root}/{path}");
                assert_eq!(DocPath::new(&text).unwrap().rest(), path);
                assert_eq!(RootedPath::new(&text).unwrap().root(), root);
            }
            assert!(DocPath::new(&std::format!("r/d/{path}")).is_err());
        }
        assert_eq!(RootedPath::new(&std::format!("{}/a", "n".repeat(256))), Err(PathError::TooLong));
        assert_eq!(RootedPath::new("a"), Err(PathError::NoRoot));
        assert_eq!(RootedPath::new("/a"), Err(PathError::Absolute));
    }
}
