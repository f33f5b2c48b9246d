//! Plays a history on the simulated machines, and then holds what came of it against the reference.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use aptix_model::wire::v1;
use aptix_model::wire::v1::BatchState;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

use crate::calls::{Answered, Call, Kind, channel};
use crate::clock::{self, pass};
use crate::defect::Defect;
use crate::history::{FILES, Step, WORKSPACES};
use crate::random::Random;
use crate::reference::{Life, OnDisk, lives, misplaced, on_disk, out_of_order, wrongly_removed};
use crate::stage::{KEPT_LEAST, Stage, workspace};
use crate::watcher::{Log, Seen, read, watch};
use crate::workers::with;

/// The nodes behind those of the agents.
const AUTHOR: usize = WORKSPACES;
const WATCHER: usize = WORKSPACES + 1;
/// Between two steps.
const PAUSE: Duration = Duration::from_millis(30);
/// How long everything may take to settle once all is well, in simulated time, and how often that is looked at.
const PATIENCE: Duration = Duration::from_secs(900);
const LOOK: Duration = Duration::from_secs(5);
/// Readings that the network may spoil before one of them counts.
const TRIES: usize = 10;

/// What is wrong, if anything is.
pub(crate) type Found = Result<Option<String>>;

/// Who is down, by its number among the agents; `None` for the server.
type Down = Option<usize>;

/// A batch whose storing was acknowledged.
#[derive(Clone, Debug)]
struct Acknowledged {
    id: String,
    workspace: usize,
    /// The file that it appends to; `None` if it takes another one back.
    file: Option<usize>,
    /// How it ended, if that was acknowledged.
    ended: Option<BatchState>,
    /// Whether its record was removed: the request that stored it would store another one.
    is_gone: bool,
}

/// The events of a workspace that were there before some were removed, from the first one on, and the oldest that is kept.
#[derive(Clone, Default)]
struct Archive {
    events: Vec<Seen>,
    oldest: u64,
}

type Batches = BTreeMap<usize, Acknowledged>;

struct Play {
    stage: Stage,
    author: Channel,
    /// Each with how its batch had ended when it began, as far as that was acknowledged.
    calls: JoinSet<(Option<BatchState>, Answered)>,
    /// How each batch was stored.
    stored: BTreeMap<usize, Call>,
    acknowledged: Batches,
    /// What was acknowledged when the copy was made.
    copied: Option<(Batches, [Archive; WORKSPACES])>,
    archives: [Archive; WORKSPACES],
    restores: usize,
    down: Vec<(Instant, Down)>,
    logs: [Arc<Mutex<Log>>; WORKSPACES],
    watchers: JoinSet<()>,
}

/// Plays a history; what is wrong with it, if anything is.
pub(crate) async fn play(seed: u64, steps: &[Step], defect: Option<Defect>) -> Found {
    let mut stage = Stage::new(&mut Random::new(seed), defect)?;
    stage.start_server().await?;
    for number in 0..WORKSPACES {
        stage.start_agent(number).await?;
    }
    let (author, watching) = (channel(stage.link(AUTHOR)?), channel(stage.link(WATCHER)?));
    let logs: [Arc<Mutex<Log>>; WORKSPACES] = Default::default();
    let mut watchers = JoinSet::new();
    for (number, log) in logs.iter().enumerate() {
        watchers.spawn(watch(watching.clone(), number, Arc::clone(log)));
    }
    let mut play = Play {
        stage,
        author,
        calls: JoinSet::new(),
        stored: BTreeMap::new(),
        acknowledged: BTreeMap::new(),
        copied: None,
        archives: Default::default(),
        restores: 0,
        down: Vec::new(),
        logs,
        watchers,
    };
    for (number, step) in steps.iter().enumerate() {
        let wrong = match *step {
            Step::Retain { workspace, events } => play.retain(workspace, events).await?,
            step => play.step(step).await.map(|()| None)?,
        };
        pass(PAUSE).await;
        play.start_due().await?;
        if let Some(why) = wrong.or(play.take_answers()?).or(play.stage.ended()) {
            return Ok(Some(format!("step {number}, {step:?}: {why}")));
        }
    }
    Ok(play.end().await?.map(|why| format!("at the end: {why}")))
}

