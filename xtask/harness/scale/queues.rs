//! What is queued for: processors, and the disk that makes groups durable.

use std::collections::VecDeque;

/// Processors that take the jobs that wait one after the other, each to its end.
#[derive(Debug)]
pub(crate) struct Processors<J> {
    count: usize,
    busy: usize,
    waiting: VecDeque<(J, f64)>,
    /// Seconds of work that began.
    pub(crate) worked: f64,
}

impl<J> Processors<J> {
    /// So many; `usize::MAX` where nothing waits for one.
    pub(crate) fn new(count: usize) -> Self {
        Self { count, busy: 0, waiting: VecDeque::new(), worked: 0.0 }
    }

    /// Takes a job; answers it with its time if it begins now.
    pub(crate) fn take(&mut self, job: J, seconds: f64) -> Option<(J, f64)> {
        self.waiting.push_back((job, seconds));
        self.begin()
    }

    /// Takes a job before those that wait.
    pub(crate) fn take_first(&mut self, job: J, seconds: f64) -> Option<(J, f64)> {
        self.waiting.push_front((job, seconds));
        self.begin()
    }

    /// Ends a job; answers the one that begins.
    pub(crate) fn end(&mut self) -> Option<(J, f64)> {
        self.busy -= 1;
        self.begin()
    }

    fn begin(&mut self) -> Option<(J, f64)> {
        if self.busy == self.count {
            return None;
        }
        let (job, seconds) = self.waiting.pop_front()?;
        self.busy += 1;
        self.worked += seconds;
        Some((job, seconds))
    }
}

/// The disk of the log: one flush at a time, which makes everything durable that waits when it begins.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    is_busy: bool,
    waiting: Vec<usize>,
    bytes: f64,
    /// How many flushes there were, and how long they took together.
    pub(crate) flushes: u64,
    pub(crate) worked: f64,
    /// Bytes that were flushed.
    pub(crate) written: f64,
}

impl Disk {
    /// Takes the group of a writer.
    pub(crate) fn take(&mut self, writer: usize, bytes: f64) {
        self.waiting.push(writer);
        self.bytes += bytes;
    }

    /// Begins a flush if none is under way and something waits: the writers whose groups it has, and how many bytes.
    pub(crate) fn begin(&mut self) -> Option<(Vec<usize>, f64)> {
        if self.is_busy || self.waiting.is_empty() {
            return None;
        }
        self.is_busy = true;
        self.flushes += 1;
        self.written += self.bytes;
        Some((std::mem::take(&mut self.waiting), std::mem::take(&mut self.bytes)))
    }

    /// Ends a flush.
    pub(crate) fn end(&mut self) {
        self.is_busy = false;
    }
}
