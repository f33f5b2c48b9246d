//! The unsaved buffers of a root, asked of the agent that serves it: what `aptix mcp` knows of editors.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aptix_model::failure::Failure;
use aptix_model::path::fold;
use aptix_model::reason::Reason;
use serde::de::DeserializeOwned;

use super::buffer::Buffer;
use super::buffers::BUFFERS;
use super::protocol::{Answer, LINE_BYTES, Listed, VERSION};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::workspace::Workspace;

/// How long an agent may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the agent of each root; where none runs, there are no buffers.
pub(super) fn ask(workspace: &Workspace) -> Result<Vec<Buffer>, Failure> {
    let mut buffers = Vec::new();
    for (index, root) in workspace.roots().iter().enumerate() {
        let listed = of_root(root).map_err(|error| {
            let message = format!("the agent of this workspace does not say which files have unsaved text: {error}");
            Failure::new(Reason::Unavailable, message)
                .hint("nothing was changed; call again, and if it persists, ask the user to restart `aptix agent`")
        })?;
        buffers.extend(listed.into_iter().map(|listed| Buffer {
            root: index,
            doc_path: format!("{}/{}", root.name(), fold(&listed.path)),
            path: listed.path,
            real: listed.real_path,
            text: listed.text.map(Arc::from),
        }));
    }
    Ok(buffers)
}

fn of_root(root: &Root) -> Result<Vec<Listed>, std::io::Error> {
    let Some(mut stream) = root.state().reach_agent(PATIENCE)? else { return Ok(Vec::new()) };
    stream.write_all(format!("{{\"op\":\"hello\",\"version\":{VERSION}}}\n{{\"op\":\"list\"}}\n").as_bytes())?;
    let mut lines = Lines { stream: BufReader::new(stream), until: Instant::now() + PATIENCE };
    let hello: Answer = lines.next()?;
    let list: Answer = if hello.ok { lines.next()? } else { hello };
    match list.count.filter(|count| list.ok && *count <= BUFFERS) {
        Some(count) => (0..count).map(|_| lines.next()).collect(),
        None => Err(std::io::Error::other(list.message.unwrap_or_else(|| "its answer is no list".to_owned()))),
    }
}

/// The lines of an agent's answers.
struct Lines<R> {
    stream: R,
    until: Instant,
}

impl<R: BufRead> Lines<R> {
    fn next<T: DeserializeOwned>(&mut self) -> Result<T, std::io::Error> {
        let mut line = Vec::new();
        let mut limited = (&mut self.stream).take(LINE_BYTES as u64 + 1);
        while !line.ends_with(b"\n") {
            if Instant::now() >= self.until {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            let piece = limited.fill_buf()?;
            if piece.is_empty() {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let end = piece.iter().position(|byte| *byte == b'\n').map_or(piece.len(), |at| at + 1);
            line.extend_from_slice(piece.get(..end).unwrap_or(piece));
            limited.consume(end);
        }
        Ok(serde_json::from_slice(&line)?)
    }
}
