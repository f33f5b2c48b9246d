//! Keeps the batches of a project from being committed, so that a call is in flight for as long as a test wants it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;

use crate::processes::{Machine, eventually};

/// How often a process has to be seen waiting: what only looks whether a batch is being committed is seen once at most.
const SIGHTINGS: u32 = 5;

/// The lock under which batches are committed, held until this is dropped.
pub(super) struct HeldCommits {
    path: PathBuf,
    _lock: File,
}

impl HeldCommits {
    /// Waits until no batch is being committed, and keeps it so. A batch must have been committed before.
    pub(super) fn of(machine: &Machine) -> Self {
        let roots = fs::read_dir(machine.path("state/aptix/roots")).unwrap();
        let locks: Vec<_> = roots.map(|root| root.unwrap().path().join("lock")).filter(|lock| lock.exists()).collect();
        let [path] = locks.as_slice() else { panic!("one root has a lock, not {locks:?}") };
        let lock = File::open(path).unwrap();
        lock.lock().unwrap();
        Self { path: path.clone(), _lock: lock }
    }

    /// Waits until so many calls wait for the lock, in the processes of these ids together.
    pub(super) fn wait_for(&self, calls: usize, processes: &BTreeSet<u32>) {
        let mut sightings = 0;
        eventually("the calls wait for their commit", || {
            let waits = processes.iter().map(|process| self.waiting(*process)).sum::<usize>() >= calls;
            sightings = if waits { sightings + 1 } else { 0 };
            sightings == SIGHTINGS
        });
    }

    /// How many times a process has the lock open.
    fn waiting(&self, process: u32) -> usize {
        let opened = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let is_lock = |file: PathBuf| fs::read_link(file).is_ok_and(|path| path == self.path);
        opened.filter_map(Result::ok).filter(|file| is_lock(file.path())).count()
    }
}
