//! The workspace that keeps only its newest records: while the server is killed, what was removed stays removed, what the limits keep
//! is there, and no batch is there in part.

use aptix_model::wire::v1;
use aptix_model::wire::v1::watch_workspace_response::Message;
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt as _;

use crate::calls::in_time;
use crate::feed::{Stopped, stopped};
use crate::ledger::{About, End, Event, Finding, Kept, KeptBatch};
use crate::load::{Caller, Shared};
use crate::random::Random;
use crate::workers::with;

/// The workspace.
pub(crate) const KEPT: &str = "kept";
/// Events that it keeps at least, if it ever had as many.
const EVENTS: u64 = 12;
/// The configuration of the server: a round that removes something is always near.
pub(crate) fn config() -> String {
    format!(
        "[retention]\ninterval_seconds = 1\n\n\
         [workspaces.{KEPT}.retention]\nrecord_events = {EVENTS}\nrecord_least_seconds = 0\ncontent_batches = 3\n"
    )
}

fn refused(status: Status) -> Stopped {
    stopped(About::Retention, KEPT, status)
}

impl Caller {
    /// Submits a batch and cancels it, does so with one that was cut off before, or has the oldest records removed.
    pub(crate) async fn keep(&mut self) -> Result<(), Stopped> {
        if self.random.below(4) == 0 {
            let removed = self.shared.operator.retain(KEPT, false).await.map_err(refused)?;
            with(&self.shared.ledger, |ledger| ledger.kept.oldest = ledger.kept.oldest.max(removed.oldest_revision));
            return Ok(());
        }
        let open = with(&self.shared.ledger, |ledger| {
            let mut open = ledger.kept.batches.iter().filter(|(_, batch)| matches!(batch.end, End::Open | End::Asked));
            open.next().map(|(name, batch)| (name.clone(), batch.clone()))
        });
        let (name, batch) = open.unwrap_or_else(|| self.new_batch());
        let id = match batch.id {
            Some(id) => id,
            None => {
                let stored = self.shared.author.submit(batch.request).await.map_err(refused)?;
                self.note(&name, stored.revision, |batch| batch.id = Some(stored.batch_id.clone()));
                stored.batch_id
            }
        };
        self.note(&name, 0, |batch| batch.end = End::Asked);
        let cancel = v1::CancelBatchRequest { workspace_id: KEPT.to_owned(), batch_id: id, ..Default::default() };
        match self.shared.author.cancel(cancel).await {
            Ok(cancelled) => self.note(&name, cancelled.revision, |batch| batch.end = End::EndedAtRevision),
            // An earlier cancellation was done, though nobody was told.
            Err(status)
                if batch.end == End::Asked && matches!(status.code(), Code::NotFound | Code::FailedPrecondition) =>
            {
                self.note(&name, 0, |batch| batch.end = End::Ended);
            }
            Err(status) => return Err(refused(status)),
        }
        Ok(())
    }

