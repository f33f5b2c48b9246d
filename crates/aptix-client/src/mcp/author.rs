//! The author at one connection: applies batches under the policy of the models.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aptix_engine::hunk::Member;
use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch::{Batch, Origin};
use aptix_model::documents::terms::{Wording, in_words_of};
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Uuid};
use aptix_model::id_block;
use aptix_model::plan::Plan;
use aptix_model::record::UnixMillis;
use aptix_model::report::Report;
use aptix_model::tools::result::tool_result::DIFF_BYTES;
use aptix_model::tools::roots::Roots;
use aptix_model::tools::tool::Effect;

use super::called::Called;
use super::consent::{Answering, Consent};
use super::hunks::{CallNumber, Caller};
use super::tried::Tried;
use super::until::Until;
use crate::apply::acting::Acting;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::traced::Traced;
use crate::apply::{ApplyOptions, Mode, Refusal, apply};
use crate::person::user::user;
use crate::policy::Policy;
use crate::policy::files::PolicyFiles;
use crate::policy::places::Places;
use crate::present::refused;
use crate::tools::reader::{Reader, roots};
use crate::workspace::roots::workspace::Workspace;

/// Characters of a client's name that are kept.
const CLIENT_CHARS: usize = 256;

/// What a client says of a request beside what it asks for.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The id of its message.
    pub(super) id: String,
    /// The conversation that it comes from, if the client names it.
    pub(super) conversation: Option<String>,
    /// The turn in the conversation.
    pub(super) turn: Option<String>,
}

/// One author: a connection, with its clipboards, and the owner of its prepared edits.
#[derive(Debug)]
pub(super) struct Author {
    pub(super) workspace: Arc<Workspace>,
    policies: Arc<PolicyFiles>,
    /// Names the connection: the session of its clipboards.
    name: String,
    /// The owner of prepared edits.
    owner: String,
    /// The roots, as absolute paths begin with them.
    pub(super) roots: Roots,
    /// What the client calls itself, once it has said so.
    client: OnceLock<String>,
    /// When the connection began: by the time of day, and by the monotonic clock.
    began: (UnixMillis, Instant),
}

