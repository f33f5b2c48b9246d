//! The tools, served over the Model Context Protocol on stdin and stdout until stdin ends.
//!
//! A refusal of a tool is an answer, never an error of the protocol. Work that blocks runs on the blocking pool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::{OwnerId, Uuid};
use aptix_model::reason::Reason;
use aptix_model::record::UnixMillis;
use aptix_model::tools::catalogue::Selection;
use aptix_model::tools::result::tool_result::{ToolResult, refused};
use aptix_model::tools::shape::Shape;
use aptix_model::tools::tool::{Effect, Form, Tool};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, InputRequiredResult,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, ServerInitializeError, serve_server_with_ct};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::asking::{Asking, Way};
use super::author::{self, Author, Request};
use super::called::Called;
use super::calls;
use super::consent::Consent;
use super::line::Arguments;
use super::opening::{self, Opened, Opening};
use super::progress;
use super::serve_error::ServeError;
use super::transport::LineTransport;
use super::turns::Turns;
use super::until::Until;
use crate::policy::files::PolicyFiles;
use crate::policy::maintenance;
use crate::review::Page;
use crate::unsaved::Source;
use crate::workspace::roots::root::RootSpec;

/// Calls that only read and run at the same time.
const LOOKS: usize = 4;
/// Calls that wait until the client names its roots.
const WAITING: usize = 8;
/// How long a client may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long calls that write may take once the client is gone.
const LAST: Duration = Duration::from_secs(30);

/// The keys of a request's `_meta` that say which turn of which conversation it comes from.
const CONVERSATION: &str = "aptix/conversationId";
const TURN: &str = "aptix/turnId";

/// The instructions for every client.
const INSTRUCTIONS: &str = "Tools that edit the files of one workspace: exactly as described, or not at all. Paths start at \
    the workspace root and have forward slashes; with several roots they start with a root's name. A refusal has errors[]: code, message, hint, nearest (real lines of \
    the file), currentSha256; where an error carries nextAction, that call is complete and ready to be sent.";

/// What one connection is given.
#[derive(Debug)]
pub struct Session {
    /// Names the connection: the session whose clipboards are used.
    pub name: String,
    /// Who owns the edits that it prepares, and may apply and replace those of earlier connections of that owner; nobody but the
    /// connection itself, if absent.
    pub owner: Option<OwnerId>,
    /// The tools that it may call.
    pub tools: Selection,
    /// The page on which the user is asked about what policy leaves to them, if there is one. Without it the client asks them, if it can.
    pub review: Option<Page>,
}

