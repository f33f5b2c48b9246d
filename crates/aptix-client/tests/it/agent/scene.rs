//! An agent, a server made of a script, and the batches that it sends.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aptix_client::agent::{AgentError, Approve, Attended, Service, serve};
use aptix_client::connection::Server;
use aptix_client::connection::question::{Answering, Unanswered};
use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::keep::outbox;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::fake_server::{FakeServer, refusal};
use crate::faults::{Fault, FaultyDisk};

/// A server, a directory `ws` with a file `a.txt` of one line, and an agent that serves it as long as this lives.
pub(super) struct Scene {
    pub(super) server: FakeServer,
    pub(super) place: tempfile::TempDir,
    pub(super) agents: JoinSet<Result<(), AgentError>>,
    pub(super) stop: CancellationToken,
    pub(super) disk: FaultyDisk,
    /// Who answers the questions of the server, from the next start on.
    pub(super) answering: Arc<dyn Answering>,
    _tasks: JoinSet<()>,
}

impl Scene {
    pub(super) fn set(approve: Approve) -> Self {
        Self::set_with(approve, Fault::None)
    }

    pub(super) fn set_with(approve: Approve, fault: Fault) -> Self {
        let mut tasks = JoinSet::new();
        let server = FakeServer::start(&mut tasks);
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("ws")).unwrap();
        std::fs::write(place.path().join("ws/a.txt"), "1\n").unwrap();
        let (agents, stop, disk) = (JoinSet::new(), CancellationToken::new(), FaultyDisk::new(fault));
        let answering = Arc::new(Unanswered);
        let mut scene = Self { server, place, agents, stop, disk, answering, _tasks: tasks };
        scene.start_with(approve, fault);
        scene
    }

    pub(super) fn start(&mut self, approve: Approve) {
        self.start_with(approve, Fault::None);
    }

    pub(super) fn start_with(&mut self, approve: Approve, fault: Fault) {
        let spec = format!("ws={}", self.place.path().join("ws").display()).parse().unwrap();
        self.disk = FaultyDisk::new(fault);
        let local = Workspace::open(&[spec], self.place.path(), Box::new(self.disk.clone())).unwrap();
        let (server, workspace) = (Server::open(self.server.url.parse().unwrap()), "w".parse().unwrap());
        let policy = Arc::new(PolicyFiles::new(&self.place.path().join("config"), Caller::Server));
        let answering = Arc::clone(&self.answering);
        let (attended, is_agreed) = (Attended::Never, true);
        let service = Service { server, workspace, approve, attended, review: None, is_agreed, policy, answering };
        self.stop = CancellationToken::new();
        self.agents.spawn(serve(local, service, "agent-1".parse().unwrap(), self.stop.clone()));
    }

    pub(super) async fn stop(&mut self) {
        self.stop.cancel();
        self.agents.join_next().await.unwrap().unwrap().unwrap();
    }

    pub(super) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.place.path().join("ws").join(name)).unwrap()
    }

    pub(super) fn put(&self, name: &str, text: &str) {
        std::fs::write(self.place.path().join("ws").join(name), text).unwrap();
    }

    /// Gives the agent's person this policy file.
    pub(super) fn put_policy(&self, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let directory = self.place.path().join("config/aptix");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("policy.toml"), text).unwrap();
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(directory.join("policy.toml"), mode).unwrap();
    }

    /// The last report about a batch once there are so many about all.
    pub(super) async fn report(&self, count: usize, number: u32) -> v1::Report {
        let reports = || self.server.script.lock().unwrap().reports.clone();
        eventually(&format!("{count} reports"), || reports().len() >= count).await;
        let mut about = reports().into_iter().rev().filter(|report| report.batch_id == id(number));
        about.next().unwrap().report.unwrap()
    }

    pub(super) fn outbox(&self) -> usize {
        let spec = format!("ws={}", self.place.path().join("ws").display()).parse().unwrap();
        let local = Workspace::open(&[spec], self.place.path(), Box::new(SystemDisk)).unwrap();
        outbox::waiting(&local).unwrap().len()
    }
}

/// Waits for a condition. It should hold for good once it holds: a busy machine may look late.
pub(super) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(120), waiting).await.is_ok(), "{what}: not within two minutes");
}

pub(super) fn id(number: u32) -> String {
    format!("018f6d2e-7c1a-7b3e-9d55-{number:012}")
}

/// An approved batch with this one file patch.
pub(super) fn batch(number: u32, target: &str, action: Option<v1::file_patch::Action>) -> v1::Batch {
    let target = Some(v1::file_patch::Target::Path(target.to_owned()));
    let changes = match &action {
        Some(v1::file_patch::Action::LinePatch(patch)) => patch.changes.len(),
        _ => 0,
    };
    assert!(changes <= 1, "change ids are those of the batch");
    let file = v1::FilePatch { file_patch_id: id(number), target, action, ..v1::FilePatch::default() };
    v1::Batch {
        batch_id: id(number),
        workspace_id: "w".to_owned(),
        revision: u64::from(number),
        state: v1::BatchState::Approved.into(),
        edit: Some(v1::Edit { files: vec![file], ..v1::Edit::default() }),
        request_id: "r".to_owned(),
        create_time: Some(prost_types::Timestamp::default()),
        update_time: Some(prost_types::Timestamp::default()),
        ..v1::Batch::default()
    }
}

pub(super) fn create(text: &str) -> Option<v1::file_patch::Action> {
    write(text, false)
}

pub(super) fn write(text: &str, overwrite: bool) -> Option<v1::file_patch::Action> {
    let content = Some(v1::create_file::Content::Text(text.to_owned()));
    Some(v1::file_patch::Action::CreateFile(v1::CreateFile { content, overwrite, content_format: None }))
}

pub(super) fn append(text: &str) -> Option<v1::file_patch::Action> {
    let change = v1::SearchChange {
        change_id: id(0),
        operation: Some(v1::search_change::Operation::AppendEof(v1::AppendEof {})),
        new_text: Some(text.to_owned()),
        ..v1::SearchChange::default()
    };
    Some(v1::file_patch::Action::SearchPatch(v1::SearchPatch { changes: vec![change] }))
}

pub(super) fn blob(sha256: &str, size_bytes: u64) -> Option<v1::file_patch::Action> {
    let blob = v1::BlobRef { sha256: sha256.to_owned(), size_bytes };
    let content = Some(v1::create_file::Content::Blob(blob));
    Some(v1::file_patch::Action::CreateFile(v1::CreateFile { content, overwrite: false, content_format: None }))
}

/// Adds a line to `a.txt` as it is at first.
pub(super) fn insert(number: u32) -> v1::Batch {
    let operation = v1::change::Operation::Insert(v1::InsertLines { after_line: 1, new_lines: vec!["2".to_owned()] });
    let change = v1::Change { change_id: id(number), operation: Some(operation), ..v1::Change::default() };
    let patch = v1::LinePatch { original_sha256: sha256(b"1\n").to_string(), changes: vec![change] };
    batch(number, "a.txt", Some(v1::file_patch::Action::LinePatch(patch)))
}

pub(super) fn internal() -> Status {
    refusal(Code::Internal, "INTERNAL", &[])
}

pub(super) fn find(place: &Path, name: &str) -> String {
    let root = std::fs::read_dir(place.join("aptix/roots")).unwrap().next().unwrap().unwrap();
    std::fs::read_to_string(root.path().join("agent").join(name)).unwrap()
}
