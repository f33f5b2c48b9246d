//! `FileService`: files as they are, and the blobs that the content of cloud files is made of.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::failure::Failure;
use aptix_model::live::{FilePart, FileSelector, ListFiles, SearchFiles};
use aptix_model::reason::Reason;
use aptix_model::wire::{self, live, v1};
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::live_files::{self, LiveFiles};
use super::status::{status, too_late};
use crate::caller::Peer;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::{Refusal, broken_off, crowded, shutting_down};
use crate::dispatcher::upload::Received;
use crate::identity::Principal;
use crate::ticket::Asker;

/// Digests that one question may name.
const ASKED: usize = 10_000;

/// `FileService` as a gRPC server.
pub type FileServer = v1::file_service_server::FileServiceServer<FileService>;

/// Serves `FileService`.
pub struct FileService {
    /// Who answers.
    pub dispatcher: Arc<Dispatcher>,
    /// How long an agent's answer is waited for.
    pub patience: Duration,
    /// How long an upload waits for its next message.
    pub upload_idle: Duration,
    /// How long an upload may take in all.
    pub upload_total: Duration,
}

#[tonic::async_trait]
impl v1::file_service_server::FileService for FileService {
    async fn read_file(&self, request: Request<v1::ReadFileRequest>) -> Result<Response<v1::ReadFileResponse>, Status> {
        let asker = Asker::of(&request)?;
        let v1::ReadFileRequest { workspace_id, file, range, source } = request.into_inner();
        let which = live::file_selector("file", file.clone());
        let part = which.and_then(|file| Ok(FilePart { file, portion: live::portion("range", range)? }));
        let files = self.files(&workspace_id, asker, source).map_err(status)?;
        let asked = v1::ReadFilesRequest { files: vec![v1::FilePart { file, range }], ..Default::default() };
        let results = files.read(vec![part.map_err(status)?], asked).await.map_err(status)?;
        match results.into_iter().next().and_then(|result| result.result) {
            Some(v1::file_result::Result::File(file)) => Ok(Response::new(v1::ReadFileResponse { file: Some(file) })),
            Some(v1::file_result::Result::Failure(failure)) => Err(status(Refusal::denied(failure.into()))),
            None => Err(status(Refusal::denied(broken_off()))),
        }
    }

    async fn read_files(
        &self,
        request: Request<v1::ReadFilesRequest>,
    ) -> Result<Response<v1::ReadFilesResponse>, Status> {
        let asker = Asker::of(&request)?;
        let request = request.into_inner();
        let parts = Vec::<FilePart>::try_from(request.clone()).map_err(status)?;
        let files = self.files(&request.workspace_id, asker, request.source).map_err(status)?;
        let results = files.read(parts, request).await.map_err(status)?;
        Ok(Response::new(v1::ReadFilesResponse { results }))
    }

    async fn stat_files(
        &self,
        request: Request<v1::StatFilesRequest>,
    ) -> Result<Response<v1::StatFilesResponse>, Status> {
        let asker = Asker::of(&request)?;
        let request = request.into_inner();
        let which = Vec::<FileSelector>::try_from(request.clone()).map_err(status)?;
        let files = self.files(&request.workspace_id, asker, request.source).map_err(status)?;
        let results = files.stat(which, request).await.map_err(status)?;
        Ok(Response::new(v1::StatFilesResponse { results }))
    }

    async fn list_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Result<Response<v1::ListFilesResponse>, Status> {
        let asker = Asker::of(&request)?;
        let request = request.into_inner();
        let asked = ListFiles::try_from(request.clone()).map_err(status)?;
        let files = self.files(&request.workspace_id, asker, request.source).map_err(status)?;
        Ok(Response::new(files.list(asked, request).await.map_err(status)?))
    }

    async fn search_files(
        &self,
        request: Request<v1::SearchFilesRequest>,
    ) -> Result<Response<v1::SearchFilesResponse>, Status> {
        let asker = Asker::of(&request)?;
        let request = request.into_inner();
        let asked = SearchFiles::try_from(request.clone()).map_err(status)?;
        let files = self.files(&request.workspace_id, asker, v1::Source::Active.into()).map_err(status)?;
        Ok(Response::new(files.search(asked, request).await.map_err(status)?))
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
        let peer = Peer::of(&request)?.clone();
        let place = self.dispatcher.upload_place(&peer).await.map_err(status)?;
        let lost = place.cut.clone();
        let caller = Principal::of(&request)?.clone();
        let upload = self.upload(place, (&caller, &peer.quota), request.into_inner());
        let uploaded = tokio::select! {
            uploaded = timeout(self.upload_total, upload) => uploaded,
            () = lost.cancelled() => return Err(status(Refusal::denied(crowded("transfers")))),
            () = closing.cancelled() => return Err(status(Refusal::denied(shutting_down()))),
        };
        let blob = uploaded
            .map_err(|_| too_late(&format!("the upload took more than {} seconds", self.upload_total.as_secs())))??;
        Ok(Response::new(v1::UploadBlobResponse { blob: Some(blob.into()) }))
    }

    async fn stat_upload(
        &self,
        request: Request<v1::StatUploadRequest>,
    ) -> Result<Response<v1::StatUploadResponse>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let blob = request.blob.ok_or_else(|| status(wire::missing("blob", "the blob's digest and size")))?;
        let blob = BlobRef::try_from(blob).map_err(status)?;
        let Received { bytes, is_in_progress } = self.dispatcher.received(workspace, blob).await.map_err(status)?;
        Ok(Response::new(v1::StatUploadResponse { received_bytes: bytes, is_in_progress }))
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
    /// The files of a workspace, for one call.
    fn files(&self, workspace: &str, asker: Asker, source: i32) -> Result<LiveFiles<'_>, Failure> {
        let workspace = wire::id("workspaceId", workspace)?;
        let source = live_files::source(source)?;
        Ok(LiveFiles { dispatcher: &self.dispatcher, asker, workspace, source, patience: self.patience })
    }
}
