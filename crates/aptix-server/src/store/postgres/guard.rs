//! Compares, in the transaction of a group, the rows that its writes decided by with the rows of the database. Any difference fails the
//! transaction.
//!
//! The rows of workspaces are locked first. Every transaction that changes a batch, a session, a request or a blob of a workspace holds
//! this lock, and each statement sees what was committed before it: what is compared after the lock stays as it is until the commit. Whether
//! a server lives is compared at that moment: its time may be over in the next. An id that another workspace takes for a batch of its own
//! meanwhile is refused by the key of `batches`.

use std::collections::BTreeMap;

use aptix_model::id::{BatchId, SessionId, WorkspaceId};

use super::flush::{Plan, values};
use super::numbers::column;
use super::rows::{In, Needs, Workspace};

/// All columns that [`Workspace`] has. Those that are being deleted are not known.
const WORKSPACES: &str = "WITH locked AS (SELECT name, known, deleting, newest, digest, epoch, secret, roots, open_batches, sessions \
        FROM workspaces WHERE name = ANY($1::text[]) ORDER BY name FOR NO KEY UPDATE) \
    SELECT check_known((SELECT count(*) FROM locked l JOIN unnest($1::text[], $2::bool[], $3::bigint[], $4::bytea[], $5::bigint[], \
        $6::bytea[], $7::bytea[], $8::bigint[], $9::bigint[]) \
        AS n(name, known, newest, digest, epoch, secret, roots, open, sessions) ON n.name = l.name AND NOT l.deleting \
        AND (l.known, l.newest, l.digest, l.epoch, l.secret, l.roots, l.open_batches, l.sessions) \
        IS NOT DISTINCT FROM (n.known, n.newest, n.digest, n.epoch, n.secret, n.roots, n.open, n.sessions)) \
        = cardinality($1::text[]))";
/// The content of a batch never changes, except that retention removes it, which leaves `has_content` false.
const BATCHES: &str = "SELECT check_known(NOT EXISTS (SELECT FROM unnest($1::uuid[], $2::text[], $3::bytea[]) \
        AS n(id, workspace, progress) LEFT JOIN current_batches b ON b.id = n.id \
    WHERE (b.workspace, b.progress, b.has_content) IS DISTINCT FROM (n.workspace, n.progress, true)))";
const NEW_BATCHES: &str = "SELECT check_known(NOT EXISTS (SELECT FROM batches WHERE id = ANY($1::uuid[])))";
const SESSIONS: &str = "SELECT check_known(NOT EXISTS (SELECT FROM unnest($1::text[], $2::text[], $3::bytea[]) \
        AS n(workspace, session, record) LEFT JOIN sessions s USING (workspace, session) \
    WHERE s.record IS DISTINCT FROM n.record))";
const REQUESTS: &str = "WITH n AS (SELECT * FROM unnest($1::text[], $2::text[]) AS n(workspace, request)) \
    SELECT check_known(NOT EXISTS (SELECT FROM n JOIN batches b ON b.workspace = n.workspace AND b.request = n.request \
        AND hashtextextended(b.workspace || ' ' || b.request, 0) = hashtextextended(n.workspace || ' ' || n.request, 0)) \
    AND NOT EXISTS (SELECT FROM n JOIN freed_requests f USING (workspace, request)))";
const BLOBS: &str = "SELECT check_known(NOT EXISTS (SELECT FROM unnest($1::text[], $2::bytea[]) AS n(workspace, digest) \
    LEFT JOIN blobs b USING (workspace, digest) WHERE b.seen IS NULL))";
const HOLDINGS: &str = "SELECT check_known(NOT EXISTS (SELECT FROM unnest($1::text[], $2::uuid[]) AS n(workspace, server) \
    WHERE NOT EXISTS (SELECT FROM servers s WHERE s.id = n.server AND s.until > clock_timestamp()) \
    OR EXISTS (SELECT FROM leases l JOIN servers s ON s.id = l.server AND s.until > clock_timestamp() \
        WHERE l.workspace = n.workspace AND l.server <> n.server)))";

/// The values that writes decided by without reading them. They also decided by [`Needs`]: none of its `new_batches` is there, no
/// request is used, every blob is there, every server lives, and no agent of another one holds a lease.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Expected {
    pub(super) workspaces: BTreeMap<WorkspaceId, Workspace>,
    /// The workspace and the progress of each batch, whose content is there.
    pub(super) batches: BTreeMap<BatchId, (WorkspaceId, Vec<u8>)>,
    /// The record of each session, if there is one.
    pub(super) sessions: BTreeMap<In<SessionId>, Option<Vec<u8>>>,
}

/// Adds the statements that compare, behind which nothing is carried out if anything differs.
pub(super) fn plan<'a>(plan: &mut Plan<'a>, needs: &'a Needs, expected: &'a Expected) {
    let Expected { workspaces, batches, sessions } = expected;
    let of = || workspaces.values();
    let of_workspaces = vec![
        values(workspaces.keys().map(WorkspaceId::as_str)),
        values(of().map(|row| row.is_known)),
        values(of().map(|row| column(row.newest.0))),
        values(of().map(|row| row.digest.as_ref().map(|digest| digest.as_bytes().as_slice()))),
        values(of().map(|row| column(row.lease.epoch))),
        values(of().map(|row| row.lease.secret.as_ref().map(|digest| digest.as_bytes().as_slice()))),
        values(of().map(|row| row.roots.as_deref())),
        values(of().map(|row| column(row.open))),
        values(of().map(|row| column(row.sessions))),
    ];
    plan.add(WORKSPACES, workspaces.len(), of_workspaces);
    let of_batches = vec![
        values(batches.keys().map(|id| id.0)),
        values(batches.values().map(|(workspace, _)| workspace.as_str())),
        values(batches.values().map(|(_, progress)| progress.as_slice())),
    ];
    plan.add(BATCHES, batches.len(), of_batches);
    let of_sessions = vec![
        values(sessions.keys().map(|(workspace, _)| workspace.as_str())),
        values(sessions.keys().map(|(_, id)| id.as_str())),
        values(sessions.values().map(Option::as_deref)),
    ];
    plan.add(SESSIONS, sessions.len(), of_sessions);
    let Needs { new_batches, requests, blobs, holdings, .. } = needs;
    plan.add(NEW_BATCHES, new_batches.len(), vec![values(new_batches.iter().map(|id| id.0))]);
    let of_requests = vec![
        values(requests.iter().map(|(workspace, _)| workspace.as_str())),
        values(requests.iter().map(|(_, request)| request.as_str())),
    ];
    plan.add(REQUESTS, requests.len(), of_requests);
    let of_blobs = vec![
        values(blobs.iter().map(|(workspace, _)| workspace.as_str())),
        values(blobs.iter().map(|(_, digest)| digest.as_bytes().as_slice())),
    ];
    plan.add(BLOBS, blobs.len(), of_blobs);
    let of_holdings = vec![
        values(holdings.iter().map(|(workspace, _)| workspace.as_str())),
        values(holdings.iter().map(|(_, server)| server.0)),
    ];
    plan.add(HOLDINGS, holdings.len(), of_holdings);
}
