//! `ToolService.CallTool`: a call as a model wrote it. One that reads is answered by the agent, in the words of the tool.

use std::time::Duration;

use aptix_model::batch::Origin;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::{OwnerId, RequestId, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::tools::catalogue::{find, only_reads};
use aptix_model::tools::result::tool_result::{ToolResult, refused};
use aptix_model::tools::tool::{Form, Tool, arguments_text};
use aptix_model::wire::question::Ask;
use aptix_model::wire::{self, fit, v1, v1::answer, v1::question};
use tokio::time::Instant;

use super::agent_answer::{self, wrong};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::Refusal;
use crate::ticket::Asker;

/// What a calling service says of a call, beside what the model said.
struct Caller {
    workspace: WorkspaceId,
    origin: Origin,
    request_id: Option<RequestId>,
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

/// Carries a call out. What the model did wrong is an answer.
pub(super) async fn call(
    dispatcher: &Dispatcher,
    (asker, patience): (&Asker, Duration),
    request: v1::CallToolRequest,
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
        return Err(not_carried_out(tool, caller.request_id.as_ref()).into());
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
    if !request.owner.is_empty() {
        failures.extend(wire::id::<OwnerId>("owner", &request.owner).err());
    }
    if request.wait.is_some_and(|wait| Duration::try_from(wait).is_err()) {
        let failure = Failure::new(Reason::InvalidRequest, "wait is not a time of 0 or more seconds");
        failures.push(failure.detail(Detail::Number).field("wait"));
    }
    let origin = request.origin.clone().map(Into::into).unwrap_or_default();
    failures.extend(dispatcher.check_origin(&origin));
    match (workspace, request_id) {
        (Ok(workspace), Ok(request_id)) if failures.is_empty() => Ok(Caller { workspace, origin, request_id }),
        _ => Err(Refusal::Invalid(failures)),
    }
}

/// The refusal of a call that plans or writes.
fn not_carried_out(tool: &Tool, request_id: Option<&RequestId>) -> Failure {
    if request_id.is_none() {
        let message = format!("requestId is not set, and {} plans or writes", tool.name);
        return Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::Missing)
            .field("requestId")
            .hint("choose a new request id for each such call, and repeat the call under the same one");
    }
    let message = format!("{} plans or writes, and this version carries out calls that read", tool.name);
    let hint = match tool.dialect {
        Some(dialect) => format!("submit its arguments with SubmitBatch, as a document of the dialect {dialect}"),
        None => "submit the edit with SubmitBatch".to_owned(),
    };
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownOperation).field("tool").hint(hint)
}

fn too_large(bytes: usize) -> Failure {
    let message = format!("the arguments have {bytes} bytes, a question to the workstation carries {}", fit::ROOM);
    Failure::new(Reason::TooLarge, message).detail(Detail::Document).hint("ask for less in one call")
}

fn message(result: ToolResult) -> v1::CallToolResponse {
    let ToolResult { structured, text, is_error } = result;
    v1::CallToolResponse { text, structured: structured.to_string(), is_error }
}
