//! Plays a history on the simulated machines, and then holds what came of it against the reference.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use aptix_model::wire::v1;
use aptix_model::wire::v1::BatchState;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

use crate::calls::{Answered, Call, Kind, channel};
use crate::clock::{self, pass};
use crate::defect::Defect;
use crate::history::{Step, WORKSPACES};
use crate::network::Link;
use crate::questions::{self, ask};
use crate::random::Random;
use crate::reference::{lives, wrongly_removed};
use crate::rivals::{CONTESTED, Rivals};
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
pub(crate) const LOOK: Duration = Duration::from_secs(5);
/// How long what fails between servers lasts beyond the steps: longer than a server that is cut off counts as alive.
const OUTLASTS: Duration = Duration::from_secs(25);

/// What is wrong, if anything is.
pub(crate) type Found = Result<Option<String>>;

/// Who is down, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Down {
    Server(usize),
    Agent(usize),
}

/// A batch whose storing was acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) id: String,
    pub(crate) workspace: usize,
    /// The file that it appends to; `None` if it takes another one back.
    pub(crate) file: Option<usize>,
    /// How it ended, if that was acknowledged.
    pub(crate) ended: Option<BatchState>,
    /// Whether its record was removed: the request that stored it would store another one.
    pub(crate) is_gone: bool,
}

/// The events of a workspace that were there before some were removed, from the first one on, and the oldest that is kept.
#[derive(Clone, Default)]
pub(crate) struct Archive {
    pub(crate) events: Vec<Seen>,
    pub(crate) oldest: u64,
}

type Batches = BTreeMap<usize, Acknowledged>;

/// A history that is played.
pub(crate) struct Play {
    pub(crate) stage: Stage,
    /// The author's way to each server.
    author: Vec<Channel>,
    /// What is read through when all is compared, of each server.
    pub(crate) readers: Vec<Channel>,
    /// How many calls were made: the next one goes to the next server.
    made: usize,
    /// Each with how its batch had ended when it began, as far as that was acknowledged.
    calls: JoinSet<(Option<BatchState>, Answered)>,
    /// What is wrong with the outcome of each question to an agent.
    questions: JoinSet<Option<String>>,
    rivals: Option<Rivals>,
    /// How each batch was stored.
    pub(crate) stored: BTreeMap<usize, Call>,
    pub(crate) acknowledged: Batches,
    /// What was acknowledged when the copy was made.
    copied: Option<(Batches, [Archive; WORKSPACES])>,
    pub(crate) archives: [Archive; WORKSPACES],
    /// Before which event events were removed of each workspace, in any history: a watcher without a cursor passes over them for good.
    pub(crate) removed: [u64; WORKSPACES],
    pub(crate) restores: usize,
    down: Vec<(Instant, Down)>,
    pub(crate) logs: [Arc<Mutex<Log>>; WORKSPACES],
    watchers: JoinSet<()>,
}

/// Plays a history with so many servers; what is wrong with it, if anything is.
pub(crate) async fn play((seed, servers): (u64, usize), steps: &[Step], defect: Option<Defect>) -> Found {
    let mut play = Play::begin(Random::new(seed), servers, defect).await?;
    for (number, step) in steps.iter().enumerate() {
        let wrong = match *step {
            Step::Retain { workspace, events } => play.retain(workspace, events).await?,
            Step::EndServer { server, down } => {
                play.starts_after(down, Down::Server(server));
                play.stage.end_server(server).await
            }
            step => play.step(step).await.map(|()| None)?,
        };
        pass(PAUSE).await;
        play.start_due().await?;
        if let Some(why) = wrong.or(play.wrong()?) {
            return Ok(Some(format!("step {number}, {step:?}: {why}")));
        }
    }
    Ok(play.end().await?.map(|why| format!("at the end: {why}")))
}

