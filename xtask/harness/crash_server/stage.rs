//! The processes: one server on a data directory, an agent for each workspace that is served, and the server's commands.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::kept::{self, KEPT};
use crate::load::{ALL, SERVED};
use crate::moment::{pass, until};
use crate::program::{private, program};

/// How long a process may take to start or to end, unless something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The file of the server's configuration, beside its directory.
const CONFIG: &str = "server.toml";

/// The variables that name the database, and the bucket for its blobs.
const STORE: &str = "APTIX_SERVER_STORE";
const BLOBS: &str = "APTIX_SERVER_BLOBS";

/// A process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The secrets of those who call.
#[derive(Clone)]
pub(crate) struct Secrets {
    pub(crate) author: String,
    pub(crate) reviewer: String,
    pub(crate) operator: String,
    pub(crate) agent: String,
}

/// Where everything is, and what runs.
pub(crate) struct Stage {
    place: PathBuf,
    /// The server's directory.
    pub(crate) data: PathBuf,
    /// The database, if it keeps nothing in its directory.
    store: Option<String>,
    /// The bucket for the blobs of the database.
    blobs: Option<String>,
    pub(crate) address: String,
    pub(crate) secrets: Secrets,
    /// What the server is started with beside its address and its directory.
    pub(crate) options: Vec<String>,
    server: Option<Running>,
    agents: BTreeMap<&'static str, Running>,
}

impl Stage {
    /// Makes workspaces and tokens in a new data directory, or in a database.
    pub(crate) fn set(place: &Path, data: &Path, store: Option<&str>) -> Result<Self> {
        for workspace in SERVED {
            std::fs::create_dir_all(place.join(workspace))?;
        }
        for workspace in ALL.into_iter().chain([KEPT]) {
            administer((data, store), &["workspace", "create", workspace])?;
        }
        let make =
            |role| administer((data, store), &["token", "create", "--workspace", "*", "--role", role, "--name", role]);
        let secrets = Secrets {
            author: make("orchestrator")?,
            reviewer: make("reviewer")?,
            operator: make("operator")?,
            agent: make("agent")?,
        };
        std::fs::write(place.join(CONFIG), kept::config())?;
        Ok(Self::new(place, data, store.map(str::to_owned), secrets))
    }

    fn new(place: &Path, data: &Path, store: Option<String>, secrets: Secrets) -> Self {
        let (place, data, address) = (place.to_owned(), data.to_owned(), "127.0.0.1:0".to_owned());
        let (options, agents) = (Vec::new(), BTreeMap::new());
        Self { place, data, store, blobs: None, address, secrets, options, server: None, agents }
    }

    /// The same with a bucket for the blobs of the database.
    pub(crate) fn with_blobs(self, blobs: Option<String>) -> Self {
        Self { blobs, ..self }
    }

    /// Whether it is on a database, which several servers may share.
    pub(crate) const fn is_shared(&self) -> bool {
        self.store.is_some()
    }

    /// Another server on the same database.
    pub(crate) fn another(&self, data: &Path) -> Self {
        Self::new(&self.place, data, self.store.clone(), self.secrets.clone()).with_blobs(self.blobs.clone())
    }

