//! Rivals: agents without a directory that compete for the lease of one workspace through all servers. Each submits a batch while it holds
//! the lease, and reports it, perhaps when it no longer does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::BatchState;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::serve_response::Message;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::calls::{failed, submit};
use crate::clock::pass;
use crate::history::WORKSPACES;
use crate::random::Random;
use crate::reference::lives;
use crate::stage::workspace;
use crate::watcher::Log;
use crate::workers::with;

/// The number of the workspace that rivals compete for.
pub(crate) const CONTESTED: usize = WORKSPACES;
/// How many compete.
const RIVALS: usize = 3;
/// How late a rival may learn that its lease is over: messages to rivals travel for a millisecond.
const LATE: Duration = Duration::from_millis(100);
/// How long a rival waits for an answer.
const ANSWER: Duration = Duration::from_secs(20);

/// The time for which a rival held the lease, as it knows.
#[derive(Clone, Copy, Debug)]
struct Hold {
    rival: usize,
    epoch: u64,
    from: Instant,
    until: Option<Instant>,
}

/// What rivals were answered.
#[derive(Default)]
struct Answers {
    holds: Vec<Hold>,
    /// The ids of batches whose storing was acknowledged, and whether their report was.
    batches: Vec<(String, bool)>,
    wrong: Option<String>,
}

/// Agents that compete for one lease.
pub(crate) struct Rivals {
    tasks: JoinSet<()>,
    answers: Arc<Mutex<Answers>>,
}

/// One of them.
struct Rival {
    number: usize,
    servers: Vec<Channel>,
    random: Random,
    answers: Arc<Mutex<Answers>>,
}

impl Rivals {
    /// Has rivals compete through these servers.
    pub(crate) fn begin(servers: &[Channel], random: &mut Random) -> Self {
        let (mut tasks, answers) = (JoinSet::new(), Arc::<Mutex<Answers>>::default());
        for number in 0..RIVALS {
            let (servers, answers) = (servers.to_vec(), Arc::clone(&answers));
            let random = Random::new(random.below(usize::MAX) as u64);
            tasks.spawn(Rival { number, servers, random, answers }.compete());
        }
        Self { tasks, answers }
    }

    /// What a rival was answered that must not be, if anything was.
    pub(crate) fn wrong(&self) -> Option<String> {
        with(&self.answers, |answers| answers.wrong.clone().or_else(|| overlap(&answers.holds)))
    }

    /// Ends them.
    pub(crate) async fn end(&mut self) {
        self.tasks.shutdown().await;
    }

    /// What they were acknowledged that the events of the workspace lack, if anything is.
    pub(crate) fn lost(&self, events: &Log) -> Option<String> {
        let lives = match lives(&events.events) {
            Ok(lives) => lives,
            Err(why) => return Some(why),
        };
        with(&self.answers, |answers| {
            answers.batches.iter().find_map(|(id, is_reported)| match lives.get(id) {
                None => Some(format!("a rival's batch {id} was acknowledged and is lost")),
                Some(life) if *is_reported && life.state != BatchState::Failed => {
                    Some(format!("a rival's report of batch {id} was acknowledged, and it is {:?}", life.state))
                }
                Some(_) => None,
            })
        })
    }
}

/// Two rivals that held the lease at the same time, if there are any.
fn overlap(holds: &[Hold]) -> Option<String> {
    holds.iter().find_map(|later| {
        let before = |hold: &&Hold| hold.epoch < later.epoch && hold.rival != later.rival;
        let ended = |hold: &Hold| hold.until.unwrap_or_else(Instant::now);
        let earlier = holds.iter().filter(before).find(|hold| ended(hold) > later.from + LATE)?;
        let (rival, epoch, time) = (earlier.rival, earlier.epoch, ended(earlier) - later.from);
        Some(format!(
            "rival {rival} held the lease of epoch {epoch} for {time:?} after rival {} got that of epoch {}",
            later.rival, later.epoch
        ))
    })
}

impl Rival {
    fn millis(&mut self, bound: usize) -> Duration {
        Duration::from_millis(self.random.below(bound) as u64)
    }

    fn server(&mut self) -> Channel {
        let at = self.random.below(self.servers.len());
        self.servers[at].clone()
    }

    fn blame(&self, why: String) {
        with(&self.answers, |answers| answers.wrong.get_or_insert(why).clone());
    }

