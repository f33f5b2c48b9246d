//! Refusals, applies, batches of which a part is applied, and deliveries at the same time, while agents are killed: every batch ends once, and every report is its
//! own.
//!
//! Each round submits batches at once, starts an agent (at times two, of which one may serve) beside local applies, and kills
//! it at a random moment. An applied batch adds a line to a file of its own without naming a version, so that one that is
//! applied twice shows. The control is an agent whose log entries are at times written over the one before, as two writers
//! do that do not see each other.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aptix_client::connection::{Connection, Server};
use aptix_model::batch::{Atomicity, Batch, Origin};
use aptix_model::documents;
use aptix_model::id::BatchId;
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::job::{Ending, Job};
use crate::moment::until;
use crate::program::{private, program};
use crate::random::Random;
use crate::tree;

/// Batches of each kind in a round.
const KINDS: usize = 4;
/// Rounds after which every batch has to have ended.
const SETTLED: usize = 25;
/// How long an agent lives at most before it is killed.
const LIFE: Duration = Duration::from_millis(250);
/// How long it may take until the next batch has ended once no agent is killed any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// A batch that was stored.
struct Sent {
    id: BatchId,
    path: String,
    kind: Kind,
}

/// What a batch asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A line more in a file.
    Fits,
    /// A change of a file that is missing.
    Missing,
    /// Both, file by file.
    PerFile,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Fits, Self::Missing, Self::PerFile];

    /// Whether it adds a line.
    const fn adds(self) -> bool {
        matches!(self, Self::Fits | Self::PerFile)
    }

    /// What it asks of the file at a path.
    fn batch(self, path: &str) -> Result<Batch> {
        let add = (path, r#""operation":"append_eof","newText":"once\n""#);
        let missing = format!("missing-{path}");
        let replace = (missing.as_str(), r#""operation":"replace","oldText":"first","newText":"once""#);
        let (edits, atomicity): (&[_], _) = match self {
            Self::Fits => (&[add], Atomicity::AllOrNothing),
            Self::Missing => (&[replace], Atomicity::AllOrNothing),
            Self::PerFile => (&[replace, add], Atomicity::PerFile),
        };
        let mut batch = Batch { atomicity, ..Batch::default() };
        for (path, change) in edits {
            let document = format!(r#"{{"path":"{path}","patches":[{{{change}}}]}}"#);
            let parsed = documents::parse(document.as_bytes(), None)
                .map_err(|failures| anyhow::anyhow!("the document cannot be read: {failures:?}"))?;
            batch.files.extend(parsed.batch.files);
        }
        Ok(batch)
    }
}

/// A process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How an agent is started: given the place and the server.
type Start<'a> = &'a dyn Fn(&Path, &str) -> Result<Command>;

struct Scene<'a> {
    place: PathBuf,
    _server: Running,
    url: String,
    runtime: Runtime,
    connection: Connection,
    start: Start<'a>,
    sent: Vec<Sent>,
    /// Batches that were checked.
    settled: usize,
    kills: usize,
    locals: usize,
}

/// The agent as a person starts it.
fn real(place: &Path, url: &str) -> Result<Command> {
    let mut command = Command::new(program("aptix")?);
    command.args(["agent", "--server", url, "--workspace", "w", "--root", "ws", "--approve", "auto"]);
    private(&mut command, place);
    Ok(command)
}

/// The agent whose entries are written over each other.
fn unseeing(place: &Path, url: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["unseeing", url]);
    private(&mut command, place);
    Ok(command)
}

