//! `aptix submit`: one document, sent to the server as a batch.

use std::cell::OnceCell;

use aptix_engine::validate::validate_part;
use aptix_model::batch::{Atomicity, Batch, Content, Origin};
use aptix_model::documents::Document;
use aptix_model::documents::terms::in_terms_of_part;
use aptix_model::id::{IdError, OwnerId, RequestId};
use aptix_model::limits::Limits;
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;

use crate::apply::Refusal;
use crate::connection::{CallError, Connection};

use super::document::DocumentArgs;
use super::exit::{Exit, Refused};
use super::origin::{OriginArgs, OwnerArgs};
use super::output::{self, Form};
use super::progress::{self, Doing};
use super::server::{self, ServerArgs};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    document: DocumentArgs,
    #[command(flatten)]
    origin: OriginArgs,
    /// Only have it planned, and stored with its plan: `aptix apply-prepared` lets it be applied
    #[arg(long)]
    prepare: bool,
    #[command(flatten)]
    owner: OwnerArgs,
    /// Apply each file by itself: one that is refused keeps back only those that depend on it
    #[arg(long, conflicts_with = "prepare")]
    per_file: bool,
    /// Wait until the batch has ended
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    form: Form,
}

/// Sends a document under a request id that is used for nothing else.
pub(super) async fn run(args: Args, request: Result<RequestId, IdError>) -> anyhow::Result<Exit> {
    let form = args.form;
    let request = request?;
    let owner = args.prepare.then(|| args.owner.owner());
    let (document, origin) = (args.document, args.origin.origin());
    let atomicity = if args.per_file { Atomicity::PerFile } else { Atomicity::AllOrNothing };
    let read = move || -> Result<Document, Refusal> {
        document.read()?.map_err(|document| {
            let in_terms = |failure| in_terms_of_part(&document, failure);
            validate_part(&document.part, &Limits::DEFAULT, in_terms).into()
        })
    };
    let document = match tokio::task::spawn_blocking(read).await? {
        Ok(document) => Document { batch: Batch { atomicity, ..document.batch }, ..document },
        Err(refusal) => return Ok(output::show_refused(form, &Refused::from(refusal))),
    };
    let sent = OnceCell::new();
    server::run_sending(form, &sent, async {
        let sending = async {
            match &owner {
                Some(owner) => prepare(&args.server, &request, (document.batch.clone(), origin), owner).await,
                None => submit(&args.server, &request, document.batch.clone(), origin).await,
            }
        };
        let stored = match sending.await {
            Ok(stored) => stored,
            Err(error) => return Ok(server::show_refused(form, &document.batch, error)),
        };
        let stored = sent.get_or_init(|| stored);
        if args.wait {
            return Ok(server::show_end(form, &args.server, stored, &document.warnings).await);
        }
        Ok(match (server::show_ended(form, stored, &document.warnings), stored.state) {
            (Exit::Environment, _) => Exit::Environment,
            (_, BatchState::Applied) => Exit::Done,
            (_, BatchState::Prepared) => {
                output::say(&format!(
                    "apply it with `aptix apply-prepared {}`, with the same --server and --workspace",
                    stored.id
                ));
                Exit::Done
            }
            (_, state) if state.is_open() => {
                server::say_if_held(stored.id, state);
                Exit::Done
            }
            _ => Exit::Refused,
        })
    })
    .await
}

/// Has a batch planned, again until the server has answered: the request id sees to it that it is stored once.
async fn prepare(
    server: &ServerArgs,
    request: &RequestId,
    content: (Batch, Origin),
    owner: &OwnerId,
) -> Result<BatchRecord, CallError> {
    server::retry(|| async { server.connect().await?.prepare(request, content.clone(), owner).await }).await
}

/// Sends a batch until the server has answered: the request id sees to it that it is stored once.
async fn submit(
    server: &ServerArgs,
    request: &RequestId,
    batch: Batch,
    origin: Origin,
) -> Result<BatchRecord, CallError> {
    let first = server.connect().await?;
    let batch = with_blobs(&first, batch).await?;
    match first.submit(request, batch.clone(), origin.clone()).await {
        Err(error) if error.is_outage() => {}
        outcome => return outcome,
    }
    let again = || async { server.connect().await?.submit(request, batch.clone(), origin.clone()).await };
    server::retry(again).await.inspect_err(|_| {
        output::say(&format!("whether the batch was stored is not known; its request id is {request}"));
    })
}

/// Uploads content that is too large to travel in the batch.
async fn with_blobs(connection: &Connection, mut batch: Batch) -> Result<Batch, CallError> {
    let large: Vec<_> = batch.large_contents().collect();
    let size = |content: &&mut Content| if let Content::Text(text) = content { text.len() } else { 0 };
    let (mut sent, all) = (0, large.iter().map(size).sum());
    for content in large {
        let Content::Text(text) = content else { continue };
        progress::begin(Doing::Uploading(sent, all));
        sent += text.len();
        let bytes = std::mem::take(text).into_bytes();
        let digest = aptix_engine::digest::sha256(&bytes);
        *content = Content::Blob(connection.upload(None, digest, bytes).await?);
    }
    progress::end();
    Ok(batch)
}
