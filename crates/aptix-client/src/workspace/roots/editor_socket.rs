//! The Unix domain socket of a root, on which its agent listens for editors: where it is, and how it is made and reached.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, Mode};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::workspace::fs::errno;
use crate::workspace::roots::lock::Lock;
use crate::workspace::roots::state::{StateDir, StateError};

/// Most bytes of a socket's path on Linux, without the NUL byte behind it.
const PATH_BYTES: usize = 107;
/// Digits of the root's digest that the socket is named by: all 64 leave too little of [`PATH_BYTES`].
const NAME_DIGITS: usize = 32;

/// Why an agent listens to no editors.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The system takes no path of this length.
    #[error(
        "the path {} has {} bytes, and that of a socket has at most {PATH_BYTES}: set XDG_STATE_HOME to a shorter directory",
        .0.display(),
        .0.as_os_str().len()
    )]
    TooLong(PathBuf),
    /// Something else than a socket has its path.
    #[error("{} is not a socket; move it away", .0.display())]
    InTheWay(PathBuf),
    /// The system refuses.
    #[error("cannot {doing} {}: {errno}", path.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// The socket.
        path: PathBuf,
        /// The system's error.
        errno: Errno,
    },
    /// The directory of the socket.
    #[error(transparent)]
    State(#[from] StateError),
}

/// A socket that listens. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct EditorSocket {
    pub(crate) listener: UnixListener,
    pub(crate) path: PathBuf,
}

impl Drop for EditorSocket {
    fn drop(&mut self) {
        // The next agent of the root replaces one that is left.
        let _ = rustix::fs::unlink(&self.path);
    }
}

impl StateDir {
    /// The path of the root's socket.
    pub(crate) fn editor_socket(&self) -> PathBuf {
        let name = self.name().to_string();
        let digits = name.get(..NAME_DIGITS).unwrap_or(&name);
        let home = self.path().parent().and_then(Path::parent).unwrap_or(self.path());
        home.join("editors").join(format!("{digits}.sock"))
    }

    /// Listens on the root's socket, open to its owner alone. The holder of the root's agent lock is the only process that does,
    /// so that a socket which is there already belongs to a dead process and is replaced.
    pub(crate) fn listen_to_editors(&self, _agent: &Lock) -> Result<EditorSocket, SocketError> {
        let path = self.editor_socket();
        if path.as_os_str().len() > PATH_BYTES {
            return Err(SocketError::TooLong(path));
        }
        Self::shared(path.parent().unwrap_or(self.path())).make_itself()?;
        let failed = |doing| {
            let path = path.clone();
            move |errno| SocketError::System { doing, path, errno }
        };
        if let Some(stat) = errno::optional(rustix::fs::lstat(&path)).map_err(failed("look at"))? {
            if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
                return Err(SocketError::InTheWay(path));
            }
            errno::optional(rustix::fs::unlink(&path)).map_err(failed("remove"))?;
        }
        let listener = UnixListener::bind(&path).map_err(|error| failed("listen on")(errno::of(&error)))?;
        let socket = EditorSocket { listener, path: path.clone() };
        // Until then the directory keeps others out.
        rustix::fs::chmod(&path, Mode::RUSR | Mode::WUSR).map_err(failed("close to others"))?;
        socket.listener.set_nonblocking(true).map_err(|error| failed("listen on")(errno::of(&error)))?;
        Ok(socket)
    }

    /// Connects to the agent of the root, whose every answer comes within `patience`; nothing where no agent listens.
    ///
    /// # Errors
    /// The agent takes no connection, or the system refuses.
    pub(crate) fn reach_agent(&self, patience: Duration) -> Result<Option<UnixStream>, Errno> {
        let path = self.editor_socket();
        if path.as_os_str().len() > PATH_BYTES {
            return Ok(None);
        }
        // A connection that blocks would wait for an agent that is stopped.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket: OwnedFd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match retry_on_intr(|| rustix::net::connect(&socket, &SocketAddrUnix::new(path.as_path())?)) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::CONNREFUSED) => return Ok(None),
            connected => connected?,
        }
        let stream = UnixStream::from(socket);
        let prepared = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(patience)));
        prepared.and_then(|()| stream.set_write_timeout(Some(patience))).map_err(|error| errno::of(&error))?;
        Ok(Some(stream))
    }

    fn make_itself(&self) -> Result<(), StateError> {
        self.make(self.path())
    }
}
