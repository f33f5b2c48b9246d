//! Content that travelled as a blob, put back into the batch before anything else looks at it.

use aptix_model::batch::{Batch, BlobRef, Content};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::reason::{Detail, Reason};

use crate::connection::{CallError, Connection};

/// Why a batch's blobs are not there.
#[derive(Debug)]
pub(super) enum Unfetched {
    /// They never will be, or must not be fetched.
    Refused(Box<Failure>),
    /// They may be, later.
    Lost(CallError),
}

/// Replaces every blob by its text.
pub(super) async fn fetch(connection: &Connection, mut batch: Batch) -> Result<Batch, Unfetched> {
    let mut fetched: u64 = 0;
    for (index, file) in batch.files.iter_mut().enumerate() {
        let Some(content) = file.edit.content_mut() else { continue };
        let Content::Blob(blob) = *content else { continue };
        let refused = |failure: Failure| Unfetched::Refused(Box::new(failure.file(index, file.target.as_str())));
        fetched = fetched.saturating_add(blob.size_bytes);
        check_size(blob, fetched).map_err(refused)?;
        let bytes = match connection.download(blob).await {
            Ok(bytes) => bytes,
            Err(error) if error.is_passing() => return Err(Unfetched::Lost(error)),
            Err(error) => return Err(refused(unavailable(error))),
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let message = format!("the blob is not UTF-8: byte {} is wrong", error.utf8_error().valid_up_to());
            refused(Failure::new(Reason::NotText, message).detail(Detail::Encoding))
        })?;
        *content = Content::Text(text);
    }
    Ok(batch)
}

/// A blob that will not come: the server does not have it, or has other bytes under its name.
fn unavailable(error: CallError) -> Failure {
    let failure = error.into_failures().into_iter().next();
    let failure = failure.unwrap_or_else(|| Failure::new(Reason::BlobMissing, "the blob did not come"));
    match failure.reason {
        Reason::NotFound => Failure { reason: Reason::BlobMissing, ..failure },
        _ => failure,
    }
}

/// Nothing is fetched that could not be written, nor more for one batch than a file may have.
fn check_size(blob: BlobRef, fetched: u64) -> Result<(), Failure> {
    let Limits { created_bytes, file_bytes, .. } = Limits::DEFAULT;
    let (found, most) = match blob.size_bytes {
        size if size > created_bytes => (size, created_bytes),
        _ if fetched > file_bytes => (fetched, file_bytes),
        _ => return Ok(()),
    };
    let message = format!("the content has {found} bytes, at most {most} are accepted");
    Err(Failure::new(Reason::TooLarge, message).detail(Detail::File).hint("send several smaller batches"))
}
