//! Who is asked about what a call writes: whoever has the review page open, else the person at the client, if that shows forms. A client
//! of a newer protocol takes the question as the answer of its call, and brings what the person answered in the next one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex as Blocking, MutexGuard, PoisonError};
use std::time::Instant;

use aptix_model::failure::Failure;
use aptix_model::id::Uuid;
use aptix_model::reason::Reason;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientResult, ElicitRequest, ElicitResult, InputRequest,
    InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{Peer, RoleServer};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::author::Author;
use super::called::Called;
use super::consent::{Answering, Question, WAYS};
use super::form;
use super::until::Until;
use crate::person::answer::Answer;
use crate::person::in_time;
use crate::review::{Board, By};

/// Questions that wait at one time; there are places for more calls, so that the answer to a form is read.
const WAITING: usize = 8;
/// Questions that wait for the next call of a client. Beyond them the oldest is given up.
const SENT: usize = 32;
/// Names the question in the answer of a call, and the answer in the next call.
const KEY: &str = "consent";
/// What helps where too many questions wait.
const TOO_MANY: &str = "other changes wait for the user's answer: send the call again once they are decided";

/// The questions of one connection.
#[derive(Debug)]
pub(super) struct Asking {
    /// The review page, where one is served.
    board: Option<Arc<Board>>,
    places: Semaphore,
    /// A person answers one form after the other.
    form: Mutex<()>,
    /// Cancelled when the client is gone.
    left: CancellationToken,
    /// Newest first.
    sent: Blocking<VecDeque<Sent>>,
}

/// A question that went out as the answer of a call. Dropped unanswered, its call is refused.
#[derive(Debug)]
struct Sent {
    name: String,
    /// What the call came with: one that comes with something else is another call.
    arguments: Arc<str>,
    asked: Instant,
    waiting: Option<(Called, Question)>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some((called, _)) = self.waiting.take() {
            let message = "a person has to agree, and the client did not come back with an answer";
            called.refused(&[Failure::new(Reason::ApprovalRequired, message)]);
        }
    }
}

/// Where a person is asked.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// On the review page.
    Page(Arc<Board>),
    /// In a form that the client shows while the call waits.
    Form(Peer<RoleServer>),
    /// In a form that the client shows before it makes the call again.
    NextCall,
    /// Nowhere.
    None,
}

impl Way {
    /// Who answers then.
    pub(super) const fn answering(&self) -> Answering {
        match self {
            Self::Page(_) => Answering::Page,
            Self::Form(_) | Self::NextCall => Answering::Client,
            Self::None => Answering::None,
        }
    }
}

impl Asking {
    /// Asks on the page, if there is one. `left` is cancelled when the client is gone.
    pub(super) fn new(board: Option<Arc<Board>>, left: CancellationToken) -> Self {
        let (places, form, sent) = (Semaphore::new(WAITING), Mutex::default(), Blocking::default());
        Self { board, places, form, left, sent }
    }

    /// Where the person is asked about a call.
    pub(super) fn way(&self, context: &RequestContext<RoleServer>) -> Way {
        if let Some(board) = &self.board {
            return Way::Page(Arc::clone(board));
        }
        if !context.client_capabilities().is_some_and(|capabilities| shows_forms(&capabilities)) {
            return Way::None;
        }
        // Versions are dates; from this one on a server sends no requests.
        match context.protocol_version() {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => Way::NextCall,
            _ => Way::Form(context.peer.clone()),
        }
    }

    /// Asks, and waits for the answer; or has the client ask, and bring the answer with its next call.
    pub(super) async fn ask(
        &self,
        way: &Way,
        (called, arguments): (&Called, &Arc<str>),
        (question, author): (&Question, &Arc<Author>),
        until: &Until,
    ) -> Result<Answer, InputRequiredResult> {
        let Ok(_place) = self.places.try_acquire() else { return Ok(question.unasked(TOO_MANY)) };
        let form = match way {
            Way::Page(board) => return Ok(self.on_page(board, question, until).await),
            Way::None => return Ok(question.unasked(WAYS)),
            Way::Form(_) | Way::NextCall => {
                let (of_question, author) = (question.clone(), Arc::clone(author));
                let form = spawn_blocking(move || form::asking(&of_question, &author.places())).await;
                match form.unwrap_or_else(|_| Err(question.unasked(WAYS))) {
                    Ok(form) => form,
                    Err(answer) => return Ok(answer),
                }
            }
        };
        match way {
            Way::Form(peer) => Ok(self.in_form(peer, form, question, until).await),
            _ => Err(self.send(called, arguments, question, form)),
        }
    }

