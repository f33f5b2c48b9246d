//! Reads files through servers. A question to an agent is answered by it, whichever server it is connected to,
//! or has an outcome that the protocol names.

use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::file_selector::File;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::stage::{file, workspace};

/// How long a question may take, whatever happens: longer than a call may.
const OUTCOME: Duration = Duration::from_secs(90);

/// The content of a file on the workstation, asked for through one server.
pub(crate) async fn ask(server: Channel, number: usize, of: usize) -> Result<String, Status> {
    read_file(server, (number, of), v1::Source::Active).await
}

/// The content of a file of a workspace as one server has it from there.
pub(crate) async fn read_file(
    server: Channel,
    (number, of): (usize, usize),
    source: v1::Source,
) -> Result<String, Status> {
    let request = v1::ReadFileRequest {
        workspace_id: workspace(number),
        file: Some(v1::FileSelector { file: Some(File::Path(file(of))) }),
        source: source.into(),
        ..Default::default()
    };
    let mut files = FileServiceClient::new(server);
    let asked = timeout(OUTCOME, files.read_file(request)).await;
    let asked = asked.map_err(|_| Status::internal(format!("a question has no outcome after {OUTCOME:?}")))?;
    let content = asked?.into_inner().file.and_then(|file| file.content);
    let content = content.ok_or_else(|| Status::internal("expected the content of a file, found none"))?;
    String::from_utf8(content.into()).map_err(|error| Status::internal(error.to_string()))
}

/// What is wrong with the outcome of a question, if anything is.
pub(crate) fn wrong(outcome: &Result<String, Status>) -> Option<String> {
    let status = match outcome {
        Ok(text) if text.starts_with("begin\n") => return None,
        Ok(text) => return Some(format!("an agent's file was answered as {text:?}")),
        Err(status) => status,
    };
    let reason = status.get_details_error_info().map(|info| info.reason);
    let is_named = match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted => true,
        // The connection to the server that was asked broke off: it died.
        Code::Unknown | Code::Cancelled => reason.is_none(),
        _ => false,
    };
    (!is_named).then(|| format!("a question to an agent ended in {status:?}"))
}
