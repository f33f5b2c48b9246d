//! Writes what changed: each kind of row with one statement, all of them sent together with the commit.

use std::collections::HashMap;
use std::pin::Pin;

use aptix_model::id::{BatchId, RequestId, Revision, WorkspaceId};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Statement};

use super::changes::{ChangedBatch, Changes, Columns, NewBatch, OfKey};
use super::database::{Lent, together};
use super::fault::Fault;
use super::numbers::column;
use super::rows::NewEvent;
use crate::store::records::record;

const WORKSPACES: &str = "UPDATE workspaces w SET known = n.known, newest = n.newest, digest = n.digest, epoch = n.epoch, \
    secret = n.secret, roots = n.roots, open_batches = n.open, \
    used_bytes = greatest(w.used_bytes + n.added, 0), sessions = n.sessions \
    FROM unnest($1::text[], $2::bool[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bytea[], $7::bytea[], $8::bigint[], \
    $9::bigint[], $10::bigint[]) AS n(name, known, newest, digest, epoch, secret, roots, open, added, sessions) \
    WHERE w.name = n.name";
const UNUSED: &str = "DELETE FROM workspaces WHERE name = ANY($1::text[])";
const NEW: &str = "INSERT INTO batches (id, workspace, first, is_open, has_content, request, session, hunk, reverts, replaces, event, \
    progress, content) \
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bool[], $5::bool[], $6::text[], $7::text[], $8::uuid[], \
    $9::uuid[], $10::uuid[], $11::bytea[], $12::bytea[], $13::bytea[])";
const STATES: &str = "WITH n AS (SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bool[], $4::bool[], $5::text[], $6::uuid[], \
        $7::bigint[], $8::bytea[]) AS n(id, newest, is_open, is_refused, freed, reverted_by, expires, progress)), \
    changed AS (UPDATE batch_states s SET newest = n.newest, is_open = n.is_open, is_refused = n.is_refused, freed = n.freed, \
        reverted_by = n.reverted_by, expires = n.expires, progress = n.progress FROM n WHERE s.id = n.id RETURNING s.id) \
    INSERT INTO batch_states (id, newest, is_open, is_refused, freed, reverted_by, expires, progress) \
    SELECT * FROM n WHERE n.id NOT IN (SELECT id FROM changed)";
const IN_FLIGHT: &str = "INSERT INTO in_flight (workspace, session, first) \
    SELECT n.* FROM unnest($1::text[], $2::text[], $3::bigint[]) AS n(workspace, session, first) WHERE NOT EXISTS \
    (SELECT FROM in_flight f WHERE f.workspace = n.workspace AND f.session = n.session AND f.first = n.first \
        AND hashtextextended(f.workspace || ' ' || f.session, 0) = hashtextextended(n.workspace || ' ' || n.session, 0))";
const NOT_IN_FLIGHT: &str = "DELETE FROM in_flight f \
    USING unnest($1::text[], $2::text[], $3::bigint[]) AS n(workspace, session, first) \
    WHERE f.workspace = n.workspace AND f.session = n.session AND f.first = n.first \
        AND hashtextextended(f.workspace || ' ' || f.session, 0) = hashtextextended(n.workspace || ' ' || n.session, 0)";
const EVENTS: &str = "INSERT INTO events (workspace, revision, batch, previous, record) \
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bytea[])";
const FREED_REQUESTS: &str = "INSERT INTO freed_requests (workspace, request, batch) \
    SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[]) \
    ON CONFLICT (workspace, request) DO UPDATE SET batch = excluded.batch";
const HUNKS: &str = "INSERT INTO hunks (workspace, hunk, batch) SELECT * FROM unnest($1::text[], $2::uuid[], $3::uuid[]) \
    ON CONFLICT (workspace, hunk) DO UPDATE SET batch = excluded.batch";
const SESSIONS: &str = "INSERT INTO sessions (workspace, session, record) \
    SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[]) \
    ON CONFLICT (workspace, session) DO UPDATE SET record = excluded.record";
const NO_SESSIONS: &str = "DELETE FROM sessions s USING unnest($1::text[], $2::text[]) AS n(workspace, session) \
    WHERE s.workspace = n.workspace AND s.session = n.session";
