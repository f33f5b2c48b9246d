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
/// Newest batches that keep their content.
const CONTENTS: usize = 3;

/// The configuration of the server: a round that removes something is always near.
pub(crate) fn config() -> String {
    format!(
        "[retention]\ninterval_seconds = 1\n\n\
         [workspaces.{KEPT}.retention]\nrecord_events = {EVENTS}\nrecord_least_seconds = 0\ncontent_batches = {CONTENTS}\n"
    )
}

fn refused(status: Status) -> Stopped {
    stopped(About::Retention, KEPT, status)
}

impl Caller {
    /// Submits a batch and cancels it, does so with one that was cut off before, or has the oldest records removed.
    pub(crate) async fn keep(&mut self) -> Result<(), Stopped> {
        if self.random.below(4) == 0 {
            let removed = self.shared.operator.retain(KEPT).await.map_err(refused)?;
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
            Err(status) if batch.end == End::Asked && status.code() == Code::NotFound => {
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
        let batch = KeptBatch { request, id: None, revision: 0, end: End::Open, is_bare: false, is_gone: false };
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

/// Compares the workspace with what is known of it: each batch that has to be there, and so many of the others.
pub(crate) async fn check(shared: &Shared, count: usize, random: &mut Random) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(status) = compare(shared, count, random, &mut findings).await {
        findings.push(Finding::new(About::Batch, format!("{KEPT} cannot be read: {status}")));
    }
    findings
}

async fn compare(
    shared: &Shared,
    count: usize,
    random: &mut Random,
    findings: &mut Vec<Finding>,
) -> Result<(), Status> {
    let (known_oldest, known_newest, chosen) = with(&shared.ledger, |ledger| {
        let Kept { batches, oldest, newest, .. } = &ledger.kept;
        let again = random.sample(count, batches.len());
        let chosen = batches.iter().enumerate();
        let chosen = chosen.filter(|(at, (_, batch))| batch.revision >= *oldest || again.contains(at));
        let chosen: Vec<_> = chosen.map(|(_, (name, _))| name.clone()).collect();
        (*oldest, *newest, chosen)
    });
    let oldest = oldest(shared).await?;
    let newest = shared.author.workspace(KEPT).await?.cursor.map_or(0, |cursor| cursor.revision);
    if newest < known_newest {
        let what = format!("{KEPT}: revision {known_newest} was acknowledged, the newest one is {newest}");
        findings.push(Finding::new(About::Event, what));
    }
    if oldest < known_oldest {
        let what = format!("{KEPT}: all before revision {known_oldest} was removed, the oldest one is {oldest}");
        findings.push(Finding::new(About::Retention, what));
    }
    if newest + 1 - oldest < EVENTS.min(newest) {
        let what = format!("{KEPT}: of {newest} revisions those from {oldest} on are there, kept are {EVENTS}");
        findings.push(Finding::new(About::Event, what));
    }
    let mut found = Vec::new();
    for name in chosen {
        let read = shared.author.get(KEPT, &name).await;
        found.push((name, read));
    }
    let oldest = self::oldest(shared).await?;
    with(&shared.ledger, |ledger| {
        for (name, found) in found {
            let what = of_batch(&name, &mut ledger.kept, found, oldest);
            findings.extend(what.map(|what| Finding::new(About::Batch, format!("{KEPT}: {name} {what}"))));
        }
    });
    findings.extend(events(shared, newest).await?.into_iter().map(|what| Finding::new(About::Event, what)));
    Ok(())
}

/// How a batch differs from what is known of it, now that the oldest event is this one.
fn of_batch(name: &str, kept: &mut Kept, found: Result<v1::Batch, Status>, oldest: u64) -> Option<String> {
    // Of a batch that is in the store, and that nobody was told of, it is not known how new it is.
    let is_newer = |other: &KeptBatch, than: u64| other.revision > than || other.id.is_none();
    let known = kept.batches.get(name)?.clone();
    let newer = kept.batches.values().filter(|other| is_newer(other, known.revision)).count();
    let batch = kept.batches.get_mut(name)?;
    let found = match found {
        Ok(found) => found,
        Err(status) if status.code() == Code::NotFound && (batch.id.is_none() || batch.revision < oldest) => {
            batch.is_gone = batch.id.is_some();
            return None;
        }
        Err(status) => return Some(format!("(revision {}, oldest {oldest}) cannot be read: {status}", batch.revision)),
    };
    // Records go after their events, in steps of their own.
    if batch.is_gone {
        return Some("was removed, and is there again".to_owned());
    }
    if batch.id.as_ref().is_some_and(|id| *id != found.batch_id) {
        return Some(format!("was {:?}, is {}", batch.id, found.batch_id));
    }
    let has_ended = matches!(batch.end, End::Ended | End::EndedAtRevision);
    if has_ended && found.state() != v1::BatchState::Cancelled {
        return Some(format!("was cancelled, is {:?}", found.state()));
    }
    let is_bare = !found.removed_content_sha256.is_empty();
    if is_bare != found.content_omitted || (is_bare && found.state() == v1::BatchState::Approved) {
        return Some(format!(
            "is {:?}, content removed: {is_bare}, left out: {}",
            found.state(),
            found.content_omitted
        ));
    }
    if format!("{:?}", found.edit).contains(&text_of(name)) == is_bare {
        return Some(format!("has the content {:?}, removed: {is_bare}", found.edit));
    }
    if batch.is_bare && !is_bare {
        return Some("has its content again, which was removed".to_owned());
    }
    batch.is_bare = is_bare;
    (is_bare && newer < CONTENTS).then(|| format!("lost its content although {newer} batches are newer"))
}

/// The oldest event that the limits leave of what happened so far: rounds come up to there by themselves.
pub(crate) async fn reach(shared: &Shared) -> Result<u64, Status> {
    let newest = shared.author.workspace(KEPT).await?.cursor.map_or(0, |cursor| cursor.revision);
    Ok((newest + 1).saturating_sub(EVENTS))
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
    let (mut wrong, mut last, mut stream) = (Vec::new(), 0, None);
    while last < until {
        let open = match &mut stream {
            Some(open) => open,
            None => match watch_after(shared, last).await? {
                Ok(opened) => stream.insert(opened),
                Err(oldest) => {
                    last = last.max(oldest - 1);
                    continue;
                }
            },
        };
        let event = match in_time(open.message()).await {
            Ok(Some(message)) => match message.message {
                Some(Message::Event(event)) => event,
                _ => continue,
            },
            Ok(None) => return Err(Status::unavailable("the stream of events ended")),
            // What was to come next was removed meanwhile.
            Err(status) if status.code() == Code::OutOfRange => {
                stream = None;
                continue;
            }
            Err(status) => return Err(status),
        };
        if event.revision != last + 1 {
            wrong.push(format!("{KEPT}: revision {} follows {last}", event.revision));
        }
        last = event.revision;
        wrong.extend(
            event.damage.as_ref().map(|damage| format!("{KEPT}: revision {last} is damaged: {}", damage.message)),
        );
        let shown = Event::of(&event);
        let known =
            with(&shared.ledger, |ledger| ledger.kept.events.entry(last).or_insert_with(|| shown.clone()).clone());
        if known != shown {
            wrong.push(format!("{KEPT}: revision {last} was {known:?}, is {shown:?}"));
        }
    }
    Ok(wrong)
}