impl<'a> Scene<'a> {
    fn set(place: &Path, start: Start<'a>) -> Result<Self> {
        use std::io::{BufRead, BufReader};
        use std::os::unix::fs::PermissionsExt;
        for directory in ["ws", "state", "data", "config/aptix"] {
            std::fs::create_dir_all(place.join(directory))?;
        }
        let policy = place.join("config/aptix/policy.toml");
        std::fs::write(&policy, "[limits]\nrefused_per_minute = 1000000\n")?;
        std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o600))?;
        let mut server = Command::new(program("aptix-server")?);
        server.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(place.join("data"));
        server.stdout(Stdio::piped()).stderr(std::fs::File::create(place.join("server.log"))?);
        let mut server = Running(server.spawn()?);
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().context("the server has an output")?).read_line(&mut line)?;
        let address = line.trim_end().strip_prefix("listening on ").context("the server does not listen")?;
        let url = format!("http://{address}");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let connection = runtime.block_on(Connection::open(&Server::open(url.parse()?), &"w".parse()?))?;
        let (place, sent) = (place.to_owned(), Vec::new());
        Ok(Self { place, _server: server, url, runtime, connection, start, sent, settled: 0, kills: 0, locals: 0 })
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.place.join("agent.log")).unwrap_or_default()
    }

    /// Bytes of the log.
    fn logged(&self) -> u64 {
        std::fs::metadata(self.place.join("agent.log")).map_or(0, |metadata| metadata.len())
    }

    fn agent(&self) -> Result<Running> {
        let log = std::fs::File::options().create(true).append(true).open(self.place.join("agent.log"))?;
        let mut command = (self.start)(&self.place, &self.url)?;
        Ok(Running(command.stdout(Stdio::null()).stderr(log).spawn()?))
    }

    /// Submits batches of both kinds at once.
    fn submit(&mut self, round: usize) -> Result<()> {
        let mut calls = JoinSet::new();
        for (number, kind) in Kind::ALL.into_iter().cycle().take(Kind::ALL.len() * KINDS).enumerate() {
            let path = format!("{round}-{number}.txt");
            if kind.adds() {
                std::fs::write(self.place.join("ws").join(&path), "first\n")?;
            }
            let batch = kind.batch(&path)?;
            let (connection, request) = (self.connection.clone(), format!("{round}-{number}").parse()?);
            calls.spawn_on(
                async move {
                    let stored = connection.submit(&request, batch, Origin::default()).await;
                    stored.map(|record| Sent { id: record.id, path, kind })
                },
                self.runtime.handle(),
            );
        }
        let stored = self.runtime.block_on(calls.join_all());
        for sent in stored {
            self.sent.push(sent?);
        }
        Ok(())
    }

    /// Starts a local apply of its own.
    fn apply(&mut self) -> Result<Running> {
        self.locals += 1;
        let document = self.place.join(format!("local-{}.json", self.locals));
        let text = format!(r#"{{"path":"local-{}.txt","content":"local\n"}}"#, self.locals);
        std::fs::write(&document, text)?;
        let mut command = Command::new(program("aptix")?);
        command.args(["apply", "--yes", "--root", "ws"]).arg(document);
        private(&mut command, &self.place);
        let log = std::fs::File::options().create(true).append(true).open(self.place.join("apply.log"))?;
        Ok(Running(command.stdout(Stdio::null()).stderr(log).spawn()?))
    }

    fn round(&mut self, round: usize, random: &mut Random) -> Result<()> {
        let early = random.below(3) == 0;
        let mut agents = Vec::new();
        if early {
            agents.push(self.agent()?);
        }
        self.submit(round)?;
        let wanted = if random.below(4) == 0 { 2 } else { 1 };
        while agents.len() < wanted {
            agents.push(self.agent()?);
        }
        let mut applies = Vec::new();
        for _ in 0..random.below(3) {
            applies.push(self.apply()?);
        }
        // About as many bytes as some lines have.
        let enough = self.logged() + 150 * random.below(40) as u64;
        // It is killed then, or once its life is over.
        until(LIFE, Duration::from_micros(500), || Ok(self.logged() >= enough))?;
        let ended = self.ended(&mut agents)?;
        ensure!(ended < agents.len(), "no agent serves: {}", self.tail());
        ensure!(agents.len() > 1 || ended == 0, "the agent ended by itself: {}", self.tail());
        drop(agents);
        self.kills += 1;
        for apply in &mut applies {
            let status = apply.0.wait()?;
            let log = std::fs::read_to_string(self.place.join("apply.log")).unwrap_or_default();
            ensure!(status.success(), "an apply beside the agent fails: {log}");
        }
        if round % SETTLED == SETTLED - 1 { self.settle() } else { Ok(()) }
    }

    /// How many agents have ended by themselves.
    fn ended(&self, agents: &mut [Running]) -> Result<usize> {
        let mut ended = 0;
        for agent in agents {
            ended += usize::from(agent.0.try_wait()?.is_some());
        }
        Ok(ended)
    }

    fn tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Lets everything end, and looks at every batch, every file and every report.
    fn settle(&mut self) -> Result<()> {
        let mut agent = [self.agent()?];
        for sent in self.sent.iter().skip(self.settled) {
            let get = || self.runtime.block_on(self.connection.get(sent.id));
            let mut record = get()?;
            let has_ended = until(PATIENCE, Duration::from_millis(5), || {
                ensure!(self.ended(&mut agent)? == 0, "the agent ended by itself: {}", self.tail());
                record = get()?;
                Ok(!record.state.is_open())
            })?;
            ensure!(has_ended, "{} ({}) stays {:?}: {}", sent.id, sent.path, record.state, self.tail());
            check(sent, &record).with_context(|| format!("batch {} of {}", sent.id, sent.path))?;
            if sent.kind.adds() {
                let text = std::fs::read_to_string(self.place.join("ws").join(&sent.path))?;
                ensure!(text == "first\nonce\n", "{} holds {text:?}", sent.path);
            }
        }
        self.settled = self.sent.len();
        for number in 1..=self.locals {
            let text = std::fs::read_to_string(self.place.join(format!("ws/local-{number}.txt")))?;
            ensure!(text == "local\n", "local-{number}.txt holds {text:?}");
        }
        Ok(())
    }

    fn run(&mut self, rounds: usize, random: &mut Random) -> Result<()> {
        for round in 0..rounds {
            self.round(round, random).with_context(|| format!("round {round}"))?;
        }
        self.settle()?;
        let files = tree::read(&self.place.join("ws"))?;
        let expected = self.locals + self.sent.iter().filter(|sent| sent.kind.adds()).count();
        ensure!(files.len() == expected, "{} files, expected {expected}", files.len());
        let damaged = std::fs::read_dir(self.place.join("state/aptix/roots"))?
            .any(|root| root.is_ok_and(|root| root.path().join("damaged").exists()));
        ensure!(!damaged, "something was set aside: {}", self.tail());
        Ok(())
    }
}

