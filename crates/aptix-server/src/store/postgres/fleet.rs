//! The servers on the database, and the leases that their agents hold. The clock of the database alone decides who lives.

use std::collections::HashMap;
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{Revision, WorkspaceId};
use aptix_model::record::UnixMillis;
use aptix_model::wire::bytes::{presence_from_bytes, presence_to_bytes};
use tokio::time::timeout;
use tokio_postgres::Row;

use super::database::Database;
use super::fault::Fault;
use super::numbers::{get, name, number, optional_digest};
use super::reads::parsed;
use super::rows::{Decided, Holding, Needs, Put, Rows, Workspace, load};
use super::schema;
use crate::store::fleet::{Company, Grant, Granted, Holder, LeaseName, Lifetime, Looked, Member, Seen, ServerId};
use crate::store::records::record;
use crate::store::{Lease, StoreError};

/// How long a server may take to join. One that takes longer after it lost its membership is cut off from the database.
const JOINING: Duration = Duration::from_secs(7);

/// How long the row of a server that died is kept.
const REMEMBERED: Duration = Duration::from_secs(3600);

const JOIN: &str = "INSERT INTO servers (id, address, secret, knows, until) \
    SELECT $1, $2, $3, $4, clock_timestamp() + $5 * interval '1 ms' FROM table_versions WHERE oldest <= $4";
const RENEW: &str =
    "UPDATE servers SET until = clock_timestamp() + $2 * interval '1 ms' WHERE id = $1 AND until > clock_timestamp()";
const OTHERS: &str = "SELECT id, address, secret FROM servers WHERE id <> $1 AND until > clock_timestamp()";
/// A lease that another transaction changes at this moment is not removed: another server takes it, or it ends there.
const FORGET: &str = "WITH dead AS (DELETE FROM servers WHERE until < clock_timestamp() - $1 * interval '1 ms' RETURNING id), \
    held AS (SELECT l.workspace, l.server FROM leases l JOIN dead d ON d.id = l.server FOR UPDATE OF l SKIP LOCKED) \
    DELETE FROM leases l USING held h WHERE l.workspace = h.workspace AND l.server = h.server";
const HOLDER: &str = "SELECT l.agent, l.since, l.presence, s.id, s.address, s.secret FROM leases l \
    JOIN servers s ON s.id = l.server AND s.until > clock_timestamp() WHERE l.workspace = $1";
const LOCK: &str = "SELECT FROM workspaces WHERE name = ANY($1::text[]) ORDER BY name FOR NO KEY UPDATE";
const RELEASE: &str = "DELETE FROM leases WHERE (workspace, epoch) IN \
    (SELECT w.name, w.epoch FROM unnest($1::text[], $2::bytea[]) AS n(name, secret) \
        JOIN workspaces w ON w.name = n.name AND w.secret = n.secret)";
const LOOK: &str = "SELECT f.tokens, w.name, w.born, w.newest, w.epoch, w.secret FROM store_facts f \
    LEFT JOIN workspaces w ON w.name = ANY($1::text[]) AND w.known AND NOT w.deleting";

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Counts a server among those that live; forgets those that died long ago, with what they held.
pub(super) async fn join(database: &Database, member: &Member, lifetime: Lifetime) -> Result<Company, Fault> {
    let joined = timeout(JOINING, join_in_time(database, member, lifetime)).await;
    joined.unwrap_or_else(|_| Err(Fault::Unavailable(format!("joining the other servers took over {JOINING:?}"))))
}

async fn join_in_time(database: &Database, member: &Member, lifetime: Lifetime) -> Result<Company, Fault> {
    let transaction = database.begin_reserved().await?;
    let Member { id, address, secret } = member;
    transaction.change(FORGET, &[&millis(REMEMBERED)]).await?;
    let knows = schema::newest();
    if transaction.change(JOIN, &[&id.0, address, secret, &knows, &millis(lifetime)]).await? == 0 {
        let cause = format!(
            "its tables were migrated, and servers that know versions up to {knows} cannot use them any more; hint: start a newer aptix-server"
        );
        return Err(Fault::Unavailable(cause));
    }
    transaction.change("UPDATE store_facts SET joined = joined + 1", &[]).await?;
    let company = company(&transaction.rows(OTHERS, &[&id.0]).await?)?;
    transaction.commit().await?;
    Ok(company)
}

/// Has a server count among those that live for longer; `None` if its time was over.
pub(super) async fn renew(database: &Database, id: ServerId, lifetime: Lifetime) -> Result<Option<Company>, Fault> {
    let transaction = database.begin_reserved().await?;
    if transaction.change(RENEW, &[&id.0, &millis(lifetime)]).await? == 0 {
        transaction.roll_back().await?;
        return Ok(None);
    }
    let company = company(&transaction.rows(OTHERS, &[&id.0]).await?)?;
    transaction.commit().await?;
    Ok(Some(company))
}

fn company(rows: &[Row]) -> Result<Company, Fault> {
    let mut company = Company::default();
    for row in rows {
        company.others.push(member(row, 0)?);
    }
    Ok(company)
}

