//! Tokens in the tables: a record each, by name.

use std::path::{Path, PathBuf};

use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::record::UnixMillis;
use aptix_model::token::{Ended, Ending, Role, Scope, Token};
use fjall::{Readable, Slice};

use super::committer::{Put, View};
use super::instant::Instant;
use super::keys;
use super::own_files;
use super::record::{self, Counters, VERSION, Writer, read_version};
use super::session_record;
use super::tables::failed;
use crate::store::StoreError;
use crate::store::access::{KeptToken, TokenAdded, Tokens, added};

/// The name of the file below.
pub(super) const NEEDED: &str = "tokens-needed";

/// The file that says that calls need a token. It lies beside the journals, so that their loss opens the server to nobody.
pub(super) struct Needed(PathBuf);

impl Needed {
    /// That of a data directory.
    pub(super) fn of(dir: &Path) -> Self {
        Self(dir.join(NEEDED))
    }

    pub(super) fn is_said(&self) -> bool {
        // One that cannot be looked at is taken to be there.
        !matches!(self.0.try_exists(), Ok(false))
    }

    pub(super) fn say(&self) -> Result<(), StoreError> {
        if self.is_said() {
            return Ok(());
        }
        let text = b"Calls need a token, also where no token is left.\n";
        own_files::replace(&self.0, text).map(drop).map_err(|error| own_files::failed("make a token", &self.0, &error))
    }
}

/// Keeps a new token.
pub(super) fn add(view: &View<'_>, kept: &KeptToken, needed: &Needed) -> Result<(TokenAdded, Vec<Put>), StoreError> {
    let token = &kept.token;
    let key = keys::token(&token.name);
    let others = view.beginning_with(keys::TOKENS)?;
    let workspace = match &token.scope {
        Scope::All => None,
        Scope::One(workspace) => view.get(&keys::workspace(workspace))?,
    };
    let added = added(token, others.contains_key(&key), others.len(), |_| workspace.is_some());
    if added != TokenAdded::New {
        return Ok((added, Vec::new()));
    }
    needed.say()?;
    let count = Put::Record(keys::TOKEN_COUNT.to_vec(), session_record::encode_count(others.len() as u64 + 1));
    Ok((added, vec![Put::Record(key, encode(kept)), count]))
}

/// Ends a token.
pub(super) fn end(view: &View<'_>, name: &TokenName, ended: Ended) -> Result<(Option<Token>, Vec<Put>), StoreError> {
    let key = keys::token(name);
    let Some(record) = view.get(&key)? else { return Ok((None, Vec::new())) };
    let mut kept = decode(&record)?;
    if kept.token.ended.is_some() {
        return Ok((Some(kept.token), Vec::new()));
    }
    kept.token.ended = Some(ended);
    let record = encode(&kept);
    Ok((Some(kept.token), vec![Put::Record(key, record)]))
}

/// Creates a workspace, if there is none.
pub(super) fn create_workspace(view: &View<'_>, workspace: &WorkspaceId) -> Result<(bool, Vec<Put>), StoreError> {
    let key = keys::workspace(workspace);
    if view.get(&key)?.is_some() || view.known(workspace).is_some() {
        return Ok((false, Vec::new()));
    }
    let counters = Counters { open: Some(0), ..Counters::default() };
    Ok((true, vec![Put::Record(key, record::encode_counters(counters))]))
}

impl Instant<'_> {
    pub(super) fn tokens(&self) -> Result<Tokens, StoreError> {
        let mut found = Tokens::default();
        for entry in self.snapshot.prefix(&self.tables.records, keys::TOKENS) {
            let (key, value) = entry.into_inner().map_err(failed("list tokens"))?;
            match decode(&value) {
                Ok(kept) if keys::token(&kept.token.name) == *key => found.readable.push(kept),
                Ok(kept) => found.damaged.push(format!("a token has the record of token {}", kept.token.name)),
                Err(error) => found.damaged.push(error.to_string()),
            }
        }
        Ok(found)
    }
}

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
