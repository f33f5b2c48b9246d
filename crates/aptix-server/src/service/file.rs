//! `FileService`: cloud files, and the blobs their content is made of.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::failure::Failure;
use aptix_model::limits::CHUNK_BYTES;
use aptix_model::path::{DocPath, PathError, RootedPath};
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::fit::ROOM;
use aptix_model::wire::{self, v1};
use prost::Message;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::page;
use super::status::{status, too_late};
use crate::caller::Peer;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::files::FileSelector;
use crate::dispatcher::lease::secret_digest;
use crate::dispatcher::refusal::{Refusal, crowded, shutting_down};
use crate::room::Place;
use crate::store::{CloudFile, DamagedFile};

/// Digests that one question may name.
const ASKED: usize = 10_000;

/// `FileService` as a gRPC server.
pub type FileServer = v1::file_service_server::FileServiceServer<FileService>;

/// Serves `FileService`.
pub struct FileService {
    /// Who answers.
    pub dispatcher: Arc<Dispatcher>,
    /// How long an upload waits for its next message.
    pub upload_idle: Duration,
    /// How long an upload may take in all.
    pub upload_total: Duration,
}

#[tonic::async_trait]
impl v1::file_service_server::FileService for FileService {
    async fn read_file(&self, request: Request<v1::ReadFileRequest>) -> Result<Response<v1::ReadFileResponse>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let which = match request.file.and_then(|selector| selector.file) {
            Some(v1::file_selector::File::DocPath(key)) => {
                DocPath::new(&key).map(FileSelector::Key).map_err(|error| bad_path("docPath", &error))
            }
            Some(v1::file_selector::File::Path(path)) => {
                RootedPath::new(&path).map(FileSelector::Path).map_err(|error| bad_path("path", &error))
            }
            None => Err(wire::missing("file", "docPath or path")),
        };
        let which = which.map_err(status)?;
        let (file, content) = self.dispatcher.read_file(&workspace, which).await.map_err(status)?;
        Ok(Response::new(v1::ReadFileResponse {
            file: Some(v1::FileContent { file: Some(file_message(file)), content, ..v1::FileContent::default() }),
        }))
    }

    async fn list_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Result<Response<v1::ListFilesResponse>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let wanted = page::size(request.page_size).map_err(status)?;
        let page = page::file(&request.page_token).map_err(status)?;
        let cursor = self.dispatcher.cursor_at(&workspace, None).await.map_err(status)?;
        let listed = self.dispatcher.files(&workspace, page, wanted + 1).await.map_err(status)?;
        let mut answer = v1::ListFilesResponse::default();
        let mut room = ROOM;
        let mut last = None;
        for file in listed {
            let (path, file) = match file {
                Ok(file) => (file.path.clone(), Ok(file_message(file))),
                Err(DamagedFile { path, why }) => {
                    let damaged = v1::DamagedFile { path: path.to_string(), message: why };
                    (path, Err(damaged))
                }
            };
            let bytes = file.as_ref().map_or_else(Message::encoded_len, Message::encoded_len) + 8;
            if answer.files.len() + answer.damaged.len() == wanted || bytes > room {
                answer.next_page_token = last.as_ref().map(|path| page::after_file(path, cursor)).unwrap_or_default();
                break;
            }
            room -= bytes;
            last = Some(path);
            match file {
                Ok(file) => answer.files.push(file),
                Err(damaged) => answer.damaged.push(damaged),
            }
        }
        Ok(Response::new(answer))
    }

    async fn find_missing_blobs(
        &self,
        request: Request<v1::FindMissingBlobsRequest>,
    ) -> Result<Response<v1::FindMissingBlobsResponse>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let asked = request.sha256.len();
        if asked > ASKED {
            let message = format!("{asked} digests were asked for, at most {ASKED} are answered");
            return Err(status(Failure::new(Reason::TooLarge, message).field("sha256").hint("ask in parts")));
        }
        let mut failures = Vec::new();
        let digests = request.sha256.iter().enumerate().filter_map(|(index, text)| {
            wire::digest(&format!("sha256[{index}]"), text).map_err(|failure| failures.push(failure)).ok()
        });
        let digests: Vec<_> = digests.collect();
        if !failures.is_empty() {
            return Err(status(failures));
        }
        let missing = self.dispatcher.missing_blobs(workspace, digests).await.map_err(status)?;
        let missing_sha256 = missing.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::FindMissingBlobsResponse { missing_sha256 }))
    }

    async fn upload_blob(
        &self,
        request: Request<Streaming<v1::UploadBlobRequest>>,
    ) -> Result<Response<v1::UploadBlobResponse>, Status> {
        let closing = self.dispatcher.closing();
        let place = self.dispatcher.upload_place(Peer::of(&request)?).await.map_err(status)?;
        let lost = place.cut.clone();
        let upload = self.upload(place, request.into_inner());
        let uploaded = tokio::select! {
            uploaded = timeout(self.upload_total, upload) => uploaded,
            () = lost.cancelled() => return Err(status(Refusal::denied(crowded("transfers")))),
            () = closing.cancelled() => return Err(status(Refusal::denied(shutting_down()))),
        };
        let blob = uploaded
            .map_err(|_| too_late(&format!("the upload took more than {} seconds", self.upload_total.as_secs())))??;
        Ok(Response::new(v1::UploadBlobResponse { blob: Some(blob.into()) }))
    }

    type DownloadBlobStream = Pin<Box<dyn Stream<Item = Result<v1::DownloadBlobResponse, Status>> + Send>>;

    async fn download_blob(
        &self,
        request: Request<v1::DownloadBlobRequest>,
    ) -> Result<Response<Self::DownloadBlobStream>, Status> {
        let peer = Peer::of(&request)?.clone();
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let digest = wire::digest("sha256", &request.sha256).map_err(status)?;
        let chunks = self.dispatcher.download(&peer, workspace, digest).await.map_err(status)?;
        let answers = chunks.map(|chunk| Ok(v1::DownloadBlobResponse { chunk: chunk.map_err(status)? }));
        Ok(Response::new(Box::pin(answers)))
    }
}

