//! Paths as authors write them, made into the one form in which they may be used.
//!
//! Nothing here looks at a disk. A valid path is a necessary condition; the agent still resolves
//! each component from an open root.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use unicode_normalization::UnicodeNormalization;

use crate::reason::Detail;

/// Bytes of a path, one more than it may have: Linux counts the terminating NUL.
const PATH_BYTES: usize = 4096;
/// Bytes of one component.
const NAME_BYTES: usize = 255;
/// Components of a path.
const DEPTH: usize = 64;

/// Why a text is not a path that may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// Nothing but blanks, or the root itself.
    #[error("the path names no file")]
    Empty,
    /// A `..` component.
    #[error("the path has a '..' component; name the file from the root down")]
    Traversal,
    /// A `.` component.
    #[error("the path has a '.' component; leave it out")]
    DotSegment,
    /// An empty component.
    #[error("the path has an empty component: a doubled or trailing slash")]
    EmptySegment,
    /// A leading slash.
    #[error("the path is absolute; name the file relative to the workspace root")]
    Absolute,
    /// A network share.
    #[error("the path names a network share; name the file relative to the workspace root")]
    Unc,
    /// A Windows device namespace.
    #[error("the path names a device namespace; name the file relative to the workspace root")]
    Device,
    /// A drive letter.
    #[error("the path starts with a drive letter; name the file relative to the workspace root")]
    Drive,
    /// A backslash outside documents.
    #[error("the path has a backslash; separate components with '/'")]
    Backslash,
    /// A NUL byte.
    #[error("the path has a NUL byte")]
    Nul,
    /// A control character.
    #[error("the path has the control or invisible character U+{:04X}", u32::from(*.0))]
    Control(char),
    /// A character that reorders text.
    #[error("the path has the text-reordering character U+{:04X}", u32::from(*.0))]
    Bidi(char),
    /// Blank at either end of a name, or a dot at its end.
    #[error("a name in the path begins or ends with a blank, or ends with a dot")]
    SpaceDot,
    /// A character that Windows forbids.
    #[error("a name in the path has the character {0:?}, which not every system allows")]
    Char(char),
    /// A colon.
    #[error("a name in the path has a colon, which names a stream on some systems")]
    Colon,
    /// A Windows device name.
    #[error("a name in the path is a device on Windows, with or without an extension")]
    Reserved,
    /// A leading tilde.
    #[error("the path begins with '~', which is not expanded; name the file relative to the workspace root")]
    Tilde,
    /// A look-alike of a dot or a slash.
    #[error("the path has U+{:04X}, which looks like a dot, a slash, a colon or a tilde", u32::from(*.0))]
    Confusable(char),
    /// Too many bytes.
    #[error("the path or one of its names is too long: at most {} and {NAME_BYTES} bytes", PATH_BYTES - 1)]
    TooLong,
    /// Too many components.
    #[error("the path has more than {DEPTH} components")]
    TooDeep,
    /// Upper case in a document path.
    #[error("a docPath is lower-case")]
    NotLowercase,
    /// A path of one component where a root's name comes first.
    #[error("the path has one component; expected at least two: a root's name and a path in that root")]
    NoRoot,
}

impl PathError {
    /// The catalogue's word for it.
    #[must_use]
    pub const fn detail(self) -> Detail {
        match self {
            Self::Empty => Detail::Empty,
            Self::Traversal => Detail::Traversal,
            Self::DotSegment => Detail::DotSegment,
            Self::EmptySegment => Detail::EmptySegment,
            Self::Absolute => Detail::Absolute,
            Self::Unc => Detail::Unc,
            Self::Device => Detail::Device,
            Self::Drive => Detail::Drive,
            Self::Backslash => Detail::Backslash,
            Self::Nul => Detail::Nul,
            Self::Control(_) => Detail::Control,
            Self::Bidi(_) => Detail::Bidi,
            Self::SpaceDot => Detail::SpaceDot,
            Self::Char(_) => Detail::Char,
            Self::Colon => Detail::Colon,
            Self::Reserved => Detail::Reserved,
            Self::Tilde => Detail::Tilde,
            Self::Confusable(_) => Detail::Confusable,
            Self::TooLong => Detail::TooLong,
            Self::TooDeep => Detail::TooDeep,
            Self::NotLowercase => Detail::NotLowercase,
            Self::NoRoot => Detail::UnknownRoot,
        }
    }
}

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

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
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

