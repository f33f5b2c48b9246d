//! Throw-away PostgreSQL clusters with `fsync` on: one of a test's own, which it may kill and start again, and one that all tests
//! share, with a database for each.
//!
//! Each cluster has a keeper, a shell in a session of its own, that stops the cluster and removes its directory: for a cluster of
//! a test's own when the pipe to the keeper is closed, for the shared one a second after the last process let go of the lock
//! file. The system does both at the end of a process, however it ends.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use aptix_server::store::StoreError;
use aptix_server::store::bucket_address::BucketAddress;
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::postgres::address::Address;

use crate::skip::skip;

/// The user who owns everything in a cluster; over a Unix socket no password is asked for.
pub(crate) const USER: &str = "aptix";

/// The port of a cluster that is reached over its Unix socket alone.
const PORT: u16 = 5432;

/// Settings of every cluster. What is durable stays as it is by default; after a crash the file system is flushed as a whole, and not
/// each of a thousand files.
const SETTINGS: &str = "shared_buffers = 16MB\nmax_connections = 200\nlisten_addresses = ''\nmax_wal_size = 256MB\n\
    recovery_init_sync_method = syncfs\n";

/// Who may connect: everyone over the socket, with a password over TCP.
const ACCESS: &str = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

/// Stops a cluster and removes its directory.
const END: &str = "\"$pg_ctl\" stop --silent --mode=immediate --pgdata \"$home/data\"; rm -rf \"$home\"";

/// A cluster, for as long as this is there or, if it is shared, any process of the tests.
pub(crate) struct Cluster {
    home: PathBuf,
    port: u16,
    /// Ends the keeper when it is closed.
    pipe: Option<ChildStdin>,
    keeper: Option<Child>,
}

/// A database of its own on the shared cluster.
pub(crate) struct Database {
    /// Its address.
    pub(crate) address: String,
    /// The bucket for its blobs.
    pub(crate) blobs: Option<BucketAddress>,
}

impl Database {
    /// A new one; `None`, after announcing that the test is skipped, where there is no PostgreSQL.
    pub(crate) fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let cluster = shared()?;
        let name = format!("test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        cluster.create_database(&name);
        Some(Self { address: cluster.address(&name), blobs: None })
    }

    /// A new one that leaves blobs to a bucket; `None`, after announcing that the test is skipped, where there is no bucket either.
    #[cfg(feature = "s3")]
    pub(crate) fn with_bucket() -> Option<Self> {
        let blobs = Some(crate::bucket::address()?);
        Self::new().map(|database| Self { blobs, ..database })
    }

    /// Opens the store in it.
    pub(crate) async fn open(&self) -> PostgresStore {
        self.try_open().await.unwrap()
    }

    /// Tries to.
    pub(crate) async fn try_open(&self) -> Result<PostgresStore, StoreError> {
        let address = Address::parse(&self.address).unwrap();
        PostgresStore::open(&address.with_blobs(self.blobs.clone())).await
    }
}

/// Opens the store at an address.
pub(crate) async fn open(address: &str) -> PostgresStore {
    PostgresStore::open(&Address::parse(address).unwrap()).await.unwrap()
}

/// A store in a new database; `None` where the test is skipped.
pub(crate) async fn store() -> Option<PostgresStore> {
    Some(Database::new()?.open().await)
}

impl Cluster {
    /// Starts a cluster of the test's own, which is reached over a Unix socket alone; `None`, after announcing that the test is
    /// skipped, where there is no PostgreSQL.
    pub(crate) fn start() -> Option<Self> {
        let cluster = Self::prepare("", PORT)?;
        cluster.start_again();
        Some(cluster)
    }

