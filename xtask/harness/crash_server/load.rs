//! Work for the server: authors submit, repeat, decide, upload and read, an operator makes and revokes tokens, readers follow.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aptix_model::wire::v1;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::calls::Calls;
use crate::feed::{Stopped, stopped};
use crate::ledger::{About, Decision, Finding, Ledger, Sent, Token, Workspace};
use crate::random::Random;
use crate::workers::with;

/// Workspaces that real agents serve.
pub(crate) const SERVED: [&str; 2] = ["served-0", "served-1"];
/// The workspace that an agent of this harness serves.
pub(crate) const READ: &str = "read";
/// The workspace without an agent, whose batches people decide about.
pub(crate) const IDLE: &str = "idle";
/// Every workspace.
pub(crate) const ALL: [&str; 4] = [SERVED[0], SERVED[1], READ, IDLE];

/// What everyone who calls shares.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) author: Calls,
    pub(crate) reviewer: Calls,
    pub(crate) operator: Calls,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    /// How many calls were acknowledged.
    pub(crate) acknowledged: Arc<AtomicUsize>,
    /// Ends the work.
    pub(crate) over: CancellationToken,
    /// The place whose directories are the workspaces.
    pub(crate) place: PathBuf,
}

impl Shared {
    /// The same over another author's connection.
    pub(crate) fn over(&self, author: Calls) -> Self {
        let (reviewer, operator) = (author.as_of(&self.reviewer), author.as_of(&self.operator));
        Self { author, reviewer, operator, ..self.clone() }
    }
}

/// What a caller does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Submits, repeats, decides, uploads and reads.
    Author,
    /// Makes and revokes tokens.
    Operator,
    /// Has old records removed.
    Keeper,
}

impl Role {
    /// Who works on a server at one time.
    pub(crate) const ALL: [Self; 6] =
        [Self::Author, Self::Author, Self::Author, Self::Author, Self::Operator, Self::Keeper];

    /// Calls in a cycle at most.
    const fn calls(self) -> usize {
        match self {
            Self::Author => 12,
            Self::Operator => 3,
            Self::Keeper => 8,
        }
    }
}

/// One caller.
pub(crate) struct Caller {
    pub(crate) shared: Shared,
    pub(crate) random: Random,
    /// No other caller has it, in any cycle.
    pub(crate) name: String,
    made: usize,
}

impl Caller {
    pub(crate) const fn new(shared: Shared, random: Random, name: String) -> Self {
        Self { shared, random, name, made: 0 }
    }

