//! What a workspace keeps no longer: found page by page without a lock, in one pass over what may go.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::LazyLock;

use aptix_model::batch::BlobRef;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::{Database, Values};
use super::fault::Fault;
use super::numbers::{column, get, number};
use super::reads::{NEXT_EVENTS, parsed};
use crate::store::StoreError;
use crate::store::records::record;
use crate::store::records::retention_record::decode_notes;
use crate::store::retention::{Bounds, Counted, HeldBy, Notes, Retained, Retention};

/// Rows that one statement looks at.
const PAGE: i64 = 256;

/// A workspace as retention begins with it.
pub(super) struct Found {
    /// Distinguishes it from one of the same name that is created when it was deleted.
    pub(super) born: Uuid,
    pub(super) trimmed: Revision,
    pub(super) swept: Revision,
    pub(super) newest: Revision,
    pub(super) notes: Notes,
}

pub(super) async fn find(database: &Database, workspace: &WorkspaceId) -> Result<Option<Found>, StoreError> {
    let sql = "SELECT born, trimmed, swept, newest, notes FROM workspaces WHERE name = $1 AND NOT deleting";
    let rows = database.read(sql, &[&workspace.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    parsed(|| {
        let notes: Option<&[u8]> = get(row, 4)?;
        Ok(Some(Found {
            born: get(row, 0)?,
            trimmed: Revision(number(get(row, 1)?)),
            swept: Revision(number(get(row, 2)?)),
            newest: Revision(number(get(row, 3)?)),
            // Without notes everything is taken for young.
            notes: notes.and_then(|notes| decode_notes(notes).ok()).unwrap_or_default(),
        }))
    })
}

/// What would go, as far as one call removes it.
pub(super) struct Plan {
    /// Batches whose content goes, newest first, and how many bytes each adds to those of newer ones.
    pub(super) contents: Vec<(BatchId, u64)>,
    /// How far no older batch has content left that could go, if all were looked at.
    pub(super) swept: Option<Revision>,
    /// The last event that goes.
    pub(super) upto: Revision,
    pub(super) bounds: Bounds,
    pub(super) retained: Retained,
}

/// Finds what goes; at most so many contents and events.
pub(super) async fn plan(
    database: &Database,
    order: &Retention,
    found: &Found,
    (contents, events): (usize, u64),
) -> Result<Plan, StoreError> {
    let bounds = Bounds::of(&order.limits, &found.notes, order.now, found.newest);
    let mut retained = Retained { oldest: found.trimmed.next(), ..Retained::default() };
    let (contents, swept) = past_contents(database, order, bounds, (found.swept, contents), &mut retained).await?;
    let limit = bounds.records.min(Revision(found.trimmed.0.saturating_add(events)));
    let upto = past_events(database, &order.workspace, found.trimmed, limit, &mut retained).await?;
    retained.has_more |= upto < bounds.records && retained.held_by.is_none();
    if retained.held_by.is_none() {
        retained.held_by = damaged(database, &order.workspace, bounds).await?;
    }
    Ok(Plan { contents, swept, upto, bounds, retained })
}

/// The oldest batch that retention passed over because it cannot be read.
pub(super) async fn damaged(
    database: &Database,
    workspace: &WorkspaceId,
    bounds: Bounds,
) -> Result<Option<HeldBy>, StoreError> {
    let sql =
        "SELECT newest FROM current_batches WHERE workspace = $1 AND damaged AND newest <= $2 ORDER BY newest LIMIT 1";
    let bound = column(bounds.content.max(bounds.records).0);
    let rows = database.read(sql, &[&workspace.as_str(), &bound]).await?;
    rows.first().map(|row| parsed(|| Ok(HeldBy::Damaged(Revision(number(get(row, 0)?)))))).transpose()
}

/// A batch that has its content, as it is counted.
struct Content {
    id: BatchId,
    first: Revision,
    newest: Revision,
    is_open: bool,
    /// Whether it is a plan that was refused.
    is_plan: bool,
    records: u64,
    blobs: Vec<BlobRef>,
}

impl Content {
    fn of(row: &Row) -> Result<Self, Fault> {
        let (digests, sizes): (Vec<&[u8]>, Vec<i64>) = (get(row, 5)?, get(row, 6)?);
        let blob = |(digest, size): (&[u8], i64)| {
            let sha256 = aptix_model::digest::Sha256Digest::from_bytes(digest.try_into().ok()?);
            Some(BlobRef { sha256, size_bytes: number(size) })
        };
        Ok(Self {
            id: BatchId(get(row, 0)?),
            first: Revision(number(get(row, 1)?)),
            newest: Revision(number(get(row, 2)?)),
            is_open: get(row, 3)?,
            is_plan: get(row, 4)?,
            records: number(get(row, 7)?),
            blobs: digests.into_iter().zip(sizes).filter_map(blob).collect(),
        })
    }
}

const CONTENTS: &str = "SELECT b.id, b.first, b.newest, b.is_open, b.is_refused, \
        array(SELECT n.digest FROM batch_blobs n WHERE n.batch = b.id ORDER BY n.digest), \
        array(SELECT n.size FROM batch_blobs n WHERE n.batch = b.id ORDER BY n.digest), \
        (octet_length(b.content) + octet_length(b.progress))::bigint \
    FROM current_batches b WHERE b.workspace = $1 AND b.has_content AND NOT b.damaged AND b.first > $2 AND b.first < $3 \
    ORDER BY b.first DESC LIMIT $4";

/// The batches whose content is past the limits, newest first, up to a number.
async fn past_contents(
    database: &Database,
    order: &Retention,
    bounds: Bounds,
    (swept, most): (Revision, usize),
    retained: &mut Retained,
) -> Result<(Vec<(BatchId, u64)>, Option<Revision>), StoreError> {
    let limits = &order.limits;
    let (mut found, mut counted) = (Vec::new(), Counted::default());
    let (mut left, mut last, mut before) = (None, None, i64::MAX);
    if limits.content_age.is_none() && limits.content_batches.is_none() && limits.content_bytes.is_none() {
        return Ok((found, None));
    }
    loop {
        let values: Values<'_> = &[&order.workspace.as_str(), &column(swept.0), &before, &PAGE];
        let rows = database.read(CONTENTS, values).await?;
        for row in &rows {
            let content = parsed(|| Content::of(row))?;
            before = column(content.first.0);
            last.get_or_insert(content.first);
            let is_aged = content.newest <= bounds.content;
            let blobs = || Ok::<_, Infallible>(content.blobs.clone());
            let Ok((is_past, bytes)) = counted.add(limits, content.records, is_aged, blobs);
            let is_needed = content.is_open || (content.is_plan && content.newest > bounds.plans);
            if !is_past || is_needed {
                left = Some(content.first);
            } else if found.len() < most {
                found.push((content.id, bytes));
                retained.contents += 1;
                retained.content_bytes += bytes;
            } else {
                retained.has_more = true;
                return Ok((found, None));
            }
        }
        if rows.len() < usize::try_from(PAGE).unwrap_or_default() {
            break;
        }
    }
    Ok((found, left.map(|left: Revision| Revision(left.0.saturating_sub(1))).or(last)))
}

/// The last event that goes: up to the limit, or the newest of a batch that is open, or one that cannot be read.
async fn past_events(
    database: &Database,
    workspace: &WorkspaceId,
    trimmed: Revision,
    limit: Revision,
    retained: &mut Retained,
) -> Result<Revision, StoreError> {
    let sql = format!(
        "SELECT e.revision, e.record, b.newest, b.is_open, b.id FROM ({NEXT_EVENTS}) e \
        LEFT JOIN current_batches b ON b.id = e.batch WHERE e.revision <= $4 ORDER BY e.revision"
    );
    let mut upto = trimmed;
    while upto < limit {
        let values: Values<'_> = &[&workspace.as_str(), &column(upto.0), &PAGE, &column(limit.0)];
        let rows = database.read(&sql, values).await?;
        if rows.is_empty() {
            retained.held_by = Some(HeldBy::Damaged(upto.next()));
        }
        for row in &rows {
            let (revision, record) = parsed(|| Ok((Revision(number(get(row, 0)?)), get::<&[u8]>(row, 1)?)))?;
            let batch = parsed(|| Ok((get::<Option<i64>>(row, 2)?, get(row, 3)?, get::<Option<Uuid>>(row, 4)?)))?;
            let (Some(newest), Some(is_open), Some(id)) = batch else {
                retained.held_by = Some(HeldBy::Damaged(upto.next()));
                break;
            };
            if revision != upto.next() || record::decode_event(record).is_err() {
                retained.held_by = Some(HeldBy::Damaged(upto.next()));
                break;
            }
            if is_open && number(newest) == revision.0 {
                retained.held_by = Some(HeldBy::Open(revision, BatchId(id)));
                break;
            }
            upto = revision;
            retained.events += 1;
        }
        if retained.held_by.is_some() {
            break;
        }
    }
    Ok(upto)
}

/// Whether an open batch of the workspace `$1` takes back the batch `b`, or takes the place of it.
pub(super) const IS_NAMED: &str = "EXISTS (SELECT FROM current_batches n WHERE n.reverts = b.id AND n.is_open AND n.workspace = $1 \
    UNION ALL SELECT FROM current_batches n WHERE n.replaces = b.id AND n.is_open AND n.workspace = $1)";

/// Batches that ended and none of whose events is kept, newest first: of those with content and of those without so many, and of both
/// the first.
static PAST: LazyLock<String> = LazyLock::new(|| {
    let part = |has_content| {
        format!(
            "(SELECT b.first, b.id, b.reverted_by, b.content, b.progress FROM current_batches b \
            WHERE b.workspace = $1 AND {has_content} AND b.first < $2 AND b.first <= $3 AND b.newest <= $3 AND NOT b.is_open \
            AND NOT b.damaged ORDER BY b.first DESC LIMIT $4)"
        )
    };
    format!(
        "SELECT b.first, b.id, b.reverted_by, EXISTS (SELECT FROM batches r WHERE r.id = b.reverted_by), {IS_NAMED}, \
        (octet_length(b.content) + octet_length(b.progress))::bigint \
        FROM ({} UNION ALL {}) b ORDER BY b.first DESC LIMIT $4",
        part("b.has_content"),
        part("NOT b.has_content")
    )
});

/// The pass over batches that ended and none of whose events is kept, newest first.
pub(super) struct PastRecords<'a> {
    workspace: &'a WorkspaceId,
    upto: Revision,
    before: i64,
    /// Batches that the pass found before: what they took back may go, too.
    gone: HashSet<Uuid>,
}

impl<'a> PastRecords<'a> {
    pub(super) fn new(workspace: &'a WorkspaceId, upto: Revision) -> Self {
        Self { workspace, upto, before: i64::MAX, gone: HashSet::new() }
    }

    /// Those on the next page that go, newest first, each with the bytes of its records; `None` once the pass is over.
    pub(super) async fn next(&mut self, database: &Database) -> Result<Option<Vec<(BatchId, u64)>>, StoreError> {
        let values: Values<'_> = &[&self.workspace.as_str(), &self.before, &column(self.upto.0), &PAGE];
        let rows = database.read(&PAST, values).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut found = Vec::new();
        for row in &rows {
            let (first, id) = parsed(|| Ok((get(row, 0)?, get::<Uuid>(row, 1)?)))?;
            let (by, is_there, is_named): (Option<Uuid>, bool, bool) =
                parsed(|| Ok((get(row, 2)?, get(row, 3)?, get(row, 4)?)))?;
            self.before = first;
            let is_taken_back = is_there && by.is_some_and(|by| !self.gone.contains(&by));
            if !is_taken_back && !is_named {
                self.gone.insert(id);
                found.push((BatchId(id), number(parsed(|| get(row, 5))?)));
            }
        }
        Ok(Some(found))
    }
}
