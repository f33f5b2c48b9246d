//! White space that differs: one indentation that every line has more or less than in the file, and what new text then
//! has to look like.

use alloc::string::String;

use super::opener::Opener;

/// How the indentation of a needle's lines differs from the file's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shift {
    /// Not at all.
    None,
    /// The file's lines have this before them.
    Deeper(String),
    /// The needle's lines have this before them.
    Shallower(String),
}

/// The same, borrowed from the line that shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delta<'a> {
    Same,
    Deeper(&'a [u8]),
    Shallower(&'a [u8]),
}

impl<'a> Delta<'a> {
    /// The difference of two indentations, if one is the other behind something.
    pub(super) fn between(expected: &'a [u8], found: &'a [u8]) -> Option<Self> {
        if expected == found {
            Some(Self::Same)
        } else if let Some(prefix) = found.strip_suffix(expected) {
            Some(Self::Deeper(prefix))
        } else {
            expected.strip_suffix(found).map(Self::Shallower)
        }
    }

    pub(super) fn to_shift(self) -> Shift {
        let own = |prefix| String::from_utf8_lossy(prefix).into_owned();
        match self {
            Self::Same => Shift::None,
            Self::Deeper(prefix) => Shift::Deeper(own(prefix)),
            Self::Shallower(prefix) => Shift::Shallower(own(prefix)),
        }
    }
}

/// Whether there is nothing but blanks and tabs.
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// A line's indentation, and the rest.
pub(crate) fn split_indent(line: &[u8]) -> (&[u8], &[u8]) {
    line.split_at(line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count())
}

/// A line without blanks and tabs at its end.
pub(super) fn trim_end(mut line: &[u8]) -> &[u8] {
    while let [head @ .., b' ' | b'\t'] = line {
        line = head;
    }
    line
}

/// Why a line of new text, counted from 1, cannot follow the indentation that was found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Unshiftable {
    #[error("line {line} of the new text does not begin with {prefix:?}, which the old text has more than the file")]
    Missing { line: usize, prefix: String },
    #[error("{word} in the {side} text can begin a text over several lines, in which white space counts")]
    Value { word: &'static str, side: &'static str },
    #[error("the place that was found has no such lines")]
    Misplaced,
    #[error("the change gives reindent, beside which old text must be indented like the file")]
    Explicit,
    #[error("line {line} of the new text would mix blanks and tabs if it were indented by {prefix:?} like the file")]
    Mixed { line: usize, prefix: String },
}

impl Shift {
    /// Whether text may follow: not where its old or its new lines begin a text over several lines, in which the white
    /// space at the start of a line is part of a value.
    pub(crate) fn check<'l>(
        &self,
        old: impl IntoIterator<Item = &'l [u8], IntoIter: Clone>,
        new: impl IntoIterator<Item = &'l [u8], IntoIter: Clone>,
    ) -> Result<(), Unshiftable> {
        if *self == Self::None {
            return Ok(());
        }
        let in_old = Opener::first_in(old).map(|opener| (opener, "old"));
        match in_old.or_else(|| Opener::first_in(new).map(|opener| (opener, "new"))) {
            Some((opener, side)) => Err(Unshiftable::Value { word: opener.word(), side }),
            None => Ok(()),
        }
    }

    /// Indents a new line that is not blank like the file: its indentation, and the rest of it. `line` is its number, for
    /// errors; `old` are the lines that were found, which prove what may follow the file's indentation.
    pub(crate) fn apply<'l>(
        &'l self,
        new: &'l str,
        line: usize,
        old: &[&[u8]],
    ) -> Result<(&'l str, &'l str), Unshiftable> {
        match self {
            Self::None => Ok(("", new)),
            Self::Shallower(prefix) => match new.strip_prefix(prefix.as_str()) {
                Some(rest) => Ok(("", rest)),
                None => Err(Unshiftable::Missing { line, prefix: prefix.clone() }),
            },
            Self::Deeper(prefix) => {
                let indent = split_indent(new.as_bytes()).0;
                let alike = |byte: &u8| indent.iter().all(|other| other == byte);
                let is_uniform = prefix.as_bytes().last().is_none_or(alike);
                let is_proven = || old.iter().any(|line| !is_blank(line) && split_indent(line).0 == indent);
                if is_uniform || is_proven() {
                    Ok((prefix, new))
                } else {
                    Err(Unshiftable::Mixed { line, prefix: prefix.clone() })
                }
            }
        }
    }
}
