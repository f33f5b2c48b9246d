//! Cloud files and the blobs they are made of.

use std::collections::BTreeSet;
use std::time::Duration;

use aptix_engine::digest::sha256;
use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::Revision;
use aptix_model::limits::CHUNK_BYTES;
use aptix_model::reason::Reason;
use aptix_model::wire::{digest, v1};
use tonic::codegen::Bytes;

use super::batches::absent;
use super::call_error::CallError;
use super::feed::Lease;
use super::link::{ANSWER, Connection, timed};

/// How long a whole blob may take, either way.
const TRANSFER: Duration = Duration::from_secs(300);
/// Bytes of the largest blob.
const BLOB_BYTES: u64 = 256 << 20;
/// How often an upload goes on after its connection was cut.
const CUTS: usize = 3;
/// How often, and after which time each, the server is asked again how much it has of an upload.
const LOOKS: usize = 5;
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// Digests of one question.
const DIGESTS: usize = 10_000;

/// The text of a file: as it is on disk while an agent serves the workspace, else as it was last reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CloudText {
    /// The path in real case, with its root's name in front where the workspace has several.
    pub path: String,
    /// The lower-case key.
    pub doc_path: String,
    /// SHA-256 of the content.
    pub sha256: Sha256Digest,
    /// The revision of the event that made the cloud copy what it is; absent for a file on disk.
    pub revision: Option<Revision>,
    /// Where it comes from.
    pub source: &'static str,
    /// The bytes.
    pub content: Vec<u8>,
}

impl Connection {
    /// Reads a file by its lower-case key; content of any size, checked against its digest.
    ///
    /// # Errors
    /// NOT_FOUND, AMBIGUOUS_PATH, POLICY_DENIED; FILE_CHANGED when a large file changed while it was read.
    pub async fn read_file(&self, doc_path: &str) -> Result<CloudText, CallError> {
        let (file, content) = self.read_part(doc_path, v1::ReadFileRequest::default()).await?;
        let source = match file.source() {
            v1::Source::Active => "ACTIVE",
            v1::Source::Cloud => "CLOUD",
            v1::Source::Unspecified => return Err(absent("file.source").into()),
        };
        let sha256 = digest("file.sha256", &file.sha256)?;
        let blob = BlobRef { sha256, size_bytes: file.size_bytes };
        let content = match content {
            Some(content) => verified(blob, content.into())?,
            None if file.source() == v1::Source::Active => self.read_in_parts(doc_path, blob).await?,
            None => self.download(blob).await?,
        };
        let revision = file.revision.map(Revision);
        Ok(CloudText { path: file.path, doc_path: file.doc_path, sha256, revision, source, content })
    }

    /// One call for a file: what it is, and its content if it fits.
    async fn read_part(
        &self,
        doc_path: &str,
        request: v1::ReadFileRequest,
    ) -> Result<(v1::FileState, Option<Bytes>), CallError> {
        let file = Some(v1::FileSelector { file: Some(v1::file_selector::File::DocPath(doc_path.to_owned())) });
        let message = v1::ReadFileRequest { workspace_id: self.workspace.to_string(), file, ..request };
        let response = self.answer(self.files().read_file(timed(message, ANSWER))).await?;
        let read = response.file.ok_or_else(|| absent("file"))?;
        Ok((read.file.ok_or_else(|| absent("file.file"))?, read.content))
    }

    /// Reads a file on disk that is too large for one answer.
    async fn read_in_parts(&self, doc_path: &str, file: BlobRef) -> Result<Vec<u8>, CallError> {
        let mut content = Vec::new();
        while (content.len() as u64) < file.size_bytes.min(BLOB_BYTES) {
            let span = v1::ByteSpan { offset: content.len() as u64, length: 0 };
            let range = Some(v1::Range { range: Some(v1::range::Range::Bytes(span)) });
            let source = v1::Source::Active.into();
            let request = v1::ReadFileRequest { range, source, ..v1::ReadFileRequest::default() };
            let (state, part) = self.read_part(doc_path, request).await?;
            let part = part.filter(|part| !part.is_empty() && state.sha256 == file.sha256.to_string());
            let Some(part) = part else {
                let failure = Failure::new(Reason::FileChanged, format!("{doc_path} changed while it was read"));
                return Err(failure.hint("read it again").into());
            };
            content.extend_from_slice(&part);
        }
        Ok(self.blocking(move || verified(file, content)).await??)
    }

    /// Which of these blobs the workspace does not have yet. Other digests in the answer are passed over: a server that
    /// guesses at contents is given none of them.
    ///
    /// # Errors
    /// When the server is lost.
    pub async fn find_missing(&self, digests: &[Sha256Digest]) -> Result<Vec<Sha256Digest>, CallError> {
        let mut missing = Vec::new();
        for part in digests.chunks(DIGESTS) {
            let sha256 = part.iter().map(ToString::to_string).collect();
            let message = v1::FindMissingBlobsRequest { workspace_id: self.workspace.to_string(), sha256 };
            let response = self.answer(self.files().find_missing_blobs(timed(message, ANSWER))).await?;
            let mut asked: BTreeSet<_> = part.iter().collect();
            for text in response.missing_sha256 {
                let named = digest("missingSha256", &text)?;
                // Content that was not offered is not the server's to ask for.
                if asked.remove(&named) {
                    missing.push(named);
                }
            }
        }
        Ok(missing)
    }

