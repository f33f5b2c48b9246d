//! Where connections come from: the address that the server listens on, and a socket in its data directory for the owner of
//! that.

use std::any::Any;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};

use crate::tls::Tls;

/// Connections that wait until the server takes them. The system lowers it to its own limit, `net.core.somaxconn`.
const BACKLOG: u32 = 16_384;

/// Which socket in a data directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OwnerSocket {
    /// That of a server.
    Server,
    /// That of a command for itself, while no server runs: no other command connects to what is about to end.
    Command,
}

impl OwnerSocket {
    fn name(self) -> String {
        match self {
            Self::Server => "admin.sock".to_owned(),
            Self::Command => format!("command-{}.sock", std::process::id()),
        }
    }

    /// Removes it, if it is there.
    ///
    /// # Errors
    /// When the system refuses.
    #[expect(clippy::disallowed_methods, reason = "the server's own data")]
    pub fn remove(self, data_dir: &Path) -> io::Result<()> {
        match std::fs::remove_file(data_dir.join(self.name())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub enum Socket {
    /// From anywhere; with what it has to be secured with.
    Tcp(TcpStream, Option<Arc<Tls>>),
    /// From a process of the data directory's owner.
    Owner(UnixStream),
}

/// Where a connection comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// From this address, with what it has to be secured with.
    Tcp(TcpConnectInfo, Option<Arc<Tls>>),
    /// From a process of the data directory's owner.
    Owner,
}

impl Connected for Socket {
    type ConnectInfo = Origin;

    fn connect_info(&self) -> Origin {
        match self {
            Self::Tcp(stream, tls) => Origin::Tcp(stream.connect_info(), tls.clone()),
            Self::Owner(_) => Origin::Owner,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_read(context, buffer),
            Self::Owner(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_write(context, bytes),
            Self::Owner(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_flush(context),
            Self::Owner(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_shutdown(context),
            Self::Owner(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream, _) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Owner(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream, _) => stream.is_write_vectored(),
            Self::Owner(stream) => stream.is_write_vectored(),
        }
    }
}

/// What a connection has to be secured with, by its information.
pub(crate) fn tls(connect_info: &dyn Any) -> Option<Arc<Tls>> {
    match connect_info.downcast_ref() {
        Some(Origin::Tcp(_, tls)) => tls.clone(),
        Some(Origin::Owner) | None => None,
    }
}

/// The connections of the listeners that there are, merged. Those that come over TCP are secured, if that is given.
pub fn incoming(
    tcp: Option<TcpListener>,
    owner: Option<UnixListener>,
    tls: Option<Arc<Tls>>,
) -> impl Stream<Item = io::Result<Socket>> + Send {
    let tcp: Connections = match tcp {
        Some(tcp) => {
            let secured = move |stream: io::Result<TcpStream>| stream.map(|stream| Socket::Tcp(stream, tls.clone()));
            Box::pin(TcpIncoming::from(tcp).with_nodelay(Some(true)).map(secured))
        }
        None => Box::pin(tokio_stream::pending()),
    };
    let owner: Connections = match owner {
        Some(owner) => Box::pin(UnixListenerStream::new(owner).filter_map(|stream| stream.and_then(owned).transpose())),
        None => Box::pin(tokio_stream::pending()),
    };
    tcp.merge(owner)
}

type Connections = Pin<Box<dyn Stream<Item = io::Result<Socket>> + Send>>;

/// The connection, if its other end is a process of this one's user, or of the system's administrator, who reads the data directory
/// anyway.
fn owned(stream: UnixStream) -> io::Result<Option<Socket>> {
    let user = stream.peer_cred()?.uid();
    if user == 0 || user == rustix::process::geteuid().as_raw() {
        return Ok(Some(Socket::Owner(stream)));
    }
    tracing::warn!(user, "a connection of another user to the socket in the data directory was closed");
    Ok(None)
}

/// Listens on an address of the network. Thousands of agents come back at once after a restart: those that the system does not let
/// wait, it resets or keeps waiting for seconds.
///
/// # Errors
/// When the system refuses the address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The port of a server that ended a moment ago is free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Listens on the socket in a data directory that this process has locked.
///
/// # Errors
/// When the system refuses.
pub fn listen_to_owner(data_dir: &Path, socket: OwnerSocket) -> io::Result<UnixListener> {
    socket.remove(data_dir)?;
    let dir = File::open(data_dir)?;
    UnixListener::bind(through(&dir, socket))
}

/// The URI of the socket in a data directory, for as long as the directory is held open.
#[must_use]
pub fn owner_uri(data_dir: &File, socket: OwnerSocket) -> String {
    format!("unix:{}", through(data_dir, socket).display())
}

/// The socket's path through an open directory: that of the directory may be longer than the path of a socket can be.
fn through(dir: &File, socket: OwnerSocket) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(socket.name())
}