impl Play {
    async fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Submit { batch, workspace, file } => self.store(batch, workspace, Kind::Submit { file }),
            Step::Prepare { batch, workspace, file } => self.store(batch, workspace, Kind::Prepare { file }),
            Step::Revert { batch, of } => {
                if let Some((of, workspace)) = self.known(of) {
                    self.store(batch, workspace, Kind::Revert { of });
                }
            }
            // What a restored server forgot is not stored once more: it may be on disk. Nor is what retention removed.
            Step::Again { batch } if self.may_be_repeated(batch) => {
                if let Some(call) = self.stored.get(&batch).cloned() {
                    self.call(call);
                }
            }
            Step::Again { .. } | Step::Retain { .. } => {}
            Step::Apply { batch } => self.about(batch, |id| Kind::Apply { id }),
            Step::Approve { batch } => self.about(batch, |id| Kind::Approve { id }),
            Step::Reject { batch } => self.about(batch, |id| Kind::Reject { id }),
            Step::Cancel { batch } => self.about(batch, |id| Kind::Cancel { id }),
            Step::StrangersReport { batch } => self.about(batch, |id| Kind::StrangersReport { id }),
            Step::Stop { node, direction } => self.stage.link(node)?.stop(direction),
            Step::Heal { node } => self.stage.link(node)?.heal(),
            Step::Reset { node } => self.stage.link(node)?.reset(),
            Step::KillServer { down } => {
                self.stage.kill_server().await;
                self.starts_after(down, None);
            }
            Step::KillAgent { workspace, down } => {
                self.stage.kill_agent(workspace).await;
                self.starts_after(down, Some(workspace));
            }
            Step::Copy => self.copy().await?,
            Step::Restore => self.restore().await?,
            Step::Pass { millis } => pass(Duration::from_millis(millis)).await,
            Step::Clock { seconds } => clock::set(seconds)?,
        }
        Ok(())
    }

    fn may_be_repeated(&self, batch: usize) -> bool {
        self.acknowledged.get(&batch).map_or(self.restores == 0, |known| !known.is_gone)
    }

    /// Lets time pass until calls are no longer repeated, and removes what a workspace keeps no longer.
    async fn retain(&mut self, number: usize, events: u64) -> Found {
        if !self.calls.is_empty() {
            return Ok(None);
        }
        let while_old = KEPT_LEAST * 2;
        if let Some(why) = self.remove(number, events, None).await? {
            return Ok(Some(why));
        }
        pass(while_old).await;
        self.remove(number, events, Some(while_old)).await
    }

    /// Removes it, and looks whether it may go.
    async fn remove(&mut self, number: usize, events: u64, passed: Option<Duration>) -> Found {
        let of_workspace = self.acknowledged.values().filter(|known| known.workspace == number);
        let batches = of_workspace.map(|known| known.id.parse()).collect::<Result<Vec<_>, _>>()?;
        let known = self.archives[number].events.last().map_or(0, |event| event.revision);
        let Some(removed) = self.stage.remove(number, events, passed, (known, batches)).await? else { return Ok(None) };
        let archive = &mut self.archives[number];
        archive.events.extend(removed.events.into_iter().map(Seen::stored));
        archive.oldest = removed.oldest;
        let gone: Vec<String> = removed.gone.iter().map(ToString::to_string).collect();
        for known in self.acknowledged.values_mut().filter(|known| gone.contains(&known.id)) {
            known.is_gone = true;
        }
        Ok(wrongly_removed(&archive.events, archive.oldest, &gone))
    }

    fn known(&self, batch: usize) -> Option<(String, usize)> {
        self.acknowledged.get(&batch).map(|found| (found.id.clone(), found.workspace))
    }

    fn call(&mut self, call: Call) {
        let ended = self.acknowledged.get(&call.batch).and_then(|known| known.ended);
        let answered = call.answered(self.author.clone());
        self.calls.spawn(async move { (ended, answered.await) });
    }

    fn store(&mut self, batch: usize, workspace: usize, kind: Kind) {
        let call = Call { batch, workspace, kind };
        self.stored.insert(batch, call.clone());
        self.call(call);
    }

    fn about(&mut self, batch: usize, kind: impl FnOnce(String) -> Kind) {
        if let Some((id, workspace)) = self.known(batch) {
            self.call(Call { batch, workspace, kind: kind(id) });
        }
    }

    fn starts_after(&mut self, millis: u64, who: Down) {
        self.down.retain(|(_, other)| *other != who);
        self.down.push((Instant::now() + Duration::from_millis(millis), who));
    }

    /// Starts what was down for long enough.
    async fn start_due(&mut self) -> Result<()> {
        let now = Instant::now();
        for (_, who) in self.down.extract_if(.., |(due, _)| *due <= now).collect::<Vec<_>>() {
            match who {
                None => self.stage.start_server().await?,
                Some(number) => self.stage.start_agent(number).await?,
            }
        }
        Ok(())
    }

    async fn copy(&mut self) -> Result<()> {
        self.down.retain(|(_, who)| who.is_some());
        self.stage.copy().await?;
        self.copied = Some((self.acknowledged.clone(), self.archives.clone()));
        Ok(())
    }

    /// Calls under way are given up: what the server forgets of them may be on disk.
    async fn restore(&mut self) -> Result<()> {
        let Some((copied, archives)) = self.copied.clone() else { return Ok(()) };
        self.down.retain(|(_, who)| who.is_some());
        self.calls.shutdown().await;
        self.stage.link(AUTHOR)?.reset();
        self.stage.restore().await?;
        (self.acknowledged, self.archives) = (copied, archives);
        self.restores += 1;
        Ok(())
    }

    /// Notes the answers that came; what is wrong with one, if anything is.
    fn take_answers(&mut self) -> Found {
        while let Some(answered) = self.calls.try_join_next() {
            let (ended, (call, answer)) = answered?;
            if let Some(why) = self.note(&call, ended, answer) {
                return Ok(Some(format!("{call:?}: {why}")));
            }
        }
        Ok(None)
    }

    fn note(
        &mut self,
        call: &Call,
        ended: Option<BatchState>,
        answer: std::result::Result<v1::Batch, Status>,
    ) -> Option<String> {
        let file = match call.kind {
            Kind::Submit { file } | Kind::Prepare { file } => Some(file),
            _ => None,
        };
        let answer = match (&call.kind, answer) {
            (Kind::StrangersReport { .. }, Ok(_)) => return Some("a stranger's report was taken".to_owned()),
            (Kind::Submit { .. } | Kind::Prepare { .. }, Err(status)) => return Some(format!("refused: {status:?}")),
            (_, Err(_)) => return None,
            (_, Ok(answer)) => answer,
        };
        let new =
            Acknowledged { id: answer.batch_id.clone(), workspace: call.workspace, file, ended: None, is_gone: false };
        let known = self.acknowledged.entry(call.batch).or_insert(new);
        if known.id != answer.batch_id {
            return Some(format!("it is batch {} now, and was {} before", answer.batch_id, known.id));
        }
        let state = answer.state();
        // A batch ends once. Of calls at the same time, one that saw it before its end may be answered last.
        let before = if is_ended(state) { known.ended.replace(state) } else { ended };
        before.filter(|before| *before != state).map(|before| format!("it is {state:?} now, and was {before:?} before"))
    }

    /// Mends everything, waits until all has settled, and compares.
    async fn end(&mut self) -> Found {
        for link in &self.stage.links {
            link.heal();
        }
        for (due, _) in &mut self.down {
            *due = Instant::now();
        }
        self.start_due().await?;
        let (mut unsettled, deadline) = (None, Instant::now() + PATIENCE);
        loop {
            pass(LOOK).await;
            if let Some(why) = self.take_answers()?.or(self.stage.ended()) {
                return Ok(Some(why));
            }
            if Instant::now() > deadline {
                return Ok(unsettled);
            }
            unsettled = self.unsettled().await?;
            if unsettled.is_none() {
                break;
            }
        }
        for number in 0..WORKSPACES {
            if let Some(why) = self.compare(number).await? {
                return Ok(Some(format!("{}: {why}", workspace(number))));
            }
        }
        self.watchers.shutdown().await;
        Ok(None)
    }

    /// What has not settled yet.
    async fn unsettled(&self) -> Found {
        if !self.calls.is_empty() {
            return Ok(Some(format!("{} calls were not answered", self.calls.len())));
        }
        for (number, log) in self.logs.iter().enumerate() {
            let Ok(all) = read(&self.author, number).await else { return Ok(Some("a feed cannot be read".to_owned())) };
            let seen = with(log, |log| log.clone());
            if seen.wrong.is_none() && seen.newest() < all.newest() {
                return Ok(Some(format!("the watcher is at event {} of {}", seen.newest(), all.newest())));
            }
            let Ok(lives) = lives(&self.whole(number, &all)) else { continue };
            if let Some((id, _)) = lives.iter().find(|(_, life)| life.state == BatchState::Approved) {
                return Ok(Some(format!("batch {id} stays APPROVED")));
            }
        }
        Ok(None)
    }

    /// Holds a workspace against the reference.
    async fn compare(&self, number: usize) -> Found {
        let all = self.log(number).await?;
        let mut seen = self.seen(number, all.newest()).await;
        if let Some(why) = seen.wrong.as_ref().or(all.wrong.as_ref()) {
            return Ok(Some(why.clone()));
        }
        // Batches whose time is over end whenever the server looks for them.
        seen.events.retain(|event| event.revision <= all.newest());
        let (events, oldest) = (self.whole(number, &all), self.archives[number].oldest);
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
        self.order(number, &lives)
    }

    /// All events of a workspace: those that are kept behind those that were there before they were removed.
    fn whole(&self, number: usize, kept: &Log) -> Vec<Seen> {
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
    async fn log(&self, number: usize) -> Result<Log> {
        for _ in 0..TRIES {
            if let Ok(log) = read(&self.author, number).await {
                return Ok(log);
            }
            pass(LOOK).await;
        }
        Ok(read(&self.author, number).await?)
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
        let mut batches = BatchServiceClient::new(self.author.clone());
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
        let takes_back =
            |batch| matches!(self.stored.get(batch), Some(Call { kind: Kind::Revert { of: id }, .. }) if id == of);
        let is_applied = |by: &Acknowledged| lives.get(&by.id).is_some_and(|life| life.state == BatchState::Applied);
        let mut by = self.acknowledged.iter().filter(|(batch, by)| takes_back(batch) && is_applied(by));
        by.any(|(_, by)| !self.was_taken_back(&by.id, lives))
    }

    async fn on_disk(
        &self,
        batch: usize,
        known: &Acknowledged,
        (life, lives): (Life, &BTreeMap<String, Life>),
    ) -> Found {
        let Some(file) = known.file else { return Ok(None) };
        let is_reverted = self.is_reverted(known, lives).await?;
        let expected = if self.restores > 0 { OnDisk::AtMostOnce } else { on_disk(life, is_reverted) };
        Ok(misplaced(&self.stage.content(known.workspace, file)?, batch, expected))
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

const fn is_ended(state: BatchState) -> bool {
    !matches!(
        state,
        BatchState::Unspecified
            | BatchState::Preparing
            | BatchState::Prepared
            | BatchState::PendingApproval
            | BatchState::Approved
    )
}
