//! How a token is written.

use aptix_model::record::UnixMillis;
use aptix_model::token::{Ended, Ending, Role, Scope, Token};
use fjall::Slice;

use super::record::{VERSION, Writer, read_version};
use crate::store::StoreError;
use crate::store::access::KeptToken;

pub(in crate::store) fn encode(kept: &KeptToken) -> Slice {
    let token = &kept.token;
    let (at, how) = token.ended.map_or((None, None), |ended| (Some(ended.at), Some(ended.how)));
    let time = |at: Option<UnixMillis>| at.map(|at| at.0.to_be_bytes());
    let record = Writer::with_version(VERSION)
        .bytes(token.name.as_str().as_bytes())
        .bytes(kept.digest.as_bytes())
        .bytes(token.role.word().as_bytes())
        .optional(match &token.scope {
            Scope::All => None,
            Scope::One(workspace) => Some(workspace.as_str().as_bytes()),
        })
        .number(token.created.0)
        .optional(time(token.expires).as_ref().map(<[u8; 8]>::as_slice))
        .optional(time(at).as_ref().map(<[u8; 8]>::as_slice))
        .optional(how.map(|how| how.word().as_bytes()));
    // Earlier versions wrote none.
    match &token.certificate {
        Some(name) => record.bytes(name.to_string().as_bytes()).finish(),
        None => record.finish(),
    }
}

pub(in crate::store) fn decode(record: &[u8]) -> Result<KeptToken, StoreError> {
    let time = |bytes: Option<&[u8]>| match bytes {
        Some(bytes) => Some(Some(UnixMillis(u64::from_be_bytes(bytes.try_into().ok()?)))),
        None => Some(None),
    };
    read_version(VERSION, "a token", record, |fields| {
        let (name, digest) = (fields.text()?.parse().ok()?, fields.digest()?);
        let token = Token {
            name,
            role: Role::from_word(fields.text()?)?,
            scope: match fields.optional_text()? {
                Some(workspace) => Scope::One(workspace.parse().ok()?),
                None => Scope::All,
            },
            created: UnixMillis(fields.number()?),
            expires: time(fields.optional()?)?,
            ended: match (time(fields.optional()?)?, fields.optional_text()?) {
                (Some(at), Some(how)) => Some(Ended { at, how: Ending::from_word(&how)? }),
                (None, None) => None,
                _ => return None,
            },
            certificate: match fields.is_empty() {
                true => None,
                false => Some(fields.text()?.parse().ok()?),
            },
        };
        Some(KeptToken { token, digest })
    })
}
