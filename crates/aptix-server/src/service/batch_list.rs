//! A page of a list of batches. One with a filter looks at a bounded number of batches.

use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_model::wire::{self, View, fit, v1};
use prost::Message;

use super::page::FilterMark;
use super::submitted::edit_bytes;
use super::{filter, page};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::read::ReadError;
use crate::dispatcher::refusal::Refusal;
use crate::store::damaged::Damaged;
use crate::store::{BatchSelector, Listed};

/// Batches that a page with a filter looks at.
const LOOKED_AT: usize = 1000;

/// Bytes of content after which a page with a filter looks at no further batch.
const CONTENT: usize = 64 << 20;

/// One page.
pub(super) async fn page(
    dispatcher: &Dispatcher,
    request: v1::ListBatchesRequest,
) -> Result<v1::ListBatchesResponse, Refusal> {
    let workspace = wire::id("workspaceId", &request.workspace_id)?;
    let wanted = page::size(request.page_size)?;
    let view = View::asked(request.view)?;
    let asked = request.filter.unwrap_or_default();
    let mark = FilterMark::of(&asked);
    let filter = filter::batches(asked)?;
    let page = page::batch(&request.page_token, mark.as_ref())?;
    let most = if mark.is_some() { LOOKED_AT } else { wanted };
    let entries = dispatcher.list(&workspace, page, most + 1).await?;
    let (mut lines, mut content, mut last) =
        (Lines { answer: v1::ListBatchesResponse::default(), room: fit::ROOM }, 0, None);
    for (looked_at, entry) in entries.into_iter().enumerate() {
        let revision = entry.as_ref().map_or_else(|damaged| damaged.revision, |event| event.revision);
        let is_done = lines.count() == wanted || looked_at == most || content > CONTENT;
        let line = if is_done { None } else { Some(read(dispatcher, &workspace, entry).await?) };
        let line = line.map(|line| {
            line.map(|record| {
                content += mark.as_ref().map_or(0, |_| edit_bytes(&record.batch));
                filter.fits(&record).then(|| fit::answer(view.message(record)))
            })
        });
        if !line.is_some_and(|line| lines.add(line)) {
            let cursor = dispatcher.cursor_at(&workspace, last).await?;
            lines.answer.next_page_token =
                last.map(|last| page::after_batch(last, mark.as_ref(), cursor)).unwrap_or_default();
            break;
        }
        last = Some(revision);
    }
    Ok(lines.answer)
}

/// The lines of a page.
struct Lines {
    answer: v1::ListBatchesResponse,
    /// Bytes that a message has room for.
    room: usize,
}

impl Lines {
    fn count(&self) -> usize {
        self.answer.batches.len() + self.answer.damaged.len()
    }

    /// Adds a batch that fits, none where it does not, or what is damaged of it; answers whether there was room for it.
    fn add(&mut self, line: Result<Option<v1::Batch>, v1::Damage>) -> bool {
        let bytes = match &line {
            Ok(batch) => batch.as_ref().map_or(0, |batch| batch.encoded_len() + 8),
            Err(damage) => damage.encoded_len() + 8,
        };
        if self.count() > 0 && bytes > self.room {
            return false;
        }
        self.room = self.room.saturating_sub(bytes);
        match line {
            Ok(batch) => self.answer.batches.extend(batch),
            Err(damage) => self.answer.damaged.push(damage),
        }
        true
    }
}

/// A batch of the list, or what is damaged of it.
async fn read(
    dispatcher: &Dispatcher,
    workspace: &WorkspaceId,
    entry: Listed,
) -> Result<Result<BatchRecord, v1::Damage>, Refusal> {
    let entry = match entry {
        Ok(entry) => entry,
        Err(Damaged { revision, why }) => return Ok(Err(damage(revision, None, why))),
    };
    match dispatcher.batch(workspace, BatchSelector::Id(entry.batch)).await {
        Ok(record) => Ok(Ok(record)),
        Err(ReadError::Store(error)) if error.will_pass() => Err(error.into()),
        Err(error) => Ok(Err(damage(entry.revision, Some(entry.batch), error.to_string()))),
    }
}

/// Describes a record that cannot be read.
pub(super) fn damage(revision: Revision, batch: Option<BatchId>, message: String) -> v1::Damage {
    v1::Damage { revision: revision.0, batch_id: batch.map(|id| id.to_string()).unwrap_or_default(), message }
}
