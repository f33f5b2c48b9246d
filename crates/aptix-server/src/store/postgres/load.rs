//! Loads the rows that writes decide by: everything that is asked for at once, sent together.

use std::collections::BTreeSet;

use aptix_model::id::{BatchId, FilePatchId, Revision, WorkspaceId};
use aptix_model::record::UnixMillis;
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::{Database, Lent, Values};
use super::fault::Fault;
use super::numbers::{digest, get, name, number, optional_digest};
use super::rows::{Batch, Found, Needs, OfSession, Rows, Workspace, vanished};
use crate::store::Lease;
use crate::store::fleet::ServerId;

/// Bytes of batches that a group reads at most, beside the first; the same for chains, beside the first chain.
pub(super) const READ_BYTES: i64 = 32 << 20;

/// Batches of a chain that are followed; more than the links of batches follow.
const CHAIN: i32 = 65;

const CREATE: &str = "INSERT INTO workspaces (name) SELECT n FROM unnest($1::text[]) AS n ORDER BY n \
    ON CONFLICT DO NOTHING RETURNING name";
const LOCK: &str = "SELECT name, known, deleting, newest, digest, epoch, secret, roots, open_batches, sessions \
    FROM workspaces WHERE name = ANY($1::text[]) ORDER BY name FOR NO KEY UPDATE";
const LOCKED: &str = "WITH free AS (SELECT name FROM workspaces WHERE name = ANY($1::text[]) FOR NO KEY UPDATE SKIP LOCKED) \
    SELECT name FROM workspaces WHERE name = ANY($1::text[]) AND name NOT IN (SELECT name FROM free)";
/// With the session of each batch, which a step of it may ask for. Past so many bytes a batch is answered without its content.
const BATCHES: &str = "SELECT b.id, b.first, CASE WHEN sum(b.bytes) OVER (ORDER BY b.place) - b.bytes <= $2 THEN b.content END, \
    b.progress, b.workspace, b.session, s.record, \
    (SELECT count(*) FROM in_flight f WHERE f.workspace = b.workspace AND f.session = b.session \
        AND hashtextextended(f.workspace || ' ' || f.session, 0) = hashtextextended(b.workspace || ' ' || b.session, 0)) \
    FROM (SELECT a.id, a.first, a.content, a.progress, a.workspace, a.session, n.place, \
        octet_length(a.content) + octet_length(a.progress) AS bytes \
        FROM unnest($1::uuid[]) WITH ORDINALITY AS n(id, place) JOIN current_batches a ON a.id = n.id) AS b \
    LEFT JOIN sessions s ON s.workspace = b.workspace AND s.session = b.session ORDER BY b.place";
/// Whole chains, by their first batches: the first of them, and as many more as take so many bytes together. Of each other chain its
/// first batch, marked as left out.
const CHAINS: &str = "WITH RECURSIVE chain AS (\
        SELECT n.root, n.place, b.id, b.reverts, 1 AS depth, octet_length(b.content) + octet_length(b.progress) AS bytes \
            FROM unnest($1::uuid[]) WITH ORDINALITY AS n(root, place) JOIN current_batches b ON b.id = n.root \
        UNION ALL SELECT c.root, c.place, b.id, b.reverts, c.depth + 1, octet_length(b.content) + octet_length(b.progress) \
            FROM chain c JOIN current_batches b ON b.id = c.reverts WHERE c.depth < $2), \
    whole AS (SELECT root, place, sum(bytes) AS bytes FROM chain GROUP BY root, place), \
    bounded AS (SELECT root, row_number() OVER in_order > 1 AND sum(bytes) OVER in_order > $3::bigint AS is_left_out \
        FROM whole WINDOW in_order AS (ORDER BY place)), \
    taken AS (SELECT DISTINCT c.id FROM chain c JOIN bounded o ON o.root = c.root AND NOT o.is_left_out) \
    SELECT b.id, b.first, CASE WHEN t.id IS NOT NULL THEN b.content END, b.progress, coalesce(o.is_left_out, false) \
    FROM (SELECT id FROM taken UNION SELECT root FROM bounded WHERE is_left_out) AS n(id) JOIN current_batches b ON b.id = n.id \
    LEFT JOIN taken t ON t.id = n.id LEFT JOIN bounded o ON o.root = n.id";
