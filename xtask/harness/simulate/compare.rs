//! Holds what came of a history against the reference.

use std::collections::BTreeMap;

use anyhow::Result;
use aptix_model::wire::v1;
use aptix_model::wire::v1::BatchState;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use tonic::{Code, Status};

use crate::calls::{Call, Kind};
use crate::clock::pass;
use crate::history::FILES;
use crate::play::{Acknowledged, Found, LOOK, Play};
use crate::questions::read_file;
use crate::reference::{Life, OnDisk, lives, misplaced, on_disk, out_of_order};
use crate::stage::workspace;
use crate::watcher::{Log, Seen, read};
use crate::workers::with;

/// Readings that the network may spoil before one of them counts.
const TRIES: usize = 10;

impl Play {
    /// Holds a workspace against the reference.
    pub(crate) async fn compare(&self, number: usize) -> Found {
        let all = self.log(number).await?;
        let mut seen = self.seen(number, all.newest()).await;
        if let Some(why) = seen.wrong.as_ref().or(all.wrong.as_ref()) {
            return Ok(Some(why.clone()));
        }
        // Batches whose time is over end whenever the server looks for them.
        seen.events.retain(|event| event.revision <= all.newest());
        let (events, oldest) = (self.whole(number, &all), self.removed[number]);
        if let Some(gap) = seen.gaps.iter().chain(&all.gaps).find(|(_, last)| *last >= oldest.max(1)) {
            return Ok(Some(format!("events {gap:?} were refused, and are kept from {oldest} on")));
        }
        let passed_over = |revision| seen.gaps.iter().any(|(first, last)| (*first..=*last).contains(&revision));
        let expected: Vec<_> = events.iter().filter(|event| !passed_over(event.revision)).cloned().collect();
        if seen.events != expected {
            return Ok(Some(format!("the watcher saw {:?}, the events are {expected:?}", seen.events)));
        }
        if seen.restarts > self.restores {
            return Ok(Some(format!("{} times another history, {} restores", seen.restarts, self.restores)));
        }
        let lives = match lives(&events) {
            Ok(lives) => lives,
            Err(why) => return Ok(Some(why)),
        };
        for (batch, known) in self.acknowledged.iter().filter(|(_, known)| known.workspace == number) {
            let Some(life) = lives.get(&known.id) else {
                return Ok(Some(format!("batch {batch} was acknowledged and is lost")));
            };
            if known.ended.is_some_and(|ended| ended != life.state) {
                return Ok(Some(format!("batch {batch} was {:?} and is {:?}", known.ended, life.state)));
            }
            if let Some(why) = self.on_disk(*batch, known, (*life, &lives)).await? {
                return Ok(Some(why));
            }
        }
        if let Some(why) = self.order(number, &lives)? {
            return Ok(Some(why));
        }
        if let Some(why) = self.cloud(number).await? {
            return Ok(Some(why));
        }
        self.agree(number, &all).await
    }

    /// Whether what the servers have of files comes to be what is on disk, also after one was set back. They need not have a file of which
    /// they have no report.
    async fn cloud(&self, number: usize) -> Found {
        for file in 0..FILES {
            let content = self.stage.content(number, file)?;
            let ask = || self.asked(file % self.readers.len(), (number, file), v1::Source::Cloud);
            let is_settled = |held: &std::result::Result<String, Status>| match held {
                Ok(held) => *held == content,
                Err(status) => status.code() == Code::NotFound,
            };
            let mut held = ask().await;
            for _ in 0..TRIES {
                if is_settled(&held) {
                    break;
                }
                pass(LOOK).await;
                held = ask().await;
            }
            if !is_settled(&held) {
                return Ok(Some(format!("cloud copy: file {file} stays {held:?} for {content:?}")));
            }
        }
        Ok(None)
    }

    /// Whether every server, of several, has these events, and reaches the agent.
    async fn agree(&self, number: usize, all: &Log) -> Found {
        if self.stage.database.is_none() {
            return Ok(None);
        }
        for (server, reader) in self.readers.iter().enumerate() {
            let mut others = read(reader, number).await?;
            others.events.retain(|event| event.revision <= all.newest());
            if others.events != all.events {
                let (others, all) = (others.events, &all.events);
                return Ok(Some(format!("server {server} has the events {others:?}, and the first one {all:?}")));
            }
            for file in 0..FILES {
                let (found, expected) =
                    (self.asked(server, (number, file), v1::Source::Active).await, self.stage.content(number, file)?);
                if found.as_ref().ok() != Some(&expected) {
                    return Ok(Some(format!("server {server} answers {found:?} for the agent's {expected:?}")));
                }
            }
        }
        Ok(None)
    }

    /// The content of a file, as one server has it from there; asked for until the agent is connected and the network is not in the way.
    async fn asked(
        &self,
        server: usize,
        (number, file): (usize, usize),
        source: v1::Source,
    ) -> std::result::Result<String, Status> {
        for _ in 0..TRIES {
            if let Ok(text) = read_file(self.readers[server].clone(), (number, file), source).await {
                return Ok(text);
            }
            pass(LOOK).await;
        }
        read_file(self.readers[server].clone(), (number, file), source).await
    }

