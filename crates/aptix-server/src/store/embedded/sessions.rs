//! Sessions in the tables: each has a record, and each of its batches in flight an entry of its own.

use std::collections::{BTreeMap, HashSet};

use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Revision, SessionId, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_model::session::{Session, SessionMode};
use aptix_model::state::BatchState;
use fjall::{PersistMode, Slice};

use super::committer::{Put, View};
use super::instant::Instant;
use super::keys::{self, Key};
use super::record;
use super::session_record;
use super::tables::{Tables, failed};
use crate::mint;
use crate::store::session::{self, ModeChange, ModeChanged, SESSIONS, SessionState, is_in_flight};
use crate::store::{BatchSelector, StoreError};

/// Batches looked at in one go.
const PAGE: usize = 1000;

/// Sessions that a workspace has room for.
const FULL: u64 = SESSIONS as u64;

/// Where no session could be forgotten for another one, so many new ones find no room before that is tried again.
const SEARCH_EVERY: u64 = 256;

fn load(view: &View<'_>, workspace: &WorkspaceId, id: &SessionId) -> Result<Option<Session>, StoreError> {
    view.get(&keys::session(workspace, id))?.map(|record| session_record::decode(id, &record)).transpose()
}

/// Why the session of a batch may not write now, if it may not. A session that cannot be read is an error: it may be Restricted.
pub(super) fn restricts(view: &View<'_>, batch: &BatchRecord) -> Result<Option<Box<Failure>>, StoreError> {
    let Some(id) = session::of(&batch.origin) else { return Ok(None) };
    let session = load(view, &batch.workspace, &id)?;
    Ok(session.and_then(|session| session.may_write().err()).map(Box::new))
}

/// What creates the session of a new batch, unless there is one, or no room for one; or why the session may not write.
pub(super) fn admit(view: &View<'_>, batch: &BatchRecord) -> Result<Result<Vec<Put>, Box<Failure>>, StoreError> {
    let Some(id) = session::of(&batch.origin) else { return Ok(Ok(Vec::new())) };
    match load(view, &batch.workspace, &id)? {
        Some(session) => Ok(session.may_write().map(|()| Vec::new()).map_err(Box::new)),
        None => add_for_batch(view, &batch.workspace, &session::created_by(batch, id)).map(Ok),
    }
}

/// What lists a batch in flight, or ends that, after it was in another state.
pub(super) fn put_flight(former: Option<BatchState>, batch: &BatchRecord) -> Option<Put> {
    let key = keys::in_flight(&batch.workspace, &session::of(&batch.origin)?, batch.id);
    // An earlier version listed batches that wait for a person, too.
    let may_be_listed = |state| is_in_flight(state) || state == BatchState::PendingApproval;
    match (former.is_some_and(may_be_listed), is_in_flight(batch.state)) {
        (_, true) if !former.is_some_and(is_in_flight) => Some(Put::Record(key, record::encode_id(batch.id.0))),
        (true, false) => Some(Put::RemoveRecord(key)),
        _ => None,
    }
}

/// Changes the mode of a session.
pub(super) fn set_mode(view: &View<'_>, asked: &ModeChange) -> Result<(ModeChanged, Vec<Put>), StoreError> {
    let (workspace, id) = (&asked.workspace, &asked.session);
    let former = load(view, workspace, id)?;
    let is_idle = !view.has_any(&keys::in_flight_of(workspace, id))?;
    let (progress, session) = match session::change(former.clone(), is_idle, asked) {
        Ok(changed) => changed,
        Err(refusal) => return Ok((ModeChanged::Refused(refusal), Vec::new())),
    };
    let puts = match former {
        None => add(view, workspace, &session)?,
        Some(former) if former == session => Ok(Vec::new()),
        Some(_) => Ok(vec![Put::Record(keys::session(workspace, id), session_record::encode(&session))]),
    };
    Ok(match puts {
        Ok(puts) => (ModeChanged::Asked(progress, Box::new(session)), puts),
        Err(noted) => (ModeChanged::TooMany, noted),
    })
}

