//! What commits put into the outbox as they end, and what those leave whose record is lost.

use aptix_model::id::BatchId;

use super::ended;
use super::error::OutboxError;
use super::frame::Kind;
use super::log::Known;
use super::log_access::{made, with_log};
use crate::workspace::commit::contents;
use crate::workspace::fs::beneath;
use crate::workspace::roots::state::StateDir;
use crate::workspace::roots::workspace::Workspace;

use std::os::fd::AsFd;

/// Keeps the receipt of a batch whose commit ends, durably, unless the outbox knows the batch already. Doing it again does
/// nothing.
pub(in crate::workspace) fn keep(
    workspace: &Workspace,
    state: &StateDir,
    batch: BatchId,
    receipt: &[u8],
) -> Result<(), OutboxError> {
    let disk = workspace.disk();
    with_log(workspace, state, |log, dir| {
        let known = log.as_ref().map_or(Known::No, |log| log.known(batch));
        let is_lost = || {
            Ok::<_, OutboxError>(match log.as_ref() {
                Some(log) => log.find(state, batch)?.is_some_and(|(kind, _)| kind == Kind::Lost),
                None => false,
            })
        };
        if known == Known::Ended || (known == Known::Waits && !is_lost()?) || ended::contains(disk, state, batch)? {
            return Ok(());
        }
        made(disk, state, dir, log)?.append(disk, state, Kind::Receipt, batch, receipt)
    })
}

/// Forgets the contents of batches that have no receipt. The caller knows that no batch may still be carried out.
pub(in crate::workspace) fn drop_unclaimed(workspace: &Workspace, state: &StateDir) -> Result<(), OutboxError> {
    let failed = |doing| OutboxError::system(state, doing);
    let Some(outbox) = state.find_outbox()? else { return Ok(()) };
    let batches = contents::batches(&outbox).map_err(failed("read"))?;
    if batches.is_empty() {
        return Ok(());
    }
    let disk = workspace.disk();
    with_log(workspace, state, |log, dir| {
        for batch in batches {
            let waits = |batch: &BatchId| log.as_ref().is_some_and(|log| log.known(*batch) == Known::Waits);
            // An earlier version's receipt is a file of the batch's name.
            let is_old = beneath::look_up(dir.as_fd(), &batch).map_err(failed("read"))?.is_some();
            if !is_old && !batch.parse().is_ok_and(|batch| waits(&batch)) {
                contents::remove(disk, dir, &batch).map_err(failed("clear"))?;
            }
        }
        Ok(())
    })
}
