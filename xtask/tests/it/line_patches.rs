//! The scenarios of line patches (TUL-002) over gRPC: each document is submitted to a real server as its author wrote it, and a
//! real agent carries it out. What it is refused for and what the files are afterwards is what `aptix apply` does with it.
//!
//! The files are those of the client's tests; their first lines describe the form. What needs roots or flags of its own is left
//! out here.

use std::fs;
use std::path::{Path, PathBuf};

use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::submit_batch_request::Content;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::processes::{Machine, Server, eventually, wait_until_served};

const SCENARIOS: [&str; 4] = [
    include_str!("../../../crates/aptix-client/tests/it/scenarios/line_patch.txt"),
    include_str!("../../../crates/aptix-client/tests/it/scenarios/paths.txt"),
    include_str!("../../../crates/aptix-client/tests/it/scenarios/documents.txt"),
    include_str!("../../../crates/aptix-client/tests/it/scenarios/violations.txt"),
];

/// Differs by design: a server refuses what it finds wrong by itself, and never asks the agent what else is.
const FOUND_APART: &str = "a path that is not clear hides no broken rule of another file";

/// A part of a scenario: its word, what follows on that line, and the lines below.
#[derive(Clone)]
struct Part {
    word: String,
    rest: String,
    body: String,
}

/// What became of a document: why it was refused, code and detail, or nothing.
type Outcome = Vec<String>;

fn scenarios(text: &str) -> impl Iterator<Item = (String, Vec<Part>)> {
    // The machine's only root has this name.
    let text = text.replace("ws/", "project/");
    let scenarios: Vec<_> = text.split("\n== ").skip(1).map(scenario).collect();
    scenarios.into_iter()
}

fn scenario(text: &str) -> (String, Vec<Part>) {
    let (title, text) = text.split_once('\n').unwrap();
    let part = |part: &str| {
        let (head, body) = part.split_once('\n').unwrap_or((part, ""));
        let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
        Part { word: word.to_owned(), rest: rest.to_owned(), body: body.to_owned() }
    };
    let text = format!("{}\n", text.trim_end_matches('\n'));
    let body = text.strip_prefix("--- ").unwrap_or_else(|| panic!("{title} begins with a part"));
    let mut parts: Vec<_> = body.split("\n--- ").map(part).collect();
    let last = parts.len() - 1;
    for part in parts.iter_mut().take(last).filter(|part| !part.body.is_empty()) {
        part.body.push('\n');
    }
    (title.to_owned(), parts)
}

/// The text in place of `$1`, and what is expected then; of a scenario without cases one.
fn cases(parts: &[Part]) -> Vec<(String, Outcome)> {
    let of = |word: &'static str| parts.iter().filter(move |part| part.word == word);
    let errors = || of("error").map(|error| words(&error.rest)).collect();
    let Some(table) = of("cases").next() else { return vec![(String::new(), errors())] };
    let lines = table.body.lines().filter(|line| !line.is_empty());
    let case = |line: &str| {
        let (text, expected) = line.rsplit_once(" => ").unwrap();
        let expected = if expected == "ok" { errors() } else { expected.split(" & ").map(words).collect() };
        (text.to_owned(), expected)
    };
    lines.map(case).collect()
}

/// The code and the detail of an expected error.
fn words(error: &str) -> String {
    error.split_whitespace().take_while(|word| !word.contains('=')).collect::<Vec<_>>().join(" ")
}

