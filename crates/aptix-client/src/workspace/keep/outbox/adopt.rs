//! The outbox of earlier versions: a file for each receipt, named by its batch, and an empty file for each ended batch.
//!
//! An agent takes it over when it starts. What is cut short is gone on with at the next start.

use std::os::fd::AsFd;

use aptix_model::id::BatchId;
use rustix::io::Errno;

use super::error::OutboxError;
use super::frame::Kind;
use super::index::{ASKED, Gap, Known};
use super::log::{NO_BATCH, with_log};
use super::{drop_unclaimed, ended};
use crate::workspace::commit::journal::Journal;
use crate::workspace::commit::record_file;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, errno};
use crate::workspace::keep::notes;
use crate::workspace::roots::own_file::{self, Damage, Owner};
use crate::workspace::roots::state::{Part, StateDir};
use crate::workspace::roots::workspace::Workspace;

/// The file to which earlier versions wrote before it got its name.
const NEXT: &str = "next";

/// Takes over what an earlier version left, and looks at what there is. The caller holds the agent's lock.
///
/// # Errors
/// When the system refuses.
pub fn adopt(workspace: &Workspace) -> Result<(), OutboxError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    with_log(workspace, state, |log| {
        for name in disk::names(log.dir.as_fd()).map_err(log.failed("read"))? {
            let Ok(batch) = name.parse::<BatchId>() else { continue };
            let name = batch.to_string();
            let Some(bytes) = own_file::read_whole(log.dir.as_fd(), &name).map_err(log.failed("read"))? else {
                continue;
            };
            let own = record_file::decode(state, &bytes).ok();
            let own = own.filter(|(record, _)| record.batch.as_deref() == Some(&name)).map(|(_, receipt)| receipt);
            if log.known(batch) == Known::No {
                let kind = if own.is_some() { Kind::Receipt } else { Kind::Lost };
                log.append(kind, batch, own.unwrap_or_default())?;
            }
            if own.is_some() {
                disk::unlink_if_there(disk, log.dir.as_fd(), &name).map_err(log.failed("clear"))?;
            } else {
                let owner = Owner { part: Part::OUTBOX, name: &name, state };
                own_file::set_aside(disk, log.dir.as_fd(), owner, Damage::Owner)?;
            }
        }
        Ok(disk::unlink_if_there(disk, log.dir.as_fd(), NEXT).map_err(log.failed("clear"))?)
    })?;
    adopt_done(workspace, state)?;
    ended::check(disk, state)?;
    ask_again(workspace, state)?;
    // A batch that cannot be cleared away for lack of room still needs its contents.
    if has_record(disk, state) { Ok(()) } else { drop_unclaimed(workspace, state) }
}

/// Whether there is a record of a commit, or what cannot be read and may be one.
fn has_record(disk: &dyn Disk, state: &StateDir) -> bool {
    let journal = Journal::find(disk, state);
    let record = journal.and_then(|journal| journal.map_or(Ok(None), |journal| journal.read()));
    record.map_or(true, |record| record.is_some())
}

/// After entries of unknown batches were lost, forgets how far the server's events were read: open batches come again, and
/// those that the history knows are reported as lost.
fn ask_again(workspace: &Workspace, state: &StateDir) -> Result<(), OutboxError> {
    with_log(workspace, state, |log| {
        if log.gap() != Gap::Open {
            return Ok(());
        }
        tracing::warn!("entries of the outbox log were lost: the server's events are read from the beginning");
        let agent = state.open(Part::AGENT)?;
        disk::unlink_if_there(log.disk, agent.as_fd(), notes::CURSOR)
            .and_then(|()| disk::sync_dir(log.disk, agent.as_fd()))
            .map_err(state.failed(Part::AGENT, "clear"))?;
        log.append(Kind::Gap, NO_BATCH, ASKED)
    })
}

/// Moves the names of ended batches to the part `ended`.
fn adopt_done(workspace: &Workspace, state: &StateDir) -> Result<(), OutboxError> {
    let Some(done) = state.find(Part::DONE)? else { return Ok(()) };
    let (disk, failed) = (workspace.disk(), state.failed(Part::DONE, "clear"));
    let names = disk::names(done.as_fd()).map_err(state.failed(Part::DONE, "read"))?;
    let batches: Vec<BatchId> = names.iter().filter_map(|name| name.parse().ok()).collect();
    if !batches.is_empty() {
        ended::add(disk, state, "", batches.iter().copied())?;
    }
    for batch in batches {
        disk::unlink_if_there(disk, done.as_fd(), &batch.to_string()).map_err(&failed)?;
    }
    let held = beneath::open_held(state.path()).map_err(|error| failed(errno::of(&error)))?;
    match disk.remove_dir(held.as_fd(), Part::DONE.0) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(errno) => Err(failed(errno).into()),
    }
}
