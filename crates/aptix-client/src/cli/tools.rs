//! `aptix tools`: the catalogue.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use aptix_model::tools::TOOLS;
use aptix_model::tools::tool::{CATEGORY, EXECUTION_LOCATION};

use super::exit::Exit;
use super::output;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Print one JSON object, with the schemas of what goes in and what comes out, instead of text
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Catalogue {
    tools: Vec<Row>,
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
    if args.json {
        let rows = TOOLS.iter().map(|tool| Row {
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
    for tool in TOOLS {
        let _ = writeln!(text, "{}", tool.name);
        for line in tool.description.lines() {
            let _ = writeln!(text, "{}", format!("    {line}").trim_end());
        }
        text.push('\n');
    }
    output::print(&text)
}
