//! The lines of the index of a history, read from either end without reading all of them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::entries::EntryId;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{errno, reads};
use crate::workspace::roots::own_lines;
use crate::workspace::roots::stamp::Stamp;
use crate::workspace::roots::state::StateDir;

/// Bytes that are read at a time.
const PIECE: u64 = 8 << 10;

/// A line: an entry, or none, and what holds from this line on.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) entry: Option<Indexed>,
    /// The last line has it; of the others it is no longer believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) totals: Option<Totals>,
}

/// An entry, as the index knows it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Indexed {
    pub(super) id: EntryId,
    /// Bytes of its file.
    pub(super) bytes: u64,
    /// Names of the states of the roots that it has files in; where they are not stated, the entry itself tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) roots: Option<Vec<String>>,
    /// What it is about; where it is not stated, the entry itself tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) about: Option<About>,
}

/// What an entry is about, as far as a search has to know before it reads the entry.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    /// The paths of its files in their roots, before and after.
    pub(super) paths: Vec<String>,
    /// Whether it took back another batch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_reversal: bool,
}

impl About {
    /// Bytes of paths of one entry that a line has room for.
    const BYTES: usize = 1 << 10;

    /// An entry with files at these paths; `None` if a line has no room for them.
    pub(super) fn new(paths: BTreeSet<String>, is_reversal: bool) -> Option<Self> {
        let bytes: usize = paths.iter().map(String::len).sum();
        (bytes <= Self::BYTES).then(|| Self { paths: paths.into_iter().collect(), is_reversal })
    }
}

/// What holds of a history.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Totals {
    /// Bytes of all entries.
    pub(super) bytes: u64,
    /// The entry that was added last, which need not exist any more.
    pub(super) newest: Option<EntryId>,
    /// Offset of the line of the oldest entry: entries of lines before it were removed.
    pub(super) oldest: u64,
    /// Names of the other states whose histories may have entries about this root; `None` where nobody has looked.
    pub(super) elsewhere: Option<Vec<String>>,
    /// The directory of all states when somebody looked: while it is the same, no state was added, removed or restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) states: Option<Stamp>,
    /// The directory of the history.
    pub(super) dir: Stamp,
}

/// Why the lines of an index cannot be followed.
#[derive(Debug)]
pub(super) enum Broken {
    /// The system refuses.
    System(Errno),
    /// A line is damaged, or what it names is not there.
    Disagrees,
}

impl Broken {
    /// The system's error; that of bad input where the lines disagree with what is there.
    pub(super) const fn errno(&self) -> Errno {
        match self {
            Self::System(errno) => *errno,
            Self::Disagrees => Errno::BADMSG,
        }
    }
}

impl From<Errno> for Broken {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// The bytes of an index: its file, or what could not be written.
pub(super) enum Bytes {
    File(OwnedFd),
    Memory(Vec<u8>),
}

impl Bytes {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
        match self {
            Self::File(file) => reads::read_at(file.as_fd(), buffer, at),
            Self::Memory(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                Ok((&mut &*rest).read(buffer).unwrap_or_default())
            }
        }
    }

    /// The bytes of a range.
    pub(super) fn range(&self, from: u64, to: u64) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).map_err(|_| Errno::FBIG)?];
        let count = self.read_at(&mut bytes, from)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Adds bytes at the end, which is at an offset. A power cut may revert that.
    pub(super) fn append(&mut self, disk: &dyn Disk, more: &[u8], end: u64) -> Result<(), Errno> {
        match self {
            Self::File(file) => disk::write_all_at(disk, file.as_fd(), more, end),
            Self::Memory(bytes) => {
                bytes.extend_from_slice(more);
                Ok(())
            }
        }
    }

    /// The lines before an offset, at which a line has to end, from the last one to the first, each with its own offset.
    pub(super) const fn backwards<'b>(&'b self, state: &'b StateDir, end: u64) -> Backwards<'b> {
        Backwards { bytes: self, state, at: end, held: Vec::new() }
    }

    /// The lines from an offset on, at which a line has to begin, each with the offset of its end.
    pub(super) fn forwards<'b>(
        &'b self,
        state: &'b StateDir,
        from: u64,
    ) -> impl Iterator<Item = Result<(u64, Line), Broken>> + 'b {
        let lines = BufReader::new(Reading { bytes: self, at: from }).split(b'\n');
        lines.scan(from, move |end, line| {
            let line = line.map_err(|error| Broken::System(errno::of(&error)));
            Some(line.and_then(|line| {
                *end += line.len() as u64 + 1;
                own_lines::decode(state, &line).map(|line| (*end, line)).ok_or(Broken::Disagrees)
            }))
        })
    }
}

/// Reads the bytes of an index from an offset on.
struct Reading<'b> {
    bytes: &'b Bytes,
    at: u64,
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.bytes.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// The lines of an index from an offset back to the first.
pub(super) struct Backwards<'b> {
    bytes: &'b Bytes,
    state: &'b StateDir,
    /// Offset of the end of the next line.
    at: u64,
    /// Bytes before that offset.
    held: Vec<u8>,
}

impl Backwards<'_> {
    fn step(&mut self) -> Result<(u64, Line), Broken> {
        loop {
            let line = self.held.strip_suffix(b"\n");
            if line.is_none() && !self.held.is_empty() {
                return Err(Broken::Disagrees);
            }
            let before = line.and_then(|line| line.iter().rposition(|byte| *byte == b'\n'));
            let from = self.at - self.held.len() as u64;
            if before.is_none() && from > 0 {
                let piece = self.bytes.range(from.saturating_sub(PIECE), from)?;
                if piece.is_empty() {
                    return Err(Broken::Disagrees);
                }
                self.held = [piece, std::mem::take(&mut self.held)].concat();
                continue;
            }
            let begin = before.map_or(0, |newline| newline + 1);
            let line = line.and_then(|line| line.get(begin..)).and_then(|line| own_lines::decode(self.state, line));
            self.held.truncate(begin);
            self.at = from + begin as u64;
            return line.map(|line| (self.at, line)).ok_or(Broken::Disagrees);
        }
    }
}

impl Iterator for Backwards<'_> {
    type Item = Result<(u64, Line), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.at > 0).then(|| self.step())
    }
}