const REQUESTS: &str = "WITH n AS (SELECT * FROM unnest($1::text[], $2::text[]) AS n(workspace, request)) \
    SELECT b.workspace, b.request, b.id FROM n JOIN batches b ON b.workspace = n.workspace AND b.request = n.request \
        AND hashtextextended(b.workspace || ' ' || b.request, 0) = hashtextextended(n.workspace || ' ' || n.request, 0) \
    UNION ALL SELECT f.workspace, f.request, f.batch FROM n JOIN freed_requests f USING (workspace, request)";
const HUNKS: &str = "SELECT h.workspace, h.hunk, h.batch FROM unnest($1::text[], $2::uuid[]) AS n(workspace, hunk) \
    JOIN hunks h USING (workspace, hunk)";
const SESSIONS: &str = "SELECT n.workspace, n.session, s.record, (SELECT count(*) FROM in_flight f \
        WHERE f.workspace = n.workspace AND f.session = n.session \
        AND hashtextextended(f.workspace || ' ' || f.session, 0) = hashtextextended(n.workspace || ' ' || n.session, 0)) \
    FROM unnest($1::text[], $2::text[]) AS n(workspace, session) LEFT JOIN sessions s USING (workspace, session)";
const EVERY_SESSION: &str = "SELECT s.workspace, s.session, s.record, (SELECT count(*) FROM in_flight f \
        WHERE f.workspace = s.workspace AND f.session = s.session \
        AND hashtextextended(f.workspace || ' ' || f.session, 0) = hashtextextended(s.workspace || ' ' || s.session, 0)) \
    FROM sessions s WHERE s.workspace = ANY($1::text[])";
const BLOBS: &str = "SELECT b.workspace, b.digest FROM unnest($1::text[], $2::bytea[]) AS n(workspace, digest) \
    JOIN blobs b USING (workspace, digest)";

/// Whether each server lives, and since when each lease is held through another one that does.
const HOLDINGS: &str = "SELECT n.workspace, n.server, \
        EXISTS (SELECT FROM servers s WHERE s.id = n.server AND s.until > clock_timestamp()), \
        (SELECT l.since FROM leases l JOIN servers s ON s.id = l.server AND s.until > clock_timestamp() \
            WHERE l.workspace = n.workspace AND l.server <> n.server) \
    FROM unnest($1::text[], $2::uuid[]) AS n(workspace, server)";

/// Splits pairs into two columns.
fn columns<A, B>(pairs: impl Iterator<Item = (A, B)>) -> (Vec<A>, Vec<B>) {
    pairs.unzip()
}

/// Begins a transaction with `begin`, locks the workspaces that are needed, in the order of their names, and loads the rest; all
/// of it is sent together. Answers the workspaces whose rows it created.
pub(super) async fn begin(
    client: &Lent,
    begin: &str,
    needs: &Needs,
    rows: &mut Rows,
) -> Result<BTreeSet<WorkspaceId>, Fault> {
    let object = client.object()?;
    let (create, lock) = (client.statement(CREATE).await?, client.statement(LOCK).await?);
    let new: Vec<_> = needs.workspaces.iter().filter(|(_, creates)| **creates).map(|(id, _)| id.as_str()).collect();
    let all: Vec<_> = needs.workspaces.keys().map(WorkspaceId::as_str).collect();
    let prepared = Prepared::of(client, needs).await?;
    let (new, all): (Values<'_>, Values<'_>) = (&[&new], &[&all]);
    let (began, created, locked, loaded) = tokio::join!(
        biased;
        object.batch_execute(begin),
        object.query(&create, new),
        object.query(&lock, all),
        prepared.send(client, needs),
    );
    began?;
    let created = created?.iter().map(|row| name(row, 0)).collect::<Result<BTreeSet<WorkspaceId>, _>>()?;
    for row in locked? {
        let (id, workspace) = workspace(&row)?;
        rows.workspaces.insert(id, Some(workspace));
    }
    for (id, creates) in &needs.workspaces {
        let found = rows.workspaces.entry(id.clone()).or_default();
        // It was there when it was to be created, and was deleted while its lock was waited for.
        if *creates && found.is_none() {
            return Err(vanished());
        }
    }
    take(needs, loaded?, rows)?;
    Ok(created)
}

