//! What the workstation replies to calls of tools that read: what `aptix mcp` answers, under the policy for servers.

use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::question::{ToolCall, ToolReply};
use aptix_model::reason::{Detail, Reason};
use aptix_model::tools::catalogue::find;
use aptix_model::tools::result::tool_result::{ToolResult, refused};
use aptix_model::tools::roots::Roots;
use aptix_model::tools::tool::{Call, Form};

use crate::apply::traced::Traced;
use crate::tools::reader::Reader;

/// The reply to a call; one that does not only read is refused.
pub(super) fn reply(reader: Reader<'_>, roots: &Roots, workspace: Option<&WorkspaceId>, call: &ToolCall) -> ToolReply {
    let traced = Traced::begin(Trace {
        origin: call.origin.clone(),
        workspace: workspace.map(ToString::to_string),
        tool: Some(call.tool.clone()),
        ..Trace::new(Via::Agent)
    });
    let answer = answer(reader, roots, call).unwrap_or_else(|(form, failures)| {
        traced.log(Event::CallRefused(&failures));
        refused(form, &failures)
    });
    let ToolResult { structured, text, is_error } = answer;
    ToolReply { text, structured: structured.to_string(), is_error }
}

/// Why a call is refused, and the form of the tool's refusals.
type Refused = (Form, Vec<Failure>);

fn answer(reader: Reader<'_>, roots: &Roots, call: &ToolCall) -> Result<ToolResult, Refused> {
    let tool = find(&call.tool).map_err(|failure| (Form::Plain, vec![failure]))?;
    let refuse = |failures| (tool.form, failures);
    let parsed = tool.parse(&call.arguments, roots);
    match parsed.map_err(|document| refuse(reader.refuse(&document).failures))? {
        Call::Look(look) => reader.answer(&look).map_err(|failure| refuse(vec![failure])),
        _ => Err(refuse(vec![only_reads(tool.name)])),
    }
}

fn only_reads(tool: &str) -> Failure {
    Failure::new(
        Reason::InvalidRequest,
        format!("the call of {tool} does not only read, and a question to an agent does"),
    )
    .detail(Detail::UnknownOperation)
    .hint("submit it as a batch")
}
