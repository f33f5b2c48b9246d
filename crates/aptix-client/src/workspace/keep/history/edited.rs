//! The bytes of a file after a batch, as replacements of byte ranges of those before it: where several places of a large file
//! changed, this is much less than all between the first and the last of them.
//!
//! The number of replacements comes first, then of each the start and the end of its range and the length of its text, each
//! number in eight bytes, little-endian; then the texts, in the same order.

use aptix_engine::text::edit::TextEdit;

/// Bytes of a number.
pub(super) const NUMBER: usize = 8;
/// Numbers of one replacement.
const NUMBERS: usize = 3;

/// How many bytes [`encode`] makes of an edit.
pub(super) fn length(edit: &TextEdit) -> usize {
    NUMBER + edit.replacements().map(|(_, text)| NUMBERS * NUMBER + text.len()).sum::<usize>()
}

/// The replacements of an edit.
pub(super) fn encode(edit: &TextEdit) -> Vec<u8> {
    let mut bytes = (edit.replacements().count() as u64).to_le_bytes().to_vec();
    for (range, text) in edit.replacements() {
        for number in [range.start, range.end, text.len()] {
            bytes.extend_from_slice(&(number as u64).to_le_bytes());
        }
    }
    edit.replacements().for_each(|(_, text)| bytes.extend_from_slice(text));
    bytes
}

/// Makes the encoded replacements in the bytes before; `None` where they are not whole, not in order, or not within those.
pub(super) fn decode(encoded: &[u8], before: &[u8]) -> Option<Vec<u8>> {
    let (count, rest) = number(encoded)?;
    let (mut numbers, mut texts) = rest.split_at_checked(count.checked_mul(NUMBERS * NUMBER)?)?;
    let mut replacements = Vec::with_capacity(count);
    for _ in 0..count {
        let (start, rest) = number(numbers)?;
        let (end, rest) = number(rest)?;
        let (length, rest) = number(rest)?;
        let (text, others) = texts.split_at_checked(length)?;
        replacements.push((start..end, text));
        (numbers, texts) = (rest, others);
    }
    let edit = TextEdit::new(replacements).ok()?;
    (texts.is_empty() && edit.fits(before.len())).then(|| edit.apply(before))
}

/// The number that bytes begin with, and the other bytes.
pub(super) fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<NUMBER>()?;
    Some((usize::try_from(u64::from_le_bytes(*number)).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::keep::history::random_texts::Random;

    #[test]
    fn replacements_come_back_as_they_were_and_damaged_ones_make_nothing_that_is_believed() {
        let mut random = Random::new(7);
        for _ in 0..3_000 {
            let before = random.bytes(40);
            let edit = random.edit_of(before.len());
            let (encoded, after) = (encode(&edit), edit.apply(&before));
            assert_eq!(encoded.len(), length(&edit));
            assert_eq!(decode(&encoded, &before).as_ref(), Some(&after), "{edit:?} of {before:?}");
            let cut = random.below(encoded.len());
            assert_eq!(decode(&encoded[..cut], &before), None, "cut at {cut}");
            assert_eq!(decode(&[&encoded[..], b"x"].concat(), &before), None);
            // What an altered number leads to has another digest, or is nothing.
            let mut altered = encoded.clone();
            altered[cut] ^= 1 << random.below(8);
            drop(decode(&altered, &before));
        }
        assert_eq!(decode(&u64::MAX.to_le_bytes(), b""), None);
        assert_eq!(decode(&[[1, 0, 0, 0, 0, 0, 0, 0], [0xff; 8], [0xff; 8], [0xff; 8]].concat(), b""), None);
    }
}
