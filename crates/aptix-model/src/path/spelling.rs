//! Spellings of a path or a name: without case, in one normal form, and as documents write it.

use alloc::borrow::ToOwned;
use alloc::string::String;

use unicode_normalization::UnicodeNormalization;

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
