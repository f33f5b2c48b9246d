//! Sessions: each has a record, and the batches in flight of each are found by an index.

use std::collections::HashSet;

use aptix_model::failure::Failure;
use aptix_model::id::{SessionId, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_model::session::Session;
use aptix_model::state::BatchState;

use super::rows::{Decided, Needs, Put, Rows, Stop, Workspace};
use crate::store::records::session_record;
use crate::store::session::{self, ModeChange, ModeChanged, SESSIONS, is_in_flight};

/// Sessions that a workspace has room for.
const FULL: u64 = SESSIONS as u64;

/// Where no session could be forgotten for another one, so many new ones find no room before that is tried again.
const SEARCH_EVERY: u64 = 256;

/// Why the session of a batch may not write now, if it may not. A session that cannot be read is an error: it may be Restricted.
pub(super) fn restricts(rows: &Rows, batch: &BatchRecord) -> Result<Option<Box<Failure>>, Stop> {
    let Some(id) = session::of(&batch.origin) else { return Ok(None) };
    let session = rows.session(&batch.workspace, &id)?;
    Ok(session.and_then(|session| session.may_write().err()).map(Box::new))
}

/// What creates the session of a new batch, unless there is one, or no room for one; or why the session may not write.
pub(super) fn admit(
    rows: &Rows,
    counters: &mut Workspace,
    batch: &BatchRecord,
) -> Result<Result<Vec<Put>, Box<Failure>>, Stop> {
    let Some(id) = session::of(&batch.origin) else { return Ok(Ok(Vec::new())) };
    match rows.session(&batch.workspace, &id)? {
        Some(session) => Ok(session.may_write().map(|()| Vec::new()).map_err(Box::new)),
        None => add_for_batch(rows, counters, batch, &session::created_by(batch, id)).map(Ok),
    }
}

/// What counts a batch in flight of its session, or ends that, after it was in another state.
pub(super) fn put_flight(former: Option<BatchState>, batch: &BatchRecord) -> Option<Put> {
    let key = (batch.workspace.clone(), session::of(&batch.origin)?);
    match (former.is_some_and(is_in_flight), is_in_flight(batch.state)) {
        (false, true) => Some(Put::InFlight(key, 1)),
        (true, false) => Some(Put::InFlight(key, -1)),
        _ => None,
    }
}

/// What [`set_mode`] decides by.
pub(super) fn needs_of_mode(asked: &ModeChange, needs: &mut Needs) {
    needs.lock(&asked.workspace, true);
    needs.sessions.insert((asked.workspace.clone(), asked.session.clone()));
}

/// Changes the mode of a session.
pub(super) fn set_mode(asked: &ModeChange, rows: &Rows) -> Decided<ModeChanged> {
    let (workspace, id) = (&asked.workspace, &asked.session);
    let mut counters = rows.counters(workspace)?;
    let former = rows.session(workspace, id)?;
    let is_idle = rows.in_flight(workspace, id)? <= 0;
    let (progress, session) = match session::change(former.clone(), is_idle, asked) {
        Ok(changed) => changed,
        Err(refusal) => return Ok((ModeChanged::Refused(refusal), Vec::new())),
    };
    let record = || Some(session_record::encode(&session).to_vec());
    let (mut puts, before) = (Vec::new(), counters.sessions);
    match former {
        None => {
            let Some(forgotten) = forget(rows, &mut counters, workspace)? else {
                counters.sessions = FULL + 1;
                let noted = Put::Workspace(workspace.clone(), Box::new(counters));
                return Ok((ModeChanged::TooMany, vec![noted]));
            };
            puts.extend(forgotten);
            puts.push(Put::Session((workspace.clone(), id.clone()), record()));
        }
        Some(former) if former == session => {}
        Some(_) => puts.push(Put::Session((workspace.clone(), id.clone()), record())),
    }
    if counters.sessions != before {
        puts.push(Put::Workspace(workspace.clone(), Box::new(counters)));
    }
    Ok((ModeChanged::Asked(progress, Box::new(session)), puts))
}

/// What forgets sessions for another one, which is counted; `None` if there is no room.
fn forget(rows: &Rows, counters: &mut Workspace, workspace: &WorkspaceId) -> Result<Option<Vec<Put>>, Stop> {
    let mut forgotten = Vec::new();
    if counters.sessions >= FULL {
        let kept = rows.every_session(workspace)?;
        let busy: HashSet<SessionId> =
            kept.iter().filter(|(_, of)| of.in_flight > Some(0)).map(|(id, _)| (*id).clone()).collect();
        // One that cannot be read may be Restricted, and stays.
        let all = kept.iter().filter_map(|(id, of)| session_record::decode(id, of.record.as_ref()?).ok());
        forgotten = session::forgotten(all, &busy);
        counters.sessions = kept.len().saturating_sub(forgotten.len()) as u64;
    }
    if counters.sessions >= FULL {
        return Ok(None);
    }
    counters.sessions += 1;
    Ok(Some(forgotten.into_iter().map(|id| Put::Session((workspace.clone(), id), None)).collect()))
}

/// The same for the session of a new batch, which is stored without one where there is no room. Not every such batch has the
/// sessions searched for one to forget: all of them are read for that.
fn add_for_batch(rows: &Rows, counters: &mut Workspace, batch: &BatchRecord, new: &Session) -> Result<Vec<Put>, Stop> {
    if (FULL + 1..FULL + SEARCH_EVERY).contains(&counters.sessions) {
        counters.sessions += 1;
        return Ok(Vec::new());
    }
    let Some(mut puts) = forget(rows, counters, &batch.workspace)? else {
        counters.sessions = FULL + 1;
        return Ok(Vec::new());
    };
    let record = session_record::encode(new).to_vec();
    puts.push(Put::Session((batch.workspace.clone(), new.id.clone()), Some(record)));
    Ok(puts)
}
