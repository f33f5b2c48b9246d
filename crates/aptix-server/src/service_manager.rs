//! Reports the server's state to the service manager that started it, such as systemd: a datagram to the socket that the variable
//! `NOTIFY_SOCKET` names. Without the variable nothing is sent.

use std::ffi::{OsStr, OsString};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// A state that a service manager knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Calls are answered; a reload has ended.
    Ready,
    /// The configuration is being read again.
    Reloading,
    /// The server is about to end.
    Stopping,
}

/// The service manager, if there is one.
pub(crate) struct ServiceManager(Option<UnixDatagram>);

impl ServiceManager {
    /// The one that the environment names. One that cannot be reached is logged.
    pub(crate) fn of_environment(environment: &[(OsString, OsString)]) -> Self {
        let named = environment.iter().find(|(name, value)| name == "NOTIFY_SOCKET" && !value.is_empty());
        let Some((_, path)) = named else { return Self(None) };
        let socket = connect(path);
        if let Err(error) = &socket {
            tracing::warn!(%error, ?path, "the socket of NOTIFY_SOCKET cannot be used");
        }
        Self(socket.ok())
    }

    /// Reports a state.
    pub(crate) fn report(&self, state: State) {
        let Some(socket) = &self.0 else { return };
        let message = match state {
            State::Ready => "READY=1".to_owned(),
            State::Stopping => "STOPPING=1".to_owned(),
            State::Reloading => {
                let now = clock_gettime(ClockId::Monotonic);
                format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1000)
            }
        };
        if let Err(error) = socket.send(message.as_bytes()) {
            tracing::warn!(%error, ?state, "the service manager was not reached");
        }
    }
}

/// A socket that never waits, connected to this path; `@` begins an abstract name.
fn connect(path: &OsStr) -> std::io::Result<UnixDatagram> {
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}
