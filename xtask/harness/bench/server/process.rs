//! The processes that are measured, on data directories of their own, and what the system counts of them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::program::{private, program};

/// Writers at one time at most.
pub(crate) const WRITERS: usize = 64;

/// The workspaces of a server: of the author who is measured, and of others beside them.
pub(crate) const WORKSPACES: [&str; 2] = ["quiet", "noisy"];

/// Every quota, far above what is called: it is counted and refuses nothing. Those of tokens take effect only where there are some.
const QUOTAS: &str = "calls_per_second_per_token = 1000000\n\
                      calls_per_second_per_workspace = 1000000\n\
                      streams_per_token = 1000000\n\
                      streams_per_workspace = 1000000\n\
                      bytes_in_flight_per_token = 1099511627776\n\
                      bytes_in_flight_per_workspace = 1099511627776\n\
                      questions_per_token = 1000000\n\
                      questions_per_workspace = 1000000\n";

/// How many clock ticks of `/proc` a second has, on every Linux.
const TICKS: f64 = 100.0;

/// The variable that names the database of a server.
const STORE: &str = "APTIX_SERVER_STORE";

/// A process that is killed when this is dropped.
pub(crate) struct Running {
    child: Child,
    /// Where it listens; empty if it does not.
    pub(crate) address: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts a process that does not listen.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        Ok(Self { child: command.stdin(Stdio::null()).spawn()?, address: String::new() })
    }

    /// Starts a process whose first line states where it listens.
    pub(crate) fn listen(mut command: Command) -> Result<Self> {
        command.stdout(Stdio::piped());
        let mut running = Self::start(command)?;
        let output = running.child.stdout.take().context("the process has an output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line.trim_end().strip_prefix("listening on ");
        address.with_context(|| format!("the process does not listen: {line}"))?.clone_into(&mut running.address);
        Ok(running)
    }

    /// Seconds of processor time that it took so far, in steps of 10 ms.
    pub(crate) fn processor_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("the process has a name")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        Ok(ticks.sum::<Result<f64, _>>()? / TICKS)
    }

    /// Bytes that it had the system write to disks so far, in whole pages.
    pub(crate) fn written_bytes(&self) -> Result<f64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.child.id()))?;
        let bytes = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        Ok(bytes.context("the system counts what is written")?.parse()?)
    }

    /// KiB of memory that it has at present.
    pub(crate) fn memory_kib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the process has memory")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

/// A server, and the tokens that its callers need.
pub(crate) struct Server {
    pub(crate) process: Running,
    pub(crate) tokens: Option<Tokens>,
    log: PathBuf,
}

/// The secrets of those who call.
pub(crate) struct Tokens {
    /// For the first workspace: one for each writer.
    pub(crate) authors: Vec<String>,
    /// For the other one.
    pub(crate) neighbour: String,
    /// For all workspaces.
    pub(crate) agent: String,
    /// For all workspaces.
    pub(crate) reader: String,
}

/// How a server is set up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setup {
    /// No token was made, and nothing is scraped. Metrics and the uses of workspaces are counted all the same.
    Bare,
    /// Each call needs a token and is counted for that as well; metrics can be scraped.
    Guarded,
}

impl Server {
    /// Starts a server in a new directory of this name, with more lines of configuration.
    pub(crate) fn start(place: &Path, name: &str, setup: Setup, config: &str) -> Result<Self> {
        let data = place.join(name).join("data");
        std::fs::create_dir_all(&data)?;
        for workspace in WORKSPACES {
            administer((&data, None), &["workspace", "create", workspace])?;
        }
        Self::start_on(place, name, setup, config, None)
    }

    /// The same on a database, if one is named; makes no workspaces.
    pub(crate) fn start_on(place: &Path, name: &str, setup: Setup, config: &str, store: Option<&str>) -> Result<Self> {
        let directory = place.join(name);
        let data = directory.join("data");
        std::fs::create_dir_all(&data)?;
        let (guards, tokens) = match setup {
            Setup::Bare => (String::new(), None),
            Setup::Guarded => ("metrics = \"127.0.0.1:0\"\n".to_owned(), Some(make_tokens((&data, store))?)),
        };
        let file = directory.join("server.toml");
        std::fs::write(&file, format!("{guards}{QUOTAS}{config}"))?;
        let mut command = Command::new(program("aptix-server")?);
        private(&mut command, &directory);
        command.envs(store.map(|store| (STORE, store)));
        command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(&data).arg("--config").arg(&file);
        command.stderr(std::fs::File::create(directory.join("server.log"))?);
        let process = Running::listen(command).with_context(|| log(&directory, "server.log"))?;
        Ok(Self { process, tokens, log: directory.join("server.log") })
    }

    /// What its metrics are now, by name, added up over their labels; there are none unless its configuration has them scraped.
    pub(crate) fn metrics(&self) -> Result<BTreeMap<String, f64>> {
        let log = std::fs::read_to_string(&self.log)?;
        let line = log.lines().find(|line| line.contains("metrics can be scraped"));
        let (_, address) = line.and_then(|line| line.rsplit_once("address=")).context("no metrics can be scraped")?;
        let mut stream = TcpStream::connect(address.trim())?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let mut metrics = BTreeMap::new();
        for (name, value) in text.lines().filter_map(|line| line.rsplit_once(' ')) {
            let name = name.split_once('{').map_or(name, |(name, _)| name);
            *metrics.entry(name.to_owned()).or_default() += value.parse::<f64>().unwrap_or_default();
        }
        Ok(metrics)
    }

    /// The tokens of its authors; none where it needs none.
    pub(crate) fn authors(&self) -> &[String] {
        self.tokens.as_ref().map_or(&[], |tokens| &tokens.authors)
    }

    /// Starts an agent that serves the first workspace from a new directory; answers that directory.
    pub(crate) fn start_agent(&self, place: &Path) -> Result<(Running, PathBuf)> {
        let root = place.join("ws");
        std::fs::create_dir(&root)?;
        let mut command = Command::new(program("aptix")?);
        private(&mut command, place);
        let url = format!("http://{}", self.process.address);
        command.args(["agent", "--server", &url, "--workspace", WORKSPACES[0], "--root", "ws", "--approve", "auto"]);
        if let Some(tokens) = &self.tokens {
            command.env("APTIX_TOKEN", &tokens.agent);
        }
        command.stdout(Stdio::null()).stderr(std::fs::File::create(place.join("agent.log"))?);
        Ok((Running::start(command)?, root))
    }
}

fn make_tokens(on: (&Path, Option<&str>)) -> Result<Tokens> {
    let make = |name: &str, role, workspace| {
        administer(on, &["token", "create", "--workspace", workspace, "--role", role, "--name", name])
    };
    let [quiet, noisy] = WORKSPACES;
    Ok(Tokens {
        authors: (0..WRITERS)
            .map(|number| make(&format!("author{number}"), "orchestrator", quiet))
            .collect::<Result<_>>()?,
        neighbour: make("neighbour", "orchestrator", noisy)?,
        agent: make("agent", "agent", "*")?,
        reader: make("reader", "reader", "*")?,
    })
}

/// What a command of the server prints about a data directory, or a database.
pub(crate) fn administer((data, store): (&Path, Option<&str>), arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program("aptix-server")?);
    command.envs(store.map(|store| (STORE, store)));
    let output = command.args(arguments).arg("--data-dir").arg(data).stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// The last lines of a log.
fn log(directory: &Path, name: &str) -> String {
    let log = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    let mut lines: Vec<_> = log.lines().rev().take(5).collect();
    lines.reverse();
    lines.join("\n")
}
