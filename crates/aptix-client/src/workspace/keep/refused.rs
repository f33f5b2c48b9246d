//! Batches that were refused here: what was tried, and why nothing changed, so that it can be looked at afterwards.
//!
//! Each is a file of its own, and the names of the files have their order: at most a hundred are kept, which needs no index.
//! Nothing is flushed. A power cut may take any of them, and what is torn counts for nothing.

pub mod batch;
mod kept_failure;

use std::cmp::Reverse;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, UNIX_EPOCH};

use aptix_model::id::BatchId;
use rustix::io::Errno;

use self::batch::RefusedBatch;
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::keep::age;
use crate::workspace::roots::own_file::{self, Found, Owner, Temporary};
use crate::workspace::roots::state::{OwnError, Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// How many are kept.
const COUNT: usize = 100;
/// Bytes of all of them, unless the history may have fewer.
const BYTES: u64 = 8 << 20;
/// Bytes of one. Of a larger one it is only kept what it was called and why it was refused.
const ONE: usize = 256 << 10;

/// For how long, and up to how many bytes, the history is kept.
pub(crate) type Bounds = (Duration, u64);

/// Keeps a batch that was refused just now, and forgets the oldest. Where that fails, it is not kept.
pub(crate) fn keep(workspace: &Workspace, batch: RefusedBatch, bounds: Bounds) {
    if let Err(error) = try_keep(workspace, batch, bounds) {
        tracing::debug!(%error, "a batch that was refused is not kept");
    }
}

fn try_keep(workspace: &Workspace, mut batch: RefusedBatch, bounds: Bounds) -> Result<(), OwnError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    let time = disk.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    batch.time = u64::try_from(time).unwrap_or_default();
    batch.age = age::look(disk, state)?;
    batch.roots = root_names(workspace);
    let Some(body) = encoded(batch.clone()) else { return Ok(()) };
    let (dir, tmp) = (state.open(Part::REFUSED)?, state.open(Part::TMP)?);
    let number = names(&dir)?.last().map_or(0, |last| last.number.saturating_add(1));
    let name = Name { number, batch: batch.id }.to_string();
    let mut new = Temporary::make(disk, tmp.as_fd())?;
    new.write(&own_file::seal(owner(state, &name), &body))?;
    new.put(dir.as_fd(), &name)?;
    Ok(sweep(disk, state, bounds)?)
}

/// A batch in at most [`ONE`] bytes; `None` if even what it was called takes more.
fn encoded(mut batch: RefusedBatch) -> Option<Vec<u8>> {
    // Words and numbers: there is nothing in it that JSON could refuse.
    let encode = |batch: &RefusedBatch| serde_json::to_vec(batch).ok().filter(|body| body.len() <= ONE);
    encode(&batch).or_else(|| {
        batch.leave_out_content();
        encode(&batch)
    })
}

/// The batches that are kept about a root of the workspace, newest first, as far as their ids are meant. What is damaged is left
/// out.
///
/// # Errors
/// When the state directories cannot be listed.
pub(crate) fn list(workspace: &Workspace, is_meant: impl Fn(BatchId) -> bool) -> Result<Vec<RefusedBatch>, StateError> {
    let state = workspace.primary().state();
    let mut found = Vec::new();
    // A batch over several roots is kept with one of them, which need not be open.
    for state in state.siblings()?.iter().chain([state]) {
        let Some(dir) = state.find(Part::REFUSED)? else { continue };
        let names = names(&dir).map_err(state.failed(Part::REFUSED, "read"))?;
        found.extend(names.into_iter().filter(|name| is_meant(name.batch)).filter_map(|name| read(state, &dir, name)));
    }
    let open = root_names(workspace);
    found.retain(|batch| batch.roots.iter().any(|root| open.contains(root)));
    found.sort_by_key(|batch| Reverse(batch.time));
    Ok(found)
}

/// Forgets the oldest: what is too old by the age clock, and what is too much together with all that came later.
pub(crate) fn sweep(disk: &dyn Disk, state: &StateDir, (age, bytes): Bounds) -> Result<(), StateError> {
    let Some(dir) = state.find(Part::REFUSED)? else { return Ok(()) };
    let failed = state.failed(Part::REFUSED, "clear");
    let (mut names, mut room) = (names(&dir).map_err(&failed)?, bytes.min(BYTES));
    let mut kept = 0;
    for name in names.iter().rev().take(COUNT) {
        let stat = beneath::look_up(dir.as_fd(), &name.to_string()).map_err(&failed)?;
        let size = stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or_default());
        let Some(rest) = room.checked_sub(size) else { break };
        (room, kept) = (rest, kept + 1);
    }
    let unlink = |name: &Name| disk::unlink_if_there(disk, dir.as_fd(), &name.to_string()).map_err(&failed);
    let first_kept = names.len().saturating_sub(kept);
    for name in names.drain(..first_kept) {
        unlink(&name)?;
    }
    let now = age::now(disk, state)?;
    // What came after one that is not too old is not so either; one that is damaged shows nothing and is not missed.
    for name in names {
        match read(state, &dir, name) {
            Some(batch) if age::between(batch.age, now) <= age => break,
            _ => unlink(&name)?,
        }
    }
    Ok(())
}

/// The names of the states of the roots of a workspace.
fn root_names(workspace: &Workspace) -> Vec<String> {
    workspace.roots().iter().map(|root| root.state().name().to_string()).collect()
}

/// The name of a file: a number that is greater than those before, and the id of the batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    number: u32,
    batch: BatchId,
}

impl Name {
    fn parse(name: &str) -> Option<Self> {
        let (number, batch) = name.split_once('-')?;
        let name_of = Self { number: u32::from_str_radix(number, 16).ok()?, batch: batch.parse().ok()? };
        (name_of.to_string() == name).then_some(name_of)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}-{}", self.number, self.batch)
    }
}

/// The names there are, oldest first.
fn names(dir: &OwnedFd) -> Result<Vec<Name>, Errno> {
    let mut names: Vec<_> = disk::names(dir.as_fd())?.iter().filter_map(|name| Name::parse(name)).collect();
    names.sort_unstable();
    Ok(names)
}

fn read(state: &StateDir, dir: &OwnedFd, name: Name) -> Option<RefusedBatch> {
    let body = match own_file::read(dir.as_fd(), owner(state, &name.to_string())) {
        Ok(Some(Found::Sealed(body))) => body,
        Ok(Some(Found::Old(_) | Found::Damaged(_)) | None) | Err(_) => return None,
    };
    serde_json::from_slice(&body).ok().filter(|batch: &RefusedBatch| batch.id == name.batch)
}

const fn owner<'a>(state: &'a StateDir, name: &'a str) -> Owner<'a> {
    Owner { part: Part::REFUSED, name, state }
}
