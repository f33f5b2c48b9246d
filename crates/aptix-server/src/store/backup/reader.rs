//! Reads a backup item by item. What is answered was held against its digest and the items before it; every damage has its offset.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use aptix_model::digest::Sha256Digest;
use sha2::{Digest, Sha256};

use super::check::Check;
use super::codec;
use super::item::{BackupError, END, HEADER_BYTES, ITEM_BYTES, Item, MAGIC, VERSION};
use super::writer::{header, next_digest};
use crate::store::backup_summary::Summary;

/// Bytes that are read at once.
const READ_BYTES: usize = 128 << 10;

/// Reads a backup.
pub(in crate::store) struct Reader<R> {
    input: R,
    chain: [u8; 32],
    /// Bytes that were read.
    at: u64,
    items: u64,
    check: Check,
    has_ended: bool,
    report: Option<Report>,
}

/// Takes how many workspaces were read whole.
pub(in crate::store) type Report = Box<dyn FnMut(u64) + Send>;

impl<R: Read> Reader<R> {
    /// Reads how a backup begins.
    ///
    /// # Errors
    /// When it cannot be read, or is no backup of this version.
    pub(in crate::store) fn begin(input: R) -> Result<Self, BackupError> {
        let mut reader =
            Self { input, chain: [0; 32], at: 0, items: 0, check: Check::default(), has_ended: false, report: None };
        let found = reader.take(HEADER_BYTES)?;
        let version = found.strip_prefix(MAGIC).and_then(|version| version.try_into().ok());
        let version = u64::from_be_bytes(version.ok_or(BackupError::NoBackup)?);
        if version != VERSION {
            return Err(BackupError::OtherVersion { found: version });
        }
        reader.chain = Sha256::digest(header()).into();
        Ok(reader)
    }

    /// The next item; `None` once the whole backup was read and nothing is wrong with it.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub(in crate::store) fn next(&mut self) -> Result<Option<Item>, BackupError> {
        if self.has_ended {
            return Ok(None);
        }
        let offset = self.at;
        let damaged = |why: String| BackupError::Damaged { offset, why };
        let cut_off = |at: u64| damaged(format!("the file is cut off: it has {at} bytes, and this item goes on"));
        let length = self.take(4)?;
        if length.is_empty() {
            return Err(damaged("the file is cut off: it ends before the backup does".to_owned()));
        }
        let Ok(length) = length.try_into().map(u32::from_be_bytes) else { return Err(cut_off(self.at)) };
        let Some(bytes) = usize::try_from(length).ok().filter(|length| (1..=ITEM_BYTES).contains(length)) else {
            return Err(damaged(format!("an item has 1 to {ITEM_BYTES} bytes, and this one says {length}")));
        };
        let (item, digest) = (self.take(bytes)?, self.take(32)?);
        if item.len() < bytes || digest.len() < 32 {
            return Err(cut_off(self.at));
        }
        let expected = next_digest(&self.chain, length, &[&item]);
        if digest != expected {
            return Err(damaged(format!("the digest of these {} bytes does not match", 4 + bytes + 32)));
        }
        self.chain = expected;
        if let Some((&END, end)) = item.split_first() {
            return self.end(offset, end).map(|()| None).map_err(damaged);
        }
        self.items += 1;
        let item = codec::decode(item).map_err(damaged)?;
        self.check.item(&item).map_err(damaged)?;
        if matches!(item, Item::Workspace(_)) {
            self.report(1);
        }
        Ok(Some(item))
    }

    /// Has it report each workspace that was read whole.
    #[cfg(feature = "postgres")]
    pub(in crate::store) fn reporting(self, report: Report) -> Self {
        Self { report: Some(report), ..self }
    }

    /// Reports the workspaces but for so many that were only begun.
    fn report(&mut self, begun: u64) {
        let whole = self.check.summary.workspaces.saturating_sub(begun);
        if let Some(report) = self.report.as_mut() {
            report(whole);
        }
    }

    /// What was read.
    pub(in crate::store) fn summary(&self) -> Summary {
        let digest = Some(Sha256Digest::from_bytes(self.chain));
        Summary { bytes: self.at, digest, ..self.check.summary.clone() }
    }

    fn end(&mut self, offset: u64, end: &[u8]) -> Result<(), String> {
        let expected = [self.items.to_be_bytes(), offset.to_be_bytes()].concat();
        if end != expected {
            return Err(format!("the end counts other items than the {} in {offset} bytes before it", self.items));
        }
        self.check.end()?;
        let end = self.at;
        if self.take(1).map_err(|error| error.to_string())?.is_empty() {
            self.has_ended = true;
            self.report(0);
            return Ok(());
        }
        Err(format!("the backup ends at byte {end}, and the file goes on"))
    }

    /// As many bytes, or fewer where the file ends.
    fn take(&mut self, bytes: usize) -> Result<Vec<u8>, BackupError> {
        let mut taken = Vec::new();
        loop {
            match self.input.by_ref().take((bytes - taken.len()) as u64).read_to_end(&mut taken) {
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let why = format!("at byte {}: {error}", self.at + taken.len() as u64);
                    return Err(BackupError::Unreadable(why));
                }
            }
        }
        self.at += taken.len() as u64;
        Ok(taken)
    }
}

/// Reads all of a backup and holds it against its digests.
///
/// # Errors
/// What is wrong with it first, and where.
pub fn verify(path: &Path) -> Result<Summary, BackupError> {
    let mut items = open(path)?;
    while items.next()?.is_some() {}
    Ok(items.summary())
}

/// Opens a backup.
///
/// # Errors
/// When it cannot be read, or is no backup that this server reads.
pub(in crate::store) fn open(path: &Path) -> Result<Reader<BufReader<File>>, BackupError> {
    let file = File::open(path).map_err(|error| BackupError::Unreadable(error.to_string()))?;
    Reader::begin(BufReader::with_capacity(READ_BYTES, file))
}
