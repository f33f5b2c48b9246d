//! Deletes a workspace: its row is marked, and everything else that is kept of it is removed in bounded transactions. The
//! last one removes the row.

use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::token::Ended;

use super::database::{Database, Transaction};
use super::fault::Fault;
use super::numbers::{get, number};
use super::tokens;
use super::uploads::lock_found;
use crate::store::deletion::Deletion;
use crate::store::fleet::Hint;

/// Rows that one transaction removes.
const MOST: i64 = 256;

const SERVED: &str = "SELECT l.agent FROM leases l JOIN servers s ON s.id = l.server AND s.until > clock_timestamp() \
    WHERE l.workspace = $1";

/// Begins a deletion; answers the tokens that end with it, or `None` if there is no such workspace.
///
/// # Errors
/// While an agent holds the lease of the workspace through a server that lives.
pub(super) async fn begin(
    database: &Database,
    workspace: &WorkspaceId,
    ended: Ended,
) -> Result<Option<Vec<TokenName>>, Fault> {
    let transaction = database.begin().await?;
    let sql = "SELECT known, deleting FROM workspaces WHERE name = $1 FOR NO KEY UPDATE";
    let found = transaction.row(sql, &[&workspace.as_str()]).await?;
    let (is_known, is_deleting) =
        found.map_or(Ok((false, false)), |row| Ok::<_, Fault>((get(&row, 0)?, get(&row, 1)?)))?;
    if is_deleting || !is_known {
        transaction.roll_back().await?;
        return Ok(is_deleting.then(Vec::new));
    }
    // Leases are granted under the lock of this row: none is granted between this look and the mark.
    if let Some(row) = transaction.row(SERVED, &[&workspace.as_str()]).await? {
        let agent: &str = get(&row, 0)?;
        return Err(Fault::Conflict(format!("agent {agent} took the lease of workspace {workspace}")));
    }
    transaction.change("UPDATE workspaces SET deleting = true WHERE name = $1", &[&workspace.as_str()]).await?;
    transaction.change("DELETE FROM leases WHERE workspace = $1", &[&workspace.as_str()]).await?;
    let names = tokens::end_of(&transaction, workspace, ended).await?;
    transaction.commit().await?;
    database.mouth.tell(Hint::Tokens);
    database.mouth.tell(Hint::Workspace(workspace.clone()));
    Ok(Some(names))
}

/// The tables that are emptied of a workspace, with what names a row of it, and the condition of the index by that.
const TABLES: [(&str, &str, &str); 5] = [
    ("events", "revision", "true"),
    ("freed_requests", "request", "true"),
    ("hunks", "hunk", "true"),
    ("sessions", "session", "true"),
    ("files", "sha256(path)", "path <> ''"),
];

