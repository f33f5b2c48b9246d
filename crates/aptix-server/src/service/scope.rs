//! The workspace that a message names, read from its bytes before it is decoded, and held against the caller's token.

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::wire::method::Method;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::identity::{Principal, other_workspace};

/// Whether a caller may have to do with the workspace that the first message of a call names.
///
/// # Errors
/// `PERMISSION_DENIED`: the same whether there is such a workspace or not.
pub(super) fn check(caller: &Principal, method: Option<Method>, message: &[u8]) -> Result<(), Failure> {
    let (Some(only), Some(fields)) = (caller.only(), method.and_then(Method::workspace)) else { return Ok(()) };
    match named(fields, message) {
        // Without a workspace the call is refused by its service.
        Ok(None) => Ok(()),
        Ok(Some(named)) if named == only.as_str().as_bytes() => Ok(()),
        Ok(Some(_)) | Err(NoMessage) => Err(other_workspace(only)),
    }
}

/// The workspace that the first message of a call names, if it names one by a valid id.
pub(super) fn workspace(method: Option<Method>, message: &[u8]) -> Option<WorkspaceId> {
    let named = named(method.and_then(Method::workspace)?, message).ok()??;
    std::str::from_utf8(named).ok()?.parse().ok()
}

/// The bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NoMessage;

/// The bytes of the field at the end of the path. Where it stands more than once the last one counts, as it does when the message is
/// decoded; a message that stands more than once is merged.
///
/// # Errors
/// When the bytes are no message.
fn named<'a>(path: &[u32], mut message: &'a [u8]) -> Result<Option<&'a [u8]>, NoMessage> {
    let Some((wanted, rest)) = path.split_first() else { return Ok(Some(message)) };
    let mut found = None;
    while !message.is_empty() {
        let (number, kind) = decode_key(&mut message).map_err(|_| NoMessage)?;
        if number != *wanted || kind != WireType::LengthDelimited {
            skip_field(kind, number, &mut message, DecodeContext::default()).map_err(|_| NoMessage)?;
            continue;
        }
        let length = decode_varint(&mut message).map_err(|_| NoMessage)?;
        let length = usize::try_from(length).map_err(|_| NoMessage)?;
        let (field, left) = message.split_at_checked(length).ok_or(NoMessage)?;
        message = left;
        found = named(rest, field)?.or(found);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use aptix_model::wire::v1;
    use prost::Message;

    use super::*;

    const UPLOAD: &[u32] = &[1, 1];

    fn start(workspace: &str) -> Vec<u8> {
        use v1::upload_blob_request::Part;
        let start = v1::UploadBlobStart { workspace_id: workspace.to_owned(), ..v1::UploadBlobStart::default() };
        v1::UploadBlobRequest { part: Some(Part::Start(start)) }.encode_to_vec()
    }

    #[test]
    fn what_is_found_is_what_is_decoded() {
        assert_eq!(Method::UploadBlob.workspace(), Some(UPLOAD));
        let pieces = [start("a"), start("b"), start(""), vec![0x18, 7], vec![0x0a, 2, 0x20, 1]];
        for first in &pieces {
            for second in &pieces {
                for third in &pieces {
                    let message = [first.as_slice(), second, third].concat();
                    let decoded = v1::UploadBlobRequest::decode(message.as_slice()).unwrap();
                    let Some(v1::upload_blob_request::Part::Start(start)) = decoded.part else { continue };
                    let found = named(UPLOAD, &message).unwrap().unwrap_or_default();
                    assert_eq!(found, start.workspace_id.as_bytes(), "{message:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_cut_short_is_no_message() {
        let message = start("a workspace");
        for length in 1..message.len() {
            assert!(named(UPLOAD, &message[..length]).is_err(), "{length} bytes");
        }
    }
}