/// Counts how many more or fewer files name each blob, by the rows `named`.
macro_rules! count_names {
    () => {
        "counted AS (SELECT workspace, digest, sum(more) AS more FROM named GROUP BY workspace, digest HAVING sum(more) <> 0) \
        UPDATE blobs b SET names = b.names + c.more FROM counted c CROSS JOIN LATERAL \
            (SELECT b.ctid AS place FROM blobs b WHERE b.workspace = c.workspace AND b.digest = c.digest OFFSET 0) AS p \
        WHERE b.ctid = p.place"
    };
}

/// Removes the files with these paths, and of each key that is cleared those whose paths are not named.
const NO_FILES: &str = concat!(
    "WITH gone AS (DELETE FROM files f USING unnest($1::text[], $2::bytea[]) AS n(workspace, path) CROSS JOIN LATERAL \
            (SELECT f.ctid AS place FROM files f \
                WHERE f.workspace = n.workspace AND sha256(f.path) = sha256(n.path) AND f.path <> '' OFFSET 0) AS p \
        WHERE f.ctid = p.place RETURNING f.workspace, f.digest), \
    twins AS (DELETE FROM files f USING unnest($3::text[], $4::bytea[]) AS n(workspace, doc_path) CROSS JOIN LATERAL \
            (SELECT f.ctid AS place FROM files f WHERE f.workspace = n.workspace \
                AND sha256(f.doc_path) = sha256(n.doc_path) AND f.doc_path <> '' OFFSET 0) AS p \
        WHERE f.ctid = p.place AND (f.workspace, f.path) NOT IN (SELECT * FROM unnest($5::text[], $6::bytea[])) \
        RETURNING f.workspace, f.digest), \
    named AS (SELECT workspace, digest, -1 AS more FROM gone UNION ALL SELECT workspace, digest, -1 FROM twins), ",
    count_names!()
);
/// Adds or changes files.
const FILES: &str = concat!(
    "WITH n AS (SELECT n.*, p.place, p.digest AS former \
        FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[]) AS n(workspace, path, doc_path, digest, record) \
        LEFT JOIN LATERAL (SELECT f.ctid AS place, f.digest FROM files f \
            WHERE f.workspace = n.workspace AND sha256(f.path) = sha256(n.path) AND f.path <> '' OFFSET 0) AS p ON true), \
    changed AS (UPDATE files f SET doc_path = n.doc_path, digest = n.digest, record = n.record FROM n WHERE f.ctid = n.place), \
    added AS (INSERT INTO files (workspace, path, doc_path, digest, record) \
        SELECT workspace, path, doc_path, digest, record FROM n WHERE place IS NULL), \
    named AS (SELECT workspace, digest, 1 AS more FROM n UNION ALL SELECT workspace, former, -1 FROM n WHERE place IS NOT NULL), ",
    count_names!()
);
const NAMES: &str = "UPDATE blobs b SET names = b.names + n.more \
    FROM unnest($1::text[], $2::bytea[], $3::bigint[]) AS n(workspace, digest, more) \
    WHERE b.workspace = n.workspace AND b.digest = n.digest";
const HOLDINGS: &str = "INSERT INTO leases (workspace, epoch, server, agent, since, presence) \
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::text[], $5::bigint[], $6::bytea[]) \
    ON CONFLICT (workspace) DO UPDATE SET epoch = excluded.epoch, server = excluded.server, agent = excluded.agent, \
    since = excluded.since, presence = excluded.presence";
const BATCH_BLOBS: &str = "INSERT INTO batch_blobs (batch, digest, size) \
    SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::bigint[])";

/// A value of a statement.
type Value<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// Statements with their values, in the order in which they are carried out.
#[derive(Default)]
pub(super) struct Plan<'a>(Vec<(&'static str, Vec<Value<'a>>)>);

impl<'a> Plan<'a> {
    /// Adds a statement, if there is a row for it.
    pub(super) fn add(&mut self, sql: &'static str, rows: usize, values: Vec<Value<'a>>) {
        if rows > 0 {
            self.0.push((sql, values));
        }
    }

    /// Adds what writes all changes.
    pub(super) fn add_changes(&mut self, changes: &'a Changes) {
        let first = first_events(changes);
        plan_workspaces(self, changes);
        plan_batches(self, changes, &first);
        plan_states(self, changes);
        plan_events(self, changes, &first);
        plan_files(self, changes);
        plan_blobs(self, changes);
        plan_holdings(self, changes);
    }

