//! `aptix read`: a file's authoritative text, as the server has it.

use aptix_model::path::DocPath;
use serde::Serialize;

use crate::connection::CallError;

use super::exit::Exit;
use super::output::{self, Form};
use super::server::{self, ServerArgs};

/// Arguments of `aptix read`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object instead of the text
    #[arg(long)]
    pub(super) json: bool,
    /// The file: a root's name, "/" and the lower-case path in that root
    #[arg(value_name = "DOC_PATH", value_parser = doc_path)]
    doc_path: DocPath,
}

fn doc_path(text: &str) -> Result<DocPath, String> {
    DocPath::new(text).map_err(|error| error.to_string())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    doc_path: &'a str,
    path: &'a str,
    sha256: String,
    size_bytes: usize,
    source: &'a str,
    revision: u64,
    /// Bytes that are not UTF-8 are shown as U+FFFD; then `sha256` is not that of this text.
    content: std::borrow::Cow<'a, str>,
}

pub(super) async fn run(args: Args) -> anyhow::Result<Exit> {
    let form = Form::of(args.json);
    server::run(form, read(args, form)).await
}

async fn read(args: Args, form: Form) -> Result<Exit, CallError> {
    let file = args.server.connect().await?.read_file(args.doc_path.as_str()).await?;
    if form == Form::Text {
        return Ok(output::print_bytes(&file.content));
    }
    Ok(output::print_object(&Answer {
        doc_path: &file.doc_path,
        path: &file.path,
        sha256: file.sha256.to_string(),
        size_bytes: file.content.len(),
        source: file.source,
        revision: file.revision.0,
        content: String::from_utf8_lossy(&file.content),
    }))
}
