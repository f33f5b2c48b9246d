//! What of a place a power cut leaves: what was flushed.
//!
//! Names are where they were put last, as a file system leaves them that writes its own records in order and contents
//! when it pleases; what was never flushed of a file is gone, or has become zeros, all of it or some blocks. The real
//! thing is in `power.rs`.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::Result;

use crate::tree::{self, Entry};

/// Which file it is, though the number may have been another one's before.
type Identity = (u64, Option<SystemTime>);

/// What a disk writes at once.
const BLOCK: usize = 4096;

/// How many bytes of which file are flushed.
#[derive(Debug, Default)]
pub(crate) struct Flushed(Mutex<BTreeMap<Identity, u64>>);

fn identity(metadata: &Metadata) -> Identity {
    (metadata.ino(), metadata.created().ok())
}

impl Flushed {
    /// A file or a directory is flushed.
    pub(crate) fn note(&self, file: BorrowedFd<'_>) {
        if let Ok(metadata) = file.try_clone_to_owned().and_then(|file| File::from(file).metadata()) {
            self.put(&metadata);
        }
    }

    fn put(&self, metadata: &Metadata) {
        let mut lengths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lengths.insert(identity(metadata), metadata.len());
    }

    /// All that there is in a place is flushed.
    pub(crate) fn note_all(&self, place: &Path) -> Result<()> {
        for name in files(place)? {
            self.put(&place.join(name).metadata()?);
        }
        Ok(())
    }

    /// Takes away what is not flushed.
    pub(crate) fn cut(&self, place: &Path) -> Result<()> {
        let lengths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, name) in files(place)?.into_iter().enumerate() {
            let path = place.join(name);
            let metadata = path.metadata()?;
            let kept = lengths.get(&identity(&metadata)).copied().unwrap_or_default();
            if kept >= metadata.len() {
                continue;
            }
            let bytes = std::fs::read(&path)?;
            let left = damaged(&bytes, usize::try_from(kept)?, number);
            if left != bytes {
                let file = File::options().write(true).open(&path)?;
                file.set_len(0)?;
                file.write_all_at(&left, 0)?;
                // The cut is no write: the file keeps its time.
                file.set_modified(metadata.modified()?)?;
            }
        }
        Ok(())
    }
}

/// What is left of bytes of which so many were flushed: nothing more, zeros, or every second block.
fn damaged(bytes: &[u8], kept: usize, number: usize) -> Vec<u8> {
    let (flushed, lost) = bytes.split_at(kept);
    let lost = match number % 3 {
        0 => Vec::new(),
        1 => vec![0; lost.len()],
        _ => {
            let blocks = lost.chunks(BLOCK).enumerate();
            blocks.flat_map(|(at, block)| if at % 2 == 0 { block.to_vec() } else { vec![0; block.len()] }).collect()
        }
    };
    [flushed, &lost].concat()
}

fn files(place: &Path) -> Result<Vec<String>> {
    let files = tree::read(place)?.into_iter().filter(|(_, entry)| matches!(entry, Entry::File { .. }));
    Ok(files.map(|(name, _)| name).collect())
}