    /// Uploads a blob, an agent under its lease; on success it is durable. What a cut connection left at the server, this one's
    /// or an earlier one's, is not sent again.
    ///
    /// # Errors
    /// HASH_FAILED, TOO_LARGE, LEASE_LOST; or the server is lost.
    pub async fn upload(
        &self,
        lease: Option<&Lease>,
        sha256: Sha256Digest,
        content: Vec<u8>,
    ) -> Result<BlobRef, CallError> {
        let blob = BlobRef { sha256, size_bytes: content.len() as u64 };
        let content = Bytes::from(content);
        let mut offset = if content.len() > CHUNK_BYTES { self.received(blob, 0).await } else { 0 };
        let mut cuts = 0;
        loop {
            match self.upload_from(lease, blob, &content, offset).await {
                // Nothing is gained by going on where so little was sent.
                Err(error) if error.is_outage() && content.len() > CHUNK_BYTES && cuts < CUTS => {
                    cuts += 1;
                    offset = self.received(blob, LOOKS).await;
                }
                uploaded => return uploaded.map(|()| blob),
            }
        }
    }

    /// How many bytes of a blob the server has, from which an upload can go on: none where it does not know, or another call
    /// uploads the blob, also when that was looked for so many times more.
    async fn received(&self, blob: BlobRef, looks: usize) -> u64 {
        for look in 0..=looks {
            let message = v1::StatUploadRequest { workspace_id: self.workspace.to_string(), blob: Some(blob.into()) };
            match self.answer(self.files().stat_upload(timed(message, ANSWER))).await {
                Ok(found) if !found.is_in_progress => return found.received_bytes.min(blob.size_bytes),
                Err(
                    CallError::Refused { .. }
                    | CallError::Unaccepted { .. }
                    | CallError::NoSuchCall { .. }
                    | CallError::Answer { .. },
                ) => return 0,
                // The server may not have noticed yet that the connection is lost, or is being started.
                Ok(_)
                | Err(
                    CallError::Unreachable { .. }
                    | CallError::Unavailable { .. }
                    | CallError::NoTls { .. }
                    | CallError::Untrusted { .. },
                ) => {
                    if look < looks {
                        tokio::time::sleep(LOOK_AFTER).await;
                    }
                }
            }
        }
        0
    }

    /// Uploads the bytes of a blob from an offset on.
    async fn upload_from(
        &self,
        lease: Option<&Lease>,
        blob: BlobRef,
        content: &Bytes,
        offset: u64,
    ) -> Result<(), CallError> {
        let start = v1::UploadBlobStart {
            offset,
            workspace_id: self.workspace.to_string(),
            blob: Some(blob.into()),
            lease_secret: lease.map(|lease| lease.secret.0.clone()).unwrap_or_default(),
        };
        let (content, first) = (content.clone(), usize::try_from(offset).unwrap_or(usize::MAX));
        let chunks = (first..content.len()).step_by(CHUNK_BYTES).map(move |at| {
            v1::upload_blob_request::Part::Chunk(content.slice(at..content.len().min(at + CHUNK_BYTES)))
        });
        let parts = std::iter::once(v1::upload_blob_request::Part::Start(start)).chain(chunks);
        let messages = parts.map(|part| v1::UploadBlobRequest { part: Some(part) });
        let request = timed(tokio_stream::iter(messages), TRANSFER);
        self.within(TRANSFER, self.files().upload_blob(request)).await.map(drop)
    }

    /// Downloads a blob and checks that it is what its name says.
    ///
    /// # Errors
    /// NOT_FOUND; HASH_FAILED when the bytes are others; or the server is lost.
    pub async fn download(&self, blob: BlobRef) -> Result<Vec<u8>, CallError> {
        let transfer = tokio::time::timeout(TRANSFER, self.download_chunks(blob));
        let content = transfer.await.map_err(|_| CallError::silent(&self.server, TRANSFER))??;
        Ok(self.blocking(move || verified(blob, content)).await??)
    }

    async fn download_chunks(&self, blob: BlobRef) -> Result<Vec<u8>, CallError> {
        let message =
            v1::DownloadBlobRequest { workspace_id: self.workspace.to_string(), sha256: blob.sha256.to_string() };
        let mut stream = self.answer(self.files().download_blob(message)).await?;
        let mut content = Vec::new();
        loop {
            let Some(part) = self.within(ANSWER, stream.message()).await? else { return Ok(content) };
            content.extend_from_slice(&part.chunk);
            if content.len() as u64 > blob.size_bytes.min(BLOB_BYTES) {
                return Err(wrong_blob(blob, &content).into());
            }
        }
    }
}

fn verified(blob: BlobRef, content: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if content.len() as u64 == blob.size_bytes && sha256(&content) == blob.sha256 {
        Ok(content)
    } else {
        Err(wrong_blob(blob, &content))
    }
}

fn wrong_blob(blob: BlobRef, content: &[u8]) -> Failure {
    let message = format!(
        "expected the {} bytes with the SHA-256 {}, received {} bytes with {}",
        blob.size_bytes,
        blob.sha256,
        content.len(),
        sha256(content)
    );
    Failure::new(Reason::HashFailed, message)
}