/// What adds a session, and forgets others for it; if there is no room, what notes that.
fn add(view: &View<'_>, workspace: &WorkspaceId, new: &Session) -> Result<Result<Vec<Put>, Vec<Put>>, StoreError> {
    let counted = |count| Put::Record(keys::session_count(workspace), session_record::encode_count(count));
    let mut count = count(view, workspace)?;
    let mut puts = Vec::new();
    if count >= FULL {
        let kept = view.beginning_with(&keys::sessions(workspace))?;
        // One that cannot be read may be Restricted, and stays.
        let all = kept.values().filter_map(|record| session_record::decode_any(record).ok());
        let forgotten = session::forgotten(all, &busy(&view.beginning_with(&keys::all_in_flight(workspace))?));
        count = kept.len().saturating_sub(forgotten.len()) as u64;
        puts.extend(forgotten.iter().map(|id| Put::RemoveRecord(keys::session(workspace, id))));
    }
    if count >= FULL {
        return Ok(Err(vec![counted(FULL + 1)]));
    }
    puts.push(Put::Record(keys::session(workspace, &new.id), session_record::encode(new)));
    puts.push(counted(count + 1));
    Ok(Ok(puts))
}

/// The same for the session of a new batch, which is stored without one where there is no room. Not every such batch has the
/// sessions searched for one to forget: that takes as long as the workspace has batches in flight.
fn add_for_batch(view: &View<'_>, workspace: &WorkspaceId, new: &Session) -> Result<Vec<Put>, StoreError> {
    let count = count(view, workspace)?;
    if (FULL + 1..FULL + SEARCH_EVERY).contains(&count) {
        return Ok(vec![Put::Record(keys::session_count(workspace), session_record::encode_count(count + 1))]);
    }
    Ok(add(view, workspace, new)?.unwrap_or_else(|noted| noted))
}

/// How many sessions there are; above [`FULL`], how many found no room since the last search besides. Counted anew where the
/// record of that is damaged, and written with the next session.
fn count(view: &View<'_>, workspace: &WorkspaceId) -> Result<u64, StoreError> {
    match view.get(&keys::session_count(workspace))?.map(|record| session_record::decode_count(&record)) {
        None => Ok(0),
        Some(Ok(count)) => Ok(count),
        Some(Err(_)) => Ok(view.beginning_with(&keys::sessions(workspace))?.len() as u64),
    }
}

fn busy(in_flight: &BTreeMap<Key, Slice>) -> HashSet<SessionId> {
    in_flight.keys().filter_map(|key| Some(keys::in_flight_batch(key)?.0)).collect()
}

impl Instant<'_> {
    pub(super) fn session(&self, workspace: &WorkspaceId, id: &SessionId) -> Result<Option<SessionState>, StoreError> {
        let Some(found) = self.load_session(workspace, id)? else { return Ok(None) };
        let mut in_flight = Vec::new();
        for entry in self.prefix(keys::in_flight_of(workspace, id)) {
            let key = entry.key().map_err(failed("list batches in flight"))?;
            in_flight.extend(keys::in_flight_batch(&key).map(|(_, batch)| batch));
        }
        Ok(Some(session::settled(found, in_flight)))
    }

    fn load_session(&self, workspace: &WorkspaceId, id: &SessionId) -> Result<Option<Session>, StoreError> {
        let record = self.get(&keys::session(workspace, id))?;
        record.map(|record| session_record::decode(id, &record)).transpose()
    }

    /// Whether a batch is in flight although its session is Restricted.
    pub(super) fn is_restricted(&self, batch: &BatchRecord) -> Result<bool, StoreError> {
        let Some(id) = session::of(&batch.origin).filter(|_| is_in_flight(batch.state)) else { return Ok(false) };
        let session = self.load_session(&batch.workspace, &id)?;
        Ok(session.is_some_and(|session| session.mode == SessionMode::Restricted))
    }
}

/// Lists the batches in flight of sessions in a store of an earlier version, which did not.
///
/// # Errors
/// When the store cannot be read or written.
pub(super) fn list_in_flight(tables: &Tables) -> Result<(), StoreError> {
    let now = tables.now();
    if now.get(&keys::IN_FLIGHT.to_vec())?.is_some() {
        return Ok(());
    }
    let mut batch = tables.db.batch().durability(Some(PersistMode::SyncAll));
    for (workspace, counters) in now.every_workspace(None) {
        for (session, id) in now.in_flight(&workspace, counters.newest)? {
            batch.insert(&tables.records, keys::in_flight(&workspace, &session, id), record::encode_id(id.0));
        }
    }
    batch.insert(&tables.records, keys::IN_FLIGHT, record::encode_id(mint::uuid()));
    batch.commit().map_err(failed("list the batches in flight"))
}

