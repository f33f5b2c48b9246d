//! Takes the messages of one upload, in their order.

use aptix_model::batch::BlobRef;
use aptix_model::failure::Failure;
use aptix_model::limits::CHUNK_BYTES;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::{self, v1};
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::file::FileService;
use super::status::{status, too_late};
use crate::dispatcher::lease::secret_digest;
use crate::dispatcher::refusal::Refusal;
use crate::identity::Principal;
use crate::quota::{CallQuota, Limit};
use crate::room::Place;

impl FileService {
    /// Takes an upload until its last message.
    pub(super) async fn upload(
        &self,
        place: Place,
        (caller, quota): (&Principal, &CallQuota),
        mut parts: Streaming<v1::UploadBlobRequest>,
    ) -> Result<BlobRef, Status> {
        use v1::upload_blob_request::Part;
        let Some(Part::Start(start)) = self.next(&mut parts).await?.and_then(|first| first.part) else {
            return Err(status(wire::missing("start", "the blob's name in the first message")));
        };
        let workspace = wire::id("start.workspaceId", &start.workspace_id).map_err(status)?;
        caller.check_workspace(&workspace).map_err(|failure| status(Refusal::denied(failure)))?;
        quota.call_in(&workspace).map_err(status)?;
        let _chunk = quota.take_in(&workspace, Limit::BytesInFlight, CHUNK_BYTES).map_err(status)?;
        let blob = start.blob.ok_or_else(|| status(wire::missing("start.blob", "the blob's digest and size")))?;
        let blob = BlobRef::try_from(blob).map_err(status)?;
        let by = (secret_digest(&start.lease_secret), quota);
        let mut upload = self.dispatcher.upload(place, workspace, (blob, start.offset), by).await.map_err(status)?;
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