    /// One that is reached over TCP as well and does not run yet, with more settings.
    pub(crate) fn over_tcp(settings: &str) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self::prepare(&format!("listen_addresses = '127.0.0.1'\n{settings}"), port)
    }

    fn prepare(settings: &str, port: u16) -> Option<Self> {
        let home = Base::find()?.copy(&format!("port = {port}\n{settings}"));
        let mut keeper = keeper(&format!("cat >/dev/null; {END}"), &home, "");
        let mut keeper = keeper.stdin(Stdio::piped()).spawn().unwrap();
        Some(Self { home, port, pipe: keeper.stdin.take(), keeper: Some(keeper) })
    }

    /// The address of a database over the Unix socket.
    pub(crate) fn address(&self, database: &str) -> String {
        Elsewhere { home: &self.home, port: self.port }.address(database)
    }

    /// The port, over TCP too if the cluster was made so.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The directory with its Unix socket.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Where the files of the cluster are.
    fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// Puts a file into the cluster's directory, which its processes alone can read.
    pub(crate) fn put(&self, name: &str, content: &str) {
        write_file(&self.data().join(name), content);
    }

    /// Creates a database.
    pub(crate) fn create_database(&self, name: &str) {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
    }

    /// Runs a statement as the owner of everything; answers its rows, with `|` between columns.
    pub(crate) fn sql(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new(programs().unwrap().join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]);
        psql.args([
            "--port",
            &self.port.to_string(),
            "--username",
            USER,
            "--dbname",
            database,
            "--command",
            statement,
            "--host",
        ])
        .arg(&self.home);
        String::from_utf8(finished(psql).stdout).unwrap().trim().to_owned()
    }

    /// Kills the process that all others of the cluster depend on, as `kill -9` does.
    pub(crate) fn kill(&self) {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        finished(as_owner("kill", &["-9", file.lines().next().unwrap()]));
    }

    /// Stops every process of it where it is: the system still takes connections for it and acknowledges what is sent.
    pub(crate) fn freeze(&self) -> Frozen {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let postmaster = file.lines().next().unwrap().to_owned();
        finished(as_owner("kill", &["-STOP", &postmaster]));
        let children = finished(as_owner("ps", &["--ppid", &postmaster, "-o", "pid="])).stdout;
        let mut processes: Vec<_> =
            String::from_utf8(children).unwrap().split_whitespace().map(str::to_owned).collect();
        processes.push(postmaster);
        let frozen = Frozen(processes);
        frozen.signal("-STOP");
        frozen
    }

    /// Stops it without an orderly end: what was not flushed is lost, as in a crash.
    pub(crate) fn stop_immediately(&self) {
        let mut stop = self.pg_ctl("stop");
        stop.arg("--mode=immediate");
        finished(stop);
    }

    /// Starts it again, after it was stopped or killed.
    pub(crate) fn start_again(&self) {
        self.start_with(&[]);
    }

    fn start_with(&self, options: &[&str]) {
        // Those of the former run may hold its shared memory for a moment.
        let started = (0..100).any(|_| self.pg_ctl("start").args(options).output().unwrap().status.success());
        assert!(started, "{}", self.log());
    }

    /// Keeps how it is now, for [`Self::set_back`].
    pub(crate) fn keep(&self) {
        self.stop_immediately();
        finished(as_owner("cp", &["-r", self.data().to_str().unwrap(), self.home.join("kept").to_str().unwrap()]));
        self.start_again();
    }

    /// Puts what was kept in its place, as if it were a standby that had received nothing since, and has something happen in it before
    /// those who are connected find it again.
    pub(crate) async fn set_back(&self, meanwhile: impl AsyncFnOnce(&Elsewhere)) {
        self.stop_immediately();
        let (data, kept) = (self.data(), self.home.join("kept"));
        finished(as_owner("rm", &["-r", data.to_str().unwrap()]));
        finished(as_owner("mv", &[kept.to_str().unwrap(), data.to_str().unwrap()]));
        let elsewhere = Elsewhere { home: &self.home, port: self.port + 1 };
        self.start_with(&["--options", &format!("-p {}", elsewhere.port)]);
        meanwhile(&elsewhere).await;
        self.restart_immediately();
    }

    /// Stops it as in a crash, and starts it again.
    pub(crate) fn restart_immediately(&self) {
        self.stop_immediately();
        self.start_again();
    }

    /// What PostgreSQL logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    fn pg_ctl(&self, what: &str) -> Command {
        let mut command = as_owner(programs().unwrap().join("pg_ctl").to_str().unwrap(), &[what]);
        command.args(["--wait", "--silent", "--pgdata"]).arg(self.data());
        if what == "start" {
            command.arg("--log").arg(self.home.join("log"));
        }
        command
    }
}