/// Serves tools on a workspace to one client. Ends with the client, or when `stop` is cancelled; calls that write are finished first.
///
/// # Errors
/// When the client does not begin as the protocol demands, or its roots cannot be opened.
pub async fn serve(
    opening: Opening,
    policies: PolicyFiles,
    session: Session,
    streams: (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let left = CancellationToken::new();
    let (read, write) = streams;
    let transport = LineTransport::new((read, write), PATIENCE, author::trace(&session.name), left.clone());
    let (begun, work, served) = (Arc::new(Notify::new()), TaskTracker::new(), Arc::new(Served::default()));
    let front = Front { tools: session.tools.clone(), served: Arc::clone(&served), begun: Arc::clone(&begun) };
    let mut upkeep = JoinSet::new();
    let of_client = match opening {
        Opening::Done(opened) => {
            served.begin(begin(*opened, policies, session, (left.clone(), work.clone()), &mut upkeep));
            None
        }
        Opening::OfClient { usual, open } => Some((usual, open, policies, session)),
    };
    let outcome = match serve_server_with_ct(front, transport, stop.clone()).await {
        Ok(running) => {
            let (peer, over) = (running.peer().clone(), CancellationToken::new());
            let opening = async {
                let Some((usual, open, policies, session)) = of_client else { return Ok(()) };
                let Some(mut roots) = roots_of(&peer, &begun, (&left, &over)).await? else { return Ok(()) };
                if roots.is_empty() {
                    roots.push(usual);
                }
                let opened = open(roots).await?;
                served.begin(begin(opened, policies, session, (left.clone(), work.clone()), &mut upkeep));
                Ok(())
            };
            let opening = async {
                // One that is to end needs no workspace.
                let opened = opening.await.or_else(|error| if stop.is_cancelled() { Ok(()) } else { Err(error) });
                // Calls that still wait learn that nothing answers them.
                served.end_waiting();
                if opened.is_err() {
                    stop.cancel();
                }
                opened
            };
            let ended = async {
                let ended = running.waiting().await;
                over.cancel();
                begun.notify_one();
                ended
            };
            let (opened, ended) = tokio::join!(opening, ended);
            opened.and(ended.map(drop).map_err(ServeError::from))
        }
        // The client left without a message, or `stop` was cancelled.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(Box::new(error).into()),
    };
    work.close();
    if tokio::time::timeout(LAST, work.wait()).await.is_err() {
        tracing::warn!("a call is cut short; the next aptix command brings what it wrote to an end");
    }
    upkeep.shutdown().await;
    outcome
}

/// The roots that the client names, as soon as it may be asked; `None` when nobody is left to be served: it `left` before it named them,
/// or all is `over` before it called anything.
async fn roots_of(
    peer: &Peer<RoleServer>,
    begun: &Notify,
    (left, over): (&CancellationToken, &CancellationToken),
) -> Result<Option<Vec<RootSpec>>, ServeError> {
    begun.notified().await;
    let roots = tokio::select! {
        biased;
        // Calls of a client that left are carried out all the same.
        roots = opening::of_client(peer) => roots,
        () = left.cancelled() => return Ok(None),
    };
    if over.is_cancelled() || (roots.is_err() && left.is_cancelled()) {
        return Ok(None);
    }
    Ok(Some(roots?))
}

/// What answers the calls of a connection, once its workspace is open; begins to keep that in order.
fn begin(
    Opened { workspace, directories }: Opened,
    policies: PolicyFiles,
    Session { name, owner, tools, review }: Session,
    (left, work): (CancellationToken, TaskTracker),
    upkeep: &mut JoinSet<()>,
) -> Server {
    let owner = owner.map_or_else(|| name.clone(), |owner| owner.to_string());
    Source::Agent.set(&workspace);
    let (workspace, policies) = (Arc::new(workspace), Arc::new(policies));
    upkeep.spawn(maintenance::run(Arc::clone(&workspace), Arc::clone(&policies)));
    let asking = Asking::new(review.as_ref().map(Page::board), left);
    if let Some(page) = review {
        let local = Arc::clone(&workspace);
        upkeep.spawn(async move { match page.serve(local).await {} });
    }
    let author = Arc::new(Author::new(workspace, policies, (name, owner), &directories));
    Server { author, tools, asking, looks: Arc::new(Semaphore::new(LOOKS)), turns: Turns::default(), work }
}

/// What answers calls, once the workspace is open. Calls that came before go through in the order in which they came.
struct Served {
    server: OnceLock<Server>,
    gate: Semaphore,
    waiting: AtomicUsize,
}

impl Default for Served {
    fn default() -> Self {
        Self { server: OnceLock::new(), gate: Semaphore::new(0), waiting: AtomicUsize::new(0) }
    }
}

impl Served {
    fn begin(&self, server: Server) {
        _ = self.server.set(server);
        self.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// Ends the wait of calls, if what they wait for does not come.
    fn end_waiting(&self) {
        if self.server.get().is_none() {
            self.gate.close();
        }
    }

    /// What answers; waits for it beside fewer than `most` others.
    async fn server(&self, most: usize) -> Result<&Server, ErrorData> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let passed = async {
            if waiting >= most && self.server.get().is_none() {
                let why = "too many calls before the client named its roots: send this one again";
                return Err(ErrorData::internal_error(why, None));
            }
            let passed = self.gate.acquire().await.ok().and_then(|_| self.server.get());
            passed.ok_or_else(|| ErrorData::internal_error("the workspace cannot be opened: stderr says why", None))
        };
        let passed = passed.await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        passed
    }
}

/// What the client speaks to: it lists the tools before the workspace is open.
struct Front {
    tools: Selection,
    served: Arc<Served>,
    /// The client may be asked something from now on.
    begun: Arc<Notify>,
}

impl Front {
    /// What answers calls, as soon as the workspace is open.
    async fn opened(&self, peer: &Peer<RoleServer>) -> Result<&Server, ErrorData> {
        self.begun.notify_one();
        // The transport reads so many calls: there are places for more, so that the answer of the client is read.
        let most = if opening::names_roots(peer) { WAITING } else { usize::MAX };
        self.served.server(most).await
    }
}

struct Server {
    author: Arc<Author>,
    tools: Selection,
    asking: Asking,
    looks: Arc<Semaphore>,
    turns: Turns,
    work: TaskTracker,
}

impl Server {
    /// The time and id that order a call.
    async fn turn(&self, tool: &'static Tool, arguments: &Arc<str>) -> (UnixMillis, Uuid) {
        if !calls::applies_a_plan(tool) {
            return (self.author.now(), Uuid::nil());
        }
        let (author, arguments) = (Arc::clone(&self.author), Arc::clone(arguments));
        let turn = self.work.spawn_blocking(move || calls::turn(&author, tool, &arguments)).await;
        turn.unwrap_or_else(|_| (self.author.now(), Uuid::nil()))
    }

    /// A call that came now.
    fn called(&self, name: &str, number: u64, request: Request, way: &Way) -> Result<Called, ToolResult> {
        let tool = self.tools.find(name).map_err(|failure| {
            let failures = [failure];
            self.author.called(name, None, request.clone()).log(Event::CallRefused(&failures));
            refused(Form::Plain, &failures)
        })?;
        let traced = self.author.called(name, Some(tool.effect), request);
        let consent = Arc::new(Consent::none(way.answering()));
        Ok(Called { tool, number, traced, consent })
    }

    /// Carries out a call; asks a person where one has to agree to what it writes.
    async fn call(
        &self,
        mut called: Called,
        way: &Way,
        arguments: &Arc<str>,
        mut until: Until,
    ) -> Result<ToolResult, InputRequiredResult> {
        loop {
            let answer = self.attempt(&called, arguments, &until).await;
            let Some(question) = called.consent.take() else {
                if let Way::Page(board) = way {
                    called.note_outcome(board, &answer);
                }
                return Ok(answer);
            };
            let given = self.asking.ask(way, (&called, arguments), (&question, &self.author), &until).await?;
            (called, until) = (called.with_answer(question, given), until.again());
        }
    }

    /// Carries out a call when it is its turn, up to its end or to a question.
    async fn attempt(&self, called: &Called, arguments: &Arc<str>, until: &Until) -> ToolResult {
        let tool = called.tool;
        let begun = async {
            if tool.effect == Effect::Writes {
                let (created, id) = self.turn(tool, arguments).await;
                Ok(self.turns.take(created, id).await)
            } else {
                Err(Arc::clone(&self.looks).acquire_owned().await)
            }
        };
        let turn = tokio::select! {
            turn = begun => turn,
            () = until.over() => return called.refused(&[until.failure()]),
        };
        let (author, of_call, arguments, until) =
            (Arc::clone(&self.author), called.clone(), Arc::clone(arguments), until.clone());
        let done = self.work.spawn_blocking(move || {
            let span = of_call.traced.trace.span();
            let answer = span.in_scope(|| calls::call(&author, &of_call, &arguments, &until));
            drop(turn);
            answer
        });
        done.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a call broke off");
            let hint =
                "look at the files before sending it again; what was begun is brought to an end by the next call";
            let failure = Failure::new(Reason::Internal, "the call broke off inside the program").hint(hint);
            called.refused(&[failure])
        })
    }

    /// The answer of a call, as the protocol has it.
    fn answered(&self, answer: Result<ToolResult, InputRequiredResult>) -> CallToolResponse {
        let answer = match answer {
            Ok(answer) => answer.within(&self.tools),
            Err(question) => return question.into(),
        };
        let mut result = CallToolResult::success(answer.text.into_iter().map(ContentBlock::text).collect());
        result.structured_content = Some(answer.structured);
        result.is_error = Some(answer.is_error);
        result.into()
    }
}