/// Removes a bounded part of a workspace that is being deleted; `None` if it is not.
pub(super) async fn step(database: &Database, workspace: &WorkspaceId) -> Result<Option<Deletion>, Fault> {
    let transaction = database.begin().await?;
    if lock_found(&transaction, workspace).await? != Some(true) {
        transaction.roll_back().await?;
        return Ok(None);
    }
    let mut left = MOST;
    let batches = remove_batches(&transaction, workspace, left).await?;
    left -= batches;
    for (table, key, condition) in TABLES {
        if left <= 0 {
            break;
        }
        let sql = format!(
            "DELETE FROM {table} WHERE workspace = $1 AND {condition} AND {key} IN \
             (SELECT {key} FROM {table} WHERE workspace = $1 AND {condition} ORDER BY workspace, {key} LIMIT $2)"
        );
        left -= signed(transaction.change(&sql, &[&workspace.as_str(), &left]).await?);
    }
    if left > 0 {
        left -= remove_blobs(&transaction, workspace, left).await?;
    }
    let is_done = left > 0;
    let sql = "UPDATE workspaces SET deleted_batches = deleted_batches + $2 WHERE name = $1 \
        RETURNING deleted_batches, used_bytes, open_batches";
    let row = transaction.row(sql, &[&workspace.as_str(), &batches]).await?;
    let row = row.ok_or_else(|| Fault::Failed("the row of the workspace is gone".to_owned()))?;
    let (batches, bytes, open_batches) = (number(get(&row, 0)?), number(get(&row, 1)?), number(get(&row, 2)?));
    if is_done {
        transaction.change("DELETE FROM workspaces WHERE name = $1", &[&workspace.as_str()]).await?;
    }
    transaction.commit().await?;
    Ok(Some(Deletion { batches, bytes, open_batches, is_done }))
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The batches of a workspace: those with content and those without, each found by an index.
pub(super) const BATCHES: &str = "SELECT id FROM batches WHERE workspace = $1 AND has_content \
    UNION ALL SELECT id FROM batches WHERE workspace = $1 AND NOT has_content";

/// Whether the row `f` of those in flight is that of the batch `b`.
const IN_FLIGHT: &str = "f.workspace = b.workspace AND f.session = b.session AND f.first = b.first \
    AND hashtextextended(f.workspace || ' ' || f.session, 0) = hashtextextended(b.workspace || ' ' || b.session, 0)";

async fn remove_batches(transaction: &Transaction<'_>, workspace: &WorkspaceId, most: i64) -> Result<i64, Fault> {
    let sql = format!(
        "WITH gone AS (DELETE FROM batches WHERE id IN (SELECT id FROM \
                ((SELECT id FROM batches WHERE workspace = $1 AND has_content ORDER BY first LIMIT $2) \
                UNION ALL (SELECT id FROM batches WHERE workspace = $1 AND NOT has_content ORDER BY first LIMIT $2)) b LIMIT $2) \
            RETURNING id, workspace, session, first), \
        in_flight AS (DELETE FROM in_flight f USING gone b WHERE {IN_FLIGHT}), \
        changed AS (DELETE FROM batch_states WHERE id IN (SELECT id FROM gone)), \
        named AS (DELETE FROM batch_blobs WHERE batch IN (SELECT id FROM gone)) SELECT count(*) FROM gone"
    );
    let row = transaction.row(&sql, &[&workspace.as_str(), &most]).await?;
    row.map_or(Ok(0), |row| get(&row, 0))
}

/// Makes the blobs and the uploads of a workspace uploads that are dropped: their chunks are removed later.
async fn remove_blobs(transaction: &Transaction<'_>, workspace: &WorkspaceId, most: i64) -> Result<i64, Fault> {
    let sql = "WITH gone AS (DELETE FROM blobs WHERE workspace = $1 AND digest IN \
            (SELECT digest FROM blobs WHERE workspace = $1 ORDER BY digest LIMIT $2) RETURNING upload), \
        left_over AS (INSERT INTO uploads (id, dropped) SELECT upload, true FROM gone ON CONFLICT (id) DO UPDATE SET dropped = true) \
        SELECT count(*) FROM gone";
    let row = transaction.row(sql, &[&workspace.as_str(), &most]).await?;
    let blobs: i64 = row.map_or(Ok(0), |row| get(&row, 0))?;
    let sql = "UPDATE uploads SET workspace = NULL, digest = NULL, dropped = true WHERE id IN \
        (SELECT id FROM uploads WHERE workspace = $1 ORDER BY id LIMIT $2)";
    let uploads = transaction.change(sql, &[&workspace.as_str(), &(most - blobs)]).await?;
    Ok(blobs + signed(uploads))
}

/// Removes a workspace that no server knows, all at once; the chunks of its blobs are removed later.
pub(super) async fn remove(transaction: &Transaction<'_>, workspace: &str) -> Result<(), Fault> {
    let mut sql = vec![
        format!("DELETE FROM batch_blobs WHERE batch IN ({BATCHES})"),
        format!("DELETE FROM in_flight f USING batches b WHERE b.id IN ({BATCHES}) AND {IN_FLIGHT}"),
        format!("DELETE FROM batch_states WHERE id IN ({BATCHES})"),
        format!("DELETE FROM batches WHERE id IN ({BATCHES})"),
        "INSERT INTO uploads (id, dropped) SELECT upload, true FROM blobs WHERE workspace = $1 \
            ON CONFLICT (id) DO UPDATE SET dropped = true"
            .to_owned(),
        "DELETE FROM workspaces WHERE name = $1".to_owned(),
    ];
    let tables = TABLES.iter().map(|(table, _, condition)| (*table, *condition)).chain([("blobs", "true")]);
    sql.extend(tables.map(|(table, condition)| format!("DELETE FROM {table} WHERE workspace = $1 AND {condition}")));
    for sql in &sql {
        transaction.change(sql, &[&workspace]).await?;
    }
    Ok(())
}