impl Instant<'_> {
    /// The batches in flight of sessions, found by looking at each batch. Those that cannot be read are passed over.
    fn in_flight(&self, workspace: &WorkspaceId, newest: Revision) -> Result<Vec<(SessionId, BatchId)>, StoreError> {
        let (mut before, mut found) = (newest.next(), Vec::new());
        if self.counters_of(workspace).is_some_and(|counters| counters.open == Some(0)) {
            return Ok(found);
        }
        loop {
            let page = self.batches(workspace, before, PAGE)?;
            let Some(last) = page.last() else { return Ok(found) };
            before = last.as_ref().map_or_else(|damaged| damaged.revision, |entry| entry.revision);
            for entry in page.iter().flatten() {
                let state = self.get(&keys::state(entry.batch)).ok().flatten();
                let state = state.and_then(|state| super::batch_record::decode_state("a batch", &state).ok());
                if !state.is_some_and(|state| is_in_flight(state.state)) {
                    continue;
                }
                let batch = self.batch(workspace, &BatchSelector::Id(entry.batch)).ok().flatten();
                found.extend(batch.and_then(|batch| Some((session::of(&batch.origin)?, batch.id))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use aptix_model::actor::{Actor, ActorKind};
    use aptix_model::batch::{Batch, Origin};
    use aptix_model::batch_event::EventKind;
    use aptix_model::id::Uuid;
    use aptix_model::record::{Sent, Source, UnixMillis};

    use super::*;
    use crate::store::embedded::{EmbeddedStore, Opening};
    use crate::store::{Appended, Store, Transition, Transitioned};

    fn record(number: u128) -> BatchRecord {
        BatchRecord {
            id: BatchId(Uuid::from_u128(number)),
            workspace: "w".parse().unwrap(),
            revision: Revision(0),
            state: BatchState::Approved,
            batch: Batch::default(),
            ids: Vec::new(),
            origin: Origin { session_id: Some("s".to_owned()), ..Origin::default() },
            request_id: format!("r{number}").parse().unwrap(),
            created: UnixMillis(1),
            updated: UnixMillis(2),
            report: None,
            source: Source::Submitted,
            reverted_by: None,
            is_restricted: false,
            removed_content: None,
            sent: Sent::default(),
        }
    }

    /// Makes a store what an earlier version would have left, or changes it as one would.
    fn alter(dir: &Path, alter: impl FnOnce(&Tables)) {
        alter(&Tables::open(dir, Opening::default().open_files).unwrap());
    }

    fn change(request: &str) -> ModeChange {
        ModeChange {
            workspace: "w".parse().unwrap(),
            session: "s".parse().unwrap(),
            owner: "ann".parse().unwrap(),
            request: request.parse().unwrap(),
            to: SessionMode::Restricted,
            by: None,
            at: UnixMillis(3),
        }
    }

    /// A store of an earlier version lists no batch in flight, and has no sessions.
    #[tokio::test]
    async fn batches_in_flight_of_an_earlier_version_are_found_at_the_next_start() {
        let (dir, w, s) = (tempfile::tempdir().unwrap(), "w".parse().unwrap(), "s".parse().unwrap());
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let ended = BatchRecord { state: BatchState::Failed, ..record(1) };
        for batch in [ended, record(2)] {
            assert!(matches!(store.append(batch).await, Ok(Appended::New(_))));
        }
        store.close().await.unwrap();
        drop(store);
        let former = [
            keys::IN_FLIGHT.to_vec(),
            keys::session(&w, &s),
            keys::session_count(&w),
            keys::in_flight(&w, &s, BatchId(Uuid::from_u128(2))),
        ];
        alter(dir.path(), |tables| former.iter().for_each(|key| tables.records.remove(key.clone()).unwrap()));

        let store = EmbeddedStore::open(dir.path()).unwrap();
        let Ok(ModeChanged::Asked(progress, _)) = store.set_mode(change("m1")).await else { panic!("refused") };
        assert_eq!(progress, aptix_model::session::Progress::Waiting);
        let found = store.session(w, s).await.unwrap().unwrap();
        assert_eq!(found.in_flight, [BatchId(Uuid::from_u128(2))]);
    }

    /// A store of an earlier version lists batches that wait for a person: their end ends that.
    #[tokio::test]
    async fn a_batch_that_waited_for_a_person_is_not_listed_for_ever() {
        let (dir, w, s) = (tempfile::tempdir().unwrap(), "w".parse().unwrap(), "s".parse().unwrap());
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let waiting = BatchRecord { state: BatchState::PendingApproval, ..record(1) };
        assert!(matches!(store.append(waiting).await, Ok(Appended::New(_))));
        store.close().await.unwrap();
        drop(store);
        let id = BatchId(Uuid::from_u128(1));
        let listed = (keys::in_flight(&w, &s, id), record::encode_id(id.0));
        alter(dir.path(), |tables| tables.records.insert(&listed.0, listed.1).unwrap());

        let store = EmbeddedStore::open(dir.path()).unwrap();
        let rejected = Transition {
            workspace: w.clone(),
            batch: id,
            kind: EventKind::Rejected,
            actor: Actor::unnamed(ActorKind::Person),
            reason: None,
            from: BatchState::PendingApproval,
            to: BatchState::Rejected,
            at: UnixMillis(3),
            lease: None,
            report: None,
            files: Vec::new(),
            freed: None,
        };
        assert!(matches!(store.transition(rejected).await, Ok(Transitioned::Done(_))));
        assert!(store.session(w, s).await.unwrap().unwrap().in_flight.is_empty());
        let Ok(ModeChanged::Asked(progress, _)) = store.set_mode(change("m1")).await else { panic!("refused") };
        assert_eq!(progress, aptix_model::session::Progress::Done);
    }

    /// REQ-PATCH-009.1: a batch that a server without sessions stored for a restricted one is sent as what must not be applied.
    #[tokio::test]
    async fn a_batch_that_got_past_the_mode_is_marked() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert!(matches!(store.append(record(1)).await, Ok(Appended::New(_))));
        store.close().await.unwrap();
        drop(store);
        let mut closed = Session::new("s".parse().unwrap(), None, UnixMillis(1));
        closed.mode = SessionMode::Restricted;
        let key = keys::session(&"w".parse().unwrap(), &closed.id);
        alter(dir.path(), |tables| tables.records.insert(&key, session_record::encode(&closed)).unwrap());
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let which = BatchSelector::Id(BatchId(Uuid::from_u128(1)));
        let found = store.batch("w".parse().unwrap(), which.clone()).await.unwrap().unwrap();
        assert!(found.is_restricted);

        // A record that cannot be read closes the session.
        store.close().await.unwrap();
        drop(store);
        alter(dir.path(), |tables| tables.records.insert(&key, b"x").unwrap());
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert!(matches!(store.append(record(2)).await, Err(StoreError::Corrupt { .. })));
        assert!(matches!(store.set_mode(change("m1")).await, Err(StoreError::Corrupt { .. })));
        assert!(matches!(store.batch("w".parse().unwrap(), which).await, Err(StoreError::Corrupt { .. })));
    }

    /// A damaged count keeps no session out: they are counted anew.
    #[tokio::test]
    async fn a_damaged_count_of_sessions_is_counted_anew() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert!(matches!(store.append(record(1)).await, Ok(Appended::New(_))));
        store.close().await.unwrap();
        drop(store);
        let count = keys::session_count(&"w".parse().unwrap());
        alter(dir.path(), |tables| tables.records.insert(&count, b"x").unwrap());
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let origin = Origin { session_id: Some("t".to_owned()), ..Origin::default() };
        let stored = store.append(BatchRecord { origin, ..record(2) }).await;
        assert!(matches!(stored, Ok(Appended::New(_))), "{stored:?}");
        store.close().await.unwrap();
        drop(store);
        let mut kept = Vec::new();
        alter(dir.path(), |tables| kept = tables.records.get(&count).unwrap().unwrap().to_vec());
        assert_eq!(session_record::decode_count(&kept), Ok(2));
    }

    /// Where every session is Restricted or has batches in flight, not every batch of a new session has them searched.
    #[tokio::test]
    async fn a_full_workspace_is_not_searched_for_every_new_session() {
        let (dir, w) = (tempfile::tempdir().unwrap(), "w".parse().unwrap());
        let count = keys::session_count(&w);
        for (tried, found, counted) in
            [(1, false, FULL + 2), (SEARCH_EVERY - 1, false, FULL + 256), (SEARCH_EVERY, true, 1)]
        {
            alter(dir.path(), |tables| {
                tables.records.insert(&count, session_record::encode_count(FULL + tried)).unwrap();
            });
            let store = EmbeddedStore::open(dir.path()).unwrap();
            assert!(matches!(store.append(record(u128::from(tried))).await, Ok(Appended::New(_))));
            let session = store.session(w.clone(), "s".parse().unwrap()).await.unwrap();
            assert_eq!(session.is_some(), found, "{tried}");
            store.close().await.unwrap();
            drop(store);
            alter(dir.path(), |tables| {
                let kept = tables.records.get(&count).unwrap().unwrap();
                assert_eq!(session_record::decode_count(&kept), Ok(counted), "{tried}");
            });
        }
    }
}
