//! The outbox of earlier versions: a file for each receipt, named by its batch, and an empty file for each ended batch.
//!
//! An agent takes it over when it starts. What is cut short is gone on with at the next start.

use std::collections::HashSet;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::commits::drop_unclaimed;
use super::ended;
use super::frame::Kind;
use super::log::{ASKED, Known, Log, NO_BATCH};
use super::log_access::{made, with_log};
use crate::workspace::commit::journal::Journal;
use crate::workspace::commit::record_file;
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::keep::batch_files::batches;
use crate::workspace::keep::notes;
use crate::workspace::keep::outbox::error::OutboxError;
use crate::workspace::roots::own_file::{self, Damage, Owner};
use crate::workspace::roots::state::StateDir;
use crate::workspace::roots::workspace::Workspace;

/// The part in which earlier versions kept the names of ended batches.
const DONE: &str = "done";
/// The file to which earlier versions wrote before it got its name.
const NEXT: &str = "next";

/// Takes over what an earlier version left, and looks at what there is. The caller holds the agent's lock.
///
/// # Errors
/// When the system refuses.
pub fn adopt(workspace: &Workspace) -> Result<(), OutboxError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    let failed = |doing| OutboxError::system(state, doing);
    with_log(workspace, state, |log, dir| {
        for batch in batches(dir).map_err(failed("read"))? {
            let name = batch.to_string();
            let Some(bytes) = own_file::read_whole(dir.as_fd(), &name).map_err(failed("read"))? else { continue };
            let own = match record_file::decode(state, &bytes) {
                Ok((record, receipt)) if record.batch.as_deref() == Some(&name) => Some(receipt),
                _ => None,
            };
            let log = made(disk, state, dir, log)?;
            let is_known = log.known(batch) != Known::No;
            match own {
                Some(receipt) => {
                    if !is_known {
                        log.append(disk, state, Kind::Receipt, batch, receipt)?;
                    }
                    disk::unlink_if_there(disk, dir.as_fd(), &name).map_err(failed("clear"))?;
                }
                None => {
                    if !is_known {
                        log.append(disk, state, Kind::Lost, batch, b"")?;
                    }
                    let owner = Owner { part: "outbox", name: &name, state };
                    own_file::set_aside(disk, dir.as_fd(), owner, Damage::Owner)?;
                }
            }
        }
        disk::unlink_if_there(disk, dir.as_fd(), NEXT).map_err(failed("clear"))
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
    let disk = workspace.disk();
    if with_log(workspace, state, |log, _| Ok(!log.as_ref().is_some_and(Log::has_open_gap)))? {
        return Ok(());
    }
    tracing::warn!("entries of the outbox log were lost: the server's events are read from the beginning");
    let agent = state.open_agent()?;
    disk::unlink_if_there(disk, agent.as_fd(), notes::CURSOR)
        .and_then(|()| disk::sync_dir(disk, agent.as_fd()))
        .map_err(OutboxError::system_in(state, "agent", "clear"))?;
    with_log(workspace, state, |log, dir| made(disk, state, dir, log)?.append(disk, state, Kind::Gap, NO_BATCH, ASKED))
}

fn adopt_done(workspace: &Workspace, state: &StateDir) -> Result<(), OutboxError> {
    let failed = |doing| OutboxError::system_in(state, DONE, doing);
    let Some(done) = state.find_done()? else { return Ok(()) };
    let disk = workspace.disk();
    let batches = batches(&done).map_err(failed("read"))?;
    if !batches.is_empty() {
        ended::add(disk, state, "", batches.iter().copied().collect::<HashSet<_>>())?;
    }
    for batch in batches {
        disk::unlink_if_there(disk, done.as_fd(), &batch.to_string()).map_err(failed("clear"))?;
    }
    let held = beneath::open_held(state.path()).map_err(|error| failed("clear")(errno_of(&error)))?;
    match disk.remove_dir(held.as_fd(), DONE) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(errno) => Err(failed("clear")(errno)),
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
