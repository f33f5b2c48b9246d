//! One line from a client: a JSON-RPC message, and the arguments of a tool call as the client wrote them.
//!
//! rmcp parses arguments into a map, which loses duplicate keys and long numbers; tools parse the text themselves.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A message from a client.
pub(super) type Message = RxJsonRpcMessage<RoleServer>;

/// The arguments of a call as the client wrote them.
#[derive(Clone, Debug)]
pub(super) struct Arguments {
    pub(super) text: Arc<str>,
    /// Position of the call among all messages of the connection.
    pub(super) number: u64,
}

#[derive(Deserialize)]
struct CallLine<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: CallParams<'a>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Numbered {
    id: RequestId,
}

/// The id of a line that is not a message, if it has one.
pub(super) fn id(line: &[u8]) -> Option<RequestId> {
    serde_json::from_slice::<Numbered>(line).ok().map(|numbered| numbered.id)
}

/// Splits the line of a tool call into the arguments as written and the line with empty ones; `None` for any other line.
fn take_apart(line: &[u8]) -> Option<(Arc<str>, Vec<u8>)> {
    let call: CallLine<'_> = serde_json::from_slice(line).ok()?;
    if call.method != "tools/call" {
        return None;
    }
    let Some(written) = call.params.arguments.map(RawValue::get) else { return Some(("{}".into(), line.to_owned())) };
    let start = written.as_ptr().addr().checked_sub(line.as_ptr().addr())?;
    let rest = [line.get(..start)?, b"{}", line.get(start + written.len()..)?].concat();
    Some((written.into(), rest))
}

/// Parses a line. The arguments of a call are attached to it as written.
pub(super) fn parse(line: &[u8], number: u64) -> Result<Message, ErrorData> {
    let call = take_apart(line);
    let rest = call.as_ref().map_or(line, |(_, rest)| rest.as_slice());
    let mut message: Message = serde_json::from_slice(rest).map_err(|error| {
        let refuse = if error.is_data() { ErrorData::invalid_request } else { ErrorData::parse_error };
        refuse(error.to_string(), None)
    })?;
    if let JsonRpcMessage::Request(request) = &mut message {
        match (&mut request.request, call) {
            (ClientRequest::CallToolRequest(request), Some((text, _))) => {
                request.extensions.insert(Arguments { text, number });
            }
            (request, _) if request.method() == "tools/call" => {
                let message = "a call has a name, a text, and arguments, an object; each once";
                return Err(ErrorData::invalid_params(message, None));
            }
            _ => {}
        }
    }
    Ok(message)
}
