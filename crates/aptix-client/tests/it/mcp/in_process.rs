//! The tools, served in the process of the test on a disk of its own: with faults, and with clocks that are set.

use std::path::Path;

use aptix_client::mcp::opening::{Opened, Opening};
use aptix_client::mcp::server::{Session, serve};
use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_model::tools::catalogue::Selection;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use super::client::{Answer, answer};
use crate::faults::{self, FaultyDisk};

/// Bytes on the way in each direction.
const PIPE: usize = 1 << 20;

/// Serves the tools on the root of a place to a connection of an owner, makes one call, and ends. None if the root cannot be opened.
pub(super) fn call(place: &Path, disk: FaultyDisk, owner: &str, tool: &str, arguments: &Value) -> Option<Answer> {
    let (workspace, _) = faults::open_on(place, disk).ok()?;
    let session = Session {
        name: "one".to_owned(),
        owner: Some(owner.parse().unwrap()),
        tools: Selection::parse("all").unwrap(),
        review: None,
    };
    let opening = Opening::Done(Box::new(Opened { workspace, directories: vec![place.join("ws")] }));
    let policies = PolicyFiles::new(&place.join("config"), Caller::Model);
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } }),
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let heard = runtime.block_on(async move {
        let ((input, mut to), (from, output)) = (tokio::io::duplex(PIPE), tokio::io::duplex(PIPE));
        let served = tokio::spawn(serve(opening, policies, session, (input, output), CancellationToken::new()));
        let mut answers = BufReader::new(from).lines();
        for line in lines {
            to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        answers.next_line().await.unwrap().unwrap();
        let heard = answers.next_line().await.unwrap().unwrap();
        drop(to);
        served.await.unwrap().unwrap();
        heard
    });
    Some(answer(&serde_json::from_str(&heard).unwrap()))
}
