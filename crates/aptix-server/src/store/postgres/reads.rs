//! Reads of workspaces, batches and events: one statement each, so that each sees one instant. A workspace that is being deleted has
//! nothing to be read. A record that cannot be read hides no other.

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision, SessionId, WorkspaceId};
use aptix_model::id_block;
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::session::SessionMode;
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::Database;
use super::fault::Fault;
use super::numbers::{column, digest, get, limit, name, number, optional_digest, time};
use crate::store::damaged::Damaged;
use crate::store::records::record::Happened;
use crate::store::records::{batch_record, record, session_record};
use crate::store::session::{self, SessionState, is_in_flight};
use crate::store::{BatchSelector, Due, DueKey, Event, Lease, Listed, ListedWorkspace, StoreError, WorkspaceCounts};

/// Reads the columns of a row.
pub(super) fn parsed<T>(parse: impl FnOnce() -> Result<T, Fault>) -> Result<T, StoreError> {
    parse().map_err(Fault::into_error)
}

const ROOTS: &str = "SELECT roots FROM workspaces WHERE name = $1 AND NOT deleting";

pub(super) async fn roots(database: &Database, workspace: &WorkspaceId) -> Result<Vec<String>, StoreError> {
    let rows = database.read(ROOTS, &[&workspace.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    match parsed(|| get::<Option<&[u8]>>(row, 0))? {
        Some(roots) => record::decode_texts(roots),
        None => Ok(Vec::new()),
    }
}

pub(super) async fn lease(database: &Database, workspace: &WorkspaceId) -> Result<Lease, StoreError> {
    let sql = "SELECT epoch, secret FROM workspaces WHERE name = $1 AND NOT deleting";
    let rows = database.read(sql, &[&workspace.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(Lease::default()) };
    parsed(|| Ok(Lease { epoch: number(get(row, 0)?), secret: optional_digest(row, 1)? }))
}

/// Digest of the commit of an event that is kept, or of the last one that was removed.
pub(super) async fn digest_of(
    database: &Database,
    workspace: &WorkspaceId,
    revision: Revision,
) -> Result<Option<Sha256Digest>, StoreError> {
    let sql = "SELECT e.record, w.trimmed, w.trimmed_digest FROM workspaces w \
        LEFT JOIN all_events e ON e.workspace = w.name AND e.revision = $2 AND e.revision > w.trimmed WHERE w.name = $1 AND NOT w.deleting";
    let rows = database.read(sql, &[&workspace.as_str(), &column(revision.0)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let happened = parsed(|| get::<Option<&[u8]>>(row, 0))?.map(record::decode_event);
    let (trimmed, digest) = parsed(|| Ok((number(get(row, 1)?), optional_digest(row, 2)?)))?;
    Ok(match happened {
        Some(Ok(event)) => event.digest,
        _ => digest.filter(|_| trimmed == revision.0),
    })
}

const COUNTS: &str = "SELECT newest, digest, open_batches, name FROM workspaces";

fn counts_in(row: &Row) -> Result<WorkspaceCounts, StoreError> {
    parsed(|| {
        let (newest, digest) = (Revision(number(get(row, 0)?)), optional_digest(row, 1)?);
        Ok(WorkspaceCounts { newest, digest, open_batches: number(get(row, 2)?) })
    })
}

pub(super) async fn counts(
    database: &Database,
    workspace: &WorkspaceId,
) -> Result<Option<WorkspaceCounts>, StoreError> {
    let sql = format!("{COUNTS} WHERE name = $1 AND known AND NOT deleting");
    let rows = database.read(&sql, &[&workspace.as_str()]).await?;
    rows.first().map(counts_in).transpose()
}

pub(super) async fn used_bytes(database: &Database, workspace: &WorkspaceId) -> Result<u64, StoreError> {
    let sql = "SELECT used_bytes FROM workspaces WHERE name = $1 AND NOT deleting";
    let rows = database.read(sql, &[&workspace.as_str()]).await?;
    rows.first().map_or(Ok(0), |row| parsed(|| Ok(number(get(row, 0)?))))
}

pub(super) async fn workspaces(
    database: &Database,
    after: Option<&WorkspaceId>,
    most: usize,
) -> Result<Vec<ListedWorkspace>, StoreError> {
    let sql = format!("{COUNTS} WHERE name > $1 AND known AND NOT deleting ORDER BY name LIMIT $2");
    // Before every name: none is empty.
    let after = after.map_or("", WorkspaceId::as_str);
    let rows = database.read(&sql, &[&after, &limit(most)]).await?;
    rows.iter().map(|row| Ok((parsed(|| name(row, 3))?, Some(counts_in(row)?)))).collect()
}

/// Batches whose time is over, in the order of expiry.
pub(super) async fn due(
    database: &Database,
    now: UnixMillis,
    after: Option<DueKey>,
    most: usize,
) -> Result<Vec<Due>, StoreError> {
    let sql = "SELECT s.expires, s.id, b.workspace FROM batch_states s JOIN batches b ON b.id = s.id \
        JOIN workspaces w ON w.name = b.workspace \
        WHERE s.expires IS NOT NULL AND s.expires <= $1 AND (s.expires, s.id) > ($2, $3) AND NOT w.deleting \
        ORDER BY s.expires, s.id LIMIT $4";
    let (expires, id) = after.map_or((-1, Uuid::nil()), |(expires, id)| (column(expires.0), id.0));
    let rows = database.read(sql, &[&column(now.0), &expires, &id, &limit(most)]).await?;
    let due = |row| parsed(|| Ok(Due { key: (time(get(row, 0)?), BatchId(get(row, 1)?)), workspace: name(row, 2)? }));
    rows.iter().map(due).collect()
}

const BATCH: &str = "SELECT b.id, b.content, b.progress, s.record FROM current_batches b JOIN workspaces w ON w.name = b.workspace \
    LEFT JOIN sessions s ON s.workspace = b.workspace AND s.session = b.session \
    WHERE b.workspace = $1 AND NOT w.deleting AND b.id = ";

pub(super) async fn batch(
    database: &Database,
    workspace: &WorkspaceId,
    which: &BatchSelector,
) -> Result<Option<BatchRecord>, StoreError> {
    let rows = match which {
        BatchSelector::Id(id) => database.read(&format!("{BATCH}$2"), &[&workspace.as_str(), &id.0]).await?,
        BatchSelector::Request(request) => {
            let sql = format!(
                "{BATCH}coalesce((SELECT r.id FROM batches r WHERE r.workspace = $1 AND r.request = $2 \
                    AND hashtextextended(r.workspace || ' ' || r.request, 0) = hashtextextended($1 || ' ' || $2, 0) \
                    ORDER BY r.first LIMIT 1), \
                    (SELECT f.batch FROM freed_requests f WHERE f.workspace = $1 AND f.request = $2))"
            );
            database.read(&sql, &[&workspace.as_str(), &request.as_str()]).await?
        }
        BatchSelector::Hunk(hunk) => {
            let sql =
                format!("{BATCH}coalesce((SELECT h.batch FROM hunks h WHERE h.workspace = $1 AND h.hunk = $2), $3)");
            let first = id_block::batch_id(hunk.0);
            database.read(&sql, &[&workspace.as_str(), &hunk.0, &first.0]).await?
        }
    };
    let Some(row) = rows.first() else { return Ok(None) };
    let (id, content, progress, session) = parsed(|| {
        let session: Option<&[u8]> = get(row, 3)?;
        Ok((BatchId(get(row, 0)?), get::<&[u8]>(row, 1)?, get::<&[u8]>(row, 2)?, session))
    })?;
    let mut batch = batch_record::decode_batch(id, content, progress)?;
    if let Some((id, session)) = session::of(&batch.origin).zip(session).filter(|_| is_in_flight(batch.state)) {
        batch.is_restricted = session_record::decode(&id, session)?.mode == SessionMode::Restricted;
    }
    Ok(Some(batch))
}

/// Batches in the order of their first revisions, newest first.
pub(super) async fn batches(
    database: &Database,
    workspace: &WorkspaceId,
    before: Option<Revision>,
    most: usize,
) -> Result<Vec<Listed>, StoreError> {
    let sql = "SELECT b.first, b.id FROM (\
            (SELECT first, id FROM batches WHERE workspace = $1 AND has_content AND first < $2 ORDER BY first DESC LIMIT $3) \
            UNION ALL (SELECT first, id FROM batches WHERE workspace = $1 AND NOT has_content AND first < $2 \
                ORDER BY first DESC LIMIT $3)) b \
        WHERE EXISTS (SELECT FROM workspaces w WHERE w.name = $1 AND NOT w.deleting) ORDER BY b.first DESC LIMIT $3";
    let before = before.map_or(i64::MAX, |before| column(before.0));
    let rows = database.read(sql, &[&workspace.as_str(), &before, &limit(most)]).await?;
    let listed = |row| parsed(|| Ok(Ok(Event::listed(Revision(number(get(row, 0)?)), BatchId(get(row, 1)?)))));
    rows.iter().map(listed).collect()
}

/// The events of the workspace `$1` after the revision `$2`, in their order, at most `$3`: of each part of them so many, and of those
/// the first.
pub(super) const NEXT_EVENTS: &str = "SELECT batch, revision, record FROM (\
        (SELECT id AS batch, first AS revision, event AS record FROM batches \
            WHERE workspace = $1 AND has_content AND first > $2 AND event IS NOT NULL ORDER BY first LIMIT $3) \
        UNION ALL (SELECT id, first, event FROM batches \
            WHERE workspace = $1 AND NOT has_content AND first > $2 AND event IS NOT NULL ORDER BY first LIMIT $3) \
        UNION ALL (SELECT batch, revision, record FROM events \
            WHERE workspace = $1 AND revision > $2 ORDER BY revision LIMIT $3)) parts ORDER BY revision LIMIT $3";

/// Events in their order. Revisions have no gap: what is not found, or cannot be read, is reported in its place.
pub(super) async fn events(
    database: &Database,
    workspace: &WorkspaceId,
    after: Revision,
    most: usize,
) -> Result<Vec<Listed>, StoreError> {
    let sql = format!(
        "SELECT w.newest, w.trimmed, e.revision, e.record FROM workspaces w \
        LEFT JOIN LATERAL ({NEXT_EVENTS}) e ON w.trimmed <= $2 WHERE w.name = $1 AND NOT w.deleting ORDER BY e.revision"
    );
    let rows = database.read(&sql, &[&workspace.as_str(), &column(after.0), &limit(most)]).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let (newest, trimmed) = parsed(|| Ok((number(get(row, 0)?), Revision(number(get(row, 1)?)))))?;
    if after < trimmed {
        return Err(StoreError::Compacted { oldest: trimmed.next() });
    }
    let mut found = Vec::new();
    for row in &rows {
        let event = parsed(|| {
            let revision: Option<i64> = get(row, 2)?;
            Ok(revision.map(number).zip(get::<Option<&[u8]>>(row, 3)?))
        })?;
        found.extend(event);
    }
    let mut found = found.into_iter().peekable();
    let revisions = (after.0.saturating_add(1)..=newest).take(most);
    let listed = revisions.map(|revision| {
        let at = Revision(revision);
        // Nothing but the lock of the workspace keeps two rows from having one revision.
        while found.next_if(|(found, _)| *found < revision).is_some() {}
        let entry = found.next_if(|(found, _)| *found == revision).map(|(_, record)| record::decode_event(record));
        match entry {
            Some(Ok(event)) => Ok(event_at(at, event)),
            Some(Err(error)) => Err(Damaged { revision: at, why: error.to_string() }),
            None => Err(Damaged { revision: at, why: "the event is missing".to_owned() }),
        }
    });
    Ok(listed.collect())
}

fn event_at(revision: Revision, happened: Happened) -> Event {
    let Happened { batch, digest, facts, .. } = happened;
    Event { revision, batch, digest, facts }
}

/// The events of a batch, newest first, as far as one that can be read leads to the next.
pub(super) async fn steps(
    database: &Database,
    workspace: &WorkspaceId,
    id: BatchId,
    newest: Revision,
) -> Result<Vec<Event>, StoreError> {
    let sql = "WITH RECURSIVE steps AS (\
            SELECT e.revision, e.record, e.previous, w.trimmed FROM all_events e JOIN workspaces w ON w.name = e.workspace \
            WHERE e.workspace = $1 AND e.revision = $2 AND e.revision > w.trimmed AND e.batch = $3 AND NOT w.deleting \
            UNION ALL SELECT e.revision, e.record, e.previous, s.trimmed FROM steps s \
            JOIN all_events e ON e.workspace = $1 AND e.revision = s.previous AND e.revision > s.trimmed AND e.batch = $3 \
            WHERE e.revision < s.revision) \
        SELECT revision, record FROM steps ORDER BY revision DESC";
    let rows = database.read(sql, &[&workspace.as_str(), &column(newest.0), &id.0]).await?;
    let mut steps = Vec::new();
    for row in &rows {
        let (revision, record) = parsed(|| Ok((Revision(number(get(row, 0)?)), get::<&[u8]>(row, 1)?)))?;
        let Ok(happened) = record::decode_event(record) else { break };
        steps.push(event_at(revision, happened));
    }
    Ok(steps)
}

/// A session, as it is now.
pub(super) async fn session(
    database: &Database,
    workspace: &WorkspaceId,
    id: &SessionId,
) -> Result<Option<SessionState>, StoreError> {
    let sql = "SELECT s.record, array(SELECT b.id FROM in_flight f JOIN batches b ON b.workspace = f.workspace AND b.first = f.first \
            AND b.has_content WHERE f.workspace = s.workspace AND f.session = s.session \
            AND hashtextextended(f.workspace || ' ' || f.session, 0) = hashtextextended(s.workspace || ' ' || s.session, 0) ORDER BY b.id) \
        FROM sessions s JOIN workspaces w ON w.name = s.workspace \
        WHERE s.workspace = $1 AND s.session = $2 AND NOT w.deleting";
    let rows = database.read(sql, &[&workspace.as_str(), &id.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (record, in_flight) = parsed(|| Ok((get::<&[u8]>(row, 0)?, get::<Vec<Uuid>>(row, 1)?)))?;
    let found = session_record::decode(id, record)?;
    Ok(Some(session::settled(found, in_flight.into_iter().map(BatchId).collect())))
}

/// The workspaces that are being deleted.
pub(super) async fn deletions(database: &Database) -> Result<Vec<WorkspaceId>, StoreError> {
    let rows = database.read("SELECT name FROM workspaces WHERE deleting ORDER BY name", &[]).await?;
    rows.iter().map(|row| parsed(|| name(row, 0))).collect()
}

/// For each digest, how many bytes its blob has, and until when it stays although nothing names it.
pub(super) async fn blobs(
    database: &Database,
    workspace: &WorkspaceId,
    digests: &[Sha256Digest],
) -> Result<Vec<(Sha256Digest, u64, i64)>, StoreError> {
    let sql = "SELECT b.digest, b.size, b.seen FROM blobs b JOIN workspaces w ON w.name = b.workspace \
        WHERE b.workspace = $1 AND b.digest = ANY($2::bytea[]) AND NOT w.deleting";
    let wanted: Vec<_> = digests.iter().map(|digest| digest.as_bytes().as_slice()).collect();
    let rows = database.read(sql, &[&workspace.as_str(), &wanted]).await?;
    rows.iter().map(|row| parsed(|| Ok((digest(row, 0)?, number(get(row, 1)?), get(row, 2)?)))).collect()
}
