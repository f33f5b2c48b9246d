//! The high-water mark: which commits were acknowledged, in a file of its own that is flushed while the journal is.
//!
//! A slot takes 512 bytes and has a checksum; each is there twice, on different pages. Slot 0 is of the whole store: its
//! first copy names the commit that is being written, its second the newest that was flushed whole. Any other slot is of one
//! workspace, and its two copies are written in turn.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{Revision, WorkspaceId};
use sha2::{Digest, Sha256};

use super::own_files;
use super::record::{Counters, Head};
use crate::store::{Lease, StoreError};

/// The file's name in the data directory.
pub(super) const FILE: &str = "acknowledged";

const MAGIC: &[u8; 8] = b"APTIXHW1";
const SLOT: usize = 512;
const PAGE: usize = 4096;
const CHECKSUM: usize = 16;
/// Where a slot has whether there is a digest of the newest revision: 0, 1, or this.
const FIRST_DIGEST: usize = MAGIC.len() + 3 * 8;
/// Says that the counters of the workspace were removed.
const REMOVED: u8 = 2;

/// The content of one slot.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mark {
    /// The commit that wrote it.
    commit: u64,
    /// The workspace; `None` in slot 0.
    workspace: Option<WorkspaceId>,
    /// Its counters; `None` if the commit removed them because the workspace is being deleted.
    counters: Option<Counters>,
}

/// The content of the file.
#[derive(Debug, Default)]
pub(super) struct Marks {
    writing: Option<Head>,
    flushed: Option<Head>,
    slots: Vec<[Option<Mark>; 2]>,
    /// Slots that are not as they were written, as messages name them.
    pub(super) damaged: Vec<String>,
}

impl Marks {
    /// The newest commit that may have been acknowledged; `None` if neither copy of slot 0 can be read.
    ///
    /// A commit is acknowledged once it is flushed and noted so. The mark of the next one begins only after that.
    pub(super) fn acknowledged(&self) -> Option<u64> {
        let before = self.writing.map(|head| head.number.saturating_sub(1));
        before.max(self.flushed.map(|head| head.number))
    }

    /// The commits that are named with their digests.
    pub(super) fn heads(&self) -> impl Iterator<Item = Head> {
        self.writing.into_iter().chain(self.flushed)
    }

    /// The state of every workspace after the newest acknowledged commit, as far as it can be read; without those whose deletion began.
    pub(super) fn workspaces(&self) -> impl Iterator<Item = (&WorkspaceId, Counters)> {
        let acknowledged = self.acknowledged().unwrap_or_default();
        self.slots.iter().filter_map(move |copies| {
            let newest = copies.iter().flatten().filter(|mark| mark.commit <= acknowledged);
            let mark = newest.max_by_key(|mark| mark.commit)?;
            Some((mark.workspace.as_ref()?, mark.counters?))
        })
    }
}

/// Reads the file of a data directory; `None` if there is none.
///
/// # Errors
/// When the system refuses.
pub(super) fn read(dir: &Path) -> Result<Option<Marks>, StoreError> {
    let path = dir.join(FILE);
    let mut bytes = Vec::new();
    match File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(own_files::failed("read the high-water mark", &path, &error)),
    }
    let mut marks = Marks::default();
    for index in 0..bytes.len() / (2 * PAGE) * (PAGE / SLOT) {
        let mut copies = [None, None];
        for (copy, mark) in copies.iter_mut().enumerate() {
            let at = offset(index, copy);
            let slot = bytes.get(at..at + SLOT);
            if index > 0 && slot.is_some_and(|slot| slot.iter().all(|byte| *byte == 0)) {
                continue;
            }
            *mark = slot.and_then(|slot| decode(slot, index, copy));
            if mark.is_none() {
                marks.damaged.push(format!("{FILE}: copy {copy} of slot {index} is not what was written"));
            }
        }
        if index == 0 {
            let [writing, flushed] = copies.map(|mark| mark.map(head));
            (marks.writing, marks.flushed) = (writing, flushed);
        } else {
            marks.slots.push(copies);
        }
    }
    Ok(Some(marks))
}

fn head(mark: Mark) -> Head {
    Head { number: mark.commit, digest: mark.counters.and_then(|counters| counters.digest) }
}

fn offset(index: usize, copy: usize) -> usize {
    let (pair, place) = (index / (PAGE / SLOT), index % (PAGE / SLOT));
    (2 * pair + copy) * PAGE + place * SLOT
}

/// Writes the file.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    file: File,
    /// Where each workspace's slot is, and which of its copies is written next.
    slots: std::collections::HashMap<WorkspaceId, (usize, usize)>,
}

