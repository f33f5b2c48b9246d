//! The ids of batches whose end the server knows: files of sorted ids, 16 bytes each, by the server's history.
//!
//! A server that is set back, or that starts over, sends such batches once more. Each file is sealed and never changed,
//! only replaced by a longer one; looking an id up reads a few dozen bytes of each file and keeps nothing in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aptix_model::id::BatchId;
use rustix::io::Errno;

use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::reads::read_at;
use crate::workspace::fs::{beneath, errno};
use crate::workspace::keep::outbox::error::OutboxError;
use crate::workspace::roots::own_file::{self, Damage, Found, Owner, split_line};
use crate::workspace::roots::state::{Part, StateDir};

/// Bytes of an id.
const ID: usize = 16;
/// Ids from which on another file begins.
const FULL: usize = 1 << 16;
/// Files of one history: more than a million ids.
const FILES: usize = 17;
/// Histories that are remembered; the one that nothing was added to for longest makes room.
const HISTORIES: usize = 16;
/// Bytes in which the lines before the ids end.
const LINES: usize = 1024;

/// Adds the ids of batches that ended under a history, durably. Adding one twice does nothing.
pub(super) fn add(
    disk: &dyn Disk,
    state: &StateDir,
    history: &str,
    batches: impl IntoIterator<Item = BatchId>,
) -> Result<(), OutboxError> {
    let dir = state.open(Part::ENDED)?;
    let failed = state.failed(Part::ENDED, "write");
    let files = files(&dir).map_err(&failed)?;
    let mut all: BTreeSet<[u8; ID]> = batches.into_iter().map(|batch| batch.0.into_bytes()).collect();
    let mut known: Vec<(u64, String)> = Vec::new();
    let mut last = None;
    for number in &files {
        let Some(ids) = load(disk, state, &dir, *number)? else { continue };
        known.push((*number, ids.history));
        if known.last().is_some_and(|(_, of)| of == history) {
            last = Some((*number, ids.ids));
        }
    }
    let number = match last.filter(|(_, ids)| ids.len() < FULL) {
        Some((number, ids)) => {
            all.extend(ids);
            number
        }
        None => {
            let next = files.last().map_or(1, |last| last + 1);
            known.push((next, history.to_owned()));
            next
        }
    };
    let mut body = format!("{history}\n").into_bytes();
    all.iter().for_each(|id| body.extend_from_slice(id));
    own_file::put(disk, dir.as_fd(), Owner { part: Part::ENDED, name: &name(number), state }, &body)?;
    let newest: BTreeMap<&str, u64> = known.iter().map(|(number, history)| (history.as_str(), *number)).collect();
    let oldest = newest.iter().min_by_key(|(_, number)| **number).filter(|_| newest.len() > HISTORIES);
    let own = known.iter().filter(|(_, of)| of == history);
    let too_many = own.clone().count().saturating_sub(FILES);
    let forgotten = known.iter().filter(|(_, of)| oldest.is_some_and(|(oldest, _)| of == oldest));
    for (number, _) in own.take(too_many).chain(forgotten) {
        disk::unlink_if_there(disk, dir.as_fd(), &name(*number)).map_err(&failed)?;
    }
    Ok(())
}

/// Whether a batch has ended, under whatever history. A batch keeps its id for ever.
pub(super) fn contains(disk: &dyn Disk, state: &StateDir, batch: BatchId) -> Result<bool, OutboxError> {
    let failed = state.failed(Part::ENDED, "read");
    let Some(dir) = state.find(Part::ENDED)? else { return Ok(false) };
    // The newest first: it is where a batch most likely is.
    for number in files(&dir).map_err(&failed)?.into_iter().rev() {
        let file = errno::optional(beneath::open_file(dir.as_fd(), &name(number))).map_err(&failed)?;
        let Some(file) = file else { continue };
        match search(file.as_fd(), batch.0.as_bytes()).map_err(&failed)? {
            Some(true) => return Ok(true),
            Some(false) => {}
            // It is read whole, which sets it aside if it is damaged.
            None => drop(load(disk, state, &dir, number)?),
        }
    }
    Ok(false)
}

/// Reads every file once, and sets aside the ones that cannot be believed.
pub(super) fn check(disk: &dyn Disk, state: &StateDir) -> Result<(), OutboxError> {
    let Some(dir) = state.find(Part::ENDED)? else { return Ok(()) };
    let files = files(&dir).map_err(state.failed(Part::ENDED, "read"))?;
    files.into_iter().try_for_each(|number| load(disk, state, &dir, number).map(drop))
}

/// The ids of one file.
struct Ids {
    history: String,
    ids: Vec<[u8; ID]>,
}