    /// Carries out the statements, between one that begins a transaction and one that ends it. Everything is sent together.
    ///
    /// # Errors
    /// The first failure: it is the cause of those that follow in its transaction, which a commit rolls back.
    pub(super) async fn send(&self, client: &Lent, begin: Option<&str>, end: Option<&str>) -> Result<(), Fault> {
        let mut statements: Vec<Statement> = Vec::new();
        for (sql, _) in &self.0 {
            statements.push(client.statement(sql).await?);
        }
        let object = client.object()?;
        let mut sent = Vec::<Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>>>::new();
        sent.extend(begin.map(|begin| Box::pin(object.batch_execute(begin)) as Pin<Box<_>>));
        for (statement, (_, values)) in statements.iter().zip(&self.0) {
            let values = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect::<Vec<_>>();
            sent.push(Box::pin(async move { object.execute(statement, &values).await.map(drop) }));
        }
        sent.extend(end.map(|end| Box::pin(object.batch_execute(end)) as Pin<Box<_>>));
        together(sent).await.into_iter().collect::<Result<(), Error>>().map_err(Fault::from)
    }
}

/// A column of values.
pub(super) fn values<'a, T: ToSql + Sync + Send + 'a>(values: impl Iterator<Item = T>) -> Value<'a> {
    Box::new(values.collect::<Vec<_>>())
}

/// Writes all changes, and ends the transaction if that is asked for.
pub(super) async fn write(client: &Lent, changes: &Changes, end: Option<&str>) -> Result<(), Fault> {
    let mut plan = Plan::default();
    plan.add_changes(changes);
    plan.send(client, None, end).await
}

fn plan_workspaces<'a>(plan: &mut Plan<'a>, changes: &'a Changes) {
    let rows = || changes.workspaces.values();
    plan.add(
        WORKSPACES,
        changes.workspaces.len(),
        vec![
            values(changes.workspaces.keys().map(|id| id.as_str())),
            values(rows().map(|row| row.is_known)),
            values(rows().map(|row| column(row.newest.0))),
            values(rows().map(|row| row.digest.as_ref().map(|digest| digest.as_bytes().as_slice()))),
            values(rows().map(|row| column(row.lease.epoch))),
            values(rows().map(|row| row.lease.secret.as_ref().map(|digest| digest.as_bytes().as_slice()))),
            values(rows().map(|row| row.roots.as_deref())),
            values(rows().map(|row| column(row.open))),
            values(rows().map(|row| row.added_bytes)),
            values(rows().map(|row| column(row.sessions))),
        ],
    );
    let unused: Vec<_> = changes.created.iter().filter(|id| !changes.workspaces.contains_key(*id)).collect();
    plan.add(UNUSED, unused.len(), vec![values(unused.into_iter().map(|id| id.as_str()))]);
}

fn plan_batches<'a>(plan: &mut Plan<'a>, changes: &'a Changes, events: &HashMap<BatchId, &'a NewEvent>) {
    let new = || changes.new.values();
    let columns = || new().map(|new| &new.columns);
    let progress =
        |new: &'a NewBatch| new.columns.is_as_stored(new.records.first).then_some(new.records.progress.as_slice());
    plan.add(
        NEW,
        changes.new.len(),
        vec![
            values(changes.new.keys().map(|id| id.0)),
            values(new().map(|new| new.workspace.as_str())),
            values(new().map(|new| column(new.records.first.0))),
            values(columns().map(|of| of.is_open)),
            values(columns().map(|of| of.has_content)),
            values(new().map(|new| new.request.as_str())),
            values(columns().map(|of| of.session.as_ref().map(|session| session.as_str()))),
            values(columns().map(|of| of.hunk.map(|hunk| hunk.0))),
            values(columns().map(|of| of.reverts.map(|id| id.0))),
            values(columns().map(|of| of.replaces.map(|id| id.0))),
            values(changes.new.keys().map(|id| events.get(id).map(|event| event.record.as_slice()))),
            values(new().map(progress)),
            values(new().map(|new| new.records.content.as_slice())),
        ],
    );
}

/// A batch whose state is written.
struct State<'a> {
    id: BatchId,
    workspace: &'a WorkspaceId,
    first: Revision,
    columns: &'a Columns,
    progress: &'a [u8],
}