    /// The server's log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.place.join("server.log")).unwrap_or_default()
    }

    /// Empties the log of the server, which does not run: a limit on the length of files must not cut its messages off.
    pub(crate) fn empty_log(&self) -> Result<()> {
        Ok(std::fs::write(self.place.join("server.log"), "")?)
    }

    /// The last lines of both logs.
    pub(crate) fn tail(&self) -> String {
        let mut said = String::new();
        for name in ["server.log", "agent.log"] {
            let log = std::fs::read_to_string(self.place.join(name)).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(12).collect();
            let lines: Vec<_> = lines.into_iter().rev().collect();
            said = format!("{said}\n{name}:\n{}", lines.join("\n"));
        }
        said
    }

    fn append(&self, name: &str) -> Result<std::fs::File> {
        Ok(std::fs::File::options().create(true).append(true).open(self.place.join(name))?)
    }

    /// Begins to start the server, behind these words; returns its output.
    fn spawn(&mut self, behind: &[String]) -> Result<std::process::ChildStdout> {
        let server = program("aptix-server")?;
        let mut command = match behind.split_first() {
            Some((first, words)) => {
                let mut command = Command::new(first);
                command.args(words).arg(server);
                command
            }
            None => Command::new(server),
        };
        private(&mut command, &self.place);
        command.args(["--config", CONFIG, "--listen", &self.address, "--data-dir"]).arg(&self.data).args(&self.options);
        command.envs(self.store.as_ref().map(|store| (STORE, store)));
        command.envs(self.blobs.as_ref().map(|blobs| (BLOBS, blobs)));
        command.stdout(Stdio::piped()).stderr(self.append("server.log")?);
        let mut server = Running(command.spawn()?);
        let output = server.0.stdout.take().context("the server has an output")?;
        self.server = Some(server);
        Ok(output)
    }

    /// Starts the server, behind these words.
    ///
    /// # Errors
    /// With what it printed, when it does not listen.
    pub(crate) fn start(&mut self, behind: &[String]) -> Result<()> {
        let output = self.spawn(behind)?;
        let (sender, first) = mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(output).read_line(&mut line);
            let _ = sender.send(read.map(|_| line));
        });
        let Ok(line) = first.recv_timeout(PATIENCE) else {
            self.kill();
            bail!("the server neither listens nor ends within {PATIENCE:?}{}", self.tail());
        };
        let line = line?;
        match line.trim_end().strip_prefix("listening on ") {
            Some(address) => address.clone_into(&mut self.address),
            None => {
                let server = self.server.as_mut().context("a server was started")?;
                let has_ended = until(PATIENCE, Duration::from_millis(5), || Ok(server.0.try_wait()?.is_some()))?;
                ensure!(has_ended, "the server closes its output and goes on{}", self.tail());
                bail!("the server does not start{}", self.tail());
            }
        }
        Ok(())
    }

    /// Starts the server and kills it after a time, however far it has come.
    pub(crate) fn kill_while_starting(&mut self, after: Duration) -> Result<()> {
        let output = self.spawn(&[])?;
        pass(after);
        self.kill();
        drop(output);
        Ok(())
    }

    /// Kills the server at once.
    pub(crate) fn kill(&mut self) {
        self.server = None;
    }

    /// Sends the server a signal.
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        let server = self.server.as_ref().context("a server runs")?;
        let sent = Command::new("kill").args([name, &server.0.id().to_string()]).status()?;
        ensure!(sent.success(), "{name} cannot be sent to the server");
        Ok(())
    }

    /// How the server ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.server.as_mut().map_or(Ok(None), |server| Ok(server.0.try_wait()?))
    }

    /// Asks the server to end, and kills it after a time, however far it has come.
    pub(crate) fn kill_while_ending(&mut self, after: Duration) -> Result<()> {
        self.signal("-TERM")?;
        pass(after);
        self.kill();
        Ok(())
    }

    /// Whether the server runs.
    pub(crate) fn runs(&mut self) -> Result<bool> {
        Ok(self.server.is_some() && self.ended()?.is_none())
    }

    /// Starts the agents that do not run.
    pub(crate) fn start_agents(&mut self) -> Result<()> {
        let address = self.address.clone();
        self.start_agents_at(|| address.clone())
    }

    /// Starts the agents that do not run, each with a server of its own.
    pub(crate) fn start_agents_at(&mut self, mut address: impl FnMut() -> String) -> Result<()> {
        for workspace in SERVED {
            if let Some(agent) = self.agents.get_mut(workspace)
                && let Some(status) = agent.0.try_wait()?
            {
                bail!("the agent of {workspace} ended by itself, {status}{}", self.tail());
            }
            if self.agents.contains_key(workspace) {
                continue;
            }
            let url = format!("http://{}", address());
            let mut command = Command::new(program("aptix")?);
            private(&mut command, &self.place);
            let arguments = ["--server", &url, "--workspace", workspace, "--root", workspace, "--approve", "auto"];
            command.arg("agent").args(arguments).env("APTIX_TOKEN", &self.secrets.agent);
            // It may come to another server than before.
            command.args(self.store.as_ref().map(|_| "--agree"));
            // Each knows no home but its own.
            command.env("XDG_STATE_HOME", self.place.join(format!("state-{workspace}")));
            command.stdout(Stdio::null()).stderr(self.append("agent.log")?);
            self.agents.insert(workspace, Running(command.spawn()?));
        }
        Ok(())
    }

    /// Kills the agent of a workspace.
    pub(crate) fn kill_agent(&mut self, workspace: &str) {
        self.agents.remove(workspace);
    }

    /// Lets the server's own command read the data directory, which no server uses.
    pub(crate) fn verify(&self) -> Result<()> {
        let said = administer((&self.data, None), &["verify"]).context("`aptix-server verify` is not clean")?;
        ensure!(said.contains(" 0 damages"), "`aptix-server verify` is not clean: {said}");
        Ok(())
    }

    /// The same with what a backup has, in a new data directory; `aptix-server verify` finds nothing wrong with it.
    pub(crate) fn restored(&self, backup: &Path, data: &Path) -> Result<Self> {
        let from = backup.to_str().context("the path of the backup is text")?;
        administer((data, None), &["restore", "--from", from]).context("a backup that was made is not restored")?;
        let stage = Self::new(&self.place, data, None, self.secrets.clone());
        stage.verify()?;
        Ok(stage)
    }

    /// Waits until something holds of the server.
    pub(crate) fn until(&self, what: &str, holds: impl FnMut() -> Result<bool>) -> Result<()> {
        let held = until(PATIENCE, Duration::from_millis(10), holds)?;
        ensure!(held, "waited for nothing: {what}{}", self.tail());
        Ok(())
    }
}

/// What a command of the server's program prints about a data directory, or a database.
fn administer((data, store): (&Path, Option<&str>), arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program("aptix-server")?);
    command.envs(store.map(|store| (STORE, store)));
    let output = command.args(arguments).arg("--data-dir").arg(data).stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    ensure!(output.status.success(), "{arguments:?}: {said} {}", String::from_utf8_lossy(&output.stderr).trim_end());
    Ok(said)
}
