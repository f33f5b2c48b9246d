//! The simulated network: each node has a link to the servers, whose two directions can be stopped, and whose connections can be
//! reset. Bytes are delayed, never lost or changed, as TCP has it.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aptix_client::connection::route::{Dial, Dialled, Wire};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::codegen::Service;
use tonic::transport::Uri;

use crate::clock::pass;
use crate::random::Random;
use crate::workers::with;

/// Bytes that a connection holds in each direction.
const BUFFER: usize = 64 << 10;
/// Bytes that travel together.
const PIECE: usize = 16 << 10;

/// Where a server takes connections, until it dies.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) connections: mpsc::Sender<io::Result<DuplexStream>>,
    pub(crate) died: CancellationToken,
}

/// What every link leads to: the doors of the servers.
#[derive(Clone, Debug)]
pub(crate) struct Network(Arc<Mutex<Vec<Option<Door>>>>);

impl Network {
    /// A network of so many servers, all of which are down.
    pub(crate) fn of(servers: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![None; servers])))
    }

    /// Has connections to this server go through a door, or nowhere.
    pub(crate) fn lead_to(&self, server: usize, door: Option<Door>) {
        with(&self.0, |doors| doors[server] = door);
    }

    fn servers(&self) -> usize {
        with(&self.0, |doors| doors.len())
    }

    fn door(&self, server: usize) -> Option<Door> {
        with(&self.0, |doors| doors.get(server).cloned().flatten())
    }
}

/// One of the two directions of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    ToServer,
    FromServer,
}

/// Which directions of a link bytes travel in, and how often its connections were reset.
#[derive(Clone, Copy, Debug)]
struct Flow {
    to_server: bool,
    from_server: bool,
    resets: u64,
}

impl Flow {
    const fn passes(self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::FromServer => self.from_server,
        }
    }
}

/// What a node reaches the servers by. Clones are the same link.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    shared: Arc<Shared>,
    /// The server that connections go to; without one, any of them.
    server: Option<usize>,
}

#[derive(Debug)]
struct Shared {
    network: Network,
    flow: watch::Sender<Flow>,
    random: Mutex<Random>,
    /// Whether pieces travel without pauses.
    is_quick: bool,
    relays: Mutex<JoinSet<()>>,
}

impl Link {
    pub(crate) fn new(network: Network, random: Random) -> Self {
        Self::of(network, random, false)
    }

    /// A link without pauses, which nothing stops: for looks at servers.
    pub(crate) fn quick(network: Network, random: Random) -> Self {
        Self::of(network, random, true)
    }

    fn of(network: Network, random: Random, is_quick: bool) -> Self {
        let (flow, _) = watch::channel(Flow { to_server: true, from_server: true, resets: 0 });
        let shared = Shared { network, flow, random: Mutex::new(random), is_quick, relays: Mutex::default() };
        Self { shared: Arc::new(shared), server: None }
    }

    /// The same link, for connections to one server.
    pub(crate) fn to(&self, server: usize) -> Self {
        Self { shared: Arc::clone(&self.shared), server: Some(server) }
    }

    /// Stops a direction: what is sent waits. With one direction stopped connections are half open.
    pub(crate) fn stop(&self, direction: Direction) {
        self.shared.flow.send_modify(|flow| match direction {
            Direction::ToServer => flow.to_server = false,
            Direction::FromServer => flow.from_server = false,
        });
    }

    /// Lets bytes travel in both directions.
    pub(crate) fn heal(&self) {
        self.shared.flow.send_modify(|flow| (flow.to_server, flow.from_server) = (true, true));
    }

    /// Resets every connection: what is on its way is lost.
    pub(crate) fn reset(&self) {
        self.shared.flow.send_modify(|flow| flow.resets += 1);
    }

    /// How long a piece travels; seldom as long as a pause of the network.
    fn delay(&self) -> Duration {
        let millis = with(&self.shared.random, |random| match random.below(50) {
            _ if self.shared.is_quick => 1,
            0 => 500 + random.below(3000),
            _ => 1 + random.below(20),
        });
        Duration::from_millis(millis as u64)
    }

    async fn connect(self) -> io::Result<Box<dyn Wire>> {
        let mut flow = self.shared.flow.subscribe();
        let open = flow.wait_for(|flow| flow.to_server && flow.from_server).await;
        open.map_err(|_| ErrorKind::NotConnected)?;
        pass(self.delay()).await;
        let network = &self.shared.network;
        let any = || with(&self.shared.random, |random| random.below(network.servers()));
        let door = network.door(self.server.unwrap_or_else(any)).ok_or(ErrorKind::ConnectionRefused)?;
        let (ours, near) = duplex(BUFFER);
        let (far, theirs) = duplex(BUFFER);
        door.connections.send(Ok(theirs)).await.map_err(|_| ErrorKind::ConnectionRefused)?;
        let link = self.clone();
        with(&self.shared.relays, |relays| relays.spawn(link.relay(near, far, door.died)));
        Ok(Box::new(ours))
    }

    /// Carries bytes until both sides have ended, the connection is reset, or the server dies. The node notices the death of
    /// the server once bytes travel to it.
    async fn relay(self, mut near: DuplexStream, mut far: DuplexStream, died: CancellationToken) {
        let mut flow = self.shared.flow.subscribe();
        let resets = flow.borrow().resets;
        {
            let (from_node, to_node) = tokio::io::split(&mut near);
            let (from_server, to_server) = tokio::io::split(&mut far);
            let carried = async {
                tokio::join!(
                    self.carry(from_node, to_server, Direction::ToServer),
                    self.carry(from_server, to_node, Direction::FromServer)
                )
            };
            tokio::select! {
                biased;
                _ = flow.wait_for(|flow| flow.resets != resets) => return,
                () = died.cancelled() => {}
                _ = carried => return,
            }
        }
        drop(far);
        let mut flow = self.shared.flow.subscribe();
        // The link is there as long as this runs.
        let _ = flow.wait_for(|flow| flow.passes(Direction::FromServer) || flow.resets != resets).await;
    }

    async fn carry(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        direction: Direction,
    ) -> io::Result<()> {
        let mut flow = self.shared.flow.subscribe();
        let mut piece = vec![0; PIECE];
        loop {
            let count = from.read(&mut piece).await?;
            pass(self.delay()).await;
            flow.wait_for(|flow| flow.passes(direction)).await.map_err(|_| ErrorKind::NotConnected)?;
            match piece.get(..count) {
                Some(bytes) if count > 0 => to.write_all(bytes).await?,
                _ => return to.shutdown().await,
            }
        }
    }
}

impl Dial for Link {
    fn dial(&self) -> Dialled {
        Box::pin(self.clone().connect())
    }
}

/// Connects streams as gRPC channels ask for them.
pub(crate) fn dialler(
    link: Link,
) -> impl Service<Uri, Response = TokioIo<Box<dyn Wire>>, Error = io::Error, Future: Send> + Clone + Send + 'static {
    tower::service_fn(move |_: Uri| {
        let dialled = link.dial();
        async move { Ok(TokioIo::new(dialled.await?)) }
    })
}