impl<'a> State<'a> {
    fn of_new((id, new): (&BatchId, &'a NewBatch)) -> Self {
        let NewBatch { workspace, columns, records, .. } = new;
        Self { id: *id, workspace, first: records.first, columns, progress: &records.progress }
    }

    fn of_changed((id, changed): (&BatchId, &'a ChangedBatch)) -> Self {
        let ChangedBatch { workspace, first, columns, progress } = changed;
        Self { id: *id, workspace, first: *first, columns, progress }
    }

    /// Where the batch is among those in flight, if its session can be found.
    fn place(&self) -> Option<(&'a str, &'a str, i64)> {
        Some((self.workspace.as_str(), self.columns.session.as_ref()?.as_str(), column(self.first.0)))
    }
}

fn plan_states<'a>(plan: &mut Plan<'a>, changes: &'a Changes) {
    let new = changes.new.iter().map(State::of_new).collect::<Vec<_>>();
    let changed = changes.changed.iter().map(State::of_changed).collect::<Vec<_>>();
    let more_than_stored = new.iter().filter(|state| !state.columns.is_as_stored(state.first));
    let states = more_than_stored.chain(&changed).collect::<Vec<_>>();
    let columns = || states.iter().map(|state| state.columns);
    plan.add(
        STATES,
        states.len(),
        vec![
            values(states.iter().map(|state| state.id.0)),
            values(columns().map(|of| column(of.newest.0))),
            values(columns().map(|of| of.is_open)),
            values(columns().map(|of| of.is_refused)),
            values(columns().map(|of| of.freed.as_ref().map(|request| request.as_str()))),
            values(columns().map(|of| of.reverted_by.map(|id| id.0))),
            values(columns().map(|of| of.expires.map(column))),
            values(states.iter().map(|state| state.progress)),
        ],
    );
    let ended = changed.iter().filter(|state| !state.columns.in_flight).filter_map(State::place);
    let in_flight = new.iter().chain(&changed).filter(|state| state.columns.in_flight).filter_map(State::place);
    for (sql, places) in [(NOT_IN_FLIGHT, ended.collect::<Vec<_>>()), (IN_FLIGHT, in_flight.collect())] {
        let workspaces = values(places.iter().map(|(workspace, ..)| *workspace));
        let sessions = values(places.iter().map(|(_, session, _)| *session));
        plan.add(sql, places.len(), vec![workspaces, sessions, values(places.iter().map(|(.., first)| *first))]);
    }
}

/// The first events of new batches, which are written in their rows.
fn first_events(changes: &Changes) -> HashMap<BatchId, &NewEvent> {
    let first = |event: &NewEvent| changes.new.get(&event.batch).map(|new| new.records.first);
    let events = changes.events.iter().map(|(_, event)| event).filter(|event| first(event) == Some(event.revision));
    events.map(|event| (event.batch, event)).collect()
}

fn plan_events<'a>(plan: &mut Plan<'a>, changes: &'a Changes, first: &HashMap<BatchId, &'a NewEvent>) {
    let Changes { requests, hunks, sessions, .. } = changes;
    let is_first = |event: &NewEvent| first.get(&event.batch).is_some_and(|first| first.revision == event.revision);
    let events = changes.events.iter().filter(|(_, event)| !is_first(event)).collect::<Vec<_>>();
    let event = || events.iter().map(|(_, event)| event);
    let of_events = vec![
        values(events.iter().map(|(workspace, _)| workspace.as_str())),
        values(event().map(|event| column(event.revision.0))),
        values(event().map(|event| event.batch.0)),
        values(event().map(|event| event.previous.map(|previous| column(previous.0)))),
        values(event().map(|event| event.record.as_slice())),
    ];
    plan.add(EVENTS, events.len(), of_events);
    // That which stored a batch is in its row.
    let is_own = |request: &RequestId, batch| changes.new.get(batch).is_some_and(|new| new.request == *request);
    let freed = requests.iter().filter(|((_, request), batch)| !is_own(request, batch)).collect::<Vec<_>>();
    let of_freed = vec![
        values(freed.iter().map(|((workspace, _), _)| workspace.as_str())),
        values(freed.iter().map(|((_, request), _)| request.as_str())),
        values(freed.iter().map(|(_, batch)| batch.0)),
    ];
    plan.add(FREED_REQUESTS, freed.len(), of_freed);
    let of_hunks = vec![
        values(hunks.keys().map(|(workspace, _)| workspace.as_str())),
        values(hunks.keys().map(|(_, hunk)| hunk.0)),
        values(hunks.values().map(|batch| batch.0)),
    ];
    plan.add(HUNKS, hunks.len(), of_hunks);
    let gone: Vec<_> = sessions.iter().filter(|(_, record)| record.is_none()).map(|(key, _)| key).collect();
    let of_gone = vec![values(gone.iter().map(|(w, _)| w.as_str())), values(gone.iter().map(|(_, id)| id.as_str()))];
    plan.add(NO_SESSIONS, gone.len(), of_gone);
    let kept: Vec<_> = sessions.iter().filter_map(|(key, record)| Some((key, record.as_deref()?))).collect();
    let of_kept = vec![
        values(kept.iter().map(|((workspace, _), _)| workspace.as_str())),
        values(kept.iter().map(|((_, id), _)| id.as_str())),
        values(kept.iter().map(|(_, record)| *record)),
    ];
    plan.add(SESSIONS, kept.len(), of_kept);
}

