//! One data directory over many starts of its server, with the reference and the readers that outlive them.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::check::{Depth, check, none};
use crate::feed::{Agent, Position, Stopped, watch};
use crate::ledger::{Finding, Ledger};
use crate::load::{ALL, Caller, IDLE, READ, Role, SERVED, Shared};
use crate::moment::until;
use crate::program;
use crate::random::Random;
use crate::stage::Stage;
use crate::workers::with;

/// A reader of events, which goes on where it was.
enum Reader {
    Watch(&'static str, Position),
    Agent(Box<Agent>),
}

/// What works on the server at this moment.
pub(crate) struct Load {
    shared: Shared,
    callers: Vec<JoinHandle<Result<(), Stopped>>>,
    readers: JoinSet<(Reader, Result<(), Stopped>)>,
}

/// A server with all that is known of it.
pub(crate) struct Scene {
    pub(crate) stage: Stage,
    pub(crate) runtime: Runtime,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    /// Other servers on the same database.
    others: Vec<Stage>,
    readers: Vec<Reader>,
    /// Cycles so far.
    cycle: usize,
    /// Acknowledged calls so far.
    pub(crate) acknowledged: usize,
    _place: TempDir,
}

impl Scene {
    /// With a data directory beside everything else, or on a file system of its own.
    pub(crate) fn set(data: Option<&Path>) -> Result<Self> {
        let place = program::place()?;
        let data = data.map_or_else(|| place.path().join("data"), Path::to_owned);
        let stage = Stage::set(place.path(), &data, None)?;
        Self::with(stage, Vec::new(), place)
    }

    /// With so many servers on a database, and a bucket for its blobs.
    pub(crate) fn several(database: &str, blobs: Option<String>, servers: usize) -> Result<Self> {
        let place = program::place()?;
        let data = |at: usize| place.path().join(format!("data-{at}"));
        let stage = Stage::set(place.path(), &data(0), Some(database))?.with_blobs(blobs);
        let others = (1..servers).map(|at| stage.another(&data(at))).collect();
        Self::with(stage, others, place)
    }

    fn with(stage: Stage, others: Vec<Stage>, place: TempDir) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let watches = ALL.map(|workspace| Reader::Watch(workspace, Position::default()));
        let agent = Reader::Agent(Box::new(Agent::new(stage.is_shared())));
        let readers = watches.into_iter().chain([agent]).collect();
        Ok(Self { stage, runtime, ledger: Arc::default(), others, readers, cycle: 0, acknowledged: 0, _place: place })
    }

    /// The place of the workspaces.
    pub(crate) fn place(&self) -> &Path {
        self._place.path()
    }

    /// One of the servers.
    pub(crate) fn server(&mut self, at: usize) -> &mut Stage {
        match at.checked_sub(1).and_then(|at| self.others.get_mut(at)) {
            Some(other) => other,
            None => &mut self.stage,
        }
    }

    /// The addresses of the servers.
    fn addresses(&self) -> Vec<String> {
        std::iter::once(&self.stage).chain(&self.others).map(|stage| stage.address.clone()).collect()
    }

    /// Starts the agents that do not run, each at one of the servers.
    pub(crate) fn start_agents(&mut self, random: &mut Random) -> Result<()> {
        let addresses = self.addresses();
        self.stage.start_agents_at(|| addresses.get(random.below(addresses.len())).cloned().unwrap_or_default())
    }

    /// Connects everyone who calls.
    pub(crate) fn connect(&self) -> Result<Shared> {
        self.connect_to(&self.stage.address)
    }

    /// The same, at one of the servers.
    fn connect_to(&self, address: &str) -> Result<Shared> {
        let secrets = &self.stage.secrets;
        let author = self.runtime.block_on(Calls::open(address, &secrets.author))?;
        Ok(Shared {
            reviewer: author.with_token(&secrets.reviewer),
            operator: author.with_token(&secrets.operator),
            author,
            ledger: Arc::clone(&self.ledger),
            acknowledged: Arc::new(AtomicUsize::new(0)),
            over: CancellationToken::new(),
            place: self.place().to_owned(),
        })
    }

    /// Compares the running server with the reference.
    pub(crate) fn check(&self, depth: Depth, random: &mut Random) -> Result<()> {
        none(&self.findings(depth, random)?).with_context(|| self.stage.tail())
    }

    /// Every difference between the running server and the reference.
    pub(crate) fn findings(&self, depth: Depth, random: &mut Random) -> Result<Vec<Finding>> {
        self.findings_at(0, depth, random)
    }

    /// The same at one of the servers.
    pub(crate) fn findings_at(&self, at: usize, depth: Depth, random: &mut Random) -> Result<Vec<Finding>> {
        let log = self.stage.log();
        ensure!(!log.contains("panicked"), "the server panicked: {}", self.stage.tail());
        let address = self.addresses().get(at).cloned().unwrap_or_default();
        let shared = self.connect_to(&address)?;
        self.runtime.block_on(check(&shared, depth, random))
    }

