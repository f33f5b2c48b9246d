//! A server and an agent as processes, and the calls that a history makes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};
use tonic_types::StatusExt as _;

use crate::history::{Approval, Process};
use crate::moment::until;
use crate::program::{place, private, program};

/// Nothing that is waited for takes longer, unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that ends with its handle.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Both processes, and their files.
pub(crate) struct Stage {
    place: TempDir,
    runtime: Runtime,
    agent: Option<Running>,
    server: Option<Running>,
    address: String,
    /// One connection for as long as a server runs.
    channel: Option<Channel>,
}

impl Stage {
    /// Both processes over a project without files. The server has a person approve these batches.
    #[expect(clippy::disallowed_methods, reason = "the directories of a test are no user's")]
    pub(crate) fn new(approval: Approval) -> Result<Self> {
        let place = place()?;
        for name in ["project", "state", "config/aptix", "data"] {
            fs::create_dir_all(place.path().join(name))?;
        }
        let policy = place.path().join("config/aptix/policy.toml");
        fs::write(&policy, "deletions = \"allow\"\n[limits]\nrefused_per_minute = 100000\n")?;
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o600))?;
        let asks = match approval {
            Approval::Never => "never",
            Approval::Deletions => "deletions",
            Approval::Always => "always",
        };
        fs::write(place.path().join("server.toml"), format!("[workspaces.demo]\napproval = {asks:?}\n"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let address = "127.0.0.1:0".to_owned();
        let mut stage = Self { place, runtime, agent: None, server: None, address, channel: None };
        stage.start(Process::Server)?;
        stage.start(Process::Agent)?;
        Ok(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Kills a process and starts it again, as if that were all that happened.
    pub(crate) fn restart(&mut self, process: Process) -> Result<()> {
        self.kill(process);
        self.start(process)
    }

    pub(crate) fn kill(&mut self, process: Process) {
        match process {
            Process::Server => self.server = None,
            Process::Agent => self.agent = None,
        }
    }

    /// Starts a process, and waits until the workspace is served.
    pub(crate) fn start(&mut self, process: Process) -> Result<()> {
        let log = fs::File::options().create(true).append(true).open(self.path("log"))?;
        match process {
            Process::Server => {
                let mut command = Command::new(program("aptix-server")?);
                private(&mut command, self.place.path());
                command.args(["--config", "server.toml", "--listen", &self.address, "--data-dir", "data"]);
                command.stdout(Stdio::piped()).stderr(log);
                let mut child = Running(command.spawn()?);
                let mut first = String::new();
                BufReader::new(child.0.stdout.take().context("stdout")?).read_line(&mut first)?;
                let address = first.trim_end().strip_prefix("listening on ").context("the server does not listen")?;
                address.clone_into(&mut self.address);
                let endpoint = Endpoint::from_shared(format!("http://{}", self.address))?;
                self.channel = Some(self.runtime.block_on(endpoint.connect())?);
                self.server = Some(child);
            }
            Process::Agent => {
                let mut command = Command::new(program("aptix")?);
                private(&mut command, self.place.path());
                let url = format!("http://{}", self.address);
                let arguments = ["--workspace", "demo", "--root", "project", "--approve", "auto", "--server", &url];
                command.arg("agent").args(arguments).stdout(Stdio::null()).stderr(log);
                self.agent = Some(Running(command.spawn()?));
            }
        }
        if self.agent.is_some() { self.until_served() } else { Ok(()) }
    }

    fn until_served(&self) -> Result<()> {
        self.until("an agent serves the workspace", || {
            let asked = v1::GetWorkspaceRequest { workspace_id: "demo".to_owned() };
            let answer = self.channel().and_then(|channel| {
                Ok(self.runtime.block_on(WorkspaceServiceClient::new(channel).get_workspace(asked))?)
            });
            let served =
                answer.is_ok_and(|answer| answer.into_inner().workspace.is_some_and(|it| it.serving.is_some()));
            Ok(served.then_some(()))
        })
    }

    fn until<T>(&self, what: &str, mut done: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let mut found = None;
        let holds = || {
            found = done()?;
            Ok(found.is_some())
        };
        until(PATIENCE, Duration::from_millis(5), holds)?;
        found.with_context(|| {
            format!("waited for nothing: {what}\n{}", fs::read_to_string(self.path("log")).unwrap_or_default())
        })
    }

    fn channel(&self) -> Result<Channel> {
        self.channel.clone().context("no server was started")
    }

    fn batches(&self) -> Result<BatchServiceClient<Channel>> {
        Ok(BatchServiceClient::new(self.channel()?))
    }

    /// Prepares; the batch, or the word of the refusal. While the server has not noticed that an agent was killed, or the next one
    /// is not there yet, the call is made again, as its request id allows.
    pub(crate) fn prepare(&self, request: &v1::PrepareBatchRequest) -> Result<Result<v1::Batch, String>> {
        let mut batches = self.batches()?;
        let answer =
            self.until("an agent plans", || match self.runtime.block_on(batches.prepare_batch(request.clone())) {
                Err(status) if status.code() == Code::Unavailable => Ok(None),
                answer => Ok(Some(answer)),
            })?;
        refusal(answer.map(|answer| answer.into_inner().batch.unwrap_or_default()))
    }

    /// Lets a batch be applied by calls that are made at once; each is answered with nothing or the word of the refusal.
    pub(crate) fn apply(&self, batch: &str, owner: usize, calls: &[String]) -> Result<Vec<Result<(), String>>> {
        let batches = self.batches()?;
        let answers = calls.iter().map(|call| {
            let request = v1::ApplyPreparedRequest {
                workspace_id: "demo".to_owned(),
                batch_id: batch.to_owned(),
                owner: format!("owner{owner}"),
                request_id: call.clone(),
                ..v1::ApplyPreparedRequest::default()
            };
            let mut batches = batches.clone();
            async move { batches.apply_prepared(request).await }
        });
        self.at_once(answers)?.into_iter().map(|answer| refusal(answer.map(drop))).collect()
    }

    /// Makes calls at once; their answers, in the order of the calls.
    fn at_once<T: Send + 'static>(
        &self,
        calls: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
    ) -> Result<Vec<T>> {
        let calls: Vec<_> = calls.collect();
        Ok(self.runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for (number, call) in calls.into_iter().enumerate() {
                tasks.spawn(async move { (number, call.await) });
            }
            let mut answered = tasks.join_all().await;
            answered.sort_by_key(|(number, _)| *number);
            answered.into_iter().map(|(_, answer)| answer).collect()
        }))
    }

    /// Reviewers approve a batch at once; each is answered with the name of the first, or the word of the refusal.
    pub(crate) fn approve(&self, batch: &str, reviewers: &[String]) -> Result<Vec<Result<String, String>>> {
        let batches = self.batches()?;
        let answers = reviewers.iter().map(|reviewer| {
            let request = v1::ApproveBatchRequest {
                workspace_id: "demo".to_owned(),
                batch_id: batch.to_owned(),
                reviewer: reviewer.clone(),
                ..v1::ApproveBatchRequest::default()
            };
            let mut batches = batches.clone();
            async move { batches.approve_batch(request).await }
        });
        let first = |answer: Response<v1::ApproveBatchResponse>| {
            answer.into_inner().decision.and_then(|step| step.actor).unwrap_or_default().name
        };
        self.at_once(answers)?.into_iter().map(|answer| refusal(answer.map(first))).collect()
    }

    /// Calls at once for a batch to be taken back, under these request ids; the ids of the new batches, or the words of refusals.
    pub(crate) fn revert(&self, batch: &str, requests: &[String]) -> Result<Vec<Result<String, String>>> {
        let batches = self.batches()?;
        let answers = requests.iter().map(|request| {
            let request = v1::RevertBatchRequest {
                workspace_id: "demo".to_owned(),
                batch_id: batch.to_owned(),
                request_id: request.clone(),
                ..v1::RevertBatchRequest::default()
            };
            let mut batches = batches.clone();
            async move { batches.revert_batch(request).await }
        });
        let id = |answer: Response<v1::RevertBatchResponse>| answer.into_inner().batch.unwrap_or_default().batch_id;
        self.at_once(answers)?.into_iter().map(|answer| refusal(answer.map(id))).collect()
    }

    /// Cancels or rejects; nothing, or the word of the refusal.
    pub(crate) fn end(&self, batch: &str, rejects: bool) -> Result<Result<(), String>> {
        let mut batches = self.batches()?;
        let (workspace_id, batch_id) = ("demo".to_owned(), batch.to_owned());
        let answer = self.runtime.block_on(async move {
            if rejects {
                let request =
                    v1::RejectBatchRequest { workspace_id, batch_id, reason: "no".to_owned(), reviewer: String::new() };
                batches.reject_batch(request).await.map(drop)
            } else {
                batches
                    .cancel_batch(v1::CancelBatchRequest { workspace_id, batch_id, ..Default::default() })
                    .await
                    .map(drop)
            }
        });
        refusal(answer)
    }

    /// The batch once nothing is about to happen to it.
    pub(crate) fn settled(&self, batch: &str) -> Result<v1::Batch> {
        let mut batches = self.batches()?;
        self.until("a batch ends", || {
            let request = v1::GetBatchRequest {
                workspace_id: "demo".to_owned(),
                batch: Some(v1::get_batch_request::Batch::BatchId(batch.to_owned())),
                view: v1::BatchView::Full.into(),
            };
            let found = self.runtime.block_on(batches.get_batch(request))?.into_inner().batch.context("no batch")?;
            Ok((found.state() != v1::BatchState::Approved).then_some(found))
        })
    }

    /// Writes a file of the project, as another program does.
    #[expect(clippy::disallowed_methods, reason = "the files of a test are no user's")]
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<()> {
        Ok(fs::write(self.path("project").join(name), content)?)
    }

    /// Every file of the project.
    pub(crate) fn files(&self) -> Result<Vec<(String, String)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.path("project"))? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|name| anyhow!("{}", name.display()))?;
            if !name.starts_with('.') {
                files.push((name, fs::read_to_string(entry.path())?));
            }
        }
        files.sort();
        Ok(files)
    }
}

/// The word of a refusal: its detail, if it has one.
fn refusal<T>(answer: Result<T, Status>) -> Result<Result<T, String>> {
    let status = match answer {
        Ok(answer) => return Ok(Ok(answer)),
        Err(status) => status,
    };
    let info = status.get_details_error_info().with_context(|| format!("a refusal without a reason: {status:?}"))?;
    if !matches!(status.code(), Code::FailedPrecondition | Code::NotFound) {
        bail!("a call failed: {status:?}");
    }
    Ok(Err(info.metadata.get("detail").cloned().unwrap_or(info.reason)))
}
