//! `ToolService.CallTool`: a call as a model wrote it. One that reads is answered by the agent, in the words of the tool; one that
//! plans or writes becomes a batch (`tool_writes`).

use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::Origin;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::{OwnerId, RequestId, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::Sent;
use aptix_model::tools::catalogue::{find, only_reads};
use aptix_model::tools::result::tool_result::{ToolResult, refused};
use aptix_model::tools::tool::{Form, Tool, arguments_text};
use aptix_model::wire::question::Ask;
use aptix_model::wire::{self, fit, v1, v1::answer, v1::question};
use prost::Message as _;
use tokio::time::Instant;

use super::agent_answer::{self, wrong};
use super::tool_results::Answered;
use super::tool_writes::Writing;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::Refusal;
use crate::ticket::Asker;

/// What a calling service says of a call, beside what the model said.
struct Caller {
    workspace: WorkspaceId,
    origin: Origin,
    request_id: Option<RequestId>,
    owner: Option<OwnerId>,
    wait: Option<Duration>,
}

/// The trace of a call.
pub(super) fn trace(request: &v1::CallToolRequest) -> Trace {
    Trace {
        origin: request.origin.clone().map(Into::into).unwrap_or_default(),
        workspace: Some(request.workspace_id.clone()),
        request: Some(request.request_id.clone()).filter(|id| !id.is_empty()),
        tool: Some(request.tool.clone()),
        ..Trace::new(Via::Server)
    }
}

/// Carries a call out; `until` is when the end of a batch is waited for no longer, if the caller's time is bounded. What the
/// model did wrong is an answer.
pub(super) async fn call(
    dispatcher: &Arc<Dispatcher>,
    (asker, patience, until): (&Asker, Duration, Option<Instant>),
    (request, sent): (v1::CallToolRequest, Sent),
    (trace, began): (&Trace, std::time::Instant),
) -> Result<v1::CallToolResponse, Refusal> {
    let caller = caller(dispatcher, &request)?;
    let refuse = |form, failure: Failure| {
        let failures = [failure];
        trace.log(began.elapsed(), Event::CallRefused(&failures));
        Ok(message(refused(form, &failures)))
    };
    let tool = match find(&request.tool) {
        Ok(tool) => tool,
        Err(failure) => return refuse(Form::Plain, failure),
    };
    let arguments = match arguments_text(&request.arguments) {
        Ok(arguments) => arguments,
        Err(failure) => return refuse(tool.form, failure),
    };
    if !only_reads(tool, arguments) {
        let Caller { workspace, origin, request_id, owner, wait } = caller;
        let request_id = request_id.ok_or_else(|| no_request_id(tool))?;
        let wait = wait.map_or(patience, |wait| wait.min(patience));
        let writing = Writing {
            dispatcher,
            asker,
            patience,
            wait,
            until,
            tool,
            workspace,
            request_id,
            owner,
            origin,
            sent,
            trace,
            began,
        };
        return Ok(answered(writing.carry_out(arguments).await?)?);
    }
    let ask = Ask(question::Ask::CallTool(v1::ToolQuestion {
        tool: tool.name.to_owned(),
        arguments: arguments.to_owned(),
        origin: Some(caller.origin.into()),
    }));
    if ask.size() > fit::ROOM {
        return refuse(tool.form, too_large(arguments.len()));
    }
    let answer = dispatcher.ask(&caller.workspace, asker, ask, Instant::now() + patience).await?.0;
    let answer::Answer::CallTool(answer) = answer else {
        return Err(wrong(&caller.workspace, "it is of another kind"));
    };
    agent_answer::tool(answer).map_err(|misfit| wrong(&caller.workspace, &misfit))
}

/// Reads what the calling service says.
///
/// # Errors
/// Everything that is wrong with its shape.
fn caller(dispatcher: &Dispatcher, request: &v1::CallToolRequest) -> Result<Caller, Refusal> {
    let mut failures = Vec::new();
    let workspace = wire::id("workspaceId", &request.workspace_id).map_err(|failure| failures.push(failure));
    let request_id = Some(&request.request_id).filter(|id| !id.is_empty());
    let request_id = request_id.map(|id| wire::id("requestId", id)).transpose();
    let request_id = request_id.map_err(|failure| failures.push(failure));
    let owner = Some(&request.owner).filter(|owner| !owner.is_empty());
    let owner = owner.map(|owner| wire::id::<OwnerId>("owner", owner)).transpose();
    let owner = owner.map_err(|failure| failures.push(failure));
    let wait = request.wait.map(Duration::try_from).transpose().map_err(|_| {
        let failure = Failure::new(Reason::InvalidRequest, "wait is not a time of 0 or more seconds");
        failures.push(failure.detail(Detail::Number).field("wait"));
    });
    let origin = request.origin.clone().map(Into::into).unwrap_or_default();
    failures.extend(dispatcher.check_origin(&origin));
    match (workspace, request_id, owner, wait) {
        (Ok(workspace), Ok(request_id), Ok(owner), Ok(wait)) if failures.is_empty() => {
            Ok(Caller { workspace, origin, request_id, owner, wait })
        }
        _ => Err(Refusal::Invalid(failures)),
    }
}

/// The refusal of a call that plans or writes and cannot be repeated.
fn no_request_id(tool: &Tool) -> Failure {
    let message = format!("requestId is not set, and {} plans or writes", tool.name);
    Failure::new(Reason::InvalidRequest, message)
        .detail(Detail::Missing)
        .field("requestId")
        .hint("choose a new request id for each such call, and repeat the call under the same one")
}

fn too_large(bytes: usize) -> Failure {
    let message = format!("the arguments have {bytes} bytes, a question to the workstation carries {}", fit::ROOM);
    Failure::new(Reason::TooLarge, message).detail(Detail::Document).hint("ask for less in one call")
}

fn message(result: ToolResult) -> v1::CallToolResponse {
    let ToolResult { structured, text, is_error } = result;
    v1::CallToolResponse { text, structured: structured.to_string(), is_error, ..v1::CallToolResponse::default() }
}

/// The answer of a call that plans or writes.
///
/// # Errors
/// TOO_LARGE where it does not fit into a message without its files either.
fn answered(Answered { mut result, batch }: Answered) -> Result<v1::CallToolResponse, Failure> {
    let encode = |result: &ToolResult| {
        let state = batch.map_or(v1::BatchState::Unspecified, |(_, state)| state.into());
        let batch_id = batch.map(|(id, _)| id.to_string()).unwrap_or_default();
        v1::CallToolResponse { batch_id, state: state.into(), ..message(result.clone()) }
    };
    let answer = encode(&result);
    if answer.encoded_len() <= fit::ROOM {
        return Ok(answer);
    }
    result.leave_out_files();
    let answer = encode(&result);
    if answer.encoded_len() <= fit::ROOM {
        return Ok(answer);
    }
    let message = format!("the answer about batch {} takes {} bytes", answer.batch_id, answer.encoded_len());
    let failure = Failure::new(Reason::TooLarge, format!("{message}, a message carries {}", fit::ROOM));
    Err(failure.detail(Detail::Document).hint("read what became of the batch with GetBatch"))
}
