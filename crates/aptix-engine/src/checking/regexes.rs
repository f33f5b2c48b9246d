//! The regular expressions of a batch: each is compiled once, and all of them together may take so much.

use alloc::collections::BTreeMap;

use crate::text::line_regex::{COMPILED_BYTES, CompileError, Letters, LineRegex, WRITTEN_BYTES};

/// Bytes that the regular expressions of a batch may take.
pub(crate) const BATCH_BYTES: usize = 8 << 20;

/// What each of them counts for at least, and each byte of it as it is written.
const LEAST: usize = 4 << 10;
const WRITTEN: usize = 512;

/// What has been compiled of a batch, and what still may be.
#[derive(Debug)]
pub(crate) struct Regexes<'a> {
    left: usize,
    known: BTreeMap<&'a str, LineRegex>,
}

/// Why an expression of a batch was not compiled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum RegexError {
    #[error(transparent)]
    Compile(CompileError),
    #[error("the batch's regular expressions take more than {BATCH_BYTES} bytes when they are compiled")]
    Batch,
}

impl Default for Regexes<'_> {
    fn default() -> Self {
        Self { left: BATCH_BYTES, known: BTreeMap::new() }
    }
}

impl<'a> Regexes<'a> {
    pub(crate) fn compile(&mut self, pattern: &'a str) -> Result<LineRegex, RegexError> {
        if let Some(known) = self.known.get(pattern) {
            return Ok(known.clone());
        }
        if pattern.len() > WRITTEN_BYTES {
            return Err(RegexError::Compile(CompileError::Written { found: pattern.len() }));
        }
        let least = LEAST + WRITTEN * pattern.len();
        let most = self.left.checked_sub(least).ok_or(RegexError::Batch)?;
        let compiled = LineRegex::new(pattern, Letters::Exact, most);
        let taken = match &compiled {
            Ok(regex) => regex.bytes(),
            Err(CompileError::Compiled { limit }) => *limit,
            Err(_) => 0,
        };
        self.left = most.saturating_sub(taken);
        let regex = compiled.map_err(|error| match error {
            CompileError::Compiled { limit } if limit < COMPILED_BYTES => RegexError::Batch,
            error => RegexError::Compile(error),
        })?;
        self.known.insert(pattern, regex.clone());
        Ok(regex)
    }
}