    /// Works until the server has gone or it is asked to end.
    pub(crate) async fn work(mut self, role: Role) -> Result<(), Stopped> {
        for _ in 0..role.calls() {
            let over = self.shared.over.clone();
            let done = tokio::select! {
                () = over.cancelled() => return Ok(()),
                done = self.act_as(role) => done,
            };
            done?;
            self.shared.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn act_as(&mut self, role: Role) -> Result<(), Stopped> {
        match role {
            Role::Author => self.act().await,
            Role::Operator => self.administer().await,
            Role::Keeper => self.keep().await,
        }
    }

    async fn act(&mut self) -> Result<(), Stopped> {
        match self.random.below(20) {
            0..=8 => {
                let workspace = self.any(&ALL);
                self.submit(workspace).await
            }
            9..=11 => self.repeat().await,
            12..=15 => self.decide().await,
            16..=17 => self.upload().await,
            _ => self.look().await,
        }
    }

    /// One of several workspaces.
    fn any(&mut self, among: &[&'static str]) -> &'static str {
        among.get(self.random.below(among.len())).copied().unwrap_or(IDLE)
    }

    /// A name for something new.
    pub(crate) fn mint(&mut self) -> String {
        self.made += 1;
        format!("{}-{}", self.name, self.made)
    }

    /// Reads or changes a workspace in the reference.
    fn with<R>(&self, workspace: &str, work: impl FnOnce(&mut Workspace) -> R) -> R {
        with(&self.shared.ledger, |ledger| work(ledger.workspaces.entry(workspace.to_owned()).or_default()))
    }

    /// Submits a new batch.
    pub(crate) async fn submit(&mut self, workspace: &str) -> Result<(), Stopped> {
        let request_id = self.mint();
        let content = format!("once {request_id}\\n");
        let text = if SERVED.contains(&workspace) {
            // Appended without a condition, so that a batch that is applied twice shows.
            let file = self.shared.place.join(workspace).join(format!("{request_id}.txt"));
            if let Err(error) = std::fs::write(&file, "first\n") {
                return Err(Finding::new(About::Batch, format!("{} cannot be written: {error}", file.display())).into());
            }
            let change = format!(r#"{{"operation":"append_eof","newText":"{content}"}}"#);
            format!(r#"{{"path":"{request_id}.txt","patches":[{change}]}}"#)
        } else {
            format!(r#"{{"path":"{request_id}.txt","content":"{content}"}}"#)
        };
        let document = v1::Document { dialect: String::new(), text: text.into_bytes().into() };
        let body = v1::submit_batch_request::Content::Document(document);
        self.send(workspace, &request_id, body, format!("once {request_id}")).await
    }

    /// Uploads a blob, and submits a batch that makes a file of it.
    async fn upload(&mut self) -> Result<(), Stopped> {
        let workspace = self.any(&SERVED);
        let request_id = self.mint();
        let bytes = format!("blob {request_id}\n").repeat(1 + self.random.below(4000)).into_bytes();
        let uploaded = self.shared.author.upload(workspace, &bytes).await;
        let blob = uploaded.map_err(|status| stopped(About::Blob, workspace, status))?;
        self.with(workspace, |known| known.blobs.insert(blob.sha256.clone(), bytes));
        let content = blob.sha256.clone();
        let create = v1::CreateFile { content: Some(v1::create_file::Content::Blob(blob)), ..Default::default() };
        let file = v1::FilePatch {
            target: Some(v1::file_patch::Target::Path(format!("{request_id}.txt"))),
            action: Some(v1::file_patch::Action::CreateFile(create)),
            ..Default::default()
        };
        let edit = v1::Edit { files: vec![file], ..Default::default() };
        self.send(workspace, &request_id, v1::submit_batch_request::Content::Edit(edit), content).await
    }

    async fn send(
        &mut self,
        workspace: &str,
        request_id: &str,
        body: v1::submit_batch_request::Content,
        content: String,
    ) -> Result<(), Stopped> {
        let request = v1::SubmitBatchRequest {
            workspace_id: workspace.to_owned(),
            request_id: request_id.to_owned(),
            content: Some(body),
            view: v1::BatchView::Full.into(),
            ..Default::default()
        };
        let (answered, decision, report, ended) = (None, None, None, None);
        let sent = Sent { request: request.clone(), content, answered, decision, report, ended, is_checked: false };
        self.with(workspace, |known| known.sent.insert(request_id.to_owned(), sent));
        self.store(workspace, request).await
    }

    /// Submits a request for the first time or again: the answer is about one and the same batch.
    async fn store(&mut self, workspace: &str, request: v1::SubmitBatchRequest) -> Result<(), Stopped> {
        let request_id = request.request_id.clone();
        let answer = self.shared.author.submit(request).await;
        let batch = answer.map_err(|status| stopped(About::Batch, workspace, status))?;
        self.with(workspace, |known| {
            let Some(sent) = known.sent.get_mut(&request_id) else { return Ok(()) };
            sent.is_checked = false;
            let first = sent.answered.get_or_insert_with(|| batch.clone());
            if first.batch_id == batch.batch_id {
                return Ok(());
            }
            let what = format!("{workspace}: {request_id} was {}, is {}", first.batch_id, batch.batch_id);
            Err(Finding::new(About::Batch, what).into())
        })
    }

    /// Submits again what was not answered, or else something that was.
    async fn repeat(&mut self) -> Result<(), Stopped> {
        let workspace = self.any(&ALL);
        let turn = self.random.below(1 << 20);
        let request = self.with(workspace, |known| {
            let unanswered = known.sent.values().filter(|sent| sent.answered.is_none());
            let requests: Vec<_> = unanswered.map(|sent| &sent.request).collect();
            let all: Vec<_> =
                if requests.is_empty() { known.sent.values().map(|sent| &sent.request).collect() } else { requests };
            all.get(turn % all.len().max(1)).copied().cloned()
        });
        match request {
            Some(request) => self.store(workspace, request).await,
            None => Ok(()),
        }
    }

    /// Withdraws or refuses a batch, with a name and a reason.
    async fn decide(&mut self) -> Result<(), Stopped> {
        let name = self.mint();
        let rejects = self.random.below(2) == 0;
        let kind = if rejects { v1::EventKind::Rejected } else { v1::EventKind::Cancelled };
        let turn = self.random.below(1 << 20);
        let reason = format!("because of {name}");
        let chosen = self.with(IDLE, |known| {
            let open = known.sent.iter_mut().filter(|(_, sent)| sent.answered.is_some() && sent.decision.is_none());
            let mut open: Vec<_> = open.collect();
            let turn = turn % open.len().max(1);
            let (request_id, sent) = open.get_mut(turn)?;
            let decision = Decision { kind, name: name.clone(), reason: reason.clone(), is_acknowledged: false };
            sent.decision = Some(decision);
            Some(((*request_id).clone(), sent.answered.clone().unwrap_or_default().batch_id))
        });
        let Some((request_id, batch_id)) = chosen else { return self.submit(IDLE).await };
        let workspace_id = IDLE.to_owned();
        let answer = if rejects {
            let request = v1::RejectBatchRequest { workspace_id, batch_id, reason, reviewer: name };
            self.shared.reviewer.reject(request).await
        } else {
            let request = v1::CancelBatchRequest { workspace_id, batch_id, reason, author: name };
            self.shared.author.cancel(request).await
        };
        answer.map_err(|status| stopped(About::Audit, IDLE, status))?;
        self.with(IDLE, |known| {
            if let Some(sent) = known.sent.get_mut(&request_id) {
                sent.is_checked = false;
                sent.decision.iter_mut().for_each(|decision| decision.is_acknowledged = true);
            }
        });
        Ok(())
    }

    /// Reads a batch that was acknowledged.
    async fn look(&mut self) -> Result<(), Stopped> {
        let workspace = self.any(&ALL);
        let turn = self.random.below(1 << 20);
        let answered = self.with(workspace, |known| {
            let answered: Vec<_> = known.sent.values().filter_map(|sent| sent.answered.as_ref()).collect();
            answered.get(turn % answered.len().max(1)).map(|batch| (batch.request_id.clone(), batch.batch_id.clone()))
        });
        let Some((request_id, batch_id)) = answered else { return Ok(()) };
        let found = self.shared.author.get(workspace, &request_id).await;
        let found = found.map_err(|status| stopped(About::Batch, workspace, status))?;
        if found.batch_id == batch_id {
            return Ok(());
        }
        Err(Finding::new(About::Batch, format!("{workspace}: {request_id} was {batch_id}, is {}", found.batch_id))
            .into())
    }

    /// Makes a token, or revokes one.
    async fn administer(&mut self) -> Result<(), Stopped> {
        let failed = |status: Status| stopped(About::Token, "tokens", status);
        let turn = self.random.below(1 << 20);
        let revoked = with(&self.shared.ledger, |ledger| {
            let live = ledger.tokens.iter_mut().filter(|(_, token)| token.made.is_some() && !token.is_revoked);
            let mut live: Vec<_> = live.collect();
            // Some stay, so that both kinds are there.
            let turn = if live.len() > 3 { turn % live.len() } else { return None };
            let (name, token) = live.get_mut(turn)?;
            token.is_revoked = true;
            Some((*name).clone())
        });
        let Some(name) = revoked else {
            let name = self.mint();
            with(&self.shared.ledger, |ledger| ledger.tokens.insert(name.clone(), Token::default()));
            let made = self.shared.operator.make_token(&name).await.map_err(failed)?;
            with(&self.shared.ledger, |ledger| ledger.tokens.entry(name).or_default().made = Some(made));
            return Ok(());
        };
        let ended = self.shared.operator.revoke_token(&name).await.map_err(failed)?;
        with(&self.shared.ledger, |ledger| ledger.tokens.entry(name).or_default().ended = Some(ended));
        Ok(())
    }
}