    fn new_batch(&mut self) -> (String, KeptBatch) {
        let name = self.mint();
        let text = format!(r#"{{"path":"{name}.txt","content":"{}\n"}}"#, text_of(&name));
        let document = v1::Document { dialect: String::new(), text: text.into_bytes().into() };
        let request = v1::SubmitBatchRequest {
            workspace_id: KEPT.to_owned(),
            request_id: name.clone(),
            content: Some(v1::submit_batch_request::Content::Document(document)),
            ..Default::default()
        };
        let batch = KeptBatch { request, id: None, revision: 0, end: End::Open };
        with(&self.shared.ledger, |ledger| ledger.kept.batches.insert(name.clone(), batch.clone()));
        (name, batch)
    }

    /// Notes what an answer told about a batch.
    fn note(&self, name: &str, revision: u64, change: impl FnOnce(&mut KeptBatch)) {
        with(&self.shared.ledger, |ledger| {
            ledger.kept.newest = ledger.kept.newest.max(revision);
            if let Some(batch) = ledger.kept.batches.get_mut(name) {
                batch.revision = batch.revision.max(revision);
                change(batch);
            }
        });
    }
}

/// Text that a batch has until its content is removed.
fn text_of(name: &str) -> String {
    format!("kept {name}")
}

/// Compares the workspace with what is known of it, and so many of its batches.
pub(crate) async fn check(shared: &Shared, count: usize, random: &mut Random) -> Vec<Finding> {
    match differences(shared, count, random).await {
        Ok(differences) => differences.into_iter().map(|what| Finding::new(About::Retention, what)).collect(),
        Err(status) => vec![Finding::new(About::Retention, format!("{KEPT} cannot be read: {status}"))],
    }
}

async fn differences(shared: &Shared, count: usize, random: &mut Random) -> Result<Vec<String>, Status> {
    let (known_oldest, known_newest, chosen) = with(&shared.ledger, |ledger| {
        let Kept { batches, oldest, newest, .. } = &ledger.kept;
        let again = random.sample(count, batches.len());
        let chosen = batches.iter().enumerate().filter(|(at, _)| again.contains(at));
        let chosen: Vec<_> = chosen.map(|(_, (name, batch))| (name.clone(), batch.clone())).collect();
        (*oldest, *newest, chosen)
    });
    let mut wrong = Vec::new();
    let oldest = oldest(shared).await?;
    let newest = shared.author.workspace(KEPT).await?.cursor.map_or(0, |cursor| cursor.revision);
    if newest < known_newest {
        wrong.push(format!("revision {known_newest} was acknowledged, the newest one is {newest}"));
    }
    if oldest < known_oldest {
        wrong.push(format!("everything before revision {known_oldest} was removed, the oldest one is {oldest}"));
    }
    if newest + 1 - oldest < EVENTS.min(newest) {
        wrong.push(format!("of {newest} revisions those from {oldest} on are kept, expected are {EVENTS} at least"));
    }
    let mut found = Vec::new();
    for (name, batch) in chosen {
        let read = shared.author.get(KEPT, &name).await;
        found.push((name, batch, read));
    }
    let oldest_after = self::oldest(shared).await?;
    for (name, batch, found) in found {
        wrong.extend(of_batch(&name, &batch, found, (oldest, oldest_after)).map(|what| format!("{name} {what}")));
    }
    wrong.extend(events(shared, newest).await?);
    Ok(wrong)
}

/// How a batch differs from what was acknowledged, while the oldest event was between two revisions.
fn of_batch(
    name: &str,
    batch: &KeptBatch,
    found: Result<v1::Batch, Status>,
    (oldest, oldest_after): (u64, u64),
) -> Option<String> {
    let may_be_gone = match batch.end {
        End::Open => batch.id.is_none(),
        End::Asked | End::Ended => true,
        End::EndedAtRevision => batch.revision < oldest_after,
    };
    let found = match found {
        Ok(found) => found,
        Err(status) if status.code() == Code::NotFound && may_be_gone => return None,
        Err(status) => return Some(format!("(revision {}) cannot be read: {status}", batch.revision)),
    };
    if batch.end == End::EndedAtRevision && batch.revision < oldest {
        return Some(format!("had its last event at {}, is there, and the oldest event is {oldest}", batch.revision));
    }
    if batch.id.as_ref().is_some_and(|id| *id != found.batch_id) {
        return Some(format!("was {:?}, is {}", batch.id, found.batch_id));
    }
    if batch.end == End::EndedAtRevision && found.state() != v1::BatchState::Cancelled {
        return Some(format!("was cancelled, is {:?}", found.state()));
    }
    let is_removed = !found.removed_content_sha256.is_empty();
    if is_removed && (found.state() == v1::BatchState::Approved || !found.content_omitted) {
        return Some(format!("lacks its content, is {:?}, content_omitted: {}", found.state(), found.content_omitted));
    }
    let has_text = format!("{:?}", found.edit).contains(&text_of(name));
    (has_text == is_removed).then(|| format!("has the content {:?}, removed: {is_removed}", found.edit))
}

/// The oldest event that is kept.
async fn oldest(shared: &Shared) -> Result<u64, Status> {
    Ok(watch_after(shared, 0).await?.err().unwrap_or(1))
}

/// Watches the events after a revision, or answers which one is the oldest if some of them were removed.
async fn watch_after(
    shared: &Shared,
    after_revision: u64,
) -> Result<Result<Streaming<v1::WatchWorkspaceResponse>, u64>, Status> {
    let request = v1::WatchWorkspaceRequest { workspace_id: KEPT.to_owned(), after_revision, ..Default::default() };
    match shared.author.watch(request).await {
        Ok(stream) => Ok(Ok(stream)),
        Err(status) if status.code() == Code::OutOfRange => {
            let info = status.get_details_error_info();
            let oldest = info.and_then(|info| info.metadata.get("oldest")?.parse().ok());
            oldest.map(Err).ok_or(status)
        }
        Err(status) => Err(status),
    }
}

/// The events that are kept follow each other up to a revision, and are as they were shown before.
async fn events(shared: &Shared, until: u64) -> Result<Vec<String>, Status> {
    let mut last = 0;
    let mut stream = loop {
        match watch_after(shared, last).await? {
            Ok(stream) => break stream,
            Err(oldest) => last = oldest - 1,
        }
    };
    let mut wrong = Vec::new();
    while last < until {
        let Some(message) = in_time(stream.message()).await? else {
            return Err(Status::unavailable("the stream of events ended"));
        };
        let Some(Message::Event(event)) = message.message else { continue };
        if event.revision != last + 1 {
            wrong.push(format!("revision {} follows {last}", event.revision));
        }
        last = event.revision;
        let shown = Event::of(&event);
        let known = with(&shared.ledger, |ledger| {
            ledger.kept.events.entry(event.revision).or_insert_with(|| shown.clone()).clone()
        });
        if known != shown {
            wrong.push(format!("revision {} was {known:?}, is {shown:?}", event.revision));
        }
    }
    Ok(wrong)
}
