//! Records of what was removed, and of ages.

use aptix_model::digest::Sha256Digest;
use aptix_model::id::Revision;
use fjall::Slice;

use super::record::{Writer, read};
use crate::store::StoreError;
use crate::store::retention::{Age, Notes};

/// Up to where a workspace's events and content were removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::store) struct Trim {
    /// The last event that was removed; 0 if none was.
    pub(in crate::store) upto: Revision,
    /// Digest of its commit and all before it; `None` if that is not known.
    pub(in crate::store) digest: Option<Sha256Digest>,
    /// No batch that was stored up to here has content that could still be removed.
    pub(in crate::store) swept: Revision,
}

pub(in crate::store) fn encode_trim(trim: &Trim) -> Slice {
    let digest = trim.digest.as_ref().map(|digest| digest.as_bytes().as_slice());
    Writer::new().number(trim.upto.0).optional(digest).number(trim.swept.0).finish()
}

pub(in crate::store) fn decode_trim(record: &[u8]) -> Result<Trim, StoreError> {
    read("up to where events were removed", record, |fields| {
        let (upto, digest) = (Revision(fields.number()?), fields.optional_digest()?);
        Some(Trim { upto, digest, swept: Revision(fields.number()?) })
    })
}

pub(in crate::store) fn encode_notes(notes: &Notes) -> Slice {
    let record = Writer::new().number(notes.0.len() as u64);
    notes.0.iter().fold(record, |record, (age, revision)| record.number(age.0).number(revision.0)).finish()
}

pub(in crate::store) fn decode_notes(record: &[u8]) -> Result<Notes, StoreError> {
    read("how far a workspace had come", record, |fields| {
        let count = fields.number()?;
        let notes = (0..count).map(|_| Some((Age(fields.number()?), Revision(fields.number()?))));
        notes.collect::<Option<_>>().map(Notes)
    })
}

pub(in crate::store) fn encode_age(age: Age) -> Slice {
    Writer::new().number(age.0).finish()
}

/// Reads the age of the store. An early version noted the time of day behind it.
pub(in crate::store) fn decode_age(record: &[u8]) -> Result<Age, StoreError> {
    read("the age of the store", record, |fields| {
        let age = Age(fields.number()?);
        let _wall = if fields.is_empty() { 0 } else { fields.number()? };
        Some(age)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        for digest in [None, Some(Sha256Digest::EMPTY)] {
            let trim = Trim { upto: Revision(7), digest, swept: Revision(9) };
            assert_eq!(decode_trim(&encode_trim(&trim)), Ok(trim));
        }
        let notes = Notes(vec![(Age(1), Revision(2)), (Age(3), Revision(4))]);
        assert_eq!(decode_notes(&encode_notes(&notes)), Ok(notes));
        assert_eq!(decode_age(&encode_age(Age(5))), Ok(Age(5)));
        assert_eq!(decode_age(&Writer::new().number(5).number(6).finish()), Ok(Age(5)), "of an early version");
    }
}
