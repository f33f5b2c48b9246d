//! A PostgreSQL cluster of its own, which can be killed and, with a standby, replaced. It is ended with this.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::moment::until;

/// How long PostgreSQL may take to start or to follow, unless something is broken.
const PATIENCE: Duration = Duration::from_secs(120);

/// The user and the database.
const NAME: &str = "aptix";

/// What every cluster is set to, beside what PostgreSQL does by itself: it flushes every commit.
const SETTINGS: &str = "listen_addresses = ''\nmax_connections = 200\nlogging_collector = off\n";

/// How many clock ticks of `/proc` a second has, on every Linux.
const TICKS: f64 = 100.0;

/// A cluster, reached over a socket in its directory.
pub(crate) struct Cluster {
    bin: PathBuf,
    home: PathBuf,
}

impl Cluster {
    /// Makes a cluster with an empty database, and starts it; `None` where PostgreSQL is not installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        let Some(bin) = programs()? else { return Ok(None) };
        let cluster = Self { bin, home: home()? };
        let data = cluster.data();
        cluster.own("initdb", &["--pgdata", &data, "--username", NAME, "--auth", "trust", "--no-sync"])?;
        cluster.set(SETTINGS)?;
        cluster.run()?;
        cluster.sql("postgres", &format!("CREATE DATABASE {NAME}"))?;
        Ok(Some(cluster))
    }

    /// Makes a standby that every commit of this cluster waits for, and starts it.
    pub(crate) fn standby(&self) -> Result<Self> {
        let standby = Self { bin: self.bin.clone(), home: home()? };
        let (from, data) = (self.home.display().to_string(), standby.data());
        let copy = [
            "--pgdata",
            &data,
            "--host",
            &from,
            "--username",
            NAME,
            "--write-recovery-conf",
            "--no-sync",
            "--checkpoint",
            "fast",
        ];
        standby.own("pg_basebackup", &copy)?;
        standby.set(SETTINGS)?;
        standby.run()?;
        self.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        self.sql("postgres", "SELECT pg_reload_conf()")?;
        let is_synchronous =
            || Ok(self.sql("postgres", "SELECT sync_state FROM pg_stat_replication")?.trim() == "sync");
        ensure!(until(PATIENCE, Duration::from_millis(20), is_synchronous)?, "the standby does not follow");
        Ok(standby)
    }

    /// The address of the database, on whichever of these clusters takes writes.
    pub(crate) fn address(all: &[&Self]) -> String {
        let hosts: Vec<_> = all.iter().map(|cluster| cluster.home.display().to_string()).collect();
        format!("postgres://{NAME}@/{NAME}?host={}", hosts.join(","))
    }

    /// The address of a new database, empty or with what another one has, to which nothing is connected.
    pub(crate) fn create(&self, database: &str, template: Option<&str>) -> Result<String> {
        let template = template.map(|template| format!(" TEMPLATE {template}")).unwrap_or_default();
        self.sql("postgres", &format!("CREATE DATABASE {database}{template}"))?;
        Ok(format!("postgres://{NAME}@/{database}?host={}", self.home.display()))
    }

    /// Bytes of its write-ahead log so far.
    pub(crate) fn written(&self) -> Result<f64> {
        let bytes = self.sql("postgres", "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")?;
        bytes.trim().parse().with_context(|| format!("expected a position of the write-ahead log, found {bytes:?}"))
    }

    /// Seconds of processor time that all of its processes took so far, each in steps of 10 ms.
    pub(crate) fn processor_seconds(&self) -> Result<f64> {
        let file = std::fs::read_to_string(self.home.join("data/postmaster.pid"))?;
        let first: u32 = file.lines().next().context("PostgreSQL names its first process")?.parse()?;
        let mut ticks = 0.0;
        for process in std::fs::read_dir("/proc")? {
            // A process may have ended meanwhile: its parent then has what it took.
            let Ok(stat) = std::fs::read_to_string(process?.path().join("stat")) else { continue };
            let Some((own, fields)) =
                stat.split_once(' ').zip(stat.rsplit_once(')')).map(|((own, _), (_, f))| (own, f))
            else {
                continue;
            };
            let fields: Vec<f64> = fields.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
            let is_first = own.parse() == Ok(first);
            // Of the first process also what its children took that have ended.
            let counted = if is_first { 10..14 } else { 10..12 };
            if is_first || fields.first() == Some(&f64::from(first)) {
                ticks += fields.get(counted).unwrap_or_default().iter().sum::<f64>();
            }
        }
        Ok(ticks / TICKS)
    }

    fn data(&self) -> String {
        self.home.join("data").display().to_string()
    }

    fn set(&self, settings: &str) -> Result<()> {
        let text = format!("{settings}unix_socket_directories = '{}'\n", self.home.display());
        let file = self.home.join("data/postgresql.conf");
        let script = "printf %s \"$1\" >>\"$0\"";
        finished(as_owner("sh", &["-c", script, &file.display().to_string(), &text])).map(drop)
    }

    /// Starts it again.
    pub(crate) fn run(&self) -> Result<()> {
        let log = self.home.join("log").display().to_string();
        // What a killed one left is cleared away while it starts; until then a start may fail.
        let started = || Ok(self.own("pg_ctl", &["--pgdata", &self.data(), "--log", &log, "--wait", "start"]).is_ok());
        ensure!(until(PATIENCE, Duration::from_millis(50), started)?, "PostgreSQL does not start: {}", self.log());
        Ok(())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// Stops it as if its machine had lost power, but for what the system has in memory.
    pub(crate) fn stop_at_once(&self) -> Result<()> {
        self.own("pg_ctl", &["--pgdata", &self.data(), "--mode", "immediate", "--wait", "stop"]).map(drop)
    }

    /// Kills its first process, with SIGKILL; the others end by themselves.
    pub(crate) fn kill(&self) -> Result<()> {
        let file = self.home.join("data/postmaster.pid");
        let script = "kill -9 \"$(head -n 1 \"$0\")\"";
        finished(as_owner("sh", &["-c", script, &file.display().to_string()])).map(drop)
    }

    /// Has a standby take the place of its primary.
    pub(crate) fn promote(&self) -> Result<()> {
        self.own("pg_ctl", &["--pgdata", &self.data(), "--wait", "promote"]).map(drop)
    }

    /// What a statement answers.
    pub(crate) fn sql(&self, database: &str, statement: &str) -> Result<String> {
        let host = self.home.display().to_string();
        let arguments =
            ["--host", &host, "--username", NAME, "--no-align", "--tuples-only", "--command", statement, database];
        let output = self.own("psql", &arguments)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A program of PostgreSQL.
    fn own(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        finished(as_owner(&self.bin.join(program).display().to_string(), arguments))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may not run.
        let _ = self.stop_at_once();
        let _ = finished(as_owner("rm", &["-rf", &self.home.display().to_string()]));
    }
}

/// A directory that the owner of clusters has, with a path that is short enough for a socket.
fn home() -> Result<PathBuf> {
    let made = finished(as_owner("mktemp", &["--directory", "/tmp/aptix-harness-XXXXXXXX"]))?;
    let home = PathBuf::from(String::from_utf8(made.stdout)?.trim_end());
    // The servers reach the socket.
    finished(as_owner("chmod", &["0755", &home.display().to_string()]))?;
    Ok(home)
}

/// A command of the user who owns clusters: PostgreSQL refuses to run as root.
fn as_owner(program: &str, arguments: &[&str]) -> Command {
    let mut command = if Path::new("/proc/self").metadata().is_ok_and(|own| is_root(&own)) {
        let mut command = Command::new("runuser");
        command.args(["--user", "postgres", "--", program]);
        command
    } else {
        Command::new(program)
    };
    command.args(arguments).current_dir("/").stdin(Stdio::null());
    command
}

fn is_root(own: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(own) == 0
}

/// The newest version that Debian installed.
fn programs() -> Result<Option<PathBuf>> {
    let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") else { return Ok(None) };
    let mut newest = None;
    for version in versions {
        let version = version?;
        let number = version.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let bin = version.path().join("bin");
        if bin.join("initdb").exists() {
            newest = newest.max(number.map(|number| (number, bin)));
        }
    }
    Ok(newest.map(|(_, bin)| bin))
}

fn finished(mut command: Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(output)
}
