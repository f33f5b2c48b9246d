//! Removes what a workspace keeps no longer, in small transactions: between two of them other writes have their turn. Each locks the
//! workspace's row, and looks again at what may have changed since its batches and events were found.

use std::sync::LazyLock;

use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::record::BatchRecord;
use uuid::Uuid;

use super::database::{Database, Transaction, Values};
use super::fault::Fault;
use super::numbers::{column, get, number};
use super::reads::parsed;
use super::retention::{Found, IS_NAMED, PastRecords, Plan, damaged, find, plan};
use super::uploads::use_bytes;
use crate::store::StoreError;
use crate::store::records::batch_record::{decode_batch, encode_batch, encode_state};
use crate::store::records::record;
use crate::store::records::retention_record::{decode_notes, encode_notes};
use crate::store::retention::{Age, Retained, Retention, content_digest};

/// Batches whose content is removed by one transaction, or whose records are.
const BATCHES: usize = 16;
/// Bytes of batches that are read for one transaction, unless one batch has more.
const BYTES: u64 = 32 << 20;
/// Events that are removed by one transaction.
const EVENTS: u64 = 256;
/// Transactions of each kind that one call makes.
const STEPS: usize = 64;

/// Removes what a workspace keeps no longer, or counts it.
pub(super) async fn retain(database: &Database, order: &Retention) -> Result<Retained, StoreError> {
    let Some(found) = find(database, &order.workspace).await? else { return Ok(Retained::default()) };
    if order.is_rehearsal {
        let Plan { upto, mut retained, .. } = plan(database, order, &found, (usize::MAX, u64::MAX)).await?;
        let mut pass = PastRecords::new(&order.workspace, upto);
        while let Some(past) = pass.next(database).await? {
            retained.records += past.len() as u64;
        }
        return Ok(retained);
    }
    let Plan { contents, swept, upto, bounds, retained: planned } =
        plan(database, order, &found, (BATCHES * STEPS, EVENTS * STEPS as u64)).await?;
    let of = Of { database, workspace: &order.workspace, born: found.born };
    of.note(order.now).await?;
    let mut done = Retained { contents: 0, content_bytes: 0, records: 0, events: 0, ..planned };
    for step in portions(&contents) {
        of.remove_contents(step, &mut done).await?;
    }
    if let Some(swept) = swept.filter(|_| done.contents == planned.contents) {
        of.note_swept(swept).await?;
    }
    let mut trimmed = found.trimmed;
    while trimmed < upto {
        let to = Revision(trimmed.0.saturating_add(EVENTS)).min(upto);
        if !database.write(|| of.remove_events(trimmed, to)).await? {
            break;
        }
        done.events += to.0 - trimmed.0;
        trimmed = to;
    }
    of.remove_records(trimmed, &mut done).await?;
    done.has_more |= trimmed < upto;
    if done.held_by.is_none() {
        done.held_by = damaged(database, &order.workspace, bounds).await?;
    }
    done.oldest = find(database, &order.workspace).await?.map_or(trimmed, |found: Found| found.trimmed).next();
    Ok(done)
}

/// Divides batches into what one transaction removes: so many, or fewer if they are large.
fn portions(batches: &[(BatchId, u64)]) -> Vec<&[(BatchId, u64)]> {
    let (mut portions, mut rest) = (Vec::new(), batches);
    while !rest.is_empty() {
        let mut bytes = 0_u64;
        let fit = rest.iter().take(BATCHES).take_while(|(_, size)| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(*size).max(1);
            is_first || bytes <= BYTES
        });
        let (portion, after) = rest.split_at(fit.count());
        portions.push(portion);
        rest = after;
    }
    portions
}

/// One workspace, as long as it is the one that retention began with.
struct Of<'a> {
    database: &'a Database,
    workspace: &'a WorkspaceId,
    born: Uuid,
}

/// The records of a batch as they were read.
struct Records {
    id: BatchId,
    content: Vec<u8>,
    progress: Vec<u8>,
    /// `None` if they cannot be read.
    batch: Option<BatchRecord>,
}