fn load(disk: &dyn Disk, state: &StateDir, dir: &OwnedFd, number: u64) -> Result<Option<Ids>, OutboxError> {
    let name = name(number);
    let owner = Owner { part: Part::ENDED, name: &name, state };
    let damage = match own_file::read(dir.as_fd(), owner).map_err(state.failed(Part::ENDED, "read"))? {
        None => return Ok(None),
        Some(Found::Sealed(body)) => match decode(&body) {
            Some(ids) => return Ok(Some(ids)),
            None => Damage::Content,
        },
        Some(Found::Old(_)) => Damage::Version,
        Some(Found::Damaged(damage)) => damage,
    };
    own_file::set_aside(disk, dir.as_fd(), owner, damage)?;
    Ok(None)
}

fn decode(body: &[u8]) -> Option<Ids> {
    let (history, ids) = split_line(body)?;
    let (ids, rest) = ids.as_chunks::<ID>();
    let history = String::from_utf8(history.to_vec()).ok()?;
    (rest.is_empty() && ids.is_sorted()).then(|| Ids { history, ids: ids.to_vec() })
}

/// Whether an id is in an open file; `None` where that has not the form of one.
fn search(file: BorrowedFd<'_>, id: &[u8; ID]) -> Result<Option<bool>, Errno> {
    let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or_default();
    let mut lines = vec![0; LINES];
    let count = read_at(file, &mut lines, 0)?;
    // A checksum, an owner, a history.
    let ends = lines.iter().take(count).enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u64 + 1);
    let Some(start) = ends.into_iter().nth(2) else { return Ok(None) };
    let (mut low, mut high) = (0, size.saturating_sub(start) / ID as u64);
    while low < high {
        let middle = u64::midpoint(low, high);
        let mut found = [0; ID];
        if read_at(file, &mut found, start + middle * ID as u64)? < ID {
            return Ok(None);
        }
        match found.cmp(id) {
            std::cmp::Ordering::Equal => return Ok(Some(true)),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Ok(Some(false))
}

fn name(number: u64) -> String {
    format!("{number:010}")
}

/// The numbers of the files there are, oldest first.
fn files(dir: &OwnedFd) -> Result<Vec<u64>, Errno> {
    let mut found: Vec<u64> = disk::names(dir.as_fd())?.iter().filter_map(|name| name.parse().ok()).collect();
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fs::disk::SystemDisk;
    use aptix_model::id::Uuid;

    fn id(history: u128, number: u128) -> BatchId {
        BatchId(Uuid::from_u128((history << 64) + number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Fills files to the end, as many rewrites of the log would.
    fn fill(state: &StateDir, history: u128, files: u128) {
        for file in 0..files {
            let numbers = file * FULL as u128..(file + 1) * FULL as u128;
            add(&SystemDisk, state, &history.to_string(), numbers.map(|number| id(history, number))).unwrap();
        }
    }

    #[test]
    fn a_million_ids_of_a_history_are_kept_and_the_oldest_go() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::of_root(place.path(), "/root".as_ref());
        let files = FILES as u128;
        fill(&state, 1, 1);
        fill(&state, 2, files + 3);
        let contains = |history, number| contains(&SystemDisk, &state, id(history, number)).unwrap();
        let first = 3 * FULL as u128;
        let last = (files + 3) * FULL as u128;
        assert!(last - first > 1_000_000);
        for number in (first..last).step_by(9973).chain([first, last - 1]) {
            assert!(contains(2, number), "{number}");
        }
        assert!(!contains(2, first - 1) && !contains(2, last));
        assert!(contains(1, 0), "other histories keep theirs");
        // A file that is not full is filled up first.
        let before = super::files(&state.open(Part::ENDED).unwrap()).unwrap().len();
        for number in 0..3 {
            add(&SystemDisk, &state, "3", [id(3, number)]).unwrap();
        }
        assert_eq!(super::files(&state.open(Part::ENDED).unwrap()).unwrap().len(), before + 1);
        assert!((0..3).all(|number| contains(3, number)));
    }

    #[test]
    fn only_so_many_histories_are_remembered() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::of_root(place.path(), "/root".as_ref());
        for history in 0..=HISTORIES as u128 {
            add(&SystemDisk, &state, &history.to_string(), [id(history, 1)]).unwrap();
        }
        let known = (0..=HISTORIES as u128).filter(|history| contains(&SystemDisk, &state, id(*history, 1)).unwrap());
        assert_eq!(known.collect::<Vec<_>>(), (1..=HISTORIES as u128).collect::<Vec<_>>());
    }
}
