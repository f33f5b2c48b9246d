//! What a text must be to be a path, and the first rule that it breaks.

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

/// Checks every component of `text`, and how long and deep `limited` is: the part of it that is in one root.
pub(super) fn check(text: &str, limited: &str) -> Result<(), PathError> {
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