/// Loads more rows; all of it is sent together.
pub(super) async fn more(client: &Lent, needs: &Needs, rows: &mut Rows) -> Result<(), Fault> {
    let loaded = Prepared::of(client, needs).await?.send(client, needs).await?;
    take(needs, loaded, rows)
}

/// Those of some workspaces whose rows other transactions hold.
pub(super) async fn locked(
    database: &Database,
    workspaces: impl Iterator<Item = &WorkspaceId>,
) -> Result<BTreeSet<WorkspaceId>, Fault> {
    let names: BTreeSet<_> = workspaces.map(WorkspaceId::as_str).collect();
    let names: Vec<_> = names.into_iter().collect();
    let client = database.committing().await?;
    client.rows(LOCKED, &[&names]).await?.iter().map(|row| name(row, 0)).collect()
}

/// What was answered, by statement.
struct Loaded {
    batches: Vec<Row>,
    chains: Vec<Row>,
    requests: Vec<Row>,
    hunks: Vec<Row>,
    sessions: Vec<Row>,
    every_session: Vec<Row>,
    blobs: Vec<Row>,
    holdings: Vec<Row>,
}

/// The statements of what is needed.
struct Prepared(Vec<Option<tokio_postgres::Statement>>);

impl Prepared {
    async fn of(client: &Lent, needs: &Needs) -> Result<Self, Fault> {
        let wanted = [
            (!(needs.batches.is_empty() && needs.new_batches.is_empty()), BATCHES),
            (!needs.chains.is_empty(), CHAINS),
            (!needs.requests.is_empty(), REQUESTS),
            (!needs.hunks.is_empty(), HUNKS),
            (!needs.sessions.is_empty(), SESSIONS),
            (!needs.all_sessions.is_empty(), EVERY_SESSION),
            (!needs.blobs.is_empty(), BLOBS),
            (!needs.holdings.is_empty(), HOLDINGS),
        ];
        let mut prepared = Vec::new();
        for (is_wanted, sql) in wanted {
            prepared.push(if is_wanted { Some(client.statement(sql).await?) } else { None });
        }
        Ok(Self(prepared))
    }

    async fn rows(&self, client: &Lent, statement: usize, values: Values<'_>) -> Result<Vec<Row>, Fault> {
        match self.0.get(statement) {
            Some(Some(statement)) => Ok(client.object()?.query(statement, values).await?),
            _ => Ok(Vec::new()),
        }
    }

    async fn send(&self, client: &Lent, needs: &Needs) -> Result<Loaded, Fault> {
        let batches: Vec<Uuid> = needs.batches.iter().chain(&needs.new_batches).map(|id| id.0).collect();
        let chains: Vec<Uuid> = needs.chains.iter().map(|id| id.0).collect();
        let requests = columns(needs.requests.iter().map(|(w, request)| (w.as_str(), request.as_str())));
        let hunks = columns(needs.hunks.iter().map(|(w, hunk)| (w.as_str(), hunk.0)));
        let sessions = columns(needs.sessions.iter().map(|(w, session)| (w.as_str(), session.as_str())));
        let every_session: Vec<_> = needs.all_sessions.iter().map(WorkspaceId::as_str).collect();
        let blobs = columns(needs.blobs.iter().map(|(w, digest)| (w.as_str(), digest.as_bytes().as_slice())));
        let holdings = columns(needs.holdings.iter().map(|(w, server)| (w.as_str(), server.0)));
        let values: [Values<'_>; 8] = [
            &[&batches, &READ_BYTES],
            &[&chains, &CHAIN, &READ_BYTES],
            &[&requests.0, &requests.1],
            &[&hunks.0, &hunks.1],
            &[&sessions.0, &sessions.1],
            &[&every_session],
            &[&blobs.0, &blobs.1],
            &[&holdings.0, &holdings.1],
        ];
        let [batches, chains, requests, hunks, sessions, every_session, blobs, holdings] = values;
        let answers = tokio::join!(
            biased;
            self.rows(client, 0, batches),
            self.rows(client, 1, chains),
            self.rows(client, 2, requests),
            self.rows(client, 3, hunks),
            self.rows(client, 4, sessions),
            self.rows(client, 5, every_session),
            self.rows(client, 6, blobs),
            self.rows(client, 7, holdings),
        );
        let (batches, chains, requests, hunks, sessions, every_session, blobs, holdings) = answers;
        Ok(Loaded {
            batches: batches?,
            chains: chains?,
            requests: requests?,
            hunks: hunks?,
            sessions: sessions?,
            every_session: every_session?,
            blobs: blobs?,
            holdings: holdings?,
        })
    }
}

