//! How a session is written.

use aptix_model::id::SessionId;
use aptix_model::record::UnixMillis;
use aptix_model::session::{ModeRequest, Progress, Session, SessionMode};
use fjall::Slice;

use super::record::{Fields, VERSION, Writer, read_version};
use crate::store::StoreError;

/// A session with a request of which the token is known.
const SIGNED: u8 = 2;

pub(in crate::store) fn encode(session: &Session) -> Slice {
    let is_signed = session.requests.iter().any(|request| request.by.is_some());
    let record = Writer::with_version(if is_signed { SIGNED } else { VERSION })
        .bytes(session.id.as_str().as_bytes())
        .optional(session.conversation.as_ref().map(|id| id.as_str().as_bytes()))
        .optional(session.owner.as_ref().map(|owner| owner.as_str().as_bytes()))
        .bytes(session.mode.word().as_bytes())
        .number(session.created.0)
        .number(session.requests.len() as u64);
    let requests = session.requests.iter();
    let record = requests.fold(record, |record, ModeRequest { id, to, progress, by }| {
        let record = record.bytes(id.as_str().as_bytes()).bytes(to.word().as_bytes()).bytes(progress.word().as_bytes());
        if is_signed { record.optional(by.as_deref().map(str::as_bytes)) } else { record }
    });
    record.finish()
}

/// Reads the session of this id.
pub(in crate::store) fn decode(id: &SessionId, record: &[u8]) -> Result<Session, StoreError> {
    let session = decode_any(record)?;
    if session.id == *id {
        return Ok(session);
    }
    let why = "it is the record of another session".to_owned();
    Err(StoreError::Corrupt { what: format!("session {id}"), why })
}

/// Reads a session of whatever id.
pub(in crate::store) fn decode_any(record: &[u8]) -> Result<Session, StoreError> {
    let is_signed = record.first() == Some(&SIGNED);
    read_version(if is_signed { SIGNED } else { VERSION }, "a session", record, |fields| {
        Some(Session {
            id: fields.text()?.parse().ok()?,
            conversation: optional(fields)?,
            owner: optional(fields)?,
            mode: SessionMode::from_word(fields.text()?)?,
            created: UnixMillis(fields.number()?),
            requests: {
                let count = fields.number()?;
                (0..count).map(|_| request(fields, is_signed)).collect::<Option<_>>()?
            },
        })
    })
}

fn request(fields: &mut Fields<'_>, is_signed: bool) -> Option<ModeRequest> {
    Some(ModeRequest {
        id: fields.text()?.parse().ok()?,
        to: SessionMode::from_word(fields.text()?)?,
        progress: Progress::from_word(fields.text()?)?,
        by: if is_signed { fields.optional_text()? } else { None },
    })
}

fn optional<T: std::str::FromStr>(fields: &mut Fields<'_>) -> Option<Option<T>> {
    match fields.optional_text()? {
        Some(text) => Some(Some(text.parse().ok()?)),
        None => Some(None),
    }
}

pub(in crate::store) fn encode_count(count: u64) -> Slice {
    Writer::with_version(VERSION).number(count).finish()
}

pub(in crate::store) fn decode_count(record: &[u8]) -> Result<u64, StoreError> {
    read_version(VERSION, "the number of sessions", record, |fields| fields.number())
}