impl ServerHandler for Front {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("aptix", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let listed = self.tools.tools().iter().map(|tool| serde_json::from_value(Shape::Mcp.render(tool, false)));
        listed.collect::<Result<_, _>>().map(ListToolsResult::with_all_items).map_err(|error| {
            tracing::error!(%error, "the catalogue is not in the protocol's shape");
            ErrorData::internal_error("the catalogue cannot be listed", None)
        })
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {
        self.begun.notify_one();
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let server = self.opened(&context.peer).await?;
        Ok(server.called_by(request, context).await)
    }
}

impl Server {
    /// The answer to a call of the client.
    async fn called_by(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> CallToolResponse {
        if let Some(client) = context.client_info() {
            self.author.name_client(&client.name);
        }
        let written = context.extensions.get::<Arguments>().cloned();
        let Arguments { text, number } = written.unwrap_or_else(|| Arguments { text: "{}".into(), number: 0 });
        let way = self.asking.way(&context);
        let called = match self.asking.resumed(&request, &text) {
            Some(called) => Ok(Called { number, ..called }),
            None => self.called(&request.name, number, about(&context), &way),
        };
        let answer = match called {
            Ok(called) => {
                let work = self.call(called, &way, &text, Until::from_now(context.ct.clone()));
                let work = self.work.track_future(work);
                progress::shown(work, &context).await
            }
            Err(refusal) => Ok(refusal),
        };
        self.answered(answer)
    }
}

/// What the client says of a request.
fn about(context: &RequestContext<RoleServer>) -> Request {
    let text = |key| context.meta.0.0.get(key).and_then(Value::as_str).map(str::to_owned);
    Request { id: context.id.to_string(), conversation: text(CONVERSATION), turn: text(TURN) }
}
