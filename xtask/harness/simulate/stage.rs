//! The servers and the agents of their workspaces in this process, which are killed and started again; their directories stay.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use aptix_client::agent::{AgentError, Approve, Attended, FromDisk, Service, serve as serve_workspace};
use aptix_client::connection::Server;
use aptix_client::connection::route::Route;
use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::id::BatchId;
use aptix_server::dispatcher::approvals::{Approval, Approvals};
use aptix_server::fleet::{Connect, FleetOptions};
use aptix_server::options::{Changeable, Options};
use aptix_server::serve::serve;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::retention::Limits;
use aptix_server::store::{Store, StoreError};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use crate::clock::{pass, pass_really};
use crate::database::Database;
use crate::defect::Defect;
use crate::history::{FILES, NODES, SERVERS, WORKSPACES};
use crate::network::{Door, Link, Network, dialler};
use crate::program::place;
use crate::random::Random;
use crate::store::{Mortal, Removed};

/// How long the blocking work that a killed task left may need: simulated time stands still until it is done.
const LEFT_BEHIND: Duration = Duration::from_millis(1);
/// Until an agent looks again whether the one before has let go of the root.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long in real time the threads of a killed server may hold its store.
const LET_GO: Duration = Duration::from_secs(60);
/// How long records are kept: a call that was cut off is not delivered so late.
pub(crate) const KEPT_LEAST: Duration = Duration::from_secs(600);
/// Connections that wait to be accepted.
const BACKLOG: usize = 64;

/// How long a server may take to end in order.
const ENDS: Duration = Duration::from_secs(15);

/// A server that runs.
struct Running {
    tasks: JoinSet<Result<()>>,
    store: Arc<Mortal>,
    /// Has it end in order.
    ends: CancellationToken,
    /// Kept open until it has ended.
    door: Door,
}

/// The machines.
pub(crate) struct Stage {
    place: TempDir,
    network: Network,
    /// By node; those behind the author's and the watcher's are of servers, if there are several.
    pub(crate) links: Vec<Link>,
    /// Leads to servers whatever happens to the links of nodes.
    pub(crate) quick: Link,
    servers: Vec<Option<Running>>,
    /// What several servers share. One server has a directory.
    pub(crate) database: Option<Arc<Database>>,
    agents: [JoinSet<Result<()>>; WORKSPACES],
    defect: Option<Defect>,
}

/// The name of a workspace.
pub(crate) fn workspace(number: usize) -> String {
    format!("w{number}")
}

/// The name of a file of a project.
pub(crate) fn file(number: usize) -> String {
    format!("file{number}.txt")
}

