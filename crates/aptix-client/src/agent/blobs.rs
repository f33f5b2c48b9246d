//! Content that a batch names as blobs: downloaded from the server, checked, and put in its place as text.

use aptix_model::batch::{Batch, BlobRef, Content};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::question::Question;
use aptix_model::reason::{Detail, Reason};

use crate::connection::{CallError, Connection};

/// Replaces every blob of a batch by its text; an error is one that may pass.
pub(super) async fn in_batch(connection: &Connection, mut batch: Batch) -> Result<Result<Batch, Failure>, CallError> {
    let mut fetched = 0;
    for (index, file) in batch.files.iter_mut().enumerate() {
        let Some(content) = file.edit.content_mut() else { continue };
        let Content::Blob(blob) = *content else { continue };
        match fetch(connection, blob, &mut fetched).await? {
            Ok(text) => *content = Content::Text(text),
            Err(failure) => return Ok(Err(failure.file(index, file.target.as_str()))),
        }
    }
    Ok(Ok(batch))
}

/// Replaces every blob of the batch that a question is about by its text; an error is one that may pass.
pub(super) async fn in_question(
    connection: &Connection,
    question: Question,
) -> Result<Result<Question, Failure>, CallError> {
    Ok(match question {
        Question::Preview(batch) => in_batch(connection, batch).await?.map(Question::Preview),
        Question::Prepare(batch, origin) => {
            in_batch(connection, batch).await?.map(|batch| Question::Prepare(batch, origin))
        }
        other => Ok(other),
    })
}

/// The text of a blob. `fetched` counts the bytes of those before it.
async fn fetch(
    connection: &Connection,
    blob: BlobRef,
    fetched: &mut u64,
) -> Result<Result<String, Failure>, CallError> {
    *fetched = fetched.saturating_add(blob.size_bytes);
    match check_size(blob, *fetched) {
        Ok(()) => connection.download(blob).await.map_or_else(unavailable, |bytes| Ok(text(bytes))),
        Err(failure) => Ok(Err(failure)),
    }
}

fn text(bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let message = format!("the blob is not UTF-8: byte {} is wrong", error.utf8_error().valid_up_to());
        Failure::new(Reason::NotText, message).detail(Detail::Encoding)
    })
}

/// The failure of a blob that the server does not have, or has other bytes for.
fn unavailable<T>(error: CallError) -> Result<Result<T, Failure>, CallError> {
    if error.is_passing() {
        return Err(error);
    }
    let failure = error.into_failures().into_iter().next();
    let failure = failure.unwrap_or_else(|| Failure::new(Reason::BlobMissing, "the blob did not come"));
    Ok(Err(match failure.reason {
        Reason::NotFound => Failure { reason: Reason::BlobMissing, ..failure },
        _ => failure,
    }))
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
