//! `aptix read`: a file's authoritative text, as the server has it.

use aptix_model::path::DocPath;
use serde::Serialize;

use crate::connection::CallError;

use super::exit::Exit;
use super::output::{self, Form};
use super::server::ServerArgs;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    form: Form,
    /// The file: a root's name, "/" and the lower-case path in that root
    #[arg(value_name = "DOC_PATH", value_parser = |text: &str| DocPath::new(text))]
    doc_path: DocPath,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    doc_path: &'a str,
    path: &'a str,
    sha256: String,
    size_bytes: usize,
    source: &'a str,
    /// Of a cloud copy alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    /// Bytes that are not UTF-8 are shown as U+FFFD; then `sha256` is not that of this text.
    content: std::borrow::Cow<'a, str>,
}

pub(super) async fn run(args: Args) -> Result<Exit, CallError> {
    let file = args.server.connect().await?.read_file(args.doc_path.as_str()).await?;
    if !args.form.json {
        return Ok(output::print_bytes(&file.content));
    }
    Ok(output::print_object(&Answer {
        doc_path: &file.doc_path,
        path: &file.path,
        sha256: file.sha256.to_string(),
        size_bytes: file.content.len(),
        source: file.source,
        revision: file.revision.map(|revision| revision.0),
        content: String::from_utf8_lossy(&file.content),
    }))
}