impl Play {
    /// Starts the machines.
    async fn begin(mut random: Random, servers: usize, defect: Option<Defect>) -> Result<Self> {
        let mut stage = Stage::new(&mut random, servers, defect)?;
        for server in 0..servers {
            stage.start_server(server).await?;
        }
        for number in 0..WORKSPACES {
            stage.start_agent(number).await?;
        }
        let (author, watching) = (stage.link(AUTHOR)?.clone(), channel(stage.link(WATCHER)?.clone()));
        let quick = stage.quick.clone();
        let of_each = |link: Link| (0..servers).map(move |server| channel(link.to(server))).collect::<Vec<_>>();
        let author = of_each(author);
        let is_shared = stage.database.is_some();
        let readers = if is_shared { of_each(quick.clone()) } else { author.clone() };
        let rivals = is_shared.then(|| Rivals::begin(&of_each(quick), &mut random));
        let logs: [Arc<Mutex<Log>>; WORKSPACES] = Default::default();
        let mut watchers = JoinSet::new();
        for (number, log) in logs.iter().enumerate() {
            watchers.spawn(watch(watching.clone(), number, Arc::clone(log)));
        }
        Ok(Self {
            stage,
            author,
            readers,
            made: 0,
            calls: JoinSet::new(),
            questions: JoinSet::new(),
            rivals,
            stored: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            copied: None,
            archives: Default::default(),
            removed: Default::default(),
            restores: 0,
            down: Vec::new(),
            logs,
            watchers,
        })
    }

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
            Step::Again { .. } | Step::Retain { .. } | Step::EndServer { .. } => {}
            Step::Apply { batch } => self.about(batch, |id| Kind::Apply { id }),
            Step::Approve { batch } => self.about(batch, |id| Kind::Approve { id }),
            Step::Reject { batch } => self.about(batch, |id| Kind::Reject { id }),
            Step::Cancel { batch } => self.about(batch, |id| Kind::Cancel { id }),
            Step::StrangersReport { batch } => self.about(batch, |id| Kind::StrangersReport { id }),
            Step::Stop { node, direction } => self.stage.link(node)?.stop(direction),
            Step::Heal { node } => self.stage.link(node)?.heal(),
            Step::Reset { node } => self.stage.link(node)?.reset(),
            Step::KillServer { server, down } => {
                self.stage.kill_server(server).await;
                self.starts_after(down, Down::Server(server));
            }
            Step::KillAgent { workspace, down } => {
                self.stage.kill_agent(workspace).await;
                self.starts_after(down, Down::Agent(workspace));
            }
            Step::Ail { .. } | Step::Hints { .. } | Step::Ask { .. } => self.among_servers(step),
            Step::Copy => self.copy().await?,
            Step::Restore => self.restore().await?,
            Step::Pass { millis } => pass(Duration::from_millis(millis)).await,
            Step::Clock { seconds } => clock::set(seconds)?,
        }
        Ok(())
    }

    /// A step that only several servers have.
    fn among_servers(&mut self, step: Step) {
        let Some(database) = &self.stage.database else { return };
        match step {
            Step::Ail { server, ailment, millis } => database.ail(server, ailment, Duration::from_millis(millis)),
            Step::Hints { fate } => database.set_fate(fate),
            Step::Ask { server, workspace, file } => {
                let asked = ask(self.readers[server].clone(), workspace, file);
                self.questions.spawn(async move { questions::wrong(&asked.await) });
            }
            _ => {}
        }
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
        self.removed[number] = self.removed[number].max(removed.oldest);
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
        self.made += 1;
        let answered = call.answered(self.author.clone(), self.made);
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
                Down::Server(number) => self.stage.start_server(number).await?,
                Down::Agent(number) => self.stage.start_agent(number).await?,
            }
        }
        Ok(())
    }

    async fn copy(&mut self) -> Result<()> {
        self.down.retain(|(_, who)| *who != Down::Server(0));
        self.stage.copy().await?;
        self.copied = Some((self.acknowledged.clone(), self.archives.clone()));
        Ok(())
    }

    /// Calls under way are given up: what the server forgets of them may be on disk.
    async fn restore(&mut self) -> Result<()> {
        let Some((copied, archives)) = self.copied.clone() else { return Ok(()) };
        self.down.retain(|(_, who)| *who != Down::Server(0));
        self.calls.shutdown().await;
        self.stage.link(AUTHOR)?.reset();
        self.stage.restore().await?;
        (self.acknowledged, self.archives) = (copied, archives);
        self.restores += 1;
        Ok(())
    }

    /// What is wrong until now, if anything is.
    fn wrong(&mut self) -> Found {
        while let Some(wrong) = self.questions.try_join_next() {
            if let Some(why) = wrong? {
                return Ok(Some(why));
            }
        }
        let of_leases = self.stage.database.as_ref().and_then(|database| database.wrong());
        let of_rivals = || self.rivals.as_ref().and_then(Rivals::wrong);
        let found = of_leases.or_else(of_rivals);
        Ok(found.or(self.take_answers()?).or(self.stage.ended()))
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
        if self.stage.database.is_some() {
            pass(OUTLASTS).await;
        }
        for link in &self.stage.links {
            link.heal();
        }
        if let Some(database) = &self.stage.database {
            database.mend();
        }
        for (due, _) in &mut self.down {
            *due = Instant::now();
        }
        self.start_due().await?;
        let (mut unsettled, deadline) = (None, Instant::now() + PATIENCE);
        loop {
            pass(LOOK).await;
            if let Some(why) = self.wrong()? {
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
        let Some(mut rivals) = self.rivals.take() else { return Ok(None) };
        rivals.end().await;
        Ok(rivals.wrong().or(rivals.lost(&self.log(CONTESTED).await?)))
    }

    /// What has not settled yet.
    async fn unsettled(&self) -> Found {
        if !self.calls.is_empty() {
            return Ok(Some(format!("{} calls were not answered", self.calls.len())));
        }
        if !self.questions.is_empty() {
            return Ok(Some(format!("{} questions have no outcome", self.questions.len())));
        }
        for (number, log) in self.logs.iter().enumerate() {
            let Ok(all) = read(&self.readers[0], number).await else {
                return Ok(Some("a feed cannot be read".to_owned()));
            };
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