/// The server whose columns begin here.
fn member(row: &Row, first: usize) -> Result<Member, Fault> {
    Ok(Member { id: ServerId(get(row, first)?), address: get(row, first + 1)?, secret: get(row, first + 2)? })
}

/// Ends that a server counts among those that live.
pub(super) async fn leave(database: &Database, id: ServerId) -> Result<(), Fault> {
    database.change("DELETE FROM servers WHERE id = $1", &[&id.0]).await.map(drop)
}

/// Ends that leases are held, each if it is the newest of its workspace.
pub(super) async fn release(database: &Database, leases: &[LeaseName]) -> Result<(), Fault> {
    let workspaces: Vec<_> = leases.iter().map(|(workspace, _)| workspace.as_str()).collect();
    let secrets: Vec<_> = leases.iter().map(|(_, secret)| secret.as_bytes().as_slice()).collect();
    let transaction = database.begin().await?;
    // A grant that is under way has decided by then, and what it granted is seen.
    transaction.rows(LOCK, &[&workspaces]).await?;
    transaction.change(RELEASE, &[&workspaces, &secrets]).await?;
    transaction.commit().await
}

/// Who serves a workspace, and through which server.
pub(super) async fn holder(
    database: &Database,
    workspace: &WorkspaceId,
) -> Result<Option<(Holder, Member)>, StoreError> {
    let rows = database.read(HOLDER, &[&workspace.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (agent, since, presence, server) =
        parsed(|| Ok((name(row, 0)?, UnixMillis(number(get(row, 1)?)), get::<&[u8]>(row, 2)?, member(row, 3)?)))?;
    let presence = presence_from_bytes(presence).map_err(|error| StoreError::Corrupt {
        what: format!("the lease of workspace {workspace}"),
        why: error.to_string(),
    })?;
    Ok(Some((Holder { server: server.id, agent, since, presence }, server)))
}

/// How far each of these workspaces has come, and whether tokens changed.
pub(super) async fn look(database: &Database, wanted: &[WorkspaceId]) -> Result<Looked, StoreError> {
    let names: Vec<_> = wanted.iter().map(WorkspaceId::as_str).collect();
    let (mut found, mut looked) = (HashMap::new(), Looked::default());
    for row in &database.read(LOOK, &[&names]).await? {
        looked.tokens = parsed(|| Ok(number(get(row, 0)?)))?;
        if parsed(|| get::<Option<&str>>(row, 1))?.is_none() {
            continue;
        }
        let (id, seen) = parsed(|| {
            let lease = Lease { epoch: number(get(row, 4)?), secret: optional_digest(row, 5)? };
            let newest = Revision(number(get(row, 3)?));
            Ok((name::<WorkspaceId>(row, 1)?, Seen { instance: get(row, 2)?, newest, lease }))
        })?;
        found.insert(id, seen);
    }
    looked.seen = wanted.iter().map(|id| found.get(id).copied()).collect();
    Ok(looked)
}

/// A lease that is asked for, and what is written of its holder.
pub(super) struct Take {
    workspace: WorkspaceId,
    secret: Sha256Digest,
    held: Option<Sha256Digest>,
    roots: Vec<u8>,
    holding: Holding,
}

impl Take {
    pub(super) fn new(grant: Grant) -> Self {
        let Grant { workspace, secret, held, holder } = grant;
        let Holder { server, agent, since, presence } = holder;
        let roots = record::encode_texts(&presence.roots).to_vec();
        let holding = Holding { server, agent, since, presence: presence_to_bytes(presence) };
        Self { workspace, secret, held, roots, holding }
    }

    pub(super) fn needs(&self, needs: &mut Needs) {
        needs.lock(&self.workspace, true);
        needs.holdings.insert((self.workspace.clone(), self.holding.server));
    }
}

/// Grants the next lease, unless another agent holds it through a server that lives.
pub(super) fn take(take: &Take, rows: &Rows) -> Decided<Granted> {
    let counters = rows.counters(&take.workspace)?;
    let key = (take.workspace.clone(), take.holding.server);
    let Some(lives) = rows.holdings.get(&key).copied() else {
        return load(|needs| _ = needs.holdings.insert(key));
    };
    if !lives {
        return Ok((Granted::Dead, Vec::new()));
    }
    let is_proven = take.held.is_some() && take.held == counters.lease.secret;
    if let Some(since) = rows.held.get(&take.workspace).copied().flatten().filter(|_| !is_proven) {
        return Ok((Granted::Held(since), Vec::new()));
    }
    let epoch = counters.lease.epoch + 1;
    let granted = Workspace {
        is_known: true,
        lease: Lease { epoch, secret: Some(take.secret) },
        roots: Some(take.roots.clone()),
        ..counters
    };
    let puts = vec![
        Put::Workspace(take.workspace.clone(), Box::new(granted)),
        Put::Holding(take.workspace.clone(), epoch, Box::new(take.holding.clone())),
    ];
    Ok((Granted::Epoch(epoch), puts))
}
