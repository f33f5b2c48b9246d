//! `ToolService`: the descriptions of the tools, their calls, and the guide for the author of an edit.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use aptix_model::documents::Dialect;
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::tools::catalogue::{Selection, TOOLS};
use aptix_model::tools::guide::guide;
use aptix_model::tools::shape::Shape;
use aptix_model::tools::tool::{Effect, Tool};
use aptix_model::wire::v1;
use tonic::{Request, Response, Status};
use tracing::Instrument as _;

use super::head::Deadline;
use super::status::status;
use super::{sent, tool_call};
use crate::dispatcher::Dispatcher;
use crate::ticket::Asker;

/// Names that a caller may choose tools by.
const NAMES: usize = 100;

/// `ToolService` as a gRPC server.
pub type ToolServer = v1::tool_service_server::ToolServiceServer<ToolService>;

/// Serves `ToolService`.
pub struct ToolService {
    /// Who answers.
    pub dispatcher: Arc<Dispatcher>,
    /// How long an agent's answer is waited for.
    pub patience: Duration,
}

/// The catalogue in every shape: rendered once, since schemas are generated.
static CATALOGUES: LazyLock<Vec<Catalogue>> = LazyLock::new(|| {
    let kinds = Shape::ALL.into_iter().flat_map(|shape| [(shape, false), (shape, true)]);
    let rendered = kinds.map(|(shape, is_strict)| Catalogue {
        shape,
        is_strict,
        tools: TOOLS.iter().map(|tool| definition(tool, shape, is_strict)).collect(),
    });
    rendered.collect()
});

struct Catalogue {
    shape: Shape,
    is_strict: bool,
    tools: Vec<v1::ToolDefinition>,
}

#[tonic::async_trait]
impl v1::tool_service_server::ToolService for ToolService {
    async fn list_tools(
        &self,
        request: Request<v1::ListToolsRequest>,
    ) -> Result<Response<v1::ListToolsResponse>, Status> {
        let request = request.into_inner();
        let shape = shape(request.shape).map_err(status)?;
        let chosen = chosen(&request.tools).map_err(status)?;
        let is_asked = |known: &&Catalogue| known.shape == shape && known.is_strict == request.strict;
        let tools = CATALOGUES.iter().find(is_asked).map_or(&[][..], |catalogue| &catalogue.tools);
        let is_chosen = |definition: &&v1::ToolDefinition| chosen.find(&definition.name).is_ok();
        Ok(Response::new(v1::ListToolsResponse { tools: tools.iter().filter(is_chosen).cloned().collect() }))
    }

    async fn call_tool(&self, request: Request<v1::CallToolRequest>) -> Result<Response<v1::CallToolResponse>, Status> {
        let began = Instant::now();
        let (asker, (span, sent)) = (Asker::of(&request)?, sent::begin("CallTool", &request)?);
        let until = request.extensions().get().copied().and_then(Deadline::with_margin);
        let request = request.into_inner();
        let trace = tool_call::trace(&request);
        let answer =
            tool_call::call(&self.dispatcher, (&asker, self.patience, until), (request, sent), (&trace, began))
                .instrument(trace.span())
                .await;
        sent::end(span, answer.as_ref().map(|answer| answer.batch_id.as_str()));
        answer.map(Response::new).map_err(|refusal| {
            trace.log(began.elapsed(), Event::CallRefused(refusal.failures()));
            status(refusal)
        })
    }

    async fn get_guidance(
        &self,
        request: Request<v1::GetGuidanceRequest>,
    ) -> Result<Response<v1::GetGuidanceResponse>, Status> {
        let dialect = dialect(&request.into_inner().dialect).map_err(status)?;
        Ok(Response::new(v1::GetGuidanceResponse { text: guide(dialect) }))
    }
}

fn definition(tool: &Tool, shape: Shape, is_strict: bool) -> v1::ToolDefinition {
    let kind = match tool.effect {
        Effect::Reads => v1::ToolKind::Read,
        Effect::Prepares => v1::ToolKind::Plan,
        Effect::Writes => v1::ToolKind::Write,
    };
    v1::ToolDefinition {
        name: tool.name.to_owned(),
        definition: shape.render(tool, is_strict).to_string(),
        dialect: tool.dialect.map(|dialect| dialect.to_string()).unwrap_or_default(),
        kind: kind.into(),
    }
}

fn shape(value: i32) -> Result<Shape, Failure> {
    match v1::ToolShape::try_from(value) {
        Ok(v1::ToolShape::Unspecified | v1::ToolShape::Mcp) => Ok(Shape::Mcp),
        Ok(v1::ToolShape::Openai) => Ok(Shape::OpenAi),
        Ok(v1::ToolShape::Anthropic) => Ok(Shape::Anthropic),
        Ok(v1::ToolShape::Gemini) => Ok(Shape::Gemini),
        Err(_) => {
            let message = format!("shape has the value {value}, which this version does not know");
            Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownEnum).field("shape"))
        }
    }
}

fn chosen(names: &[String]) -> Result<Selection, Failure> {
    if names.is_empty() {
        return Ok(Selection::all());
    }
    if names.len() > NAMES {
        let message = format!("tools has {} names, at most {NAMES} are taken", names.len());
        return Err(Failure::new(Reason::TooLarge, message).detail(Detail::Text).field("tools"));
    }
    Selection::parse(&names.join(",")).map_err(|failure| failure.field("tools"))
}

fn dialect(name: &str) -> Result<Option<Dialect>, Failure> {
    if name.is_empty() {
        return Ok(None);
    }
    name.parse().map(Some).map_err(|error: aptix_model::documents::UnknownDialect| {
        Failure::new(Reason::InvalidRequest, error.to_string()).detail(Detail::UnknownEnum).field("dialect")
    })
}