/// The bytes that a file's text describes.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (byte, length) = match escape.as_bytes() {
            [b'r', ..] => (Some(b'\r'), 1),
            [b'n', ..] => (Some(b'\n'), 1),
            [b't', ..] => (Some(b'\t'), 1),
            [b'0', ..] => (Some(0), 1),
            [b'\\', ..] => (Some(b'\\'), 1),
            [b'c', b'\n', ..] => (None, 2),
            [b'x', ..] => (Some(u8::from_str_radix(&escape[1..3], 16).unwrap()), 3),
            _ => panic!("unknown escape in {text:?}"),
        };
        bytes.extend(byte);
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// A document with the digests of its files, and what else its text only describes.
fn document(text: &str, top: &Path) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((plain, after)) = rest.split_once("{{") {
        let (order, after) = after.split_once("}}").unwrap();
        bytes.extend_from_slice(plain.as_bytes());
        if let Some(path) = order.strip_prefix("sha ") {
            let content = fs::read(top.join(path)).unwrap();
            bytes.extend_from_slice(aptix_engine::digest::sha256(&content).to_string().as_bytes());
        } else if let Some((count, text)) = order.split_once(" times ") {
            bytes.extend_from_slice(text.repeat(count.parse().unwrap()).as_bytes());
        } else {
            bytes.push(u8::from_str_radix(order.strip_prefix('x').unwrap(), 16).unwrap());
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// A machine that is served, and a caller in any language: it knows the address and the workspace's name.
struct Scene {
    machine: Machine,
    runtime: Runtime,
    batches: BatchServiceClient<Channel>,
}

impl Scene {
    fn new(machine: Machine, server: &Server) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let channel = runtime.block_on(Endpoint::from_shared(server.url()).unwrap().connect()).unwrap();
        let batches = BatchServiceClient::new(channel).max_encoding_message_size(64 << 20);
        Self { machine, runtime, batches }
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn lay_out(&self, parts: &[Part]) {
        for entry in fs::read_dir(self.machine.path("project")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
        for part in parts.iter().filter(|part| part.word == "file") {
            let place = self.place(&part.rest);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, unescaped(&part.body)).unwrap();
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.machine.path(path.split(" mode=").next().unwrap())
    }

    /// Every file of the project with its bytes.
    fn tree(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut left = vec![self.machine.path("project")];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { left.push(path) } else { found.push((path.clone(), fs::read(path).unwrap())) }
            }
        }
        found.sort();
        found
    }

    /// Submits a document, and waits for what becomes of it.
    fn submit(&mut self, number: usize, text: Vec<u8>) -> Outcome {
        let request = v1::SubmitBatchRequest {
            workspace_id: "demo".to_owned(),
            request_id: number.to_string(),
            content: Some(Content::Document(v1::Document { dialect: String::new(), text: text.into() })),
            ..v1::SubmitBatchRequest::default()
        };
        let batch = match self.runtime.block_on(self.batches.submit_batch(request)) {
            Ok(answer) => answer.into_inner().batch.unwrap(),
            Err(status) => return refused(&status),
        };
        let mut ended = None;
        eventually("the batch ends", || {
            let which = Some(v1::get_batch_request::Batch::BatchId(batch.batch_id.clone()));
            let view = v1::BatchView::Full.into();
            let request = v1::GetBatchRequest { workspace_id: "demo".to_owned(), batch: which, view };
            let now = self.runtime.block_on(self.batches.get_batch(request)).unwrap().into_inner().batch.unwrap();
            ended = now.report;
            ended.is_some()
        });
        let failures = ended.unwrap().failures.into_iter();
        failures.map(|failure| format!("{} {}", failure.reason, failure.detail).trim_end().to_owned()).collect()
    }
}

/// What a call was refused for: the code and the detail of the first violation, the code alone of the others.
fn refused(status: &Status) -> Outcome {
    if status.code() == Code::OutOfRange {
        return vec!["OUT_OF_RANGE".to_owned()];
    }
    let details = status.get_error_details();
    let info = details.error_info().unwrap_or_else(|| panic!("{status:?}"));
    let first = format!("{} {}", info.reason, info.metadata.get("detail").map_or("", String::as_str));
    let violations = details.bad_request().map_or(&[][..], |request| &request.field_violations);
    let code = |violation: &tonic_types::FieldViolation| {
        violation.description.split([':', ' ']).next().unwrap_or_default().to_owned()
    };
    let others = violations.iter().skip(1).map(code);
    std::iter::once(first.trim_end().to_owned()).chain(others).collect()
}

fn is_as_expected(found: &Outcome, expected: &Outcome) -> bool {
    let is_same =
        |(found, expected): (&String, &String)| found == expected || expected.starts_with(&format!("{found} "));
    found.len() == expected.len() && found.iter().zip(expected).all(is_same)
}

/// Each scenario of line patches, over gRPC:
/// TUL-002-3.1 TUL-002-3.2 TUL-002-4.1.3 TUL-002-4.1.4 TUL-002-4.2.1 TUL-002-4.2.2 TUL-002-4.2.4 TUL-002-4.2.6 TUL-002-4.2.8
/// TUL-002-4.2.9 TUL-002-5.0.1 TUL-002-5.1.1 TUL-002-5.1.2 TUL-002-5.1.4 TUL-002-5.1.6 TUL-002-5.1.7 TUL-002-5.2.1
/// TUL-002-5.2.2 TUL-002-5.2.3 TUL-002-5.3.1 TUL-002-5.3.2 TUL-002-5.3.3 TUL-002-5.3.4 TUL-002-5.3.5 TUL-002-5.3.6
/// TUL-002-5.4.1 TUL-002-5.4.2 TUL-002-5.4.3 TUL-002-5.4.4 TUL-002-6.1 TUL-002-6.2 TUL-002-6.3 TUL-002-7.2.1 TUL-002-7.2.3
/// TUL-002-8.2.3 TUL-002-8.4.1 TUL-002-8.4.3 TUL-002-8.5.1 TUL-002-8.5.2 TUL-002-8.6.5 TUL-002-9.2 TUL-002-10.2 TUL-002-10.3
/// TUL-002-10.4 TUL-002-10.6
#[test]
fn every_scenario_of_line_patches_holds_over_grpc() {
    let machine = Machine::new().with_policy("[limits]\nrefused_per_minute = 10000\n");
    let server = machine.server();
    let _agent = machine.agent(&server);
    wait_until_served(&server);
    let mut scene = Scene::new(machine, &server);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (title, parts) in SCENARIOS.into_iter().flat_map(scenarios) {
        let known = ["file", "document", "cases", "error", "exit", "after", "says", "warning"];
        let is_run = title.contains("TUL-002") && !title.ends_with(FOUND_APART);
        if !is_run || !parts.iter().all(|part| known.contains(&part.word.as_str())) {
            continue;
        }
        let text = &parts.iter().find(|part| part.word == "document").unwrap().body;
        for (case, expected) in cases(&parts) {
            count += 1;
            let filled: Vec<_> =
                parts.iter().map(|part| Part { body: part.body.replace("$1", &case), ..part.clone() }).collect();
            scene.lay_out(&filled);
            let before = scene.tree();
            let text = document(&text.replace("$1", &case), &scene.machine.path("."));
            // No message holds it; nothing changes.
            let expected = if text.len() > MESSAGE_BYTES { vec!["OUT_OF_RANGE".to_owned()] } else { expected };
            let found = scene.submit(count, text);
            if !is_as_expected(&found, &expected) {
                wrong.push(format!("{title} [{case}]: found {found:?}, expected {expected:?}"));
            }
            let mut after = before;
            for part in filled.iter().filter(|part| part.word == "after" && expected.is_empty()) {
                let place = scene.place(&part.rest);
                after.retain(|(path, _)| *path != place);
                after.push((place, unescaped(&part.body)));
            }
            after.sort();
            if scene.tree() != after {
                wrong.push(format!("{title} [{case}]: the files are not as expected: {:?}", scene.tree()));
            }
        }
    }
    assert!(count > 60, "{count} cases are not all of them");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