impl Stage {
    /// A place for so many servers and the agents, none of which runs yet.
    #[expect(clippy::disallowed_methods, reason = "the directories of a test are no user's")]
    pub(crate) fn new(random: &mut Random, servers: usize, defect: Option<Defect>) -> Result<Self> {
        let place = place()?;
        fs::create_dir_all(place.path().join("config/aptix"))?;
        let policy = place.path().join("config/aptix/policy.toml");
        fs::write(&policy, "[limits]\nrefused_per_minute = 100000\n")?;
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o600))?;
        for number in 0..WORKSPACES {
            let project = place.path().join(format!("project{number}"));
            fs::create_dir_all(&project)?;
            for number in 0..FILES {
                fs::write(project.join(file(number)), "begin\n")?;
            }
        }
        let is_shared = servers > 1;
        let (network, nodes) = (Network::of(servers), NODES + if is_shared { servers } else { 0 });
        let mut part = || Random::new(random.below(usize::MAX) as u64);
        let links = (0..nodes).map(|_| Link::new(network.clone(), part())).collect();
        let quick = Link::quick(network.clone(), part());
        let database = if is_shared { Some(Database::new(random, defect)?) } else { None };
        let servers = (0..servers).map(|_| None).collect();
        Ok(Self { place, network, links, quick, servers, database, agents: Default::default(), defect })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn link(&self, node: usize) -> Result<&Link> {
        self.links.get(node).context("a node has no link")
    }

    /// What is in a file of a workspace.
    pub(crate) fn content(&self, workspace: usize, number: usize) -> Result<String> {
        Ok(fs::read_to_string(self.path(&format!("project{workspace}")).join(file(number)))?)
    }

    /// Starts a server, unless it runs.
    pub(crate) async fn start_server(&mut self, server: usize) -> Result<()> {
        if self.servers[server].is_some() {
            return Ok(());
        }
        let (store, mortal) = self.store(server).await?;
        let (connections, incoming) = mpsc::channel(BACKLOG);
        let (ends, died) = (CancellationToken::new(), CancellationToken::new());
        let workspaces = [(workspace(1).parse()?, Approval::Always)].into();
        let approvals = Approvals { usual: Approval::Never, workspaces };
        let changeable = Changeable { fleet: self.fleet(server), ..approvals.into() };
        let ended = ends.clone().cancelled_owned();
        let serving = serve(store, (Options::default(), changeable), ReceiverStream::new(incoming), ended);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { Ok(serving.await?) });
        let door = Door { connections, died };
        self.network.lead_to(server, Some(door.clone()));
        self.servers[server] = Some(Running { tasks, store: mortal, ends, door });
        Ok(())
    }

    /// The store of a server, and what dies with the server.
    async fn store(&self, server: usize) -> Result<(Arc<dyn Store>, Arc<Mortal>)> {
        if let Some(database) = &self.database {
            let (way, mortal) = database.way(server);
            return Ok((way, mortal));
        }
        let data = self.path("data");
        let opened = spawn_blocking(move || open(&data)).await?.context("failed to open the store")?;
        let mortal = Arc::new(Mortal::new(Arc::new(opened), self.defect));
        Ok((Arc::clone(&mortal) as Arc<_>, mortal))
    }

    /// How a server lives beside others: it asks them over the link of its own node.
    fn fleet(&self, server: usize) -> FleetOptions {
        let Some(link) = self.links.get(NODES + server) else { return FleetOptions::default() };
        let link = link.clone();
        let connect = Connect::with(move |endpoint| {
            let other = (0..SERVERS).find(|other| endpoint.uri().to_string().starts_with(&address(*other)));
            endpoint.connect_with_connector_lazy(dialler(link.to(other.unwrap_or(server))))
        });
        FleetOptions { address: Some(address(server)), connect, ..FleetOptions::default() }
    }

    /// Has a server remove what a workspace keeps no longer; `None` while none runs.
    pub(crate) async fn remove(
        &self,
        number: usize,
        events: u64,
        passed: Option<Duration>,
        known: (u64, Vec<BatchId>),
    ) -> Result<Option<Removed>> {
        let Some(running) = self.servers.iter().flatten().next() else { return Ok(None) };
        let (record_least, content_batches) = (KEPT_LEAST, Some(events));
        let limits = Limits { record_events: Some(events), record_least, content_batches, ..Limits::default() };
        Ok(Some(running.store.remove((workspace(number).parse()?, limits), passed, known).await?))
    }

    /// Has a server end in order; why it did not, if it did not.
    pub(crate) async fn end_server(&mut self, server: usize) -> Option<String> {
        let running = self.servers[server].as_mut()?;
        self.network.lead_to(server, None);
        running.ends.cancel();
        let ended = timeout(ENDS, running.tasks.join_next()).await;
        self.kill_server(server).await;
        match ended {
            Ok(Some(Ok(Ok(())))) => None,
            ended => Some(format!("server {server} did not end in order: {ended:?}")),
        }
    }

    /// Kills a server: what it has not acknowledged may be durable or not.
    pub(crate) async fn kill_server(&mut self, server: usize) {
        let Some(Running { mut tasks, store, door, .. }) = self.servers[server].take() else { return };
        self.network.lead_to(server, None);
        store.die();
        door.died.cancel();
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        drop(store);
        pass(LEFT_BEHIND).await;
    }

    /// Kills the only server, and copies its directory once nothing writes to it.
    pub(crate) async fn copy(&mut self) -> Result<()> {
        self.kill_server(0).await;
        self.settle().await?;
        replace(self.path("data"), self.path("copy")).await?;
        self.start_server(0).await
    }

    /// Kills the only server and starts it again with the copy of its directory.
    pub(crate) async fn restore(&mut self) -> Result<()> {
        self.kill_server(0).await;
        self.settle().await?;
        replace(self.path("copy"), self.path("data")).await?;
        self.start_server(0).await
    }

    /// Opens and closes the store: then no thread of it is left.
    async fn settle(&self) -> Result<()> {
        let (data, runtime) = (self.path("data"), tokio::runtime::Handle::current());
        let closed = spawn_blocking(move || {
            let store = open(&data)?;
            runtime.block_on(store.close())
        });
        Ok(closed.await??)
    }

    pub(crate) async fn start_agent(&mut self, number: usize) -> Result<()> {
        if self.defect == Some(Defect::StateLost) {
            replace(self.path("nothing"), self.path(&format!("state{number}"))).await?;
        }
        let link = self.link(number)?.clone();
        let server = Server { route: Route::Dialled(Arc::new(link)), ..Server::open("http://server".parse()?) };
        let project = self.path(&format!("project{number}"));
        let service = Service {
            server,
            workspace: workspace(number).parse()?,
            approve: Approve::Auto,
            attended: Attended::Never,
            review: None,
            is_agreed: true,
            policy: Arc::new(PolicyFiles::new(&self.path("config"), Caller::Server)),
            answering: Arc::new(FromDisk::default()),
        };
        let state = self.path(&format!("state{number}"));
        let agents = self.agents.get_mut(number).context("no such agent")?;
        agents.spawn(run_agent(service, project, state, format!("agent{number}")));
        Ok(())
    }

    /// Kills an agent. The step that it is taking on the disk is taken to its end.
    pub(crate) async fn kill_agent(&mut self, number: usize) {
        let Some(agents) = self.agents.get_mut(number) else { return };
        agents.abort_all();
        while agents.join_next().await.is_some() {}
        pass(LEFT_BEHIND).await;
    }

    /// Why a server or an agent ended by itself, if one did.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let servers = self.servers.iter_mut().flatten().map(|server| &mut server.tasks);
        let ended = servers.chain(&mut self.agents).find_map(JoinSet::try_join_next)?;
        Some(format!("a server or an agent ended by itself: {ended:?}"))
    }
}