/// Where a cluster is reached.
pub(crate) struct Elsewhere<'c> {
    home: &'c Path,
    port: u16,
}

impl Elsewhere<'_> {
    /// The address of a database over the Unix socket.
    pub(crate) fn address(&self, database: &str) -> String {
        format!("postgres://{USER}@/{database}?host={}&port={}", self.home.display(), self.port)
    }
}

/// The processes of a cluster that is frozen; they go on when this is dropped.
pub(crate) struct Frozen(Vec<String>);

impl Frozen {
    fn signal(&self, signal: &str) {
        let mut kill = as_owner("kill", &[signal]);
        // One may have ended meanwhile.
        let _ = kill.args(&self.0).stderr(Stdio::null()).status();
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.pipe.take());
        if let Some(mut keeper) = self.keeper.take() {
            let _ = keeper.wait();
        }
    }
}

/// The shared cluster, which runs until this process has ended.
fn shared() -> Option<&'static Cluster> {
    static SHARED: OnceLock<Option<(Cluster, File)>> = OnceLock::new();
    SHARED.get_or_init(join).as_ref().map(|(cluster, _)| cluster)
}

/// Joins the processes that use the shared cluster, and starts it if none does yet.
fn join() -> Option<(Cluster, File)> {
    let base = Base::find()?;
    let lock = |name: &str| File::options().append(true).create(true).open(base.dir.join(name)).unwrap();
    let users = lock("users.lock");
    users.lock_shared().unwrap();
    let starting = lock("start.lock");
    starting.lock().unwrap();
    let note = base.dir.join("shared");
    let home = std::fs::read_to_string(&note).unwrap_or_default();
    if !home.is_empty() && std::os::unix::net::UnixStream::connect(Path::new(&home).join(".s.PGSQL.5432")).is_ok() {
        return Some((Cluster { home: home.into(), port: PORT, pipe: None, keeper: None }, users));
    }
    let cluster = Cluster { home: base.copy(""), port: PORT, pipe: None, keeper: None };
    let wait = "while flock --exclusive \"$lock\" true; do sleep 1; flock --exclusive --nonblock \"$lock\" sh -c \"$end\" && exit; done";
    let users_lock = base.dir.join("users.lock");
    let mut keeper = keeper(&format!("end='{END}'; {wait}"), &cluster.home, users_lock.to_str().unwrap());
    // First of all: whatever ends this process, the cluster has a keeper.
    #[expect(clippy::zombie_processes, reason = "it outlives this process")]
    keeper.stdin(Stdio::null()).spawn().unwrap();
    cluster.start_again();
    write_file(&note, cluster.home.to_str().unwrap());
    Some((cluster, users))
}

/// The shell that ends a cluster, in a session of its own: no signal for a group of tests reaches it.
fn keeper(script: &str, home: &Path, lock: &str) -> Command {
    let shell = as_owner("sh", &["-c", script]);
    let mut keeper = Command::new("setsid");
    keeper.arg(shell.get_program()).args(shell.get_args()).current_dir("/");
    keeper.env("home", home).env("lock", lock).env("pg_ctl", programs().unwrap().join("pg_ctl"));
    keeper.stdout(Stdio::null()).stderr(Stdio::null());
    keeper
}

/// An empty cluster to copy, and the directory that it is in.
struct Base {
    dir: PathBuf,
    template: PathBuf,
}