    /// All events of a workspace: those that are kept behind those that were there before they were removed.
    pub(crate) fn whole(&self, number: usize, kept: &Log) -> Vec<Seen> {
        let begins = kept.events.first().map_or(u64::MAX, |event| event.revision);
        let removed = self.archives[number].events.iter().filter(|event| event.revision < begins);
        removed.chain(&kept.events).cloned().collect()
    }

    /// What the watcher of a workspace has seen, once that is up to this revision.
    async fn seen(&self, number: usize, newest: u64) -> Log {
        let read = || self.logs.get(number).map(|log| with(log, |log| log.clone())).unwrap_or_default();
        for _ in 0..TRIES {
            let seen = read();
            if seen.wrong.is_some() || seen.newest() >= newest {
                return seen;
            }
            pass(LOOK).await;
        }
        read()
    }

    /// Every event of a workspace; asked for until the network is not in the way.
    pub(crate) async fn log(&self, number: usize) -> Result<Log> {
        for _ in 0..TRIES {
            if let Ok(log) = read(&self.readers[0], number).await {
                return Ok(log);
            }
            pass(LOOK).await;
        }
        Ok(read(&self.readers[0], number).await?)
    }

    /// Whether a batch was taken back; asked for in the same way. Of one that is there no more, the events say it.
    async fn is_reverted(&self, known: &Acknowledged, lives: &BTreeMap<String, Life>) -> Result<bool> {
        if known.is_gone {
            return Ok(self.was_taken_back(&known.id, lives));
        }
        let request = v1::GetBatchRequest {
            workspace_id: workspace(known.workspace),
            batch: Some(v1::get_batch_request::Batch::BatchId(known.id.clone())),
            ..v1::GetBatchRequest::default()
        };
        let mut batches = BatchServiceClient::new(self.readers[0].clone());
        for _ in 0..TRIES {
            if let Ok(found) = batches.get_batch(request.clone()).await {
                return Ok(found.into_inner().batch.is_some_and(|batch| !batch.reverted_by.is_empty()));
            }
            pass(LOOK).await;
        }
        Ok(batches.get_batch(request).await?.into_inner().batch.is_some_and(|batch| !batch.reverted_by.is_empty()))
    }

    /// Whether a batch was taken back, as the events have it: by one that was not taken back itself.
    fn was_taken_back(&self, of: &str, lives: &BTreeMap<String, Life>) -> bool {
        let is_applied = |by: &Acknowledged| lives.get(&by.id).is_some_and(|life| life.state == BatchState::Applied);
        self.taking_back(of).any(|by| is_applied(by) && !self.was_taken_back(&by.id, lives))
    }

    /// The batches that take back another one.
    fn taking_back(&self, of: &str) -> impl Iterator<Item = &Acknowledged> {
        let takes_back =
            move |batch| matches!(self.stored.get(batch), Some(Call { kind: Kind::Revert { of: id }, .. }) if id == of);
        self.acknowledged.iter().filter(move |(batch, _)| takes_back(batch)).map(|(_, by)| by)
    }

    /// Whether a batch that takes it back ended at the server while the agent may have applied it: the workstation then reports that as a batch of
    /// its own, which only a server that has the batch still links to it.
    fn may_be_taken_back(&self, of: &str, lives: &BTreeMap<String, Life>) -> bool {
        let may_be_applied = |life: &Life| on_disk(*life, false) == OnDisk::AtMostOnce;
        self.taking_back(of).any(|by| lives.get(&by.id).is_some_and(may_be_applied))
    }

    async fn on_disk(
        &self,
        batch: usize,
        known: &Acknowledged,
        (life, lives): (Life, &BTreeMap<String, Life>),
    ) -> Found {
        let Some(file) = known.file else { return Ok(None) };
        let is_reverted = self.is_reverted(known, lives).await?;
        let is_unknown = self.restores > 0 || known.is_gone && self.may_be_taken_back(&known.id, lives);
        let expected = if is_unknown { OnDisk::AtMostOnce } else { on_disk(life, is_reverted) };
        let wrong = misplaced(&self.stage.content(known.workspace, file)?, batch, expected);
        if wrong.is_some() || expected != OnDisk::Once {
            return Ok(wrong);
        }
        // Its report was kept, so the servers have the content too.
        let server = batch % self.readers.len();
        Ok(match self.asked(server, (known.workspace, file), v1::Source::Cloud).await {
            Ok(text) => misplaced(&text, batch, expected).map(|why| format!("cloud copy: {why}")),
            Err(status) => Some(format!("cloud copy with the line of batch {batch}: {status:?}")),
        })
    }

    /// Whether those lines of each file that were free to be applied at once are in the order in which their batches were stored.
    /// A batch that waited for a word comes at its first event, if that is read after the word. A restored server does not know
    /// the order any more.
    fn order(&self, number: usize, lives: &BTreeMap<String, Life>) -> Found {
        if self.restores > 0 {
            return Ok(None);
        }
        for file in 0..FILES {
            let is_of = |known: &Acknowledged| known.workspace == number && known.file == Some(file);
            let of_file = self.acknowledged.iter().filter(|(_, known)| is_of(known));
            let stored = of_file.filter_map(|(batch, known)| Some((*batch, lives.get(&known.id)?.free_at?)));
            if let Some(why) = out_of_order(&self.stage.content(number, file)?, &stored.collect::<Vec<_>>()) {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }
}
