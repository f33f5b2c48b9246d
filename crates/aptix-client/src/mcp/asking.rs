//! Who is asked about what a call writes: whoever has the review page open, else the person at the client, if that shows forms. A client
//! of a newer protocol takes the question as the answer of its call, and brings what the person answered in the next one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex as Blocking, PoisonError};
use std::time::Instant;

use aptix_model::id::Uuid;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientResult, ElicitRequest, ElicitResult, InputRequest,
    InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{Peer, RoleServer};
use tokio::sync::{Mutex, Semaphore};

use super::called::Called;
use super::consent::{Question, WAYS};
use super::form;
use super::until::Until;
use crate::person::answer::Answer;
use crate::person::in_time;
use crate::review::{Board, By};

/// Questions that wait at one time; there are places for more calls, so that the answer to a form is read.
const WAITING: usize = 8;
/// Questions that wait for the next call of a client. Beyond them the oldest is given up.
const KEPT: usize = 32;
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
    kept: Blocking<VecDeque<Kept>>,
}

/// A question that went out as the answer of a call.
#[derive(Debug)]
struct Kept {
    name: String,
    called: Called,
    question: Question,
    asked: Instant,
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

impl Asking {
    pub(super) fn new(board: Option<Arc<Board>>) -> Self {
        Self { board, places: Semaphore::new(WAITING), form: Mutex::default(), kept: Blocking::default() }
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
        (called, question): (&Called, &Question),
        until: &Until,
    ) -> Result<Answer, InputRequiredResult> {
        let Ok(_place) = self.places.try_acquire() else { return Ok(question.unasked(TOO_MANY)) };
        let form = match way {
            Way::Page(board) => return Ok(on_page(board, question, until).await),
            Way::None => return Ok(question.unasked(WAYS)),
            Way::Form(_) | Way::NextCall => match form::asking(question) {
                Ok(form) => form,
                Err(answer) => return Ok(answer),
            },
        };
        match way {
            Way::Form(peer) => Ok(self.in_form(peer, form, question, until).await),
            _ => Err(self.keep(called.clone(), question.clone(), form)),
        }
    }

    /// The call that a client makes again with an answer, if this is one.
    pub(super) fn answered(&self, request: &CallToolRequestParams) -> Option<Called> {
        let state = request.request_state.as_ref()?;
        let Kept { called, question, asked, .. } = {
            let mut kept = self.kept();
            let is_it = |kept: &Kept| kept.name == *state && kept.called.tool.name == request.name;
            let position = kept.iter().position(is_it)?;
            kept.remove(position)?
        };
        let given = request.input_responses.as_ref().and_then(|responses| responses.get(KEY));
        let given = given.and_then(|given| serde_json::from_value::<ElicitResult>(given.clone()).ok());
        let answer = match given {
            _ if asked.elapsed() > question.patience => Answer::too_late(question.patience),
            Some(given) => form::answer(&given),
            None => form::closed(),
        };
        Some(called.answered(question, answer))
    }

    async fn in_form(
        &self,
        peer: &Peer<RoleServer>,
        form: ElicitRequest,
        question: &Question,
        until: &Until,
    ) -> Answer {
        let void = || Answer::no(until.failure());
        let _alone = tokio::select! {
            alone = self.form.lock() => alone,
            () = until.cancelled() => return void(),
        };
        let request = ServerRequest::ElicitRequest(form);
        let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let Ok(mut sent) = sent else { return question.unasked(WAYS) };
        let given = tokio::select! {
            given = in_time(question.patience, &mut sent.rx) => given.ok_or_else(|| Answer::too_late(question.patience)),
            () = until.cancelled() => Err(void()),
        };
        match given {
            Ok(Ok(Ok(ClientResult::ElicitResult(given)))) => form::answer(&given),
            Ok(other) => {
                tracing::warn!(?other, "the client does not show the question");
                question.unasked(WAYS)
            }
            Err(answer) => {
                // A client that is gone shows nothing any more.
                let _ = sent.cancel(Some("the question is void".to_owned())).await;
                answer
            }
        }
    }

    fn keep(&self, called: Called, question: Question, form: ElicitRequest) -> InputRequiredResult {
        let name = name();
        let mut kept = self.kept();
        kept.truncate(KEPT - 1);
        kept.push_front(Kept { name: name.clone(), called, question, asked: Instant::now() });
        let requests = [(KEY.to_owned(), InputRequest::Elicitation(form))].into();
        InputRequiredResult::new(Some(requests), Some(name))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn on_page(board: &Arc<Board>, question: &Question, until: &Until) -> Answer {
    let mut asked = board.ask(&question.title, Arc::clone(&question.shown), question.subject);
    let given = tokio::select! {
        given = in_time(question.patience, asked.answer()) => given,
        () = until.cancelled() => return Answer::no(until.failure()),
    };
    let (answer, by) =
        given.map_or_else(|| (Answer::too_late(question.patience), None), |answer| (answer, Some(By::Page)));
    asked.end(&answer, by);
    answer
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