impl Author {
    /// An author whose connection, and the owner of its prepared edits, have these names.
    pub(super) fn new(
        workspace: Arc<Workspace>,
        policies: Arc<PolicyFiles>,
        (name, owner): (String, String),
        directories: &[PathBuf],
    ) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the edge of the program reads the clock")]
        let time_of_day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = (UnixMillis(millis(time_of_day)), Instant::now());
        let roots = roots(&workspace, directories.iter().map(PathBuf::as_path));
        Self { workspace, policies, name, owner, roots, client: OnceLock::new(), began }
    }

    /// Notes what the client calls itself; the first name stays.
    pub(super) fn name_client(&self, name: &str) {
        self.client.get_or_init(|| name.chars().take(CLIENT_CHARS).collect());
    }

    /// Who applies the batches of the connection: the client by its name, if it has one, else the session by its.
    pub(super) fn actor(&self) -> Actor {
        let client = self.client.get().filter(|name| !name.is_empty());
        Actor { kind: ActorKind::Author, name: Some(client.unwrap_or(&self.name).clone()) }
    }

    /// Who agrees to what is asked about: where the client asks, it is the client that says so.
    pub(super) fn person(&self, consent: &Consent) -> Actor {
        let user = user();
        if consent.answering != Answering::Client {
            return user;
        }
        let client = self.actor().name.unwrap_or_default();
        let name = user.name.map_or_else(String::new, |name| format!("{name} "));
        Actor { name: Some(format!("{name}(in a form of {client})")), ..user }
    }

    /// The time at which calls take turns, and in which the end of a prepared edit is shown. It never jumps: after the
    /// connection began it follows the monotonic clock, so that setting the time of day reorders nothing.
    pub(super) fn now(&self) -> UnixMillis {
        let (time_of_day, began) = self.began;
        UnixMillis(time_of_day.0.saturating_add(millis(began.elapsed())))
    }

    pub(super) fn policy(&self) -> Result<Arc<Policy>, Failure> {
        self.policies.read(&self.workspace).map_err(|error| error.failure())
    }

    pub(super) fn places(&self) -> Places {
        self.policies.private_places(&self.workspace)
    }

    /// A refusal as a model may read it: without paths of this machine outside of the root.
    pub(super) fn for_model(&self, refusal: impl Into<Refusal>) -> Refusal {
        let mut refusal = refusal.into();
        self.places().name_in(&mut refusal.failures);
        refusal
    }

    /// A call that came now. One that writes files has the id of its batch.
    pub(super) fn called(&self, tool: &str, effect: Option<Effect>, request: Request) -> Traced {
        let Request { id, conversation, turn } = request;
        let trace = trace(&self.name);
        Traced::begin(Trace {
            origin: Origin { conversation_id: conversation, turn_id: turn, ..trace.origin },
            batch: (effect == Some(Effect::Writes)).then(mint),
            request: Some(id),
            tool: Some(tool.to_owned()),
            ..trace
        })
    }

    /// Answers the calls that only read, however long that takes.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader { workspace: &self.workspace, policies: &self.policies, is_over: &|| false }
    }

    /// The caller of a call at this position, now.
    pub(super) fn caller(&self, call: CallNumber) -> Caller<'_> {
        let member = Member { name: &self.owner, may_write: true };
        Caller { member, connection: &self.name, call, now: self.now() }
    }

    /// Applies the batch of a call, as it was planned if it was prepared, unless `check` refuses the proposal or a person does. The
    /// caller logs the outcome.
    pub(super) fn apply(
        &self,
        called: &Called,
        wording: Wording,
        (batch, prepared): (&Batch, Option<&Plan>),
        until: &Until,
        check: &mut dyn FnMut(&Proposal<'_>) -> Result<(), Failure>,
    ) -> Tried {
        let Called { traced, consent, .. } = called;
        if consent.title().is_none() {
            traced.log(Event::Received(batch));
        }
        let id = traced.trace.batch.unwrap_or_else(mint);
        let outcome = self.attempt(called, id, (batch, prepared), until, check);
        let outcome = outcome.map_err(|refusal| in_words(refusal, wording, batch));
        if let (Err(refusal), Ok(policy), false) = (&outcome, self.policy(), consent.is_asking()) {
            refused::keep(&self.workspace, &policy, (id, &self.actor()), batch, &refusal.failures);
        }
        let outcome = outcome.map_err(|refusal| self.for_model(refusal));
        Tried { batch: id, ids: id_block::of(id, batch), root: self.workspace.primary().name().to_owned(), outcome }
    }

    fn attempt(
        &self,
        called: &Called,
        id: BatchId,
        (batch, prepared): (&Batch, Option<&Plan>),
        until: &Until,
        check: &mut dyn FnMut(&Proposal<'_>) -> Result<(), Failure>,
    ) -> Result<Report, Refusal> {
        let (policy, actor, person) = (self.policy()?, self.actor(), self.person(&called.consent));
        let options = ApplyOptions {
            policy: &policy,
            origin: &called.traced.trace.origin,
            diff_bytes: DIFF_BYTES,
            mode: Mode::CommitNamed { batch: id },
            prepared,
            acting: Acting { person: Some(&person), ..Acting::of(&actor) },
        };
        let mut report = apply(&self.workspace, batch, options, &mut |proposal| {
            if let Err(failure) = check(proposal) {
                return Decision::Refuse(vec![failure]);
            }
            called.decide(id, proposal, &policy, until)
        })?;
        self.places().name_in_report(&mut report);
        Ok(report)
    }
}

/// What every log event of the connection of this name says.
pub(super) fn trace(name: &str) -> Trace {
    let origin = Origin { session_id: Some(name.to_owned()), ..Origin::default() };
    Trace { origin, ..Trace::new(Via::Mcp) }
}

/// A refusal in the words of the call.
pub(super) fn in_words(refusal: Refusal, wording: Wording, batch: &Batch) -> Refusal {
    Refusal { failures: in_words_of(wording, batch, refusal.failures) }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A new id for a batch.
#[expect(clippy::disallowed_methods, reason = "the edge of the program mints ids")]
pub(super) fn mint() -> BatchId {
    id_block::batch_id(Uuid::now_v7())
}