/// Keeps what was answered. What a write of the group changed meanwhile stays as that write left it.
fn take(needs: &Needs, loaded: Loaded, rows: &mut Rows) -> Result<(), Fault> {
    for row in &loaded.batches {
        take_batch(rows, row)?;
        if let Some(session) = get::<Option<&str>>(row, 5)?.and_then(|session| session.parse().ok()) {
            let found = OfSession { record: get(row, 6)?, in_flight: get(row, 7)? };
            rows.sessions.entry((name(row, 4)?, session)).or_insert(found);
        }
    }
    rows.chains.extend(&needs.chains);
    for row in &loaded.chains {
        take_batch(rows, row)?;
        let (root, is_left_out) = (BatchId(get(row, 0)?), get(row, 4)?);
        if is_left_out {
            rows.chains.remove(&root);
            rows.large_chains.insert(root);
        }
    }
    for id in needs.batches.iter().chain(&needs.new_batches).chain(&needs.chains) {
        rows.batches.entry(*id).or_insert(Found::None);
    }
    for row in &loaded.requests {
        rows.requests.entry((name(row, 0)?, name(row, 1)?)).or_insert(Some(BatchId(get(row, 2)?)));
    }
    for key in &needs.requests {
        rows.requests.entry(key.clone()).or_default();
    }
    for row in &loaded.hunks {
        let key = (name(row, 0)?, FilePatchId(get(row, 1)?));
        rows.hunks.entry(key).or_insert(Some(BatchId(get(row, 2)?)));
    }
    for key in &needs.hunks {
        rows.hunks.entry(key.clone()).or_default();
    }
    for row in loaded.sessions.iter().chain(&loaded.every_session) {
        let found = OfSession { record: get(row, 2)?, in_flight: get(row, 3)? };
        rows.sessions.entry((name(row, 0)?, name(row, 1)?)).or_insert(found);
    }
    rows.all_sessions.extend(needs.all_sessions.iter().cloned());
    for row in &loaded.blobs {
        rows.blobs.insert((name(row, 0)?, digest(row, 1)?), true);
    }
    for key in &needs.blobs {
        rows.blobs.entry(key.clone()).or_insert(false);
    }
    for row in &loaded.holdings {
        let (id, server) = (name::<WorkspaceId>(row, 0)?, ServerId(get(row, 1)?));
        rows.holdings.insert((id.clone(), server), get(row, 2)?);
        let since = get::<Option<i64>>(row, 3)?.map(|since| UnixMillis(number(since)));
        rows.held.entry(id).or_insert(since);
    }
    Ok(())
}

fn take_batch(rows: &mut Rows, row: &Row) -> Result<(), Fault> {
    let (first, content, progress) = (Revision(number(get(row, 1)?)), get(row, 2)?, get(row, 3)?);
    let found = match content {
        Some(content) => Found::Batch(Batch { first, content, progress }),
        None => Found::TooLarge,
    };
    let known = rows.batches.entry(BatchId(get(row, 0)?)).or_insert(Found::TooLarge);
    if matches!(known, Found::TooLarge) {
        *known = found;
    }
    Ok(())
}

/// The counters of a workspace, in the order of [`LOCK`].
fn workspace(row: &Row) -> Result<(WorkspaceId, Workspace), Fault> {
    let workspace = Workspace {
        is_known: get(row, 1)?,
        is_deleting: get(row, 2)?,
        newest: Revision(number(get(row, 3)?)),
        digest: optional_digest(row, 4)?,
        lease: Lease { epoch: number(get(row, 5)?), secret: optional_digest(row, 6)? },
        roots: get(row, 7)?,
        open: number(get(row, 8)?),
        added_bytes: 0,
        sessions: number(get(row, 9)?),
    };
    Ok((name(row, 0)?, workspace))
}