impl Writer {
    /// Makes the file anew, durably: everything there is now was acknowledged.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn create(
        dir: &Path,
        newest: Head,
        workspaces: impl IntoIterator<Item = (WorkspaceId, Counters)>,
    ) -> Result<Self, StoreError> {
        let marks: Vec<_> = std::iter::once(mark_of(newest))
            .chain(workspaces.into_iter().map(|(workspace, counters)| Mark {
                commit: newest.number,
                workspace: Some(workspace),
                counters: Some(counters),
            }))
            .collect();
        let mut bytes = vec![0; (marks.len() / (PAGE / SLOT) + 1) * 2 * PAGE];
        let mut slots = std::collections::HashMap::new();
        for (index, mark) in marks.iter().enumerate() {
            for copy in 0..2 {
                let at = offset(index, copy);
                if let Some(slot) = bytes.get_mut(at..at + SLOT) {
                    slot.copy_from_slice(&encode(mark, index, copy));
                }
            }
            slots.extend(mark.workspace.clone().map(|workspace| (workspace, (index, 0))));
        }
        let path = dir.join(FILE);
        let file = own_files::replace(&path, &bytes).map_err(|error| failed(&path, &error))?;
        Ok(Self { path, file, slots })
    }

    /// A second handle, to note that a commit was flushed.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn flushed(&self) -> Result<Flushed, StoreError> {
        let file = self.file.try_clone().map_err(|error| failed(&self.path, &error))?;
        Ok(Flushed { path: self.path.clone(), file })
    }

    /// Writes the mark of a commit and of the workspaces that it changes, and flushes.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn write(&mut self, round: &Round) -> Result<(), StoreError> {
        let written = self.write_round(round).and_then(|()| self.file.sync_data());
        written.map_err(|error| failed(&self.path, &error))
    }

    fn write_round(&mut self, round: &Round) -> std::io::Result<()> {
        for (workspace, counters) in &round.changed {
            let next = self.slots.len() + 1;
            let (index, copy) = self.slots.entry(workspace.clone()).or_insert((next, 0));
            let mark = Mark { commit: round.head.number, workspace: Some(workspace.clone()), counters: *counters };
            if *index == next && next.is_multiple_of(PAGE / SLOT) {
                // Both pages of the next slots are made together, so that a file always has whole pairs of pages.
                let (at, pages) = (offset(*index, 0), [0; 2 * PAGE]);
                self.file.write_all_at(&pages, at as u64)?;
            }
            self.file.write_all_at(&encode(&mark, *index, *copy), offset(*index, *copy) as u64)?;
            *copy = 1 - *copy;
        }
        self.file.write_all_at(&encode_head(round.head, 0), offset(0, 0) as u64)
    }

    /// Flushes what was noted since.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|error| failed(&self.path, &error))
    }
}

/// What a commit changes of the marks.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) head: Head,
    /// The workspaces whose counters it changes; `None` where it removes them.
    pub(super) changed: Vec<(WorkspaceId, Option<Counters>)>,
}

/// Notes that commits were flushed.
#[derive(Debug)]
pub(super) struct Flushed {
    path: PathBuf,
    file: File,
}

impl Flushed {
    /// Notes that a commit and its mark were flushed, which every reader but one after a power cut sees.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn note(&self, head: Head) -> Result<(), StoreError> {
        let noted = self.file.write_all_at(&encode_head(head, 1), offset(0, 1) as u64);
        noted.map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &std::io::Error) -> StoreError {
    own_files::failed("write the high-water mark", path, error)
}

fn encode_head(head: Head, copy: usize) -> [u8; SLOT] {
    encode(&mark_of(head), 0, copy)
}

/// The mark of the whole store.
fn mark_of(head: Head) -> Mark {
    let counters = Counters { digest: head.digest, ..Counters::default() };
    Mark { commit: head.number, workspace: None, counters: Some(counters) }
}

fn encode(mark: &Mark, index: usize, copy: usize) -> [u8; SLOT] {
    let Mark { commit, workspace, counters } = mark;
    let (is_removed, counters) = (counters.is_none(), counters.unwrap_or_default());
    let mut bytes = MAGIC.to_vec();
    for number in [*commit, counters.newest.0, counters.lease.epoch] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    let (digest, secret) = (counters.digest, counters.lease.secret);
    // An earlier version takes the mark of counters that were removed for one without a digest.
    let has_digest = if is_removed { REMOVED } else { u8::from(digest.is_some()) };
    for (is_given, digest) in [(has_digest, digest), (u8::from(secret.is_some()), secret)] {
        bytes.push(is_given);
        bytes.extend_from_slice(digest.unwrap_or(Sha256Digest::EMPTY).as_bytes());
    }
    let name = workspace.as_ref().map_or("", WorkspaceId::as_str);
    bytes.push(u8::try_from(name.len()).unwrap_or_default());
    bytes.extend_from_slice(name.as_bytes());
    bytes.resize(SLOT - CHECKSUM, 0);
    bytes.extend_from_slice(&checksum(&bytes, index, copy));
    let mut slot = [0; SLOT];
    slot.copy_from_slice(&bytes);
    slot
}

