//! Which batch, file patch or change an id names, or the beginning of one.

use std::str::FromStr;

use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::reason::Reason;
use aptix_model::record::FileIds;

use super::text::and_more;

/// Characters of an id.
const WHOLE: usize = 36;
/// So many characters all ids in the block of a batch have in common.
const COMMON: usize = 31;
/// Ids that a message names.
const NAMED: usize = 8;

/// An id, or the beginning of one, in lower case.
#[derive(Clone, Debug)]
pub(crate) struct IdPrefix(String);

/// Text that is no beginning of an id.
#[derive(Debug, thiserror::Error)]
#[error("an id, or its beginning, has hex digits and dashes as in 018f6d2e-7c1a-7b3e-9d55-0123456789ab")]
pub(crate) struct NotAnId;

impl FromStr for IdPrefix {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
        let fits = text.bytes().enumerate().all(|(at, byte)| match is_dash(at) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        });
        if text.is_empty() || text.len() > WHOLE || !fits {
            return Err(NotAnId);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

/// What an id names in its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    Batch,
    File(usize),
    Change(usize, usize),
}

impl IdPrefix {
    /// The id, if it is whole.
    pub(crate) fn whole(&self) -> Option<BatchId> {
        self.0.parse().ok().filter(|_| self.0.len() == WHOLE)
    }

    /// Whether it is this id, all of it.
    pub(crate) fn is(&self, id: &str) -> bool {
        self.0 == id
    }

    /// Whether it begins an id.
    fn begins(&self, id: &str) -> bool {
        id.starts_with(&self.0)
    }

    /// Whether it can name this batch, or a part of it.
    pub(crate) fn may_be_of(&self, batch: BatchId) -> bool {
        let common = self.0.get(..COMMON).unwrap_or(&self.0);
        batch.to_string().starts_with(common)
    }

    /// What it names in a batch: the batch itself, if it begins its id; else each part whose id it begins.
    pub(crate) fn find_in(&self, batch: BatchId, ids: &[FileIds]) -> Vec<(String, Named)> {
        let id = batch.to_string();
        if self.begins(&id) {
            return vec![(id, Named::Batch)];
        }
        if !self.may_be_of(batch) {
            return Vec::new();
        }
        let parts = ids.iter().enumerate().flat_map(|(at, file)| {
            let changes = file.changes.iter().enumerate();
            let changes = changes.map(move |(change, id)| (id.to_string(), Named::Change(at, change)));
            std::iter::once((file.file.to_string(), Named::File(at))).chain(changes)
        });
        parts.filter(|(id, _)| self.begins(id)).collect()
    }

    /// The one that was found.
    ///
    /// # Errors
    /// NOT_FOUND with this hint, AMBIGUOUS_ID.
    pub(crate) fn only<T>(&self, mut found: Vec<(String, T)>, hint: &str) -> Result<T, Failure> {
        let last = found.pop();
        match last {
            None => {
                let message = format!("no batch, file patch or change with the id {} is known", self.0);
                Err(Failure::new(Reason::NotFound, message).hint(hint))
            }
            Some((_, found_one)) if found.is_empty() => Ok(found_one),
            Some((last, _)) => {
                let ids: Vec<_> = found.into_iter().map(|(id, _)| id).chain([last]).collect();
                let more = and_more(ids.len().saturating_sub(NAMED));
                let named: Vec<_> = ids.iter().take(NAMED).map(String::as_str).collect();
                let message = format!("{} begins {} ids: {}{more}", self.0, ids.len(), named.join(", "));
                Err(Failure::new(Reason::AmbiguousId, message).hint("give more of the id"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aptix_model::id_block;

    use super::*;

    #[test]
    fn a_beginning_names_the_batch_before_its_parts() {
        let batch: BatchId = "018f6d2e-7c1a-7b3e-9d55-012345680000".parse().unwrap();
        let ids = id_block::counted(batch, [2, 0].into_iter());
        let found = |text: &str| text.parse::<IdPrefix>().unwrap().find_in(batch, &ids);
        let names = |text: &str| found(text).into_iter().map(|(_, named)| named).collect::<Vec<_>>();
        assert_eq!(names("018F6d2e"), [Named::Batch]);
        assert_eq!(names("018f6d2e-7c1a-7b3e-9d55-01234568"), [Named::Batch]);
        assert_eq!(names("018f6d2e-7c1a-7b3e-9d55-012345680000"), [Named::Batch]);
        assert_eq!(names("018f6d2e-7c1a-7b3e-9d55-012345680001"), [Named::File(0)]);
        assert_eq!(names("018f6d2e-7c1a-7b3e-9d55-012345680003"), [Named::Change(0, 1)]);
        assert_eq!(names("018f6d2e-7c1a-7b3e-9d55-012345680004"), [Named::File(1)]);
        assert_eq!(names("018f6d2e-7c1a-7b3e-9d55-012345680005"), []);
        assert_eq!(names("018f6d2f"), []);
        let only =
            |text: &str, found| text.parse::<IdPrefix>().unwrap().only(found, "look").map_err(|found| found.reason);
        assert_eq!(only("0", vec![("0a".to_owned(), 1)]), Ok(1));
        assert_eq!(only("0", Vec::<(_, u8)>::new()), Err(Reason::NotFound));
        assert_eq!(only("0", vec![("0a".to_owned(), 1), ("0b".to_owned(), 2)]), Err(Reason::AmbiguousId));
    }

    #[test]
    fn other_text_is_no_id() {
        for text in ["", "x", "018f6d2e7", "018f6d2e-7c1a-7b3e-9d55-012345678901a", "-", "018f6d2g"] {
            assert!(text.parse::<IdPrefix>().is_err(), "{text}");
        }
    }
}