/// Where the other servers reach this one.
fn address(server: usize) -> String {
    format!("http://server{server}")
}

/// Opens the store of a server, once the threads of the one before, which was killed, have let go of it: in real time, which they take.
fn open(data: &Path) -> Result<EmbeddedStore, StoreError> {
    let begun = Instant::now();
    loop {
        match EmbeddedStore::open(data) {
            Err(StoreError::InUse { .. }) if begun.elapsed() < LET_GO => pass_really(LOOK_AGAIN),
            opened => return opened,
        }
    }
}

/// Serves, as soon as the agent before has let go of the root.
async fn run_agent(service: Service, project: PathBuf, state: PathBuf, id: String) -> Result<()> {
    loop {
        let (roots, state) = ([format!("app={}", project.display()).parse()?], state.clone());
        let opened = spawn_blocking(move || Workspace::open(&roots, &state, Box::new(SystemDisk))).await?;
        let workspace = opened.map_err(|error| anyhow!("an agent could not start: {error}"))?;
        match serve_workspace(workspace, service.clone(), id.parse()?, CancellationToken::new()).await {
            Err(AgentError::Served { .. }) => pass(LOOK_AGAIN).await,
            ended => return Ok(ended?),
        }
    }
}

/// Replaces a directory by a copy of another one, or by nothing if there is none.
async fn replace(from: PathBuf, to: PathBuf) -> Result<()> {
    spawn_blocking(move || {
        run(Command::new("rm").arg("-rf").arg(&to))?;
        if Path::exists(&from) { run(Command::new("cp").arg("-a").args([&from, &to])) } else { Ok(()) }
    })
    .await?
}

fn run(command: &mut Command) -> Result<()> {
    ensure!(command.status()?.success(), "{command:?} failed");
    Ok(())
}