impl Base {
    fn find() -> Option<Self> {
        let Some(programs) = programs() else {
            skip("there is no PostgreSQL (initdb)");
            return None;
        };
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgres");
        let others = std::env::temp_dir().join("aptix-test-postgres");
        // Another version of PostgreSQL cannot read it.
        let name = format!("template{}", programs.display().to_string().replace('/', "-"));
        for dir in [&dir, &others] {
            let template = dir.join(&name);
            if std::fs::read_dir(&template).is_ok() {
                return Some(Self { dir: dir.clone(), template });
            }
        }
        make_dir(&dir);
        // The owner of the clusters may have no way to the build directory.
        let dir = if as_owner("test", &["-w", dir.to_str().unwrap()]).status().unwrap().success() {
            dir
        } else {
            make_dir(&others);
            others
        };
        let making = File::options().append(true).create(true).open(dir.join("template.lock")).unwrap();
        making.lock().unwrap();
        let template = dir.join(&name);
        if !as_owner("test", &["-e", template.to_str().unwrap()]).status().unwrap().success() {
            let unfinished = dir.join("unfinished");
            let unfinished = unfinished.to_str().unwrap();
            finished(as_owner("rm", &["-rf", unfinished]));
            let arguments =
                ["--auth=trust", "--locale=C", "--encoding=UTF8", "--no-sync", "--wal-segsize=4", "--username"];
            let mut initdb = as_owner(programs.join("initdb").to_str().unwrap(), &arguments);
            initdb.args([USER, "--pgdata", unfinished]);
            finished(initdb);
            finished(as_owner("mv", &[unfinished, template.to_str().unwrap()]));
        }
        Some(Self { dir, template })
    }

    /// A directory with a cluster that does not run yet. Its path is short enough for a socket.
    fn copy(&self, settings: &str) -> PathBuf {
        let home = finished(as_owner("mktemp", &["--directory", "/tmp/aptix-postgres-XXXXXXXX"]));
        let home = PathBuf::from(String::from_utf8(home.stdout).unwrap().trim());
        let at = home.to_str().unwrap();
        finished(as_owner("cp", &["-r", self.template.to_str().unwrap(), &format!("{at}/data")]));
        // Whoever runs the tests reaches the socket.
        finished(as_owner("chmod", &["0755", at]));
        let settings = format!("{SETTINGS}unix_socket_directories = '{at}'\n{settings}\n");
        write_file(&home.join("data/postgresql.auto.conf"), &settings);
        write_file(&home.join("data/pg_hba.conf"), ACCESS);
        home
    }
}

/// Makes a directory that the owner of clusters can write to.
fn make_dir(dir: &Path) {
    let mut command = Command::new("install");
    if is_root() {
        command.args(["--owner", "postgres"]);
    }
    finished({
        command.arg("--directory").arg(dir);
        command
    });
}

/// Writes a file as the owner of clusters, for that user alone.
fn write_file(path: &Path, content: &str) {
    let script = "umask 077; printf %s \"$content\" >\"$0\"";
    let mut command = as_owner("sh", &["-c", script, path.to_str().unwrap()]);
    command.env("content", content);
    finished(command);
}

/// A command of the user who owns clusters: PostgreSQL refuses to run as root.
fn as_owner(program: &str, arguments: &[&str]) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("runuser");
        command.args(["--user", "postgres", "--", program]);
        command
    } else {
        Command::new(program)
    };
    command.args(arguments).current_dir("/").stdin(Stdio::null());
    command
}

fn is_root() -> bool {
    static IS_ROOT: OnceLock<bool> = OnceLock::new();
    *IS_ROOT.get_or_init(|| Command::new("id").arg("-u").output().unwrap().stdout == b"0\n")
}

/// Where the programs of PostgreSQL are: those of the newest version that Debian has, or in the path.
fn programs() -> Option<&'static Path> {
    static PROGRAMS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let of_debian = versions.map(|version| version.path().join("bin")).filter(|bin| bin.join("initdb").exists());
        let version = |bin: &PathBuf| bin.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
        let path = std::env::var_os("PATH").unwrap_or_default();
        of_debian.max_by_key(version).or_else(|| std::env::split_paths(&path).find(|bin| bin.join("initdb").exists()))
    };
    PROGRAMS.get_or_init(find).as_deref()
}

fn finished(mut command: Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A cluster of a test's own keeps what was committed through a kill, and leaves neither a process nor a file.
#[test]
fn a_cluster_can_be_killed_and_leaves_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.create_database("kept");
    cluster.kill();
    cluster.start_again();
    cluster.restart_immediately();
    assert_eq!(cluster.sql("kept", "SELECT current_database(), current_setting('fsync')"), "kept|on");
    let home = cluster.home.clone();
    drop(cluster);
    assert!(!home.exists());
    let processes = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&processes.stdout).contains(home.to_str().unwrap()));
}
