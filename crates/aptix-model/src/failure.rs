//! One failure, with all that the author of the edit needs to act on it.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::digest::Sha256Digest;
use crate::reason::{Detail, Reason};

/// Why a batch, or a part of it, was refused: what was expected, what was found, where, and what to do.
///
/// Found by validation (then [`Failure::field`] says which field of the request) or by planning and
/// applying (then the file's real lines and digest come along).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The catalogued reason.
    pub reason: Reason,
    /// The finer word, where there is one.
    pub detail: Option<Detail>,
    /// A sentence fragment that names what was expected and what was found.
    pub message: String,
    /// What the author can do next.
    pub hint: Option<String>,
    /// The request field at fault, in the document's spelling: `files[0].changes[1].startLine`.
    pub field: Option<String>,
    /// Position of the file patch in the batch, from 0.
    pub file_index: Option<usize>,
    /// The author's name for that file patch. Given for what is found before there is a batch to look it up in.
    pub file_key: Option<String>,
    /// The file's path: its real one once that is known, else as the author wrote it. It has its root's name in front where the
    /// workspace has several.
    pub path: Option<String>,
    /// The file's lower-case key: its root's name and the path.
    pub doc_path: Option<String>,
    /// Position of the change in its file patch, from 0.
    pub change_index: Option<usize>,
    /// The author's name for that change, given as `file_key` is.
    pub change_key: Option<String>,
    /// The line of the current file that the failure is about, from 1.
    pub line: Option<usize>,
    /// Real lines of the current file that belong to the failure, best first.
    pub nearest: Vec<Excerpt>,
    /// The SHA-256 of the file's bytes as they are now.
    pub current_sha256: Option<Sha256Digest>,
    /// The whole document corrected, where that is proven to apply to the files as they are now.
    pub next_action: Option<NextAction>,
}

/// What to do where a file that is to be created is there already, in the words of no dialect.
pub const REPLACE_HINT: &str = "read the file and edit it, or ask for all of it to be replaced";

/// A document that is complete and ready to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextAction {
    /// The name of its dialect, one of those written in JSON.
    pub dialect: String,
    /// The document.
    pub document: String,
}

/// Consecutive lines of a real file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excerpt {
    /// Number of the first line, from 1.
    pub start_line: usize,
    /// Number of the last line.
    pub end_line: usize,
    /// The lines, joined by `\n`, without the last terminator; bytes that are no UTF-8 are shown as U+FFFD.
    pub text: String,
}

impl Failure {
    /// A failure with a reason and a message, and nothing else yet.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            detail: None,
            message: message.into(),
            hint: None,
            field: None,
            file_index: None,
            file_key: None,
            path: None,
            doc_path: None,
            change_index: None,
            change_key: None,
            line: None,
            nearest: Vec::new(),
            current_sha256: None,
            next_action: None,
        }
    }

    /// Adds the finer word.
    #[must_use]
    pub fn detail(mut self, detail: Detail) -> Self {
        self.detail = Some(detail);
        self
    }

    /// Adds what the author can do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the request field at fault.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Adds which file patch of the batch, and its path.
    #[must_use]
    pub fn file(mut self, index: usize, path: &str) -> Self {
        self.file_index = Some(index);
        self.path = Some(path.to_owned());
        self
    }

    /// Adds which change of the file patch.
    #[must_use]
    pub fn change(mut self, index: usize) -> Self {
        self.change_index = Some(index);
        self
    }

    /// Adds the line of the current file.
    #[must_use]
    pub fn line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    /// Adds the file's digest as it is now.
    #[must_use]
    pub fn current(mut self, digest: Sha256Digest) -> Self {
        self.current_sha256 = Some(digest);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        if let Some(detail) = self.detail {
            write!(f, " ({detail})")?;
        }
        if let Some(place) = self.path.as_ref().or(self.field.as_ref()) {
            write!(f, ": {}", Visible(place))?;
        }
        if let Some(change) = self.change_index {
            // People count from 1; the field and the JSON count from 0.
            write!(f, ", change {}", change + 1)?;
        }
        write!(f, ": {}", Visible(&self.message))
    }
}

impl core::error::Error for Failure {}

/// What fails at once with one failure fails with all of them.
impl From<Failure> for Vec<Failure> {
    fn from(failure: Failure) -> Self {
        Self::from([failure])
    }
}

/// Shows untrusted text with control and text-reordering characters escaped, and blanks other than a space, so that it
/// cannot steer a terminal or pretend to be another name.
#[derive(Clone, Copy, Debug)]
pub struct Visible<'a>(pub &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| {
            if is_escaped(character) { write!(f, "{}", character.escape_unicode()) } else { write!(f, "{character}") }
        })
    }
}

/// Whether [`Visible`] escapes a character: it steers a terminal, reorders text, or is indistinguishable from a space or from
/// nothing.
#[must_use]
pub fn is_escaped(character: char) -> bool {
    character.is_control() || is_invisible(character) || is_odd_blank(character)
}

/// Whether a character looks like a space, or like nothing, and is no space.
fn is_odd_blank(character: char) -> bool {
    (character.is_whitespace() && character != ' ') || matches!(character, '\u{2800}' | '\u{fffc}')
}

/// Whether a character reorders text, breaks lines, or takes no room on screen: what Unicode calls default ignorable,
/// and the separators.
#[must_use]
pub const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}
