//! Counting.

/// How many words a text has.
pub fn words(text: &str) -> usize {
    text.split(' ').count()
}
