//! How much of a file a change is said with, and why a dialect cannot say it.

/// Why a dialect cannot say a change.
pub(crate) type Unsaid = &'static str;

/// How much of a file around a change says where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// As much as it takes to be unique; three lines in a diff.
    Unique,
    /// So many lines on either side, unique or not expressible.
    Lines(usize),
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Unsaid> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8 where it changes")?;
    if text.contains('\0') { Err("NUL bytes") } else { Ok(text) }
}