    async fn compete(mut self) {
        for turn in 0_usize.. {
            pass(self.millis(6_000)).await;
            match self.lease().await {
                Ok((lease, stream, _answers)) => self.hold(turn, lease, stream).await,
                // Another agent has it, or the server cannot give it now.
                Err(status) if matches!(status.code(), Code::FailedPrecondition | Code::Unavailable) => {}
                // The server died, or its store is slow.
                Err(status) if is_cut_off(&status) => {}
                Err(status) => self.blame(format!("rival {} was refused the lease: {status:?}", self.number)),
            }
        }
    }

    /// Asks a server for the lease.
    async fn lease(
        &mut self,
    ) -> Result<(v1::Lease, Streaming<v1::ServeResponse>, mpsc::Sender<v1::ServeRequest>), Status> {
        let hello = v1::Hello {
            workspace_id: workspace(CONTESTED),
            agent_id: format!("rival{}", self.number),
            roots: vec!["app".to_owned()],
            ..v1::Hello::default()
        };
        let (answers, requests) = mpsc::channel(1);
        let hello = v1::ServeRequest { message: Some(v1::serve_request::Message::Hello(hello)) };
        answers.try_send(hello).map_err(|_| Status::internal("a message finds no room"))?;
        let mut agents = AgentServiceClient::new(self.server());
        let asked = async {
            let mut stream = agents.serve(ReceiverStream::new(requests)).await?.into_inner();
            match stream.message().await?.and_then(|first| first.message) {
                Some(Message::Lease(lease)) => Ok((lease, stream)),
                first => Err(Status::internal(format!("the first message is no lease: {first:?}"))),
            }
        };
        let (lease, stream) = timeout(ANSWER, asked).await.map_err(|_| Status::deadline_exceeded("silence"))??;
        Ok((lease, stream, answers))
    }

    /// Holds the lease for a while, with a batch that is reported under it.
    async fn hold(&mut self, turn: usize, lease: v1::Lease, stream: Streaming<v1::ServeResponse>) {
        let (rival, epoch) = (self.number, lease.epoch);
        let hold = Hold { rival, epoch, from: Instant::now(), until: None };
        let at = with(&self.answers, |answers| {
            answers.holds.push(hold);
            answers.holds.len() - 1
        });
        let (holds, late, time) = (Arc::clone(&self.answers), self.millis(30_000), self.millis(60_000));
        let held = async move {
            // The stream is given up once the time is over.
            let _ = timeout(time, until_end(stream)).await;
            with(&holds, |answers| answers.holds[at].until = Some(Instant::now()));
        };
        let works = async {
            let batch = self.submit(turn).await;
            pass(late).await;
            if let Some(at) = batch {
                self.report(at, &lease).await;
            }
        };
        tokio::join!(held, works);
    }

    /// Submits a batch; its number among those that were acknowledged.
    async fn submit(&mut self, turn: usize) -> Option<usize> {
        let mut request = submit(workspace(CONTESTED), turn, 0);
        request.request_id = format!("rival-{}-{turn}", self.number);
        let mut batches = BatchServiceClient::new(self.server());
        let stored = timeout(ANSWER, batches.submit_batch(request)).await.ok()?.ok()?.into_inner().batch?;
        Some(with(&self.answers, |answers| {
            answers.batches.push((stored.batch_id, false));
            answers.batches.len() - 1
        }))
    }

    /// Reports a batch under a lease, whether or not that is still in force.
    async fn report(&mut self, at: usize, lease: &v1::Lease) {
        let batch_id = with(&self.answers, |answers| answers.batches[at].0.clone());
        let request = v1::ReportBatchRequest {
            workspace_id: workspace(CONTESTED),
            batch_id,
            lease_epoch: lease.epoch,
            lease_secret: lease.secret.clone(),
            report: Some(failed()),
            ..Default::default()
        };
        let mut agents = AgentServiceClient::new(self.server());
        match timeout(ANSWER, agents.report_batch(request)).await {
            Ok(Ok(_)) => with(&self.answers, |answers| answers.batches[at].1 = true),
            Ok(Err(status)) if status.code() == Code::NotFound => self.blame(format!("a batch is lost: {status:?}")),
            _ => {}
        }
    }
}

/// Whether the server, or the way to it, ended before it answered.
fn is_cut_off(status: &Status) -> bool {
    matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled | Code::Unknown)
}

/// Takes what comes until the stream ends.
async fn until_end(mut stream: Streaming<v1::ServeResponse>) {
    while let Ok(Some(_)) = stream.message().await {}
}