impl FileService {
    async fn upload(&self, place: Place, mut parts: Streaming<v1::UploadBlobRequest>) -> Result<BlobRef, Status> {
        use v1::upload_blob_request::Part;
        let Some(Part::Start(start)) = self.next(&mut parts).await?.and_then(|first| first.part) else {
            return Err(status(wire::missing("start", "the blob's name in the first message")));
        };
        let workspace = wire::id("start.workspaceId", &start.workspace_id).map_err(status)?;
        let blob = start.blob.ok_or_else(|| status(wire::missing("start.blob", "the blob's digest and size")))?;
        let blob = BlobRef::try_from(blob).map_err(status)?;
        let lease = secret_digest(&start.lease_secret);
        let mut upload = self.dispatcher.upload(place, workspace, blob, lease).await.map_err(status)?;
        while let Some(message) = self.next(&mut parts).await? {
            match message.part {
                Some(Part::Chunk(chunk)) if chunk.is_empty() => {
                    return Err(status(wire::missing("chunk", "1 byte to 1 MiB")));
                }
                Some(Part::Chunk(chunk)) if chunk.len() > CHUNK_BYTES => {
                    let message = format!("a chunk has {} bytes, at most {CHUNK_BYTES} are taken", chunk.len());
                    let failure = Failure::new(Reason::TooLarge, message).detail(Detail::File).field("chunk");
                    return Err(status(failure.hint("send the blob in smaller chunks")));
                }
                Some(Part::Chunk(chunk)) => upload.push(chunk).await.map_err(status)?,
                Some(Part::Start(_)) => {
                    let failure = Failure::new(Reason::InvalidRequest, "a second blob is named in one upload");
                    return Err(status(failure.detail(Detail::UnexpectedField).field("start")));
                }
                None => return Err(status(wire::missing("part", "start or chunk"))),
            }
        }
        upload.finish().await.map_err(status)
    }

    async fn next(
        &self,
        parts: &mut Streaming<v1::UploadBlobRequest>,
    ) -> Result<Option<v1::UploadBlobRequest>, Status> {
        let message = timeout(self.upload_idle, parts.message()).await;
        message.map_err(|_| too_late(&format!("no chunk came for {} seconds", self.upload_idle.as_secs())))?
    }
}

/// Admission has seen to it that every call has one.
fn bad_path(field: &str, error: &PathError) -> Failure {
    Failure::new(Reason::InvalidPath, error.to_string()).detail(error.detail()).field(field)
}

fn file_message(file: CloudFile) -> v1::FileState {
    v1::FileState {
        path: file.path.to_string(),
        doc_path: file.doc_path.to_string(),
        sha256: file.content.sha256.into(),
        size_bytes: file.content.size_bytes,
        source: v1::Source::Cloud.into(),
        revision: Some(file.revision.0),
        ..v1::FileState::default()
    }
}