impl fmt::Display for RootedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for RootedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
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

impl fmt::Display for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

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

/// Checks every component of `text`, and how long and deep `limited` is: the part of it that is in one root.
fn check(text: &str, limited: &str) -> Result<(), PathError> {
    if text.trim().is_empty() || text == "." || text == "./" {
        return Err(PathError::Empty);
    }
    if text.contains('\0') {
        return Err(PathError::Nul);
    }
    check_start(text)?;
    if text.contains('\\') {
        return Err(PathError::Backslash);
    }
    if limited.split('/').count() > DEPTH {
        return Err(PathError::TooDeep);
    }
    if limited.len() >= PATH_BYTES {
        return Err(PathError::TooLong);
    }
    text.split('/').try_for_each(check_name)
}

/// Refuses everything that is not relative, in either spelling of the separator.
fn check_start(text: &str) -> Result<(), PathError> {
    let slash = |byte: Option<&u8>| matches!(byte, Some(b'/' | b'\\'));
    let bytes = text.as_bytes();
    let [first, second, third, fourth] = [bytes.first(), bytes.get(1), bytes.get(2), bytes.get(3)];
    match (first, second) {
        (Some(b'~'), _) => Err(PathError::Tilde),
        (Some(letter), Some(b':')) if letter.is_ascii_alphabetic() && (third.is_none() || slash(third)) => {
            Err(PathError::Drive)
        }
        _ if !slash(first) => Ok(()),
        (_, Some(b'?')) if matches!(third, Some(b'?')) && slash(fourth) => Err(PathError::Device),
        _ if slash(second) && matches!(third, Some(b'?' | b'.')) && slash(fourth) => Err(PathError::Device),
        _ if slash(second) => Err(PathError::Unc),
        _ => Err(PathError::Absolute),
    }
}

fn check_name(name: &str) -> Result<(), PathError> {
    match name {
        "" => return Err(PathError::EmptySegment),
        ".." => return Err(PathError::Traversal),
        "." => return Err(PathError::DotSegment),
        _ => {}
    }
    if name.len() > NAME_BYTES {
        return Err(PathError::TooLong);
    }
    name.chars().try_for_each(check_char)?;
    if name.starts_with(char::is_whitespace) || name.ends_with(|c: char| c.is_whitespace() || c == '.') {
        return Err(PathError::SpaceDot);
    }
    if is_device(name) {
        return Err(PathError::Reserved);
    }
    Ok(())
}

const fn check_char(character: char) -> Result<(), PathError> {
    match character {
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Err(PathError::Control(character)),
        '\u{ad}'
        | '\u{200b}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{2060}'..='\u{2064}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => Err(PathError::Control(character)),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Err(PathError::Bidi(character))
        }
        ':' => Err(PathError::Colon),
        '<' | '>' | '"' | '|' | '?' | '*' => Err(PathError::Char(character)),
        '\u{2024}'..='\u{2026}'
        | '\u{2044}'
        | '\u{2215}'
        | '\u{2216}'
        | '\u{29f5}'
        | '\u{29f8}'
        | '\u{29f9}'
        | '\u{fe13}'
        | '\u{fe19}'
        | '\u{fe30}'
        | '\u{fe52}'
        | '\u{fe55}'
        | '\u{ff1a}'
        | '\u{ff5e}'
        | '\u{fe68}'
        | '\u{ff0e}'
        | '\u{ff0f}'
        | '\u{ff3c}' => Err(PathError::Confusable(character)),
        _ => Ok(()),
    }
}

/// Whether Windows takes the name, whatever its extension, for a device.
fn is_device(name: &str) -> bool {
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem).trim_end();
    let stem = stem.to_ascii_uppercase();
    if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$" | "CLOCK$") {
        return true;
    }
    let number = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    number.is_some_and(|number| {
        let mut digits = number.chars();
        matches!((digits.next(), digits.next()), (Some('0'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}'), None))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
