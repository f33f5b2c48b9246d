//! Writes a backup: a header, then items, each with the digest of itself and all before it.

use std::io::Write;

use aptix_model::digest::Sha256Digest;
use sha2::{Digest, Sha256};

use super::check::Check;
use super::codec;
use super::item::{END, HEADER_BYTES, ITEM_BYTES, Item, MAGIC, VERSION};
use crate::store::StoreError;
use crate::store::backup_summary::Summary;

/// Writes a backup.
pub(in crate::store) struct Writer<W> {
    out: W,
    chain: [u8; 32],
    items: u64,
    bytes: u64,
    check: Check,
}

fn failed(error: &std::io::Error) -> StoreError {
    StoreError::Failed { action: "write a backup", cause: error.to_string() }
}

/// How every backup begins.
pub(super) fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    for (place, byte) in header.iter_mut().zip(MAGIC.iter().copied().chain(VERSION.to_be_bytes())) {
        *place = byte;
    }
    header
}

/// The digest of an item and all before it.
pub(super) fn next_digest(before: &[u8; 32], length: u32, item: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new_with_prefix(before);
    hasher.update(length.to_be_bytes());
    item.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

impl<W: Write> Writer<W> {
    /// Begins a backup.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(in crate::store) fn begin(mut out: W) -> Result<Self, StoreError> {
        let header = header();
        out.write_all(&header).map_err(|error| failed(&error))?;
        let chain = Sha256::digest(header).into();
        Ok(Self { out, chain, items: 0, bytes: HEADER_BYTES as u64, check: Check::default() })
    }

    /// Writes the next item.
    ///
    /// # Errors
    /// When the store has lost what belongs before it, or it cannot be written.
    pub(in crate::store) fn item(&mut self, item: &Item) -> Result<(), StoreError> {
        self.check.item(item).map_err(lost)?;
        let (kind, fields) = codec::encode(item);
        self.put(kind, &fields)
    }

    /// Writes the end.
    ///
    /// # Errors
    /// When the store has lost something, or it cannot be written.
    pub(in crate::store) fn finish(mut self) -> Result<Summary, StoreError> {
        self.check.end().map_err(lost)?;
        let end = [self.items.to_be_bytes(), self.bytes.to_be_bytes()].concat();
        self.put(END, &end)?;
        self.out.flush().map_err(|error| failed(&error))?;
        let digest = Some(Sha256Digest::from_bytes(self.chain));
        Ok(Summary { bytes: self.bytes, digest, ..self.check.summary })
    }

    fn put(&mut self, kind: u8, fields: &[u8]) -> Result<(), StoreError> {
        let length = fields.len() + 1;
        let Some(short) = u32::try_from(length).ok().filter(|_| length <= ITEM_BYTES) else {
            let cause = format!("a record has {length} bytes, and at most {ITEM_BYTES} are written");
            return Err(StoreError::Failed { action: "write a backup", cause });
        };
        self.chain = next_digest(&self.chain, short, &[&[kind], fields]);
        for part in [short.to_be_bytes().as_slice(), &[kind], fields, &self.chain] {
            self.out.write_all(part).map_err(|error| failed(&error))?;
        }
        self.items += 1;
        self.bytes += (4 + length + 32) as u64;
        Ok(())
    }
}

fn lost(why: String) -> StoreError {
    StoreError::Corrupt { what: "the store".to_owned(), why }
}