impl Of<'_> {
    /// Locks the row of the workspace; answers whether it is the same one still.
    async fn lock(&self, transaction: &Transaction<'_>) -> Result<bool, Fault> {
        let sql = "SELECT 1 FROM workspaces WHERE name = $1 AND born = $2 AND NOT deleting FOR NO KEY UPDATE";
        Ok(transaction.row(sql, &[&self.workspace.as_str(), &self.born]).await?.is_some())
    }

    /// Notes how far the workspace has come by now.
    async fn note(&self, now: Age) -> Result<(), StoreError> {
        self.database.write(|| self.note_once(now)).await
    }

    async fn note_once(&self, now: Age) -> Result<(), Fault> {
        let transaction = self.database.begin().await?;
        if self.lock(&transaction).await? {
            let sql = "SELECT notes, newest FROM workspaces WHERE name = $1";
            if let Some(row) = transaction.row(sql, &[&self.workspace.as_str()]).await? {
                let notes: Option<&[u8]> = get(&row, 0)?;
                let mut notes = notes.and_then(|notes| decode_notes(notes).ok()).unwrap_or_default();
                if notes.note(now, Revision(number(get(&row, 1)?))) {
                    let sql = "UPDATE workspaces SET notes = $2 WHERE name = $1";
                    transaction.change(sql, &[&self.workspace.as_str(), &&*encode_notes(&notes)]).await?;
                    return transaction.commit().await;
                }
            }
        }
        transaction.roll_back().await
    }

    async fn note_swept(&self, swept: Revision) -> Result<(), StoreError> {
        let sql = "UPDATE workspaces SET swept = greatest(swept, $3) WHERE name = $1 AND born = $2";
        let noted = || async {
            let transaction = self.database.begin().await?;
            transaction.change(sql, &[&self.workspace.as_str(), &self.born, &column(swept.0)]).await?;
            transaction.commit().await
        };
        self.database.write(noted).await
    }

    /// The records of batches, as they are now.
    async fn read(&self, ids: &[Uuid]) -> Result<Vec<Records>, StoreError> {
        let sql = "SELECT id, content, progress FROM current_batches WHERE id = ANY($1::uuid[]) ORDER BY first DESC";
        let rows = self.database.read(sql, &[&ids]).await?;
        let read = |row| {
            let (id, content, progress): (_, Vec<u8>, Vec<u8>) =
                parsed(|| Ok((BatchId(get(row, 0)?), get(row, 1)?, get(row, 2)?)))?;
            let batch = decode_batch(id, &content, &progress).ok();
            Ok(Records { id, content, progress, batch })
        };
        rows.iter().map(read).collect()
    }

    /// Removes the content of batches. Those that cannot be read stay, and are passed over from now on.
    async fn remove_contents(&self, step: &[(BatchId, u64)], done: &mut Retained) -> Result<(), StoreError> {
        let ids: Vec<_> = step.iter().map(|(id, _)| id.0).collect();
        let records = self.read(&ids).await?;
        let removed = self.database.write(|| self.remove_contents_once(&records)).await?;
        done.contents += removed.len() as u64;
        done.content_bytes +=
            step.iter().filter(|(id, _)| removed.contains(&id.0)).map(|(_, bytes)| bytes).sum::<u64>();
        Ok(())
    }

    async fn remove_contents_once(&self, records: &[Records]) -> Result<Vec<Uuid>, Fault> {
        let transaction = self.database.begin().await?;
        let mut removed = Vec::new();
        if !self.lock(&transaction).await? {
            transaction.roll_back().await?;
            return Ok(removed);
        }
        self.pass_over(&transaction, records).await?;
        let mut freed = 0;
        for Records { id, content, progress, batch } in records {
            let Some(mut batch) = batch.clone().filter(|batch| batch.removed_content.is_none()) else { continue };
            batch.remove_content(content_digest(&batch.batch));
            let left = (encode_batch(&batch), encode_state(&batch));
            let values: Values<'_> = &[&id.0, &&*left.0, &&*left.1, &progress.as_slice()];
            if transaction.change(REMOVE_CONTENT, values).await? == 1 {
                removed.push(id.0);
                let length = |bytes: &[u8]| i64::try_from(bytes.len()).unwrap_or_default();
                freed += length(content) + length(progress) - length(&left.0) - length(&left.1);
            }
        }
        self.unname(&transaction, &removed).await?;
        use_bytes(&transaction, self.workspace, -freed).await?;
        transaction.commit().await?;
        Ok(removed)
    }

    /// Notes which batches cannot be read, so that no later step looks at them.
    async fn pass_over(&self, transaction: &Transaction<'_>, records: &[Records]) -> Result<(), Fault> {
        let damaged: Vec<_> = records.iter().filter(|found| found.batch.is_none()).map(|found| found.id.0).collect();
        if damaged.is_empty() {
            return Ok(());
        }
        tracing::warn!(WorkspaceId = %self.workspace, batches = damaged.len(), "retention passes over damaged batches");
        transaction.change("UPDATE batches SET damaged = true WHERE id = ANY($1::uuid[])", &[&damaged]).await.map(drop)
    }

    /// Batches name their blobs no longer.
    async fn unname(&self, transaction: &Transaction<'_>, batches: &[Uuid]) -> Result<(), Fault> {
        let sql = "WITH gone AS (DELETE FROM batch_blobs WHERE batch = ANY($2::uuid[]) RETURNING digest), \
            counted AS (SELECT digest, count(*) AS fewer FROM gone GROUP BY digest) \
            UPDATE blobs b SET names = greatest(b.names - c.fewer, 0) FROM counted c \
            WHERE b.workspace = $1 AND b.digest = c.digest";
        transaction.change(sql, &[&self.workspace.as_str(), &batches]).await.map(drop)
    }

    /// Removes the events up to one, of which those in the rows of their batches stay there; answers whether it was done.
    async fn remove_events(&self, trimmed: Revision, to: Revision) -> Result<bool, Fault> {
        let transaction = self.database.begin().await?;
        let sql = "SELECT record FROM all_events WHERE workspace = $1 AND revision = $2";
        let last = transaction.row(sql, &[&self.workspace.as_str(), &column(to.0)]).await?;
        let last = last.map(|row| get::<Vec<u8>>(&row, 0)).transpose()?;
        let digest = last.map(|last| record::decode_event(&last)).transpose()?.and_then(|event| event.digest);
        let sql = "UPDATE workspaces SET trimmed = $4, trimmed_digest = $5 \
            WHERE name = $1 AND born = $2 AND NOT deleting AND trimmed = $3";
        let digest = digest.as_ref().map(|digest| digest.as_bytes().as_slice());
        let values: Values<'_> = &[&self.workspace.as_str(), &self.born, &column(trimmed.0), &column(to.0), &digest];
        if transaction.change(sql, values).await? == 0 {
            transaction.roll_back().await?;
            return Ok(false);
        }
        let sql = "DELETE FROM events WHERE workspace = $1 AND revision > $2 AND revision <= $3";
        let values: Values<'_> = &[&self.workspace.as_str(), &column(trimmed.0), &column(to.0)];
        transaction.change(sql, values).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Removes the records of batches none of whose events is kept.
    async fn remove_records(&self, trimmed: Revision, done: &mut Retained) -> Result<(), StoreError> {
        let mut pass = PastRecords::new(self.workspace, trimmed);
        let mut steps = 0;
        while let Some(past) = pass.next(self.database).await? {
            for ids in portions(&past) {
                if steps == STEPS {
                    done.has_more = true;
                    return Ok(());
                }
                steps += 1;
                let ids: Vec<_> = ids.iter().map(|(id, _)| id.0).collect();
                let records = self.read(&ids).await?;
                done.records += self.database.write(|| self.remove_records_once(&records)).await?;
            }
        }
        Ok(())
    }

    async fn remove_records_once(&self, records: &[Records]) -> Result<u64, Fault> {
        let transaction = self.database.begin().await?;
        if !self.lock(&transaction).await? {
            transaction.roll_back().await?;
            return Ok(0);
        }
        self.pass_over(&transaction, records).await?;
        let ids: Vec<_> = records.iter().filter(|found| found.batch.is_some()).map(|found| found.id.0).collect();
        let removed = transaction.rows(&REMOVE, &[&self.workspace.as_str(), &ids]).await?;
        let removed =
            removed.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect::<Result<Vec<(Uuid, i64)>, Fault>>()?;
        let (ids, bytes): (Vec<_>, Vec<i64>) = removed.into_iter().unzip();
        self.unname(&transaction, &ids).await?;
        use_bytes(&transaction, self.workspace, -bytes.iter().sum::<i64>()).await?;
        transaction.commit().await?;
        Ok(ids.len() as u64)
    }
}

