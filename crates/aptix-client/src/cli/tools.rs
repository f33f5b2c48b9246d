//! `aptix tools`: the catalogue.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use aptix_model::failure::Failure;
use aptix_model::tools::catalogue::Selection;
use aptix_model::tools::shape::Shape;
use aptix_model::tools::tool::{CATEGORY, EXECUTION_LOCATION};

use super::exit::Exit;
use super::output;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The tools that are listed: core, all, or names separated by commas
    #[arg(long, value_name = "core|all|NAME,...", default_value = "all", value_parser = parse_tools)]
    tools: Selection,
    /// Print one JSON object, with the schemas of what goes in and what comes out, instead of text
    #[arg(long)]
    pub(super) json: bool,
    /// With --json: each tool as this provider takes it: mcp, openai, anthropic or gemini
    #[arg(long, requires = "json")]
    shape: Option<Shape>,
    /// With --shape: schemas for constrained sampling, in which an argument without a value is null
    #[arg(long, requires = "shape")]
    strict: bool,
}

/// Parses a choice of tools.
pub(super) fn parse_tools(words: &str) -> Result<Selection, UnknownTool> {
    Selection::parse(words).map_err(UnknownTool)
}

/// A word that chooses no tool.
#[derive(Debug, thiserror::Error)]
#[error("{}; {}", .0.message, .0.hint.as_deref().unwrap_or_default())]
pub(super) struct UnknownTool(Failure);

#[derive(Serialize)]
struct Catalogue<R> {
    tools: Vec<R>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: &'static str,
    category: &'static str,
    execution_location: &'static str,
    description: &'static str,
    input_schema: Map<String, Value>,
    output_schema: Map<String, Value>,
}

pub(super) fn run(args: &Args) -> Exit {
    let tools = args.tools.tools().iter();
    if let Some(shape) = args.shape {
        return output::print_object(&Catalogue { tools: tools.map(|tool| shape.render(tool, args.strict)).collect() });
    }
    if args.json {
        let rows = tools.map(|tool| Row {
            name: tool.name,
            category: CATEGORY,
            execution_location: EXECUTION_LOCATION,
            description: tool.description,
            input_schema: tool.input_schema(),
            output_schema: tool.output_schema(),
        });
        return output::print_object(&Catalogue { tools: rows.collect() });
    }
    let mut text = String::new();
    for tool in tools {
        let _ = writeln!(text, "{}", tool.name);
        for line in tool.description.lines() {
            let _ = writeln!(text, "{}", format!("    {line}").trim_end());
        }
        text.push('\n');
    }
    output::print(&text)
}
