//! An editor of a few lines: it speaks to an agent's socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aptix_engine::digest::sha256;
use serde_json::{Value, json};

use crate::processes::{Machine, eventually};

/// The socket of a root, as docs/reference/editor-buffers.md finds it.
pub(super) fn socket_of(state: &Path, root: &Path) -> PathBuf {
    let digest = sha256(root.canonicalize().unwrap().to_str().unwrap().as_bytes()).to_string();
    state.join(format!("aptix/editors/{}.sock", &digest[..32]))
}

/// A connected editor.
pub(super) struct Editor {
    stream: BufReader<UnixStream>,
    root: PathBuf,
}

impl Editor {
    /// Connects to the agent of a machine's project, and says hello.
    pub(super) fn connect(machine: &Machine) -> Self {
        let mut editor = Self::silent(machine);
        let hello = editor.say(&json!({"op": "hello", "version": 1}));
        assert_eq!((&hello["ok"], &hello["version"]), (&json!(true), &json!(1)), "{hello}");
        assert_eq!(hello["root"], editor.root.to_str().unwrap());
        editor
    }

    /// Connects and says nothing.
    pub(super) fn silent(machine: &Machine) -> Self {
        let root = machine.path("project").canonicalize().unwrap();
        let socket = socket_of(&machine.path("state"), &root);
        let mut stream = None;
        eventually("the agent listens to editors", || {
            stream = UnixStream::connect(&socket).ok();
            stream.is_some()
        });
        let stream = stream.unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(120))).unwrap();
        Self { stream: BufReader::new(stream), root }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// The next answer; `None` once the agent has closed the connection.
    pub(super) fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        // The agent may close while something of ours is unread: the system says so with an error.
        let count = self.stream.read_line(&mut line).unwrap_or_else(|error| {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
            0
        });
        (count > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    #[track_caller]
    pub(super) fn say(&mut self, message: &Value) -> Value {
        self.send(format!("{message}\n").as_bytes()).unwrap();
        self.hear().unwrap_or_else(|| panic!("no answer to {message}"))
    }

    /// Announces the text of a file of the project.
    #[track_caller]
    pub(super) fn announce(&mut self, name: &str, text: &str) -> Value {
        self.say(&json!({"op": "announce", "path": self.root.join(name), "text": text}))
    }

    #[track_caller]
    pub(super) fn withdraw(&mut self, name: &str) -> Value {
        self.say(&json!({"op": "withdraw", "path": self.root.join(name)}))
    }

    /// Ends without a word, half-way in a line.
    pub(super) fn crash(mut self) {
        self.send(b"{\"op\":\"announce\",").unwrap();
    }
}