fn plan_files<'a>(plan: &mut Plan<'a>, changes: &'a Changes) {
    let files = &changes.files;
    let (mut gone, mut kept, mut cleared, mut named) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for ((workspace, key), OfKey { is_cleared, files }) in files {
        cleared.extend(is_cleared.then(|| (workspace.as_str(), key.as_str().as_bytes())));
        for (path, file) in files {
            let place = (workspace.as_str(), path.as_str().as_bytes());
            named.extend(is_cleared.then_some(place));
            match file {
                Some(file) => kept.push((workspace.as_str(), file)),
                None => gone.push(place),
            }
        }
    }
    let removals = gone.len() + cleared.len();
    let of_gone = [gone, cleared, named].into_iter().flat_map(|places| {
        let (workspaces, names): (Vec<_>, Vec<_>) = places.into_iter().unzip();
        [values(workspaces.into_iter()), values(names.into_iter())]
    });
    plan.add(NO_FILES, removals, of_gone.collect());
    let of_kept = vec![
        values(kept.iter().map(|(workspace, _)| *workspace)),
        values(kept.iter().map(|(_, file)| file.path.as_str().as_bytes())),
        values(kept.iter().map(|(_, file)| file.doc_path.as_str().as_bytes())),
        values(kept.iter().map(|(_, file)| file.content.sha256.as_bytes().as_slice())),
        values(kept.iter().map(|(_, file)| record::encode_file(file).to_vec())),
    ];
    plan.add(FILES, kept.len(), of_kept);
}

fn plan_holdings<'a>(plan: &mut Plan<'a>, changes: &'a Changes) {
    let holding = || changes.holdings.values().map(|(_, holding)| holding);
    let of_holdings = vec![
        values(changes.holdings.keys().map(|workspace| workspace.as_str())),
        values(changes.holdings.values().map(|(epoch, _)| column(*epoch))),
        values(holding().map(|holding| holding.server.0)),
        values(holding().map(|holding| holding.agent.as_str())),
        values(holding().map(|holding| column(holding.since.0))),
        values(holding().map(|holding| holding.presence.as_slice())),
    ];
    plan.add(HOLDINGS, changes.holdings.len(), of_holdings);
}

fn plan_blobs<'a>(plan: &mut Plan<'a>, changes: &'a Changes) {
    let Changes { names, batch_blobs, .. } = changes;
    let names: Vec<_> = names.iter().filter(|(_, more)| **more != 0).collect();
    let of_names = vec![
        values(names.iter().map(|((workspace, _), _)| workspace.as_str())),
        values(names.iter().map(|((_, digest), _)| digest.as_bytes().as_slice())),
        values(names.iter().map(|(_, more)| **more)),
    ];
    plan.add(NAMES, names.len(), of_names);
    let of_batches = vec![
        values(batch_blobs.keys().map(|(batch, _)| batch.0)),
        values(batch_blobs.keys().map(|(_, digest)| digest.as_bytes().as_slice())),
        values(batch_blobs.values().copied().map(column)),
    ];
    plan.add(BATCH_BLOBS, batch_blobs.len(), of_batches);
}