    /// Lets everyone work on the running servers, each on one of them.
    pub(crate) fn load(&mut self, random: &mut Random) -> Result<Load> {
        let shared = self.connect()?;
        let mut ways = vec![shared.clone()];
        for other in &self.others {
            ways.push(shared.over(self.runtime.block_on(Calls::open(&other.address, &self.stage.secrets.author))?));
        }
        let way = |random: &mut Random| match ways.len() {
            1 => shared.clone(),
            count => ways.get(random.below(count)).unwrap_or(&shared).clone(),
        };
        self.cycle += 1;
        let mut callers = Vec::new();
        for (number, role) in Role::ALL.into_iter().enumerate() {
            let shared = way(random);
            let random = Random::new(random.below(1 << 30) as u64);
            let caller = Caller::new(shared, random, format!("c{}-{number}", self.cycle));
            callers.push(self.runtime.spawn(caller.work(role)));
        }
        let mut readers = JoinSet::new();
        for reader in std::mem::take(&mut self.readers) {
            readers.spawn_on(follow(reader, way(random), self.stage_agent()), self.runtime.handle());
        }
        Ok(Load { shared, callers, readers })
    }

    fn stage_agent(&self) -> String {
        self.stage.secrets.agent.clone()
    }

    /// Ends the work, whose server may have gone.
    pub(crate) fn end(&mut self, load: Load) -> Result<()> {
        none(&self.found(load)?).with_context(|| self.stage.tail())
    }

    /// Ends the work, and returns every difference that it came upon.
    pub(crate) fn found(&mut self, load: Load) -> Result<Vec<Finding>> {
        let Load { shared, callers, readers } = load;
        shared.over.cancel();
        let mut ends = Vec::new();
        for caller in callers {
            ends.push(self.runtime.block_on(caller)?);
        }
        for (reader, end) in self.runtime.block_on(readers.join_all()) {
            self.readers.push(reader);
            ends.push(end);
        }
        self.acknowledged += shared.acknowledged.load(Ordering::Relaxed);
        let wrong = |end| match end {
            Err(Stopped::Wrong(finding)) => Some(finding),
            Ok(()) | Err(Stopped::Gone(_)) => None,
        };
        Ok(ends.into_iter().filter_map(wrong).collect())
    }

    /// Waits until the running server stores again; false if it ended.
    pub(crate) fn heals(&mut self, random: &mut Random) -> Result<bool> {
        self.heals_at(0, random)
    }

    /// The same of one of the servers.
    pub(crate) fn heals_at(&mut self, at: usize, random: &mut Random) -> Result<bool> {
        if self.server(at).ended()?.is_some() {
            return Ok(false);
        }
        let address = self.server(at).address.clone();
        let shared = self.connect_to(&address)?;
        self.cycle += 1;
        let name = format!("c{}-healed", self.cycle);
        let mut caller = Caller::new(shared, Random::new(random.below(1 << 30) as u64), name);
        let runtime = &self.runtime;
        let (mut stores, stage) = match at.checked_sub(1).and_then(|at| self.others.get_mut(at)) {
            Some(other) => (false, other),
            None => (false, &mut self.stage),
        };
        let healed = until(crate::stage::PATIENCE, Duration::from_millis(20), || {
            match runtime.block_on(caller.submit(IDLE)) {
                Ok(()) => stores = true,
                Err(Stopped::Gone(_)) => {}
                Err(Stopped::Wrong(finding)) => none(&[finding])?,
            }
            Ok(stores || stage.ended()?.is_some())
        })?;
        ensure!(healed, "the server stores nothing any more{}", stage.tail());
        Ok(stores)
    }

    /// Waits until the agents have ended every batch, and looks at each file.
    pub(crate) fn settle(&mut self, random: &mut Random) -> Result<()> {
        self.start_agents(random)?;
        let shared = self.connect()?;
        let (stage, runtime) = (&self.stage, &self.runtime);
        for workspace in SERVED {
            stage.until("the agents end every batch", || {
                let found = runtime.block_on(shared.author.workspace(workspace))?;
                Ok(found.open_batches == Some(0))
            })?;
        }
        self.check(Depth::Everything, random)?;
        with(&self.ledger, |ledger| {
            for workspace in SERVED {
                let Some(known) = ledger.workspaces.get(workspace) else { continue };
                for (request, sent) in known.sent.iter().filter(|(_, sent)| sent.answered.is_some()) {
                    let file = self.place().join(workspace).join(format!("{request}.txt"));
                    let found = std::fs::read(&file).with_context(|| format!("{} is gone", file.display()))?;
                    let expected = match known.blobs.get(&sent.content) {
                        Some(bytes) => bytes.clone(),
                        None => format!("first\n{}\n", sent.content).into_bytes(),
                    };
                    ensure!(found == expected, "{} is {:?}", file.display(), String::from_utf8_lossy(&found));
                }
            }
            Ok(())
        })
    }
}

impl Load {
    /// Waits until so many calls are acknowledged, or nobody works any more.
    pub(crate) fn acknowledges(&self, count: usize) -> Result<()> {
        let acknowledged = &self.shared.acknowledged;
        let due = Duration::from_secs(20);
        let is_done = || Ok(acknowledged.load(Ordering::Relaxed) >= count || self.is_idle());
        until(due, Duration::from_millis(1), is_done)?;
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.callers.iter().all(JoinHandle::is_finished)
    }
}

/// Lets a reader follow until the server has gone or the work is over.
async fn follow(mut reader: Reader, shared: Shared, agent: String) -> (Reader, Result<(), Stopped>) {
    let over = shared.over.clone();
    let work = async {
        match &mut reader {
            Reader::Watch(workspace, position) => {
                watch(&shared.author, &shared.ledger, workspace, position, None).await
            }
            Reader::Agent(serving) => serving.serve(&shared.author.with_token(&agent), &shared.ledger, READ).await,
        }
    };
    let end = tokio::select! {
        () = over.cancelled() => Ok(()),
        end = work => end,
    };
    (reader, end)
}
