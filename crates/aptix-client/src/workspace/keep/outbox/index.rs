//! What the entries of an outbox log come to: which batches wait, which have ended, and whether entries were lost.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use aptix_model::id::BatchId;
use rustix::io::Errno;

use super::frame::{Damaged, Frame, Kind, Scan};

/// The body of the entry of a gap after which the server's events are read from the beginning.
pub(super) const ASKED: &[u8] = b"asked";

/// Whether entries of unknown batches were lost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Gap {
    #[default]
    No,
    /// They were lost, and the server has not been asked again for its open batches.
    Open,
    /// They were lost, and the server's events are read from the beginning.
    Asked,
}

/// What the log knows of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// Its report waits, or its loss does.
    Waits,
    /// The server knows its end.
    Ended,
    /// Nothing is known.
    No,
}

/// The batches of a log.
#[derive(Default, Debug)]
pub(super) struct Index {
    /// Batches that wait: the place of the first entry, which orders them, and the entry that counts.
    waiting: HashMap<BatchId, (u64, Frame)>,
    /// Batches that the server knows the end of, with its history.
    pub(super) ended: HashMap<BatchId, String>,
    pub(super) gap: Gap,
    /// Bytes of entries that are no longer needed.
    dead: u64,
}

impl Index {
    /// Takes in what was read from a log.
    pub(super) fn take(&mut self, file: &OwnedFd, scan: Scan) -> Result<(), Errno> {
        for frame in scan.frames {
            match frame.kind {
                Kind::Receipt | Kind::Lost if self.ended.contains_key(&frame.batch) => self.dead += frame.size(),
                Kind::Receipt | Kind::Lost => self.wait(frame),
                Kind::Ended => {
                    let history = frame.body(file.as_fd())?.unwrap_or_default();
                    self.end(frame, String::from_utf8_lossy(&history).into_owned());
                }
                Kind::Gap => {
                    let is_asked = frame.body(file.as_fd())?.is_some_and(|body| body == ASKED);
                    self.gap = if is_asked { Gap::Asked } else { Gap::Open };
                }
            }
        }
        for Damaged { frame, .. } in scan.damaged {
            match frame {
                Some(frame) if frame.kind == Kind::Ended => self.end(frame, String::new()),
                // An earlier report of the same batch still holds.
                Some(frame) if self.known(frame.batch) != Known::No => {}
                Some(frame) if frame.kind != Kind::Gap => self.wait(Frame { kind: Kind::Lost, ..frame }),
                _ => self.gap = Gap::Open,
            }
        }
        Ok(())
    }

    fn wait(&mut self, frame: Frame) {
        let before = self.waiting.get(&frame.batch).copied();
        self.dead += before.map_or(0, |(_, before)| before.size());
        self.waiting.insert(frame.batch, (before.map_or(frame.at, |(order, _)| order), frame));
    }

    fn end(&mut self, frame: Frame, history: String) {
        let before = self.waiting.remove(&frame.batch);
        self.dead += frame.size() + before.map_or(0, |(_, before)| before.size());
        self.ended.insert(frame.batch, history);
    }

    /// What the log knows of a batch.
    pub(super) fn known(&self, batch: BatchId) -> Known {
        if self.ended.contains_key(&batch) {
            Known::Ended
        } else if self.waiting.contains_key(&batch) {
            Known::Waits
        } else {
            Known::No
        }
    }

    /// The batches that wait, in the order in which they ended here.
    pub(super) fn waiting(&self) -> Vec<BatchId> {
        let mut waiting: Vec<_> = self.waiting.iter().map(|(batch, (order, _))| (*order, *batch)).collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, batch)| batch).collect()
    }

    /// The kind and the body of the entry that counts for a batch that waits.
    pub(super) fn find(&self, file: &OwnedFd, batch: BatchId) -> Result<Option<(Kind, Vec<u8>)>, Errno> {
        let Some((_, frame)) = self.waiting.get(&batch) else { return Ok(None) };
        // It was whole when the log was read, unless it was lost by then.
        Ok(Some(frame.body(file.as_fd())?.map_or((Kind::Lost, Vec::new()), |body| (frame.kind, body))))
    }

    /// Whether at least so many bytes are no longer needed, and no fewer than are.
    pub(super) fn is_mostly_dead(&self, least: u64) -> bool {
        self.dead >= least && self.dead >= self.waiting.values().map(|(_, frame)| frame.size()).sum()
    }
}