fn decode(slot: &[u8], index: usize, copy: usize) -> Option<Mark> {
    let (fields, sum) = slot.split_last_chunk::<CHECKSUM>()?;
    let mut rest = fields.strip_prefix(MAGIC)?;
    if *sum != checksum(fields, index, copy) {
        return None;
    }
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at_checked(count)?;
        rest = left;
        Some(taken)
    };
    let mut number = || Some(u64::from_be_bytes(take(8)?.try_into().ok()?));
    let (commit, newest, epoch) = (number()?, Revision(number()?), number()?);
    let is_removed = fields.get(FIRST_DIGEST) == Some(&REMOVED);
    let mut digest = || {
        let given = *take(1)?.first()? == 1;
        let digest = Sha256Digest::from_bytes(take(32)?.try_into().ok()?);
        Some(given.then_some(digest))
    };
    let (digest, secret) = (digest()?, digest()?);
    let length = usize::from(*take(1)?.first()?);
    let name = str::from_utf8(take(length)?).ok()?;
    let workspace = if name.is_empty() { None } else { Some(name.parse().ok()?) };
    let counters = Counters { newest, digest, lease: Lease { epoch, secret }, open: None };
    Some(Mark { commit, workspace, counters: (!is_removed).then_some(counters) })
}

fn checksum(fields: &[u8], index: usize, copy: usize) -> [u8; CHECKSUM] {
    let place = [(index as u64).to_be_bytes(), (copy as u64).to_be_bytes()].concat();
    let digest: [u8; 32] = Sha256::new_with_prefix(fields).chain_update(place).finalize().into();
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&digest[..CHECKSUM]);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: u64) -> Head {
        Head { number, digest: Some(Sha256Digest::EMPTY) }
    }

    fn counters(newest: u64) -> Counters {
        Counters { newest: Revision(newest), ..Counters::default() }
    }

    fn newest(dir: &Path, workspace: &str) -> Option<u64> {
        let marks = read(dir).unwrap().unwrap();
        let id: WorkspaceId = workspace.parse().unwrap();
        marks.workspaces().find(|(name, _)| **name == id).map(|(_, counters)| counters.newest.0)
    }

    #[test]
    fn a_commit_counts_once_it_is_noted_as_flushed_or_the_next_one_begins() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        let mut writer = Writer::create(dir.path(), head(4), [("w".parse().unwrap(), counters(7))]).unwrap();
        let flushed = writer.flushed().unwrap();
        let acknowledged = || read(dir.path()).unwrap().unwrap().acknowledged();
        assert_eq!((acknowledged(), newest(dir.path(), "w")), (Some(4), Some(7)));
        let round =
            |number| Round { head: head(number), changed: vec![("w".parse().unwrap(), Some(counters(number + 3)))] };
        writer.write(&round(5)).unwrap();
        assert_eq!((acknowledged(), newest(dir.path(), "w")), (Some(4), Some(7)));
        flushed.note(head(5)).unwrap();
        assert_eq!((acknowledged(), newest(dir.path(), "w")), (Some(5), Some(8)));
        writer.write(&round(6)).unwrap();
        writer.write(&round(7)).unwrap();
        assert_eq!((acknowledged(), newest(dir.path(), "w")), (Some(6), Some(9)));
    }

    /// A workspace is not expected any more once the commit that began its deletion was acknowledged; created anew, it is again.
    #[test]
    fn a_workspace_without_counters_is_not_expected() {
        let dir = tempfile::tempdir().unwrap();
        let w: WorkspaceId = "w".parse().unwrap();
        let mut writer = Writer::create(dir.path(), head(4), [(w.clone(), counters(7))]).unwrap();
        let flushed = writer.flushed().unwrap();
        for (number, changed, newest_before, newest_after) in
            [(5, None, Some(7), None), (6, Some(counters(0)), None, Some(0)), (7, Some(counters(1)), Some(0), Some(1))]
        {
            writer.write(&Round { head: head(number), changed: vec![(w.clone(), changed)] }).unwrap();
            assert_eq!(newest(dir.path(), "w"), newest_before, "{number}");
            flushed.note(head(number)).unwrap();
            assert_eq!(newest(dir.path(), "w"), newest_after, "{number}");
        }
        assert!(read(dir.path()).unwrap().unwrap().damaged.is_empty());
    }

    #[test]
    fn many_workspaces_have_slots_of_their_own_and_one_damaged_copy_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(dir.path(), head(0), []).unwrap();
        let name = |number: u64| format!("w{number}").parse::<WorkspaceId>().unwrap();
        for number in 1..=50 {
            writer.write(&Round { head: head(number), changed: vec![(name(number), Some(counters(number)))] }).unwrap();
        }
        writer.write(&Round { head: head(51), changed: vec![(name(9), Some(counters(99)))] }).unwrap();
        writer.flushed().unwrap().note(head(51)).unwrap();
        for number in (1..=50).filter(|number| *number != 9) {
            assert_eq!(newest(dir.path(), &format!("w{number}")), Some(number));
        }
        assert_eq!(newest(dir.path(), "w9"), Some(99));
        let mut byte = [0];
        writer.file.read_exact_at(&mut byte, offset(9, 1) as u64 + 20).unwrap();
        writer.file.write_all_at(&[byte[0] ^ 4], offset(9, 1) as u64 + 20).unwrap();
        assert_eq!(newest(dir.path(), "w9"), Some(9), "the copy before it");
        assert_eq!(read(dir.path()).unwrap().unwrap().damaged.len(), 1);
    }
}