/// Removes the content of a batch that ended, if it is as it was read. That it was stored with another state is of no use from then on.
const REMOVE_CONTENT: &str = "WITH found AS (\
        SELECT id FROM current_batches WHERE id = $1 AND NOT is_open AND has_content AND progress = $4), \
    changed AS (UPDATE batch_states s SET progress = $3 FROM found WHERE s.id = found.id RETURNING s.id) \
    UPDATE batches b SET content = $2, has_content = false, \
        progress = CASE WHEN NOT EXISTS (SELECT FROM changed) THEN $3 END FROM found WHERE b.id = found.id";

/// Removes batches that ended, unless something that is kept names them by now; with the requests and plans that lead to them.
static REMOVE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH gone AS (SELECT b.id, b.freed, b.hunk, octet_length(b.content) + octet_length(b.progress) AS bytes \
            FROM current_batches b WHERE b.id = ANY($2::uuid[]) AND b.workspace = $1 AND NOT b.is_open AND NOT {IS_NAMED} \
            AND (b.reverted_by IS NULL OR b.reverted_by = ANY($2::uuid[]) \
                OR NOT EXISTS (SELECT FROM batches r WHERE r.id = b.reverted_by))), \
        stored AS (DELETE FROM batches b USING gone g WHERE b.id = g.id), \
        changed AS (DELETE FROM batch_states s USING gone g WHERE s.id = g.id), \
        freed AS (DELETE FROM freed_requests r USING gone g \
            WHERE r.workspace = $1 AND r.request = g.freed AND r.batch = g.id), \
        planned AS (DELETE FROM hunks h USING gone g WHERE h.workspace = $1 AND h.hunk = g.hunk AND h.batch = g.id) \
        SELECT id, bytes::bigint FROM gone"
    )
});