    /// The call that a client makes again with an answer, if this is one.
    pub(super) fn resumed(&self, request: &CallToolRequestParams, arguments: &str) -> Option<Called> {
        let state = request.request_state.as_ref()?;
        let mut sent = {
            let mut sent = self.sent();
            let position = sent.iter().position(|sent| sent.name == *state)?;
            sent.remove(position)?
        };
        let is_same = |called: &Called| called.tool.name == request.name && *sent.arguments == *arguments;
        let (called, question) = sent.waiting.take_if(|(called, _)| is_same(called))?;
        let given = request.input_responses.as_ref().and_then(|responses| responses.get(KEY));
        let given = given.and_then(|given| serde_json::from_value::<ElicitResult>(given.clone()).ok());
        let answer = match given {
            _ if sent.asked.elapsed() > question.patience => Answer::too_late(question.patience),
            Some(given) => form::answer(&given),
            None => form::closed(),
        };
        Some(called.with_answer(question, answer))
    }

    async fn on_page(&self, board: &Arc<Board>, question: &Question, until: &Until) -> Answer {
        let mut asked = board.ask(&question.title, Arc::clone(&question.shown), question.subject);
        let given = tokio::select! {
            given = in_time(question.patience, asked.answer()) => given,
            answer = self.void(until) => return answer,
        };
        let by = given.is_some().then_some(By::Page);
        let answer = given.unwrap_or_else(|| Answer::too_late(question.patience));
        asked.end(&answer, by);
        answer
    }

    async fn in_form(
        &self,
        peer: &Peer<RoleServer>,
        form: ElicitRequest,
        question: &Question,
        until: &Until,
    ) -> Answer {
        let late = tokio::time::sleep(question.patience);
        tokio::pin!(late);
        let late_answer = || Answer::too_late(question.patience);
        let _alone = tokio::select! {
            alone = self.form.lock() => alone,
            () = &mut late => return late_answer(),
            answer = self.void(until) => return answer,
        };
        let request = ServerRequest::ElicitRequest(form);
        let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let Ok(mut sent) = sent else { return question.unasked(WAYS) };
        let given = tokio::select! {
            given = &mut sent.rx => Ok(given),
            () = &mut late => Err(late_answer()),
            answer = self.void(until) => Err(answer),
        };
        match given {
            Ok(Ok(Ok(ClientResult::ElicitResult(given)))) => form::answer(&given),
            Ok(other) => {
                tracing::warn!(?other, "the client does not show the question");
                question.unasked(WAYS)
            }
            Err(answer) => {
                // A client that is gone shows nothing any more, and takes no message.
                if !self.left.is_cancelled() {
                    let _ = sent.cancel(Some("the question is void".to_owned())).await;
                }
                answer
            }
        }
    }

    /// Completes when nobody waits for the call any more, with the answer that it then has.
    async fn void(&self, until: &Until) -> Answer {
        tokio::select! {
            () = until.cancelled() => {}
            () = self.left.cancelled() => {}
        }
        Answer::no(Failure::new(
            Reason::InvalidState,
            "the call was given up while a person was asked; nothing was written",
        ))
    }

    fn send(
        &self,
        called: &Called,
        arguments: &Arc<str>,
        question: &Question,
        form: ElicitRequest,
    ) -> InputRequiredResult {
        let (name, waiting) = (name(), Some((called.clone(), question.clone())));
        let mut sent = self.sent();
        sent.truncate(SENT - 1);
        sent.push_front(Sent { name: name.clone(), arguments: Arc::clone(arguments), asked: Instant::now(), waiting });
        let requests = [(KEY.to_owned(), InputRequest::Elicitation(form))].into();
        InputRequiredResult::new(Some(requests), Some(name))
    }

    fn sent(&self) -> MutexGuard<'_, VecDeque<Sent>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a client shows forms; one that does not say what it shows does.
fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.as_ref().is_some_and(|shows| shows.form.is_some() || shows.url.is_none())
}

/// A name that no client guesses.
#[expect(clippy::disallowed_methods, reason = "the edge of the program mints ids")]
fn name() -> String {
    Uuid::new_v4().to_string()
}
