//! Line numbers. Lines are counted from 1; an anchor may also be 0, the place before line 1.

use crate::reason::Detail;

/// The largest line number that can be named.
pub const MAX_LINE: i64 = i32::MAX as i64;

/// Why a number is not a line number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LineError {
    /// Zero, where lines are counted from 1.
    #[error("lines are counted from 1, found 0")]
    Zero,
    /// Below zero.
    #[error("a line number is not negative, found {0}")]
    Negative(i64),
    /// Beyond [`MAX_LINE`].
    #[error("a line number is at most {MAX_LINE}, found {0}")]
    Overflow(i64),
    /// The end lies before the start.
    #[error("the range ends at line {end}, before it starts at line {start}")]
    Inverted {
        /// First line.
        start: i64,
        /// Last line.
        end: i64,
    },
}

impl LineError {
    /// The catalogue's word for it.
    #[must_use]
    pub const fn detail(self) -> Detail {
        match self {
            Self::Zero => Detail::Zero,
            Self::Negative(_) => Detail::Negative,
            Self::Overflow(_) => Detail::Overflow,
            Self::Inverted { .. } => Detail::Inverted,
        }
    }
}

/// The number of a line, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LineNumber(usize);

impl LineNumber {
    /// Checks a number from outside.
    ///
    /// # Errors
    /// When it is zero, negative or beyond [`MAX_LINE`].
    pub fn new(number: i64) -> Result<Self, LineError> {
        match LineAnchor::new(number)?.0 {
            0 => Err(LineError::Zero),
            line => Ok(Self(line)),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

/// A place between lines: after the line of this number, 0 being the top of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LineAnchor(usize);

impl LineAnchor {
    /// Checks a number from outside.
    ///
    /// # Errors
    /// When it is negative or beyond [`MAX_LINE`].
    pub fn new(number: i64) -> Result<Self, LineError> {
        match usize::try_from(number) {
            Err(_) => Err(LineError::Negative(number)),
            Ok(_) if number > MAX_LINE => Err(LineError::Overflow(number)),
            Ok(line) => Ok(Self(line)),
        }
    }

    /// The number of the line above, 0 for none.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

/// At least one line, first and last included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineRange {
    start: LineNumber,
    end: LineNumber,
}

impl LineRange {
    /// Puts two line numbers together.
    ///
    /// # Errors
    /// When the last line comes before the first.
    pub fn new(start: LineNumber, end: LineNumber) -> Result<Self, LineError> {
        if end < start {
            return Err(LineError::Inverted { start: start.0 as i64, end: end.0 as i64 });
        }
        Ok(Self { start, end })
    }

    /// The first line.
    #[must_use]
    pub const fn start(self) -> LineNumber {
        self.start
    }

    /// How many lines.
    #[must_use]
    pub const fn count(self) -> usize {
        self.end.0 - self.start.0 + 1
    }
}