/// Holds a report to its batch.
fn check(sent: &Sent, record: &BatchRecord) -> Result<()> {
    let report = record.report.as_ref().context("there is no report")?;
    let expected = match sent.kind {
        Kind::Fits => BatchState::Applied,
        Kind::Missing => BatchState::Failed,
        Kind::PerFile => BatchState::Partial,
    };
    ensure!(record.state == expected, "it is {:?}: {:?}", record.state, report.failures);
    let applied: Vec<_> = report.files.iter().filter(|file| file.status.is_applied()).map(|file| &file.path).collect();
    let wanted: Vec<_> = sent.kind.adds().then_some(&sent.path).into_iter().collect();
    ensure!(applied == wanted, "the report is about {applied:?}");
    if sent.kind != Kind::Fits {
        let path = report.failures.first().and_then(|failure| failure.path.as_deref()).unwrap_or_default();
        ensure!(path == format!("missing-{}", sent.path), "the report is about {path:?}: {:?}", report.failures);
    }
    Ok(())
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let rounds = if job.long { 2000 } else { 50 };
    let place = tempfile::tempdir()?;
    let mut scene = Scene::set(place.path(), &real)?;
    scene.run(rounds, &mut job.random)?;
    let received = scene.log().matches("Batch.Received").count();
    let (batches, kills, locals) = (scene.sent.len(), scene.kills, scene.locals);
    drop(scene);
    let caught = control(job)?;
    Ok(Ending::Held(format!(
        "{rounds} rounds, {kills} kills of agents, {batches} batches, each ended once, taken up {received} times, beside \
         {locals} local applies; control: entries written over each other caught: {caught}"
    )))
}

/// Runs until something is found that is wrong.
fn control(job: &mut Job) -> Result<String> {
    for _ in 0..20 {
        let place = tempfile::tempdir()?;
        let mut scene = Scene::set(place.path(), &unseeing)?;
        if let Err(error) = scene.run(SETTLED, &mut job.random) {
            let causes: Vec<_> = error.chain().take(2).map(ToString::to_string).collect();
            return Ok(causes.join(": ").lines().next().unwrap_or_default().to_owned());
        }
    }
    bail!("the control was not caught: agents whose entries are written over each other lost nothing in 20 runs")
}
